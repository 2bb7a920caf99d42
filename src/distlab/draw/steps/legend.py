"""What the marks in a step strip mean, and in words what went wrong."""

import textwrap
from collections.abc import Iterator

from distlab.draw.diagram import fill_of
from distlab.draw.steps.chunk_boxes import POINTS, Boxes
from distlab.draw.steps.history import History
from distlab.draw.steps.stamps import Stamp, polygon, rectangle, width_of, words
from distlab.draw.style import INK, QUIET

_LINE = 0.19
_SAMPLE = 0.2
_DOWN = [(-0.045, 0.045), (0.045, 0.045), (0, -0.045)]
_RIGHT = [(-0.045, 0.045), (-0.045, -0.045), (0.045, 0)]


def legend(boxes: Boxes, steps: list[int], width: float) -> tuple[list[Stamp], float]:
    """The lines below a strip, with places relative to their upper left corner, and their height in inches.

    Only marks that the strip shows are explained; `steps` are those drawn; `width` is what a line may take.
    """
    stamps: list[Stamp] = []
    left, line = 0.0, 0.5
    for mark, meaning in _entries(boxes, steps):
        wide = _SAMPLE + 0.05 + width_of(meaning, POINTS) + 0.22
        if left and left + wide > width:
            left, line = 0.0, line + 1
        y = -_LINE * line
        stamps += [Stamp(stamp.shape, left + stamp.x, y + stamp.y) for stamp in mark]
        stamps.append(Stamp(words(meaning, POINTS, INK, align="left"), left + _SAMPLE + 0.05, y))
        left += wide
    for text, is_bold in _in_words(boxes.trace, int(width / width_of("n", POINTS, bold=True))):
        line += 1
        stamps.append(Stamp(words(text, POINTS, INK, bold=is_bold, align="left"), 0.0, -_LINE * line))
    return stamps, _LINE * (line + 0.5) + 0.12


def _in_words(trace: History, characters: int) -> list[tuple[str, bool]]:
    """What went wrong, in lines of so many characters, and whether each is bold."""
    text = [(line, True) for line in textwrap.wrap(trace.first_fault() or "", characters)]
    if trace.error is None:
        return text
    lines = [part for line in str(trace.error).splitlines() for part in textwrap.wrap(line, characters)]
    return [("The run stopped here:", True), *((line, False) for line in lines), *text]


def _entries(boxes: Boxes, steps: list[int]) -> Iterator[tuple[list[Stamp], str]]:
    """Each mark that the strip shows, with places relative to its own, and what it means."""
    trace = boxes.trace
    places = [(step, rank) for step in steps for rank in range(trace.size)]
    stamps = [stamp for place in places for stamp in boxes.of_rank(*place, 0, 0)]
    stamps += [stamp for place in places for stamp in boxes.marks(*place, 0, 0)]
    names = {stamp.shape.name for stamp in stamps}
    label, meaning = "1", "data of rank 1"
    if trace.adds:
        meaning = "rank 1's share has been added"
    elif trace.task.moves_between_chunks:
        label, meaning = "1.0", "1.0 is chunk 0 of rank 1 at the start"
    yield _sample(fill_of(1), label, INK), meaning
    if "finished chunk" in names:
        yield [Stamp(rectangle("sample", 0.16, 0.12, "white", INK, 1.5), 0.02, -0.06)], "finished chunk"
    if "changed" in names:
        yield [Stamp(polygon("sample", _DOWN, INK), 0.1, 0.0)], "changed in this step"
    if "sent next" in names:
        yield [Stamp(polygon("sample", _RIGHT, INK), 0.1, 0.0)], "sent in the next step"
    if not all(message.received for message in trace.messages if message.step in steps):
        yield [Stamp(words("×", 12, INK, bold=True), 0.1, 0.0)], "received by nobody"
    if any(name.endswith(" twice") for name in names):
        yield _sample(INK, "2×", "white"), "added twice"
    if any(name.startswith("strange") for name in names):
        yield _sample(INK, "1", "white"), "share of another chunk"
    if any(name.startswith("missing") for name in names):
        yield _sample("white", "–", INK), "missing in the end"
    if "wrong chunk" in names:
        yield [Stamp(rectangle("sample", 0.16, 0.12, "white", INK, 1.5, dashed=True), 0.02, -0.06)], "! wrong chunk"


def _sample(face: str, text: str, colour: str) -> list[Stamp]:
    box = rectangle("sample", 0.2, 0.14, face, QUIET, 0.5)
    return [Stamp(box, 0.0, -0.07), Stamp(words(text, POINTS, colour, bold=face == INK), 0.1, 0.0)]
