"""The picture of notebook 08b: two workers' gradients, an all-reduce before `apply`, and the all-reduce inside it.

Run it from anywhere: python figures/src/08b_keras_3.py
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
GRADIENTS = (1, 3)  # of each worker's images; their sum is right, since the loss is divided by the global batch size
WAYS: dict[str, tuple[str, Callable | None]] = {
    "as they are": ("", None),
    "added before": ("all_reduce SUM", sum),
    "averaged before": ("all_reduce MEAN", mean),
}


def one_all_reduce_too_many(folder: Path) -> None:
    """What each worker's optimizer gets and what `apply` makes of it, for three ways."""
    figure, axes = canvas(7.2, 3.45)
    rows = {2.72: "each worker's\ngradient", 1.61: "given\nto apply", 0.45: "what changes\nthe weights"}
    for height, text in rows.items():
        label(axes, (0.08, height), text, ha="left", color="#5A5A5A")
    lefts, width = row(len(WAYS), 1.15, 7.1, 0.25)
    described = []
    for left, (way, (name, before)) in zip(lefts, WAYS.items(), strict=True):
        label(axes, (left + width / 2, 3.25), way, fontweight="bold")
        given = [before(GRADIENTS)] * len(GRADIENTS) if before else list(GRADIENTS)
        total = sum(given)
        halves, half = row(len(GRADIENTS), left, left + width, 0.15)
        for worker, (own, passed, place) in enumerate(zip(GRADIENTS, given, halves, strict=True)):
            middle = place + half / 2
            box(axes, (place, 2.5), half, 0.45, f"worker {worker}: {own}", worker)
            box(axes, (place, 1.4), half, 0.45, f"worker {worker}: {passed:g}", worker)
            arrow(axes, (middle, 2.5), (middle, 2.33 if before else 1.85))
            if before:
                arrow(axes, (middle, 2.03), (middle, 1.85))
            arrow(axes, (middle, 1.4), (middle, 1.22))
        if before:
            box(axes, (left, 2.03), width, 0.3, name)
        box(axes, (left, 0.92), width, 0.3, "apply: adds up")
        arrow(axes, (left + width / 2, 0.92), (left + width / 2, 0.74))
        right = total == sum(GRADIENTS)
        label(axes, (left + width / 2, 0.6), f"{total:g}", fontweight="bold", fontsize=11)
        verdict = ("right, but slower" if before else "right") if right else f"wrong: not {sum(GRADIENTS)}"
        label(axes, (left + width / 2, 0.3), verdict)
        described.append(f"{way}: apply gets {given[0]:g} and {given[1]:g} and adds them up to {total:g}, {verdict}")
    text = f"Two workers have the gradients {GRADIENTS[0]} and {GRADIENTS[1]}. Three columns: {'; '.join(described)}."
    draw.save(figure, folder / "08b_one_all_reduce_too_many.svg", text)


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    one_all_reduce_too_many(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
