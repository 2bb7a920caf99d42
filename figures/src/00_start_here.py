"""The pictures of notebook 00 and of docs/architecture.md: the map of the course, the layers of the code.

Run it from anywhere: python figures/src/00_start_here.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
PARTS = {
    "one process, several devices": (
        "00 start\nhere",
        "01 why\ndistribute",
        "02 single\ndevice",
        "03 mirrored\nstrategy",
        "04 custom\nloop",
        "05 save\nand load",
    ),
    "several processes": (
        "06 ring\nall-reduce",
        "07 multi-\nworker",
        "08 other\nstrategies",
        "09 Horovod",
        "10 large\nbatches",
        "11 scaling,\nprofiling",
    ),
    "beyond": ("12 model\nparallelism", "13 fault\ntolerance", "14 other\nframeworks", "15 clusters"),
}


def course_map(folder: Path) -> None:
    """The chapters in three rows, in the order of reading."""
    figure, axes = canvas(7.2, 3.0)
    described = ["The map of the course, three rows of chapters in the order of reading."]
    for part, (title, chapters) in enumerate(PARTS.items()):
        top = 2.85 - part
        label(axes, (0.1, top), title, ha="left", fontweight="bold")
        lefts, width = row(6, 0.1, 7.1, 0.2)
        for index, chapter in enumerate(chapters):
            box(axes, (lefts[index], top - 0.68), width, 0.54, chapter)
            if index:
                arrow(axes, (lefts[index] - 0.2, top - 0.41), (lefts[index], top - 0.41))
        names = "; ".join(chapters).replace("-\n", "-").replace("\n", " ")
        described.append(f"{title.capitalize()}: {names}.")
    draw.save(figure, folder / "00_course_map.svg", " ".join(described))


LAYERS = (
    ("what people open", ("notebooks/", "labs/", "figures/", "make, distlab")),
    ("src/course_tools:\nwhat make calls", ("set-up, execution", "site, slides", "grading, sandbox")),
    ("src/distlab:\nwhat students import", ("labs", "quizzes")),
    ("", ("launch, cluster", "costs", "strategy_support")),
    ("", ("draw", "recorded_results")),
    ("", ("model_parallel,\nlarge_batch", "metrics, models,\nchecks", "cluster_spec,\nprofiling …")),
    ("", ("collectives", "data, devices")),
    ("", ("simulate", "runtime")),
)


def architecture(folder: Path) -> None:
    """The layers of the code; each imports only what is below it."""
    figure, axes = canvas(7.2, 5.4)
    described = ["The layers of the code, each imports only layers below it. From the top:"]
    for number, (title, rooms) in enumerate(LAYERS):
        bottom = 4.85 - 0.68 * number
        label(axes, (0.1, bottom + 0.22), title, ha="left", fontweight="bold")
        lefts, width = row(len(rooms), 2.1, 7.1, 0.15)
        for left, room in zip(lefts, rooms, strict=True):
            box(axes, (left, bottom), width, 0.44, room)
        if number + 1 < len(LAYERS):
            arrow(axes, (4.6, bottom - 0.02), (4.6, bottom - 0.22))
        names = ", ".join(room.replace("\n", " ") for room in rooms)
        described.append(f"{title.replace(chr(10), ' ') or 'below'}: {names}.")
    draw.save(figure, folder / "00_architecture.svg", " ".join(described))


def main(folder: Path = FOLDER) -> None:
    """Draw them into a folder."""
    draw.apply_style()
    course_map(folder)
    architecture(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
