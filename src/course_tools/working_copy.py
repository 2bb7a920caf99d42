"""A student's own copy of notebooks and labs: what is run and changed in it leaves the course's own files as they are.

A file that the student has not changed follows the course, for example after `git pull`; a changed one stays, and a
chapter that was only run follows and is kept under another name. For that the copy remembers the digest that each file
had in the course when it was copied, with a mark where the student had edited it there: such a file is kept when the
course's goes back. A file takes its place when all of it is written, so that a disk that becomes full cuts none.

The solutions are in a folder beside the labs, each with the programs that it uses, so that a lab's folder has none.

A notebook of the copy says which Python it is for, so that JupyterLab changes nothing when it opens one, and has
nothing to ask when it closes one. A Makefile in each folder where a student may open a terminal calls the course's.
"""

import json
import os
import platform
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import nbformat
from nbformat.sign import NotebookNotary

from course_tools import git_files, hand_edits, makefile_of_copy
from distlab.labs.registry import is_of_judge
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import look_up
from distlab.runtime.unused_names import unused

NAME = "work"
_PARTS = ("notebooks/*.ipynb", "notebooks/programs/**/*", "labs/[0-9][0-9]_*/*", "figures/*.svg", "docs/*.md")
_NOT_COPIED = {"__pycache__", ".ipynb_checkpoints"}
_TEXT, _LAB, _SOLUTION = "lab.py", "lab.ipynb", "solution.ipynb"
_TO_SOLUTION = re.compile(r"(?:next\s+to\s+this\s+file,\s+)?in\s+\[solution\.ipynb\]\(solution\.ipynb\)")
_ON_SOLUTION = re.compile(r"\s+A\s+full\s+solution\s+is[^.]*\[solution\.ipynb\]\(solution\.ipynb\)[^.]*\.")
_TO_LAB = re.compile(r"\]\((?:\.\./)(\d\d_\w+/lab\.ipynb)\)")
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
_EDITED = "edited in the course: "


class CopyNotWritten(PlainError, OSError):
    """The working copy could not be written; the message says where and why."""


def update(
    course: Path,
    copy: Path,
    on_kept: Callable[[Path], object] = lambda file: None,
    on_left: Callable[[Path], object] = lambda file: None,
) -> list[str]:
    """Copy what is missing and what only the course has changed; returns the names of the other files that differ.

    Those both have changed, or nothing is recorded of what the student was given.

    A chapter that was run, but not edited, follows the course too, and so does a copy of what the student had edited in
    the course itself; `on_kept` gets the name under which either is kept. What the course no longer has goes unless the
    student has changed it: that `on_left` gets. Raises CopyNotWritten when the copy's folder cannot be written to, or
    its disk is full; what was copied before is recorded then.
    """
    digests = _read(copy)
    changed_in_both = []
    files, edited = _files(course), _edited(course)
    with _copying(copy, digests) as copied:
        for name, source in files.items():
            target, before, content = copy / name, digests.get(name), _content(source, name)
            digest, mark = _digest(content), _EDITED if source in edited else ""
            is_new = before not in (digest, _EDITED + digest)
            is_missing = not target.exists() or makefile_of_copy.is_of_another_course(target, course)
            # What the student goes on editing in the course is followed.
            if is_missing or (is_new and _follows(target, before and before.removeprefix(mark), content)):
                _new_file(target, content).replace(target)
                copied.append(target)
            elif is_new and (current := _digest_of(target)) != digest:
                if before != _EDITED + current and (before is None or not hand_edits.is_as_made(target)):
                    changed_in_both += [name] if source.name != makefile_of_copy.NAME else []  # it may be a student's
                    continue
                new = _new_file(target, content)
                on_kept(_kept(target))
                new.replace(target)
                copied.append(target)
            digests[name] = mark + digest
        for name in digests.keys() - files.keys():
            target, before = copy / name, digests.pop(name)
            if target.is_file() and _digest_of(target) == before:
                target.unlink()
                with suppress(OSError):  # it holds more
                    target.parent.rmdir()
            elif target.is_file():
                on_left(target)
    return changed_in_both


def is_copy(folder: Path) -> bool:
    """Whether a folder is a working copy."""
    return (folder / _RECORD).is_file()


def chapter_files(course: Path, number: str) -> list[str]:
    """The names of all files of a chapter, such as "06", also of its programs and of the lab's solution.

    Raises NoSuchName for a chapter that is missing.
    """
    chapters: dict[str, list[str]] = {}
    for name in _files(course):
        if chapter := chapter_of(name):
            chapters.setdefault(chapter, []).append(name)
    return look_up(chapters, number.zfill(2), "chapter")


def chapter_of(name: str) -> str | None:
    """The number of the chapter that a file of the copy belongs to, such as "06"; None if it belongs to none."""
    folder, *parts = Path(name).parts
    if folder not in ("notebooks", "labs", "solutions") or parts[-1] == makefile_of_copy.NAME:
        return None
    return next((part[:2] for part in parts if part[:2].isdigit()), None)


def differing(course: Path, copy: Path, names: list[str]) -> list[str]:
    """Those of these files that the copy has otherwise than the course, so that `give_back` would keep them."""
    files = _files(course)
    pairs = {name: (copy / name, _content(files[name], name)) for name in names}
    return [name for name, (file, content) in pairs.items() if file.exists() and _digest_of(file) != _digest(content)]


def give_back(course: Path, copy: Path, names: list[str]) -> list[Path]:
    """Replace files of the copy by the course's; returns where those that differ are kept.

    Raises CopyNotWritten as `update` does.
    """
    digests, files, kept = _read(copy), _files(course), []
    edited, differ = _edited(course), differing(course, copy, names)
    with _copying(copy, digests) as copied:
        for name in names:
            target, content = copy / name, _content(files[name], name)
            new = _new_file(target, content)
            if name in differ:
                kept.append(_kept(target))
            new.replace(target)
            copied.append(target)
            digests[name] = (_EDITED if files[name] in edited else "") + _digest(content)
    return kept


def _files(course: Path) -> dict[str, Path]:
    """The course's files by their names in the copy."""
    files = {}
    for part in _PARTS:
        for file in sorted(course.glob(part)):
            if not file.is_file() or _NOT_COPIED & set(file.parts) or file.name == _TEXT or is_of_judge(file):
                continue
            name = file.relative_to(course)
            if file.name != _SOLUTION:
                files[name.as_posix()] = file
            # At the same depth as the lab, so that its links lead to the same places.
            if name.parts[0] == "labs" and file.name != _LAB and (course / Path(*name.parts[:2]) / _SOLUTION).exists():
                files[Path("solutions", *name.parts[1:]).as_posix()] = file
    if (makefile := course / makefile_of_copy.NAME).is_file():
        folders = {Path(), Path("labs"), *(Path(name).parent for name in files if name.endswith(".ipynb"))}
        files |= {(folder / makefile.name).as_posix(): makefile for folder in folders}
    return files


def _edited(course: Path) -> set[Path]:
    """The course's files that differ from those in git, or that git does not have; none where it cannot be asked."""
    return git_files.edited(course, sorted({part.split("/")[0] for part in _PARTS}))


def _content(source: Path, name: str) -> bytes:
    """What the copy called `name` of a course's file holds."""
    if source.name == makefile_of_copy.NAME:
        return makefile_of_copy.text(source.parent).encode()
    content = source.read_bytes()
    if source.suffix != ".ipynb" or (notebook := _notebook(content)) is None:
        return content
    notebook["metadata"]["language_info"] = _LANGUAGE
    folder, topic = Path(name).parts[0], Path(name).parts[-2]
    for cell in notebook.get("cells", []) if folder != "notebooks" else []:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            if not source.with_name(_SOLUTION).exists():  # an instructor has removed them
                text = _ON_SOLUTION.sub("", text)
            text = _TO_SOLUTION.sub(f"in [solution.ipynb](../../solutions/{topic}/solution.ipynb)", text)
            if folder == "solutions":
                text = _TO_LAB.sub(r"](../../labs/\1)", text)
            cell["source"] = text.splitlines(keepends=True)
    return (json.dumps(notebook, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()


def _follows(target: Path, before: str | None, content: bytes) -> bool:
    """Whether the course's content may replace a file that differs from it: the student has changed nothing.

    A file that was never recorded and is only the beginning of the content was cut while it was copied.
    """
    current = target.read_bytes()
    return _digest(current) == before or (before is None and current != content and content.startswith(current))


def _new_file(target: Path, content: bytes) -> Path:
    """A file beside the target that can replace it; nothing is left of one that cannot be written whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        new.write_bytes(content)  # and no permissions: the course's own files may be read-only
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new


def _kept(target: Path) -> Path:
    """The file under a name of its own, with the time in it."""
    return target.rename(unused(target.with_stem(f"{target.stem}.{datetime.now():%Y-%m-%d_%H%M%S}")))


def _notebook(content: bytes) -> dict[str, Any] | None:
    """The notebook in a file; None if it is another file, or damaged."""
    try:
        notebook = json.loads(content)
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


def _digest_of(file: Path) -> str:
    return _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    """Of what a file holds; of a notebook, for whichever Python it is."""
    notebook = _notebook(content)
    if notebook is None:
        return sha256(content).hexdigest()
    notebook["metadata"].pop("language_info", None)
    return sha256(json.dumps(notebook, sort_keys=True).encode()).hexdigest()


def _read(copy: Path) -> dict[str, str]:
    try:
        digests = json.loads((copy / _RECORD).read_text())
    except (OSError, ValueError):  # nothing is known: what differs from the course counts as changed
        return {}
    return digests if isinstance(digests, dict) else {}


@contextmanager
def _copying(copy: Path, digests: dict[str, str]) -> Iterator[list[Path]]:
    """For a block that copies files and notes them in the list and the digests: they are trusted and recorded after it.

    So are those that were copied before one could not be written; raises CopyNotWritten then.
    """
    copied: list[Path] = []
    try:
        try:
            yield copied
        finally:
            _trust(copied)
            record = (json.dumps(digests, indent=1, sort_keys=True) + "\n").encode()
            _new_file(copy / _RECORD, record).replace(copy / _RECORD)
    except OSError as error:
        raise CopyNotWritten(f"The working copy in {copy} could not be written: {error}.") from error
