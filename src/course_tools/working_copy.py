"""A student's own copy of notebooks and labs: what is run and changed in it leaves the course's own files as they are.

A file that the student has not changed follows the course, for example after `git pull`; a changed one stays. For that
the copy remembers the digest that each file had in the course when it was copied. To run a notebook is no change.

The solutions are in a folder beside the labs, each with the programs that it uses, so that a lab's folder has none.

A chapter of the copy has no outputs, so that nothing answers its predictions before the student does. A notebook says
which Python it is for, so that JupyterLab changes nothing when it opens one, and has nothing to ask when it closes one.
A Makefile in each folder where a student may open a terminal calls the course's.
"""

import json
import re
import shlex
import sqlite3
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import nbformat
from nbformat.sign import NotebookNotary

from course_tools import notebooks
from course_tools.chapters import number_of
from distlab.labs.registry import is_of_judge
from distlab.runtime.lookups import require_name

NAME = "work"
_PARTS = ("notebooks/*.ipynb", "notebooks/programs/**/*", "labs/[0-9][0-9]_*/*", "figures/*.svg", "docs/*.md")
_NOT_COPIED = {"__pycache__", ".ipynb_checkpoints"}
_TEXT, _LAB, _SOLUTION, _IPYNB = "lab.py", "lab.ipynb", "solution.ipynb", ".ipynb"
_TO_SOLUTION = re.compile(r"(?:next\s+to\s+this\s+file,\s+)?in\s+\[solution\.ipynb\]\(solution\.ipynb\)")
_TO_LAB = re.compile(r"\]\((?:\.\./)(\d\d_\w+/lab\.ipynb)\)")
_RECORD = ".copied.json"
_HEAD = "# `make lab` writes this file. "
_MAKEFILE = f"""\
{_HEAD}Whatever target is typed here, the course's own Makefile makes it.
.DEFAULT_GOAL := help
Makefile: ;
always: ;
%: always
	@$(MAKE) --no-print-directory -C {{course}} $@
"""


def update(course: Path, copy: Path, fresh: str | None = None) -> list[str]:
    """Copy what is missing and what only the course has changed; returns a sentence for each other file that differs.

    A file that both have changed stays as the student has it, and so does one of which nothing is recorded. Of the
    chapter with the number `fresh`, its programs and its lab's solution all files are replaced; those that differ are
    kept under another name. Raises NoSuchName for a chapter that is missing.
    """
    try:
        record = dict(json.loads((copy / _RECORD).read_text()))
    except (OSError, ValueError):  # what differs from the course counts as changed
        record = {}
    files, said = _files(course), []
    if fresh:
        require_name(sorted({_chapter_of(name) for name in files} - {""}), fresh, "chapter")
    for name, source in files.items():
        target, before, content, number = copy / name, record.get(name), _content(source, name), _chapter_of(name)
        new, current = _digest(content), _digest(target.read_bytes()) if target.exists() else None
        if fresh and number == fresh:
            if target.exists() and target.read_bytes() != content:
                kept = target.rename(target.with_stem(f"{target.stem}.{datetime.now():%Y-%m-%d_%H%M%S}"))
                said.append(f"The course's file replaces yours, which is kept: {kept}")
            current = None
        if current is None or current == before != new:
            _write(target, content)
        elif before != new != current:
            to_get_it = (
                f"`.venv/bin/distlab lab --fresh {number}` gives you the course's, and keeps yours under another name"
                if number
                else "Rename or remove yours, and the next `make lab` gives you the course's"
            )
            said.append(f"{target} differs from the course's file; yours stays. {to_get_it}.")
            continue
        record[name] = new
    for name in record.keys() - files.keys():
        target, before = copy / name, record.pop(name)
        if target.is_file() and _digest(target.read_bytes()) == before:
            target.unlink()
        elif target.is_file():
            said.append(f"{target}: the course no longer has this file under this name; yours stays as it is.")
    makefile = _MAKEFILE.format(course=shlex.quote(str(course.absolute())))
    for folder in {copy, copy / "labs", *((copy / name).parent for name in files if name.endswith(_IPYNB))}:
        own = folder / "Makefile"
        if not own.exists() or own.read_text().startswith(_HEAD):  # else it is the student's
            _write(own, makefile.encode())
    _write(copy / _RECORD, json.dumps(record, indent=1, sort_keys=True).encode())
    return said


def is_copy(folder: Path) -> bool:
    """Whether a folder is a working copy."""
    return (folder / _RECORD).is_file()


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
    return files


def _chapter_of(name: str) -> str:
    """The number of the chapter that a file of the copy belongs to, such as "06"; none of a figure or document."""
    folder, *parts = Path(name).parts
    in_chapter = folder in ("notebooks", "labs", "solutions")
    return next((number_of(part) for part in parts if in_chapter and part[:2].isdigit()), "")


def _content(source: Path, name: str) -> bytes:
    """What the copy called `name` of a file holds: a chapter has no outputs, a lab has links that fit there."""
    if source.suffix != _IPYNB:
        return source.read_bytes()
    from ipykernel.ipkernel import IPythonKernel  # here: it takes a moment

    notebook = notebooks.read(source)
    notebook.metadata["language_info"] = IPythonKernel.language_info
    folder, topic = Path(name).parts[0], Path(name).parts[-2]
    for cell in notebook.cells:
        if folder == "notebooks" and cell.cell_type == "code":
            cell.update(outputs=[], execution_count=None)
        elif folder != "notebooks" and cell.cell_type == "markdown":
            link = f"in [solution.ipynb](../../solutions/{topic}/solution.ipynb)"
            cell.source = _TO_SOLUTION.sub(link, cell.source)
            if folder == "solutions":
                cell.source = _TO_LAB.sub(r"](../../labs/\1)", cell.source)
    return (nbformat.writes(notebook) + "\n").encode()


def _write(target: Path, content: bytes) -> None:
    """Write a file whole or not at all, and let JupyterLab show the figures of a notebook, as of trusted ones only."""
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new")
    new.write_bytes(content)  # and no permissions: the course's own files may be read-only
    new.replace(target)
    if target.suffix == _IPYNB:
        with suppress(OSError, sqlite3.Error, ValueError):  # where Jupyter's folder in the home cannot be written to
            notary = NotebookNotary()
            notary.sign(nbformat.read(target, as_version=4))
            notary.store.close()


def _digest(content: bytes) -> str:
    """Of what a file holds; of a notebook the text of its cells."""
    with suppress(ValueError, TypeError, KeyError):  # it is another file, or damaged
        cells = json.loads(content)["cells"]
        content = json.dumps([[cell["cell_type"], "".join(cell["source"])] for cell in cells]).encode()
    return sha256(content).hexdigest()
