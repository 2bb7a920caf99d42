"""The folder that Sphinx reads: the course's files under their own names, executed where they were, and an index."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import nbformat

from course_tools import notebooks
from course_tools.chapters import chapter_notebooks, number_of
from course_tools.site import index_page, notebook_pages
from distlab.runtime.errors import PlainError

LABS, LAB, SOLUTION = "labs/[0-9][0-9]_*", "lab.ipynb", "solution.ipynb"
# Of a lab not lab.py, which has the solutions.
PARTS = (f"{LABS}/{LAB}", f"{LABS}/{SOLUTION}", f"{LABS}/[!l]*.py", "notebooks/programs/*/*.py", "docs/*.md")
PICTURES = "figures/*.svg"


def gather(course: Path, folder: Path, executed: Path | None, no_solutions: bool) -> list[str]:
    """Copy what the site is made of to `folder`; returns a sentence for each notebook that cannot be read.

    `executed` and `no_solutions` are those of `build.build`. Raises NoSuchName where there is no chapter.
    """
    course_notebooks, problems, names = chapter_notebooks(course / "notebooks"), [], []
    runs = newest_runs(course_notebooks, executed) if executed else {}
    parts = [file for pattern in (*PARTS, PICTURES) for file in sorted(course.glob(pattern))]
    for file in [*course_notebooks, *parts]:
        name = file.relative_to(course)
        try:
            notebook = notebooks.read(file) if file.suffix == ".ipynb" else None
        except PlainError as fault:
            problems.append(f"{fault} Until then the site is without it.")
            continue
        if no_solutions and file.name == SOLUTION:
            continue
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if no_solutions and notebook and file.name == LAB:
            notebook_pages.solve(notebook, notebooks.read(file.with_name(SOLUTION)), no_solutions)
            nbformat.write(notebook, folder / name)
        else:
            shutil.copyfile(runs.get(file, file), folder / name)
        names.append(name)
    report = executed.with_name("report.json") if executed else None
    for page, text in index_page.pages(course, sorted(names), report).items():
        (folder / f"{page}.md").write_text(text)
    return problems


def newest_runs(chapters: Sequence[Path], executed: Path) -> dict[Path, Path]:
    """By chapter, its executed notebook if that is not older and came to its end; prints which chapters have none."""
    found = {file: executed / file.name for file in chapters}
    runs = {
        file: run for file, run in found.items() if ran_to_its_end(run) and run.stat().st_mtime >= file.stat().st_mtime
    }
    if numbers := [number_of(file.name) for file in chapters if file not in runs]:
        few = ", ".join(numbers)
        print(f"With the committed outputs, since they have no newer run that came to its end: {few}.")
    return runs


def ran_to_its_end(file: Path) -> bool:
    """Whether every cell of an executed notebook was run, and none ended with an error."""
    try:
        cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
        failed = any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
        return not failed and all(cell["execution_count"] for cell in cells if "".join(cell["source"]).strip())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
