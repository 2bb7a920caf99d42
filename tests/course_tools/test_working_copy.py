"""A student's working copy: it follows the course where the student has changed nothing, and loses nothing."""

import json
import os
import re
import subprocess
from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools import notebooks, working_copy

NOTEBOOK, LAB, PROGRAM = "notebooks/03_topic.ipynb", "labs/03_topic/lab.ipynb", "notebooks/programs/03_topic/train.py"
SOLUTION, DATA = "labs/03_topic/solution.ipynb", "labs/03_topic/data.json"
LINKS = "Before, see [16](../16_last/lab.ipynb) and [3](../../notebooks/03_topic.ipynb)."
ON_SOLUTION = f"A full solution is next to\nthis file, in [solution.ipynb](solution.ipynb). {LINKS}"


def write_notebook(file: Path, code: str, text: str = "", count: int | None = None) -> None:
    """As `make notebooks` writes it; with a count it was run."""
    outputs = [nbformat.v4.new_output("stream", text="answer")] if count else []
    cells = [nbformat.v4.new_code_cell(code, id="cell", execution_count=count, outputs=outputs)]
    cells = [*([nbformat.v4.new_markdown_cell(text, id="text")] if text else []), *cells]
    notebook = nbformat.v4.new_notebook(cells=cells)
    notebooks.note_cells(notebook)
    file.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, file)


def edit(file: Path, before: str, after: str) -> None:
    """As a student does in JupyterLab."""
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A chapter with program, lab and solution, in a folder whose path a shell would not take as it is."""
    folder = tmp_path / "it's a course"
    write_notebook(folder / NOTEBOOK, "1", count=1)
    write_notebook(folder / LAB, "answer = ...", ON_SOLUTION)
    write_notebook(folder / SOLUTION, "answer = 42", ON_SOLUTION)
    for name, text in {PROGRAM: "print('training')\n", DATA: "{}", "labs/03_topic/lab.py": "# the source\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / PROGRAM).with_name("__pycache__").mkdir()
    (folder / PROGRAM).with_name("__pycache__").joinpath("train.pyc").touch()
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    return folder


@pytest.fixture
def copy(course: Path, tmp_path: Path) -> Path:
    """A copy of the course."""
    assert working_copy.update(course, tmp_path / "work") == []
    return tmp_path / "work"


def code_of(file: Path) -> str:
    return str(nbformat.read(file, as_version=4).cells[-1].source)


def test_notebooks_labs_and_their_programs_are_copied_sources_are_not_and_solutions_lie_apart(copy: Path) -> None:
    solution = "solutions/03_topic/solution.ipynb"
    files = {file.relative_to(copy).as_posix() for file in copy.rglob("*") if file.is_file() and file.suffix}
    assert files == {NOTEBOOK, PROGRAM, LAB, DATA, "solutions/03_topic/data.json", solution, ".copied.json"}
    link = f"A full solution is in [solution.ipynb](../../{solution})."
    texts = [nbformat.read(copy / name, as_version=4).cells[0].source for name in (LAB, solution)]
    assert texts == [f"{link} {LINKS}", f"{link} {LINKS.replace('../16', '../../labs/16')}"]


@pytest.mark.slow
def test_links_between_the_files_of_a_copy_lead_somewhere(root: Path, tmp_path: Path) -> None:
    working_copy.update(root, tmp_path / "work")
    notebooks = list((tmp_path / "work").glob("*/*/*.ipynb"))
    assert len(notebooks) == 2 * len(list(root.glob("labs/*/lab.ipynb")))
    for file in notebooks:
        cells = nbformat.read(file, as_version=4).cells
        text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
        targets = re.findall(r"\]\(((?:\.\./|\w+[./])[^)#:]*)", text)
        assert [target for target in targets if not (file.parent / target).exists()] == []


def test_what_only_the_course_has_changed_is_copied_again_and_goes_with_it(course: Path, copy: Path) -> None:
    notebook = nbformat.read(copy / NOTEBOOK, as_version=4)
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    notebook.cells[0].execution_count = 1
    nbformat.write(notebook, copy / NOTEBOOK)  # it was only run and saved
    write_notebook(course / NOTEBOOK, "10")
    (course / DATA).unlink()
    assert working_copy.update(course, copy) == []
    assert code_of(copy / NOTEBOOK) == "10"
    assert not (copy / DATA).exists()


def test_what_the_student_has_changed_stays_and_is_named_once_the_course_changes_it(course: Path, copy: Path) -> None:
    edit(copy / LAB, "answer = ...", "my answer")
    edit(copy / PROGRAM, "training", "mine")
    assert working_copy.update(course, copy) == []
    write_notebook(course / LAB, "answer = None")
    (course / PROGRAM).unlink()
    lab = f"{copy / LAB} differs from the course's file; yours stays. `.venv/bin/distlab lab --fresh 03` gives you the"
    program = f"{copy / PROGRAM}: the course no longer has this file under this name; yours stays as it is."
    first, second = working_copy.update(course, copy)
    assert first.startswith(lab) and second == program
    assert working_copy.update(course, copy) == [first]
    assert code_of(copy / LAB) == "my answer" and "mine" in (copy / PROGRAM).read_text()


def test_a_chapter_given_back_keeps_what_differs(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(course)
    assert cli.main(["lab", "--fresh", "99"]) == 2
    assert "no chapter '99'; there are 03" in capsys.readouterr().err and not Path("work").exists()
    assert cli.main(["lab", "--copy-only"]) == 0
    copy = Path("work").absolute()
    edit(copy / LAB, "answer = ...", "my answer")
    (copy / PROGRAM).write_text("mine\n")
    write_notebook(course / LAB, "answer = None")
    capsys.readouterr()
    assert cli.main(["lab", "--fresh", "3"]) == 0
    *kept, last = capsys.readouterr().out.splitlines()
    assert last.startswith("All files of chapter 03 are as in the course; ")
    files = [Path(line.removeprefix("The course's file replaces yours, which is kept: ")) for line in kept]
    assert sorted(file.suffix for file in files) == [".ipynb", ".py"]
    assert all("my answer" in file.read_text() or file.read_text() == "mine\n" for file in files)
    assert code_of(copy / LAB) == "answer = None" and (copy / PROGRAM).read_text() == (course / PROGRAM).read_text()
    assert json.loads((copy / ".copied.json").read_text()).keys() >= {LAB, PROGRAM, DATA, NOTEBOOK}
    assert working_copy.update(course, copy, "03") == []


def test_make_in_the_copy_is_that_of_the_course_wherever_that_is_now(course: Path, copy: Path) -> None:
    variables = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}

    def make(folder: str, *words: str) -> str:
        return subprocess.run(["make", *words], cwd=copy / folder, env=variables, capture_output=True, text=True).stdout

    (course / "Makefile").write_text('check:\n\t@echo "$@ $(LAB) in $(notdir $(CURDIR))"\n')
    working_copy.update(course, copy)
    for folder in (".", "labs/03_topic", "solutions/03_topic"):
        assert make(folder, "check", "LAB=06") == "check 06 in it's a course\n"
    moved = course.rename(course.with_name("moved"))
    assert make(".", "check") == ""  # and make says that there is no such folder
    working_copy.update(moved, copy)
    assert make(".", "check") == "check  in moved\n"
