"""The same path of an SVG file in fewer characters: every point relative to the one before."""

import re
from collections.abc import Sequence
from decimal import Decimal

COMMAND = re.compile(r"([A-Za-z])([^A-Za-z]*)")
NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?")
POINTS = {"M": 1, "L": 1, "Q": 2, "C": 3, "Z": 0}
Point = tuple[Decimal, Decimal]


def relative(path: str) -> str:
    """The path with relative points, exactly; one with other commands than matplotlib's (M, L, Q, C, z) as it is."""
    commands = COMMAND.findall(path)
    if any(name not in "MLQCzZ" for name, _ in commands):
        return path
    here = start = (Decimal(0), Decimal(0))
    written, previous = "", ""
    for name, text in commands:
        numbers = [Decimal(number) for number in NUMBER.findall(text)]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        if len(points) != POINTS[name.upper()]:
            return path
        letter = name.lower()
        written += _joined(points, here, "" if letter == previous != "m" else letter)
        here = points[-1] if points else start
        start = here if letter == "m" else start
        previous = letter
    return written


def _joined(points: Sequence[Point], here: Point, letter: str) -> str:
    text = letter
    for number in (value - origin for point in points for value, origin in zip(point, here, strict=True)):
        short = _short(number)
        # A letter or a sign ends the number before.
        text += short if short[0] == "-" or (text and text == letter) else f" {short}"
    return text


def _short(number: Decimal) -> str:
    """The number without zeros that say nothing: `.5`, `-3`."""
    text = f"{number:f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return re.sub(r"^(-?)0\.", r"\1.", text) if text not in ("", "-0", "-") else "0"
