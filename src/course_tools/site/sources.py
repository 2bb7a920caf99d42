"""The folder that Sphinx reads: the course's files under their own names, an index and the reference."""

import json
import shutil
from pathlib import Path

from course_tools.site import films, index_page, lab_outputs, notebook_pages, reference
from course_tools.site.chapters import chapter_notebooks, how_to_repair
from distlab.runtime.errors import PlainError

LABS, LAB, SOLUTION = "labs/[0-9][0-9]_*", "lab.ipynb", "solution.ipynb"
# Of a lab not lab.py, which has the solutions.
PARTS = (f"{LABS}/{LAB}", "notebooks/programs/*/*.py", f"{LABS}/[!l]*.py", "docs/*.md", "figures/*.svg")
STATIC = "static"
SOLUTIONS = f"{LABS}/{SOLUTION}"


class NoCourse(PlainError, ValueError):
    """The folder has no notebooks to make a site of."""


def gather(course: Path, folder: Path, executed: Path | None, solutions: bool) -> list[str]:
    """Make `folder` hold what the site is made of; a file with the same content stays, with its time.

    A run that is older than the committed notebook, or did not come to its end, is not taken. Returns a sentence for
    each notebook that cannot be read and is left out. `executed` and `solutions` are those of `build.build`. Raises
    NoCourse, and index_page.NoSection for a README without the map of the course.
    """
    patterns = (*PARTS, SOLUTIONS) if solutions else PARTS
    notebooks = chapter_notebooks(course / "notebooks")
    files = {file.relative_to(course): file for file in notebooks}
    files |= {file.relative_to(course): file for pattern in patterns for file in course.glob(pattern)}
    if not notebooks:
        raise NoCourse(f"There is no notebook in {course.resolve() / 'notebooks'}; run this in the course's folder.")
    problems = []
    for name, file in list(files.items()):
        replacement = executed / name.name if executed and file in notebooks else file
        if name.suffix == ".ipynb" and not _replaces(replacement, file):
            replacement = file
            if not _is_notebook(file):
                repair = how_to_repair(name, course)
                problems.append(f"{name} cannot be read as a notebook and is left out; {repair}.")
                del files[name]
                continue
        _write(folder / name, _lab(replacement) if name.name == LAB else replacement.read_bytes())
    report = executed.with_name("report.json") if executed else None
    texts = {Path("index.md"): index_page.text(course, sorted(files), report)}
    texts |= {Path("reference") / f"{name}.md": text for name, text in reference.pages(course).items()}
    for name, text in texts.items():
        _write(folder / name, text.encode())
    written = {folder / name for name in (*files, *texts)} | set(_films(folder, list(files)))
    for file in list(folder.rglob("*")):
        if file.is_file() and file not in written:
            file.unlink()
    for empty in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(empty.iterdir()):
            shutil.rmtree(empty)
    return problems


def chapters_without_run(course: Path, executed: Path) -> list[str]:
    """The numbers of the chapters that `gather` takes with their committed outputs."""
    notebooks = chapter_notebooks(course / "notebooks")
    return [file.name[:2] for file in notebooks if not _replaces(executed / file.name, file)]


def _replaces(executed: Path, file: Path) -> bool:
    """Whether it is a notebook that ran to its end, and not older than the committed file, or that file itself."""
    if executed == file:
        return _is_notebook(file)
    return ran_to_its_end(executed) and executed.stat().st_mtime >= file.stat().st_mtime


def ran_to_its_end(file: Path) -> bool:
    """Whether every cell of an executed notebook was run, and none ended with an error."""
    try:
        cells = [cell for cell in json.loads(file.read_text())["cells"] if cell["cell_type"] == "code"]
        failed = any(output["output_type"] == "error" for cell in cells for output in cell["outputs"])
        return not failed and all(cell["execution_count"] for cell in cells if "".join(cell["source"]).strip())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _lab(file: Path) -> bytes:
    """The lab with the outputs of its given cells, if its executed solution is in its folder."""
    solution = file.with_name(SOLUTION)
    if not _is_notebook(solution):
        return file.read_bytes()
    lab = json.loads(file.read_text())
    lab["cells"] = lab_outputs.with_outputs(lab["cells"], json.loads(solution.read_text())["cells"])
    return json.dumps(lab).encode()


def _is_notebook(file: Path) -> bool:
    try:
        return "cells" in json.loads(file.read_text())
    except (OSError, ValueError):
        return False


def _films(folder: Path, names: list[Path]) -> list[Path]:
    notebooks = [json.loads((folder / name).read_text()) for name in names if name.match("notebooks/*.ipynb")]
    programs = set().union(*(notebook_pages.films_of(notebook) for notebook in notebooks))
    return films.write(sorted(programs), folder / STATIC / films.FOLDER)


def _write(file: Path, content: bytes) -> None:
    if not file.is_file() or file.read_bytes() != content:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
