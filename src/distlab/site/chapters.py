"""Which notebooks are chapters of the course: JupyterLab and people leave copies next to them."""

import re
from pathlib import Path

_NAME = re.compile(r"\d\d_\w+")


def is_chapter(file: Path) -> bool:
    """Whether the file has the name of a chapter, NN_topic; a copy such as 01_topic-Copy1 has more in its name."""
    return bool(_NAME.fullmatch(file.stem))


def chapter_notebooks(folder: Path) -> list[Path]:
    """The notebooks of a folder that are chapters, in the order of the course."""
    return sorted(file for file in folder.glob("*.ipynb") if is_chapter(file))


def copies(folder: Path) -> list[Path]:
    """The notebooks of a folder whose names begin like a chapter's and that are none."""
    return sorted(file for file in folder.glob("[0-9][0-9]_*.ipynb") if not is_chapter(file))
