"""The pictures of notebook 00 and of docs/architecture.md: the map of the course, the layers of the code.

Run it from anywhere: python figures/src/00_start_here.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
# Where each chapter stands (column and row, from the top left), its name, and those it builds on directly.
CHAPTERS = {
    "00": ((0, 0), "00 start\nhere", ()),
    "01": ((1, 0), "01 why\ndistribute", ("00",)),
    "02": ((2, 0), "02 single\ndevice", ("01",)),
    "03": ((3, 0), "03 mirrored\nstrategy", ("02",)),
    "04": ((4, 0), "04 custom\nloop", ("03",)),
    "05": ((4, 1), "05 save\nand load", ("04",)),
    "06": ((2, 1), "06 ring\nall-reduce", ("04",)),
    "07": ((2, 2), "07 multi-\nworker", ("06",)),
    "08": ((1, 3), "08 other\nstrategies", ("07",)),
    "09": ((3, 3), "09 Horovod", ("07",)),
    "10": ((2, 4), "10 large\nbatches", ("09",)),
    "11": ((3, 4), "11 scaling,\nprofiling", ("09",)),
    "12": ((0, 2), "12 model\nparallelism", ("06",)),
    "13": ((4, 4), "13 fault\ntolerance", ("05", "09")),
    "14": ((0, 4), "14 other\nframeworks", ("08", "09", "12")),
    "15": ((3, 5), "15 clusters", ("11", "13")),
}


def course_map(folder: Path) -> None:
    """The chapters, and an arrow to each from those it builds on."""
    figure, axes = canvas(7.2, 4.8)
    lefts, width = row(5, 0.1, 7.1, 0.35)
    height, step = 0.48, 0.8
    described = ["The map of the course: which chapter builds on which."]
    for (column, line), chapter, needed in CHAPTERS.values():
        left, bottom = lefts[column], 4.2 - step * line
        box(axes, (left, bottom), width, height, chapter)
        for number in needed:
            (from_column, from_line), _, _ = CHAPTERS[number]
            start = lefts[from_column] + width / 2, 4.2 - step * from_line
            if from_line == line:
                arrow(axes, (start[0] + width / 2, start[1] + height / 2), (left, bottom + height / 2))
            else:  # from below one chapter to the top of the next, a little towards each other
                lean = 0.12 * width * (column - from_column)
                arrow(axes, (start[0] + lean, start[1]), (left + width / 2 - lean, bottom + height))
        if needed:
            name = chapter.replace("-\n", "-").replace("\n", " ")
            described.append(f"{name} builds on {' and '.join(needed)}.")
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
