"""A student's own copy of notebooks and labs: what is run and changed in it leaves the course's own files as they are.

A file that the student has not changed follows the course, for example after `git pull`; a changed one stays. For that
the copy remembers the digest that each file had in the course when it was copied.

A notebook of the copy says which Python it is for, so that JupyterLab changes nothing when it opens one, and has
nothing to ask when it closes one.
"""

import json
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary

from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import look_up

NAME = "work"
_PARTS = ("notebooks/*.ipynb", "labs/[0-9][0-9]_*/**/*", "figures/*.svg", "docs/*.md")
_NOT_COPIED = {"__pycache__", ".ipynb_checkpoints"}
# As ipykernel tells JupyterLab.
_LANGUAGE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "file_extension": ".py",
    "mimetype": "text/x-python",
    "name": "python",
    "nbconvert_exporter": "python",
    "pygments_lexer": "ipython3",
    "version": platform.python_version(),
}
_RECORD = ".copied.json"


class CopyNotWritten(PlainError, OSError):
    """The working copy could not be written; the message says where and why."""


def update(course: Path, copy: Path) -> list[str]:
    """Copy what is missing and what only the course has changed; returns the names of files that both have changed.

    Raises CopyNotWritten when the copy's folder cannot be written to.
    """
    try:
        digests = _read(copy)
        changed_in_both, copied = [], []
        for name in _names(course):
            source, target, before = course / name, copy / name, digests.get(name)
            digest = _digest(source)
            if not target.exists() or (digest != before and _digest(target) == before):
                _copy(source, target)
                copied.append(target)
            elif digest != before and _digest(target) != digest:
                changed_in_both.append(name)
                continue
            digests[name] = digest
        _write(copy, digests)
    except OSError as error:
        raise CopyNotWritten(f"The working copy in {copy} could not be written: {error}.") from error
    _trust(copied)
    return changed_in_both


def chapter_files(course: Path, number: str) -> list[str]:
    """The names of the notebook and lab of a chapter, such as "06"; raises NoSuchName for a chapter that is missing."""
    chapters: dict[str, list[str]] = {}
    for name in _names(course):
        if name.endswith(".ipynb") and not name.endswith("solution.ipynb"):
            chapters.setdefault(Path(name).parts[1][:2], []).append(name)
    return look_up(chapters, number, "chapter")


def give_back(course: Path, copy: Path, names: list[str]) -> list[Path]:
    """Replace files of the copy by the course's; returns where those that differ are kept."""
    digests, kept = _read(copy), []
    for name in names:
        source, target = course / name, copy / name
        if target.exists() and _digest(target) != _digest(source):
            saved = target.with_stem(f"{target.stem}.{datetime.now():%Y-%m-%d_%H%M%S}")
            target.rename(saved)
            kept.append(saved)
        _copy(source, target)
        digests[name] = _digest(source)
    _write(copy, digests)
    _trust([copy / name for name in names])
    return kept


def _names(course: Path) -> Iterator[str]:
    for part in _PARTS:
        for file in sorted(course.glob(part)):
            if file.is_file() and not _NOT_COPIED & set(file.parts):
                yield file.relative_to(course).as_posix()


def _copy(source: Path, target: Path) -> None:
    # Only the content: the course's own files may be read-only.
    target.parent.mkdir(parents=True, exist_ok=True)
    if (notebook := _notebook(source)) is None:
        shutil.copyfile(source, target)
        return
    notebook["metadata"]["language_info"] = _LANGUAGE
    target.write_text(json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _notebook(file: Path) -> dict[str, Any] | None:
    """The notebook in a file; None if it is another file, or damaged."""
    if file.suffix != ".ipynb":
        return None
    try:
        notebook = json.loads(file.read_bytes())
    except ValueError:
        return None
    return notebook if isinstance(notebook, dict) and isinstance(notebook.get("metadata"), dict) else None


def _trust(files: list[Path]) -> None:
    """Let JupyterLab show the committed figures of these notebooks, which it shows of trusted ones only."""
    with suppress(OSError, sqlite3.Error, ValueError):  # where Jupyter's folder in the home cannot be written to
        notary = NotebookNotary()
        for file in files:
            if file.suffix == ".ipynb":
                notary.sign(nbformat.read(file, as_version=4))
        notary.store.close()


def _digest(file: Path) -> str:
    """Of what the file holds; of a notebook, for whichever Python it is."""
    if (notebook := _notebook(file)) is None:
        return sha256(file.read_bytes()).hexdigest()
    notebook["metadata"].pop("language_info", None)
    return sha256(json.dumps(notebook, sort_keys=True).encode()).hexdigest()


def _read(copy: Path) -> dict[str, str]:
    try:
        digests = json.loads((copy / _RECORD).read_text())
    except (OSError, ValueError):  # nothing is known: what differs from the course counts as changed
        return {}
    return digests if isinstance(digests, dict) else {}


def _write(copy: Path, digests: dict[str, str]) -> None:
    copy.mkdir(parents=True, exist_ok=True)
    (copy / _RECORD).write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")
