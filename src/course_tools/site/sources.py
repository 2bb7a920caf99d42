"""The folder that Sphinx reads: the course's files under their own names, executed where they were, and an index."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat

from course_tools.site import index_page, notebook_pages
from course_tools.site.chapters import chapter_notebooks, how_to_repair, number_of
from distlab.runtime.errors import PlainError

LABS, LAB, SOLUTION = "labs/[0-9][0-9]_*", "lab.ipynb", "solution.ipynb"
# Of a lab not lab.py, which has the solutions.
PARTS = (f"{LABS}/{LAB}", f"{LABS}/{SOLUTION}", f"{LABS}/[!l]*.py", "notebooks/programs/*/*.py", "docs/*.md")
PICTURES = "figures/*.svg"


class NoCourse(PlainError, ValueError):
    """The folder has no notebooks to make a site of."""


def gather(course: Path, folder: Path, executed: Path | None, solutions: bool) -> list[str]:
    """Copy what the site is made of to `folder`; returns a sentence for each notebook that cannot be read.

    `executed` and `solutions` are those of `build.build`. Raises NoCourse.
    """
    notebooks = chapter_notebooks(course / "notebooks")
    if not notebooks:
        raise NoCourse(f"There is no notebook in {course.resolve() / 'notebooks'}; run this in the course's folder.")
    problems, names = [], []
    for file in [*notebooks, *(file for pattern in (*PARTS, PICTURES) for file in sorted(course.glob(pattern)))]:
        name = file.relative_to(course)
        if file.suffix == ".ipynb" and not _is_notebook(file):
            problems.append(f"{name} cannot be read as a notebook and is left out; {how_to_repair(name)}.")
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if file.name == LAB and not (solutions and file.with_name(SOLUTION).is_file()):
            nbformat.write(notebook_pages.without_solution(nbformat.read(file, as_version=4)), folder / name)
        else:
            shutil.copyfile(newest_run(file, executed) or file, folder / name)
        names.append(name)
    report = executed.with_name("report.json") if executed else None
    for page, text in index_page.pages(course, sorted(names), report).items():
        (folder / f"{page}.md").write_text(text)
    return problems


def chapters_without_run(notebooks: Sequence[Path], executed: Path) -> str:
    """Say which chapters are shown with their committed outputs; "" if none is."""
    numbers = [number_of(file.name) for file in notebooks if not newest_run(file, executed)]
    few = f"With the committed outputs, since they have no newer run that came to its end: {', '.join(numbers)}."
    return few if numbers else ""


def newest_run(file: Path, executed: Path | None) -> Path | None:
    """The executed notebook of a chapter, unless it is older than the committed one or did not come to its end."""
    run = executed / file.name if executed and file.parent.name == "notebooks" else None
    return run if run and ran_to_its_end(run) and run.stat().st_mtime >= file.stat().st_mtime else None


def ran_to_its_end(file: Path) -> bool:
    """Whether every cell of an executed notebook was run, and none ended with an error."""
    try:
        cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
        failed = any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
        return not failed and all(cell["execution_count"] for cell in cells if "".join(cell["source"]).strip())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _is_notebook(file: Path) -> bool:
    try:
        return "cells" in json.loads(file.read_text())
    except ValueError:
        return False
