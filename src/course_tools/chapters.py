"""Which chapters there are, by the names of their files, NN_topic or NNb_topic, and choosing some of them."""

import re
from collections.abc import Sequence
from pathlib import Path

from distlab.runtime.lookups import NoSuchName, require_name

# The parts of the course, by the number of their first chapter.
PARTS = {"00": "One process", "06": "Several processes", "12": "At scale"}
_NAME = re.compile(r"\d\d[a-z]?_\w+")


def is_chapter(file: Path) -> bool:
    """Whether the file has the name of a chapter; copies of JupyterLab and people have more, as in 01_topic-Copy1."""
    return bool(_NAME.fullmatch(file.stem))


def number_of(name: str) -> str:
    """The number in the name of a chapter or lab, such as "08"; "08b" for a second part."""
    return name.partition("_")[0]


def part_of(name: str) -> str:
    """The part of the course that a chapter or lab belongs to, by its name, which begins with two digits."""
    return PARTS[max(first for first in PARTS if first <= name)]


def chapter_notebooks(folder: Path, only: str | None = None) -> list[Path]:
    """The notebooks of a folder that are chapters, in the order of the course; `only` is that of `chosen`."""
    return chosen(sorted(filter(is_chapter, folder.glob("*.ipynb"))), only)


def chosen(files: Sequence[Path], only: str | None = None, kind: str = "notebook") -> list[Path]:
    """The files that `only` names, by number or name, separated by commas ("03" or "02,04"); all of them without it.

    Raises NoSuchName for one that is not there, or when there is none at all.
    """
    if not files:
        raise NoSuchName(f"There is no {kind} in {Path.cwd()}; run this in the course's folder.")
    if not only:
        return list(files)
    names = [name.strip().zfill(2) for name in only.split(",") if name.strip()]
    numbers = [number_of(file.stem) for file in files]
    for name in names or [only]:
        if name not in numbers:
            require_name(numbers if name.isdigit() else [file.stem for file in files], name, kind)
    return [file for file in files if {file.stem, number_of(file.stem)} & set(names)]
