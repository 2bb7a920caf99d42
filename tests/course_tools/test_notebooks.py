"""Making the committed notebooks: which are meant, when they are recorded, and what stays as it is."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_tools import __main__ as cli
from course_tools import notebooks
from distlab.runtime.errors import PlainError
from tests.conftest import ROOT

NAMES = ["00_start", "03_topic", "10_other"]


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / "notebooks" / "src" / f"{name}.py").write_text("# %%\n1 + 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_nothing_is_recorded_while_other_programs_use_the_processors_or_where_a_notebook_is_missing(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(notebooks.psutil, "cpu_percent", lambda interval: 90.0)
    assert cli.main(["notebooks", "--only", "03"]) == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("Other programs use ") and "--force" in sentence
    assert cli.main(["notebooks", "--only", "03,99", "--force"]) == 2
    assert cli.main(["notebooks", "--only", "topics", "--force"]) == 2
    assert re.findall("; (.*)", capsys.readouterr().err) == ["there are 00, 03, 10.", "did you mean 03_topic?"]
    assert not list((course / "notebooks").glob("*.ipynb"))


def test_outputs_that_name_this_machine_are_made_neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTLAB_DATA", "/mnt/class/data")
    text = f"{Path.home() / 'here'} {ROOT / 'labs'} /mnt/class/data/mnist.npz /tmp/distlab-abc/saved /dev/shm"
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("stream", text=text)])])
    assert notebooks.clean(notebook).cells[0].outputs[0].text == "~/here …/labs …/mnist.npz /tmp/…/saved /dev/shm"


@pytest.fixture
def recorded(course: Path) -> Path:
    """The source of a notebook that is recorded with its outputs."""
    source = course / "notebooks" / "src" / "03_topic.py"
    notebook = notebooks.convert(source)
    notebook.cells[0].outputs = [new_output("execute_result", data={"text/plain": "2"}, execution_count=1)]
    notebooks.note_cells(notebook)
    nbformat.write(notebook, notebooks.notebook_of(source))
    return source


def test_new_text_needs_no_new_run_and_is_not_taken_where_code_has_changed(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded.write_text('# %% [markdown]\n# New.\n\n# %% tags=["slide-output"]\n1 + 1\n')
    assert cli.main(["notebooks", "--text", "--only", "03"]) == 0
    assert capsys.readouterr().out.strip() == "notebooks/03_topic.ipynb"
    text, cell = nbformat.read(notebooks.notebook_of(recorded), as_version=4).cells
    assert text.source == "New." and cell.metadata["tags"] == ["slide-output"]
    assert cell.outputs[0].data["text/plain"] == "2"
    recorded.write_text("# %%\n1 + 2\n")
    assert cli.main(["notebooks", "--text", "--only", "03"]) == 2
    assert "The code in notebooks/03_topic.ipynb is another one" in capsys.readouterr().err


def test_a_notebook_that_was_edited_itself_is_not_made_again(recorded: Path) -> None:
    target = notebooks.notebook_of(recorded)
    notebook = nbformat.read(target, as_version=4)
    notebook.cells[0].outputs, notebook.cells[0].metadata["tags"] = [], ["varies"]
    nbformat.write(notebook, target)
    notebooks.require_not_edited(target, recorded)  # outputs and tags are no edits
    notebook.cells[0].source = "1 + 1  # a note of a teacher"
    nbformat.write(notebook, target)
    edited = target.read_text()
    with pytest.raises(PlainError, match=r"03_topic\.ipynb was edited itself, .* in .*src/03_topic\.py"):
        notebooks.regenerate(recorded)
    assert target.read_text() == edited
    target.write_text("<<<<<<< HEAD")
    notebooks.require_not_edited(target, recorded)  # there is nothing to keep


@pytest.mark.slow
def test_the_command_writes_a_notebook_and_none_of_which_a_cell_fails(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["notebooks", "--only", "03", "--force"]) == 0
    assert capsys.readouterr().out == "notebooks/03_topic.ipynb\n"
    [cell] = nbformat.read(course / "notebooks" / "03_topic.ipynb", as_version=4).cells
    assert cell.outputs[0].data["text/plain"] == "2"
    (course / "notebooks" / "src" / "10_other.py").write_text("# %%\none\n")
    assert cli.main(["notebooks", "--only", "10", "--force"]) == 1
    said = capsys.readouterr().out
    assert "name 'one' is not defined" in said and said.endswith("10_other.ipynb was not written.\n")
    assert not (course / "notebooks" / "10_other.ipynb").exists()
