"""Which notebooks are chapters of the course, next to the copies of JupyterLab and people; how to repair one."""

import re
from pathlib import Path

# The parts of the course, by the number of their first chapter.
PARTS = {"00": "One process", "06": "Several processes", "12": "At scale"}
_NAME = re.compile(r"\d\d[a-z]?_\w+")


def is_chapter(file: Path) -> bool:
    """Whether the file has the name of a chapter, NN_topic or NNb_topic; copies have more, as in 01_topic-Copy1."""
    return bool(_NAME.fullmatch(file.stem))


def number_of(name: str) -> str:
    """The number in the name of a chapter or lab, such as "08"; "08b" for a second part."""
    return name.partition("_")[0]


def chapter_notebooks(folder: Path) -> list[Path]:
    """The notebooks of a folder that are chapters, in the order of the course."""
    return sorted(file for file in folder.glob("*.ipynb") if is_chapter(file))


def part_of(name: str) -> str:
    """The part of the course that a chapter or lab belongs to, by its name, which begins with two digits."""
    return PARTS[max(first for first in PARTS if first <= name)]


def how_to_repair(notebook: Path) -> str:
    """What to do about a file that is no notebook: half a sentence."""
    return f"`git checkout {notebook}` restores it, without your changes"
