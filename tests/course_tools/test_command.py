"""The commands that make the course, where something is wrong."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_tools import cli
from distlab.runtime import processes

DISTLAB = [sys.executable, "-m", "course_tools.cli"]


def test_a_damaged_notebook_is_named_and_the_other_pages_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notebooks = tmp_path / "notebooks"
    notebooks.mkdir()
    (notebooks / "01_damaged.ipynb").write_text("{")
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Whole")]), notebooks / "02_b.ipynb")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["pages"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "build/html/02_b.html",
        "notebooks/01_damaged.ipynb cannot be read as a notebook; `git checkout notebooks/01_damaged.ipynb` restores "
        "it, without your changes.",
    ]


@pytest.mark.long
@pytest.mark.fault
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_recording_that_is_interrupted_says_so_and_leaves_the_notebook(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    source = tmp_path / "notebooks" / "src" / "01_long.py"
    source.parent.mkdir(parents=True)
    started = tmp_path / "started"
    source.write_text(f"# %%\nopen({str(started)!r}, 'w').close()\nimport time\ntime.sleep(600)\n")
    target = tmp_path / "notebooks" / "01_long.ipynb"
    target.write_text("as it was")
    command = [*DISTLAB, "notebooks", "--force"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while not started.exists():
        assert process.poll() is None
    os.kill(process.pid, number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == status, output
    assert output.endswith("\nInterrupted; notebooks/01_long.ipynb is as it was.\n"), output
    assert "Traceback" not in output
    assert target.read_text() == "as it was"


@pytest.mark.parametrize(
    ("command", "what"),
    [
        ("execute", "notebook"),
        ("site", "notebook"),
        ("pages", "notebook"),
        ("labs", "lab"),
        ("release", "lab"),
        ("grade .", "lab"),
    ],
)
def test_outside_the_course_a_command_says_where_it_belongs(
    command: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 2
    assert capsys.readouterr().err == (
        f"There is no {what} in {tmp_path / f'{what}s'}; run this in the course's folder.\n"
    )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def course_with_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a chapter and the copy that JupyterLab makes of it."""
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_markdown_cell("# Rings"), nbformat.v4.new_code_cell("print(1)")]
    )
    (tmp_path / "notebooks").mkdir()
    for name in ("01_rings", "01_rings-Copy1"):
        nbformat.write(notebook, tmp_path / "notebooks" / f"{name}.ipynb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(processes, "end_on_signals", lambda: None)
    return tmp_path


@pytest.mark.slow
def test_a_copy_of_a_chapter_is_not_executed_and_named(
    course_with_a_copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["execute", "--only", "01", "--no-site"]) == 0
    said = capsys.readouterr().out
    assert "notebooks/01_rings-Copy1.ipynb is left out: it is no chapter of the course.\n" in said
    assert "The notebook ran without an error." in said
    assert [file.name for file in (course_with_a_copy / "build" / "executed").iterdir()] == ["01_rings.ipynb"]


def test_a_copy_of_a_chapter_is_no_page(course_with_a_copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["pages"]) == 0
    assert capsys.readouterr().out.splitlines() == ["build/html/01_rings.html"]
