"""A student's working copy: it follows the course where the student has changed nothing, and loses nothing."""

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from datetime import datetime, tzinfo
from pathlib import Path

import nbformat
import psutil
import pytest
from ipykernel.ipkernel import IPythonKernel
from nbformat.sign import NotebookNotary

from course_tools import __main__ as cli
from course_tools import hand_edits, working_copy
from distlab.runtime import processes
from distlab.runtime.lookups import NoSuchName
from tests import small_disks

NOTEBOOK, LAB, PROGRAM = "notebooks/03_topic.ipynb", "labs/03_topic/lab.ipynb", "notebooks/programs/03_topic/train.py"
BATCH = "notebooks/programs/03_topic/slurm/batch.sbatch"


def write_notebook(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text, id="cell")])
    nbformat.write(notebook, file)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    folder = tmp_path / "course"
    write_notebook(folder / NOTEBOOK, "1")
    write_notebook(folder / LAB, "2")
    (folder / BATCH).parent.mkdir(parents=True)
    (folder / BATCH).write_text("#!/bin/bash\n")
    (folder / PROGRAM).write_text("print('training')\n")
    (folder / PROGRAM).with_name("__pycache__").mkdir()
    (folder / "notebooks/programs/03_topic/__pycache__/train.pyc").write_bytes(b"")
    (folder / "labs/03_topic/data.json").write_text("{}")
    (folder / "labs/03_topic/lab.py").write_text("# the source\n")
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return tmp_path / "work"


def code_of(file: Path) -> list[str]:
    return [cell.source for cell in nbformat.read(file, as_version=4).cells]


def files(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


def test_notebooks_labs_and_their_programs_are_copied_and_sources_are_not(course: Path, copy: Path) -> None:
    assert working_copy.update(course, copy) == []
    programs = {PROGRAM, BATCH, "labs/03_topic/data.json"}
    assert files(copy) == {NOTEBOOK, LAB, ".copied.json"} | programs
    assert code_of(copy / NOTEBOOK) == ["1"]


def test_a_copied_notebook_names_this_python_as_jupyterlab_would(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    kernel = IPythonKernel()
    assert nbformat.read(copy / NOTEBOOK, as_version=4).metadata.language_info == kernel.language_info


def test_a_notebook_that_was_only_opened_and_saved_counts_as_unchanged(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    notebook = nbformat.read(copy / NOTEBOOK, as_version=4)
    notebook.metadata.language_info = {"name": "python", "version": "3.99"}
    nbformat.write(notebook, copy / NOTEBOOK)
    write_notebook(course / NOTEBOOK, "10")
    assert working_copy.update(course, copy) == []
    assert code_of(copy / NOTEBOOK) == ["10"]


def add_solution(course: Path, text: str) -> None:
    """A solution beside the lab, and the same text in both."""
    for name, code in ((LAB, "2"), (LAB.replace("lab.ipynb", "solution.ipynb"), "answer = 42")):
        cells = [nbformat.v4.new_markdown_cell(text, id="text"), nbformat.v4.new_code_cell(code, id="cell")]
        nbformat.write(nbformat.v4.new_notebook(cells=cells), course / name)


def test_the_solution_is_in_a_folder_of_its_own_with_the_data(course: Path, copy: Path) -> None:
    links = "Before, see [16](../16_last/lab.ipynb) and [3](../../notebooks/03_topic.ipynb)."
    add_solution(course, f"A full solution is next to\nthis file, in [solution.ipynb](solution.ipynb). {links}")
    assert working_copy.update(course, copy) == []
    assert {name for name in files(copy) if name.startswith("labs")} == {
        f"labs/03_topic/{name}" for name in ("lab.ipynb", "data.json")
    }
    assert {name for name in files(copy) if name.startswith("solutions")} == {
        f"solutions/03_topic/{name}" for name in ("solution.ipynb", "data.json")
    }
    link = "A full solution is in [solution.ipynb](../../solutions/03_topic/solution.ipynb)."
    lab, solution = (code_of(copy / name)[0] for name in (LAB, "solutions/03_topic/solution.ipynb"))
    assert lab == f"{link} {links}"
    assert solution == f"{link} {links.replace('../16', '../../labs/16')}"
    notebook = nbformat.read(copy / LAB, as_version=4)
    nbformat.write(notebook, copy / LAB)  # as JupyterLab saves what was only opened
    add_solution(course, "Changed.")
    assert working_copy.update(course, copy) == []
    assert code_of(copy / LAB)[0] == "Changed."


def test_what_the_course_no_longer_has_goes_unless_the_student_has_changed_it(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    program, batch = Path(PROGRAM), Path(BATCH)
    (copy / program).write_text("print('mine')\n")
    for name in (program, batch):
        (course / name).unlink()
    left: list[Path] = []
    assert working_copy.update(course, copy, on_left=left.append) == []
    assert (copy / program).exists() and not (copy / batch).parent.exists()
    assert left == [copy / program]


@pytest.mark.slow
def test_links_between_the_files_of_a_copy_lead_somewhere(root: Path, copy: Path) -> None:
    working_copy.update(root, copy)
    notebooks = list(copy.glob("*/*/*.ipynb"))
    assert len(notebooks) == 2 * len(list(root.glob("labs/*/lab.ipynb")))
    for file in notebooks:
        text = "\n".join(
            cell.source for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "markdown"
        )
        targets = re.findall(r"\]\(((?:\.\./|\w+[./])[^)#:]*)", text)
        assert [target for target in targets if not (file.parent / target).exists()] == []


def test_labs_whose_solutions_were_removed_speak_of_none(root: Path, course: Path, copy: Path) -> None:
    for lab in (root / "labs").glob("*/lab.ipynb"):
        place = course / "labs" / lab.parent.name / lab.name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(lab.read_bytes())
    working_copy.update(course, copy)
    labs = [file.read_text() for file in copy.glob("labs/[01][0-9]_*/lab.ipynb")]
    assert len(labs) > 10 and not any("solution.ipynb" in lab or "full solution" in lab for lab in labs)
    [sixth] = [nbformat.read(file, as_version=4) for file in copy.glob("labs/06_*/lab.ipynb")]
    assert re.search(r"does the same in a\s+terminal\. In grading, cells", sixth.cells[0].source)


def test_what_only_the_course_has_changed_is_copied_again(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    write_notebook(course / NOTEBOOK, "10")
    assert working_copy.update(course, copy) == []
    assert code_of(copy / NOTEBOOK) == ["10"]


def test_what_the_student_has_changed_stays_and_is_named_once_the_course_changes_it(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    write_notebook(copy / LAB, "my answer")
    assert working_copy.update(course, copy) == []
    write_notebook(course / LAB, "20")
    for _ in range(2):
        assert working_copy.update(course, copy) == [LAB]
    assert "my answer" in (copy / LAB).read_text()


def write_chapter(file: Path, text: str, count: int | None = None) -> None:
    """As `make notebooks` does; with a count it was run."""
    cell = nbformat.v4.new_code_cell(text, id="cell", execution_count=count)
    notebook = nbformat.v4.new_notebook(cells=[cell])
    hand_edits.note_cells(notebook)
    nbformat.write(notebook, file)


def test_a_chapter_that_was_only_run_follows_the_course_and_the_run_one_is_kept(course: Path, copy: Path) -> None:
    write_chapter(course / NOTEBOOK, "1")
    working_copy.update(course, copy)
    write_chapter(copy / NOTEBOOK, "1", count=7)
    kept: list[Path] = []
    assert working_copy.update(course, copy, kept.append) == kept == []
    write_chapter(course / NOTEBOOK, "10")
    assert working_copy.update(course, copy, kept.append) == []
    assert code_of(copy / NOTEBOOK) == ["10"]
    [run] = kept
    assert nbformat.read(run, as_version=4).cells[0].execution_count == 7
    edited = (copy / NOTEBOOK).read_text().replace('"10"', '"my answer"')
    (copy / NOTEBOOK).write_text(edited)
    write_chapter(course / NOTEBOOK, "100")
    assert working_copy.update(course, copy, kept.append) == [NOTEBOOK]
    assert (copy / NOTEBOOK).read_text() == edited and kept == [run]


def test_a_chapter_that_both_have_changed_is_said_to_stay_unless_it_is_given_back_now(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(course)
    working_copy.update(course, course / "work")
    write_notebook(course / "work" / LAB, "my answer")
    write_notebook(course / LAB, "20")
    for arguments, said in ((["--copy-only"], True), (["--copy-only", "--fresh", "03"], False)):
        assert cli.main(["lab", *arguments]) == 0
        assert ("differs from the course's file; yours stays." in capsys.readouterr().out) == said
    assert code_of(course / "work" / LAB) == ["20"]


def test_a_copy_whose_record_is_lost_keeps_what_differs(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    write_notebook(copy / LAB, "my answer")
    (copy / ".copied.json").write_text("{")
    assert working_copy.update(course, copy) == [LAB]
    assert "my answer" in (copy / LAB).read_text()


# The first argument is the course, the second the copy; the disk gets larger between the two runs.
TWO_RUNS = """
from pathlib import Path
import subprocess, sys
from course_tools import hand_edits, working_copy
course, copy = map(Path, sys.argv[1:])
try:
    working_copy.update(course, copy)
except working_copy.CopyNotWritten as error:
    print(error)
print(*sorted(file.name for file in copy.rglob("*") if file.is_file()))
print(*sorted(working_copy._read(copy)))
subprocess.run(["mount", "-o", "remount,size=100m", copy], check=True)
print(working_copy.update(course, copy))
names = working_copy._files(course)
print([name for name, file in names.items() if (copy / name).read_bytes() != working_copy._content(file, name)])
print(*sorted(working_copy._read(copy).keys() ^ names.keys()))
"""


@pytest.mark.slow
@small_disks.needs_mounts
def test_a_disk_that_becomes_full_cuts_no_file_and_the_next_run_completes_the_copy(course: Path, copy: Path) -> None:
    write_notebook(course / "notebooks/04_long.ipynb", "x" * 10**6)
    copy.mkdir()
    command = small_disks.with_disk(copy, "size=500k", [sys.executable, "-c", TWO_RUNS, str(course), str(copy)])
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    full = f"The working copy in {copy} could not be written: [Errno 28] No space left on device"
    assert finished.stdout.splitlines() == [
        f"{full}.",
        ".copied.json 03_topic.ipynb",
        NOTEBOOK,
        "[]",
        "[]",
        "",
    ]


@pytest.mark.parametrize("size", [0, 100])
def test_a_file_that_was_cut_when_it_was_copied_is_completed(course: Path, copy: Path, size: int) -> None:
    working_copy.update(course, copy)
    whole = (copy / LAB).read_bytes()
    (copy / ".copied.json").unlink()
    (copy / LAB).write_bytes(whole[:size])
    assert working_copy.update(course, copy) == []
    assert (copy / LAB).read_bytes() == whole
    (copy / LAB).write_bytes(whole[:size])  # by the student, since it had been recorded
    write_notebook(course / LAB, "20")
    assert working_copy.update(course, copy) == [LAB]
    assert (copy / LAB).read_bytes() == whole[:size]


def test_a_chapter_given_back_keeps_the_students_own(course: Path, copy: Path) -> None:
    working_copy.update(course, copy)
    write_notebook(copy / LAB, "my answer")
    (copy / PROGRAM).write_text("raise SystemExit('mine')\n")
    names = working_copy.chapter_files(course, "3")
    assert set(names) == {NOTEBOOK, BATCH, PROGRAM, "labs/03_topic/data.json", LAB}
    assert set(working_copy.differing(course, copy, names)) == {LAB, PROGRAM}
    program, kept = sorted(working_copy.give_back(course, copy, names), key=lambda file: file.suffix, reverse=True)
    assert "my answer" in kept.read_text() and kept.parent == (copy / LAB).parent
    assert code_of(copy / LAB) == ["2"]
    assert program.suffix == ".py" and "mine" in program.read_text()
    assert (copy / PROGRAM).read_text() == (course / PROGRAM).read_text()
    write_notebook(course / LAB, "30")  # the lab counts as unchanged from now on
    assert working_copy.update(course, copy) == []
    assert working_copy.give_back(course, copy, names) == []


def test_versions_of_one_second_are_all_kept(course: Path, copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime(2026, 11, 20, 18)

    monkeypatch.setattr(working_copy, "datetime", Stopped)
    working_copy.update(course, copy)
    kept = []
    for text in ("first", "second", "third"):
        write_notebook(copy / LAB, text)
        kept += working_copy.give_back(course, copy, [LAB])
    assert [code_of(file) for file in kept] == [["first"], ["second"], ["third"]]
    assert [file.name for file in kept[:2]] == ["lab.2026-11-20_180000.ipynb", "lab.2026-11-20_180000-2.ipynb"]


@pytest.mark.slow
def test_a_chapter_given_back_says_what_is_kept_only_where_something_is(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(course)
    end = "All files of chapter 03 are as in the course; `make lab` opens JupyterLab.\n"
    assert cli.main(["lab", "--fresh", "03"]) == 0
    assert capsys.readouterr().out == end
    (course / "work" / PROGRAM).write_text("mine\n")
    assert cli.main(["lab", "--fresh", "03"]) == 0
    first, second, third = capsys.readouterr().out.splitlines(keepends=True)
    assert first == f"The course's files replace these of yours, kept under other names: {PROGRAM}.\n"
    assert second.startswith("Kept: ") and third == end


@pytest.mark.slow
def test_a_chapter_given_back_beside_an_open_jupyterlab_is_to_be_loaded_there(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(course)
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(course))
    with subprocess.Popen(["jupyter-lab", "600"], executable="/bin/sleep") as server:
        info = {"pid": server.pid, "root_dir": str(course / "work"), "url": "http://127.0.0.1:8889/", "token": "abc"}
        (course / "jpserver-1.json").write_text(json.dumps(info))
        assert cli.main(["lab", "--fresh", "03"]) == 0
        server.kill()
    assert "JupyterLab is open: take File > Reload Notebook from Disk there." in capsys.readouterr().out


def test_a_program_that_both_have_changed_names_its_chapter(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    working_copy.update(course, course / "work")
    (course / "work" / PROGRAM).write_text("mine\n")
    (course / PROGRAM).write_text("new\n")
    monkeypatch.chdir(course)
    assert cli.main(["lab", "--copy-only"]) == 0
    assert f"{PROGRAM} differs" in (said := capsys.readouterr().out) and "lab --fresh 03` gives" in said


def test_a_document_that_both_have_changed_belongs_to_no_chapter(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    document = Path("docs/glossary.md")
    (course / "docs").mkdir()
    for text, folder in (("one", course), ("mine", course / "work"), ("two", course)):
        (folder / document).write_text(text)
        working_copy.update(course, course / "work") if text == "one" else None
    monkeypatch.chdir(course)
    assert cli.main(["lab", "--copy-only"]) == 0
    said = capsys.readouterr().out
    assert "yours stays. Rename or remove yours, and the next `make lab` gives" in said and "--fresh" not in said


def git(course: Path, *words: str) -> None:
    command = ["git", "-C", str(course), "-c", "user.name=a", "-c", "user.email=a@b.c", *words]
    subprocess.run(command, check=True, capture_output=True)


@pytest.fixture
def course_in_git(course: Path) -> Path:
    git(course, "init")
    git(course, "add", ".")
    git(course, "commit", "-m", "The course")
    return course


def test_what_was_edited_in_the_course_is_kept_when_the_course_goes_back(course_in_git: Path, copy: Path) -> None:
    course = course_in_git
    own = "labs/03_topic/mine.py"
    working_copy.update(course, copy)
    write_notebook(course / NOTEBOOK, "mine")
    (course / PROGRAM).write_text("print('mine')\n")
    (course / own).write_text("print('my own')\n")
    kept: list[Path] = []
    for _ in range(2):
        assert working_copy.update(course, copy, kept.append) == kept == []
    write_notebook(course / NOTEBOOK, "mine, edited further")
    assert working_copy.update(course, copy, kept.append) == kept == []
    assert code_of(copy / NOTEBOOK) == ["mine, edited further"]
    git(course, "checkout", ".")
    git(course, "clean", "-f")
    for _ in range(2):
        assert working_copy.update(course, copy, kept.append) == []
    notebook, program = kept
    assert code_of(notebook) == ["mine, edited further"] and code_of(copy / NOTEBOOK) == ["1"]
    assert program.read_text() == "print('mine')\n" and (copy / PROGRAM).read_text() == "print('training')\n"
    assert (copy / own).read_text() == "print('my own')\n"


def test_what_was_edited_in_the_course_and_committed_follows_the_course(course_in_git: Path, copy: Path) -> None:
    course, kept = course_in_git, list[Path]()
    for text in ("1", "2"):
        (course / PROGRAM).write_text(text)
        working_copy.update(course, copy, kept.append)
        git(course, "commit", "-a", "-m", text)
        working_copy.update(course, copy, kept.append)
    (course / PROGRAM).write_text("3")
    git(course, "commit", "-a", "-m", "3")
    assert working_copy.update(course, copy, kept.append) == kept == []
    assert (copy / PROGRAM).read_text() == "3"


def test_a_chapter_that_is_missing_is_named(course: Path) -> None:
    with pytest.raises(NoSuchName, match="no chapter '99'; there are 03"):
        working_copy.chapter_files(course, "99")


def test_a_chapter_that_is_missing_leaves_nothing_behind(course: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(course)
    assert cli.main(["lab", "--fresh", "99"]) == 2
    assert not (course / "work").exists()


def test_copied_notebooks_are_trusted(
    course: Path, copy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    working_copy.update(course, copy)
    assert NotebookNotary().check_signature(nbformat.read(copy / NOTEBOOK, as_version=4))
    write_notebook(copy / NOTEBOOK, "of unknown origin")
    assert not NotebookNotary().check_signature(nbformat.read(copy / NOTEBOOK, as_version=4))


def test_a_folder_that_cannot_be_made_ends_in_a_sentence(course: Path, copy: Path) -> None:
    copy.write_text("a file")
    with pytest.raises(working_copy.CopyNotWritten, match="could not be written"):
        working_copy.update(course, copy)


def answer(address: str) -> bytes:
    """What the server says, once it listens."""
    deadline = time.monotonic() + 300
    while True:
        try:
            return bytes(urllib.request.urlopen(address, timeout=300).read())
        except urllib.error.URLError:
            assert time.monotonic() < deadline
            time.sleep(0.2)


@pytest.mark.slow
def test_jupyterlab_opens_on_the_copy_and_leaves_the_course_alone(course: Path, tmp_path: Path) -> None:
    write_notebook(course / "notebooks/00_start_here.ipynb", "0")
    before = {name: (course / name).read_bytes() for name in files(course)}
    mark = processes.new_mark()
    command = [sys.executable, "-m", "course_tools", "lab"]
    variables = {**os.environ, "HOME": str(tmp_path), "BROWSER": "true", "DISPLAY": ""}
    server = processes.start(command, mark, cwd=course, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert server.stdout
    try:
        lines = []
        for line in server.stdout:
            lines.append(line)
            if "http://127.0.0.1" in line and "token=" in line:
                break
        assert any(str(course / "work") in line and "Your working copy is" in line for line in lines), lines
        address = "http" + lines[-1].partition("http")[2].strip()
        root, _, token = address.partition("/lab")
        listing = f"{root}/api/contents/notebooks?{token.rpartition('?')[2]}"
        assert b"03_topic.ipynb" in answer(listing)
        ports = [
            connection for connection in psutil.Process(server.pid).net_connections() if connection.status == "LISTEN"
        ]
        assert {connection.laddr.ip for connection in ports} == {"127.0.0.1"}
    finally:
        processes.end(mark)
        server.communicate()
    assert {name: (course / name).read_bytes() for name in before} == before
