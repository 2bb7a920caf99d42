"""Making the committed notebooks: which of them are meant, and that they are recorded on an idle machine only."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_tools import __main__ as cli
from course_tools import hand_edits, notebooks
from tests.conftest import ROOT

NAMES = ["00_start", "03_topic", "10_other"]


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    for name in NAMES:
        (tmp_path / "notebooks" / "src" / f"{name}.py").write_text("# %%\n1 + 1\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def busy_processors() -> Iterator[None]:
    command = [sys.executable, "-c", "print(flush=True)\nwhile True: pass"]
    programs = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(psutil.cpu_count() or 1)]
    try:
        for program in programs:
            assert program.stdout and program.stdout.readline()
        yield
    finally:
        for program in programs:
            program.kill()
            program.communicate()


@pytest.mark.parametrize(
    ("only", "names"),
    [(None, NAMES), ("03", ["03_topic"]), ("3, 10", ["03_topic", "10_other"]), ("00_start", ["00_start"])],
)
def test_notebooks_are_named_by_number_or_name(course: Path, only: str | None, names: list[str]) -> None:
    assert [source.stem for source in notebooks.sources(course / "notebooks", only)] == names


@pytest.mark.parametrize("only", ["99", "03,99", ",", " "])
def test_a_notebook_that_is_missing_is_named_and_none_is_written(
    course: Path, only: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["notebooks", "--only", only, "--force"]) == 2
    assert "there are 00_start, 03_topic, 10_other" in capsys.readouterr().err
    assert not list((course / "notebooks").glob("*.ipynb"))


@pytest.mark.slow
def test_nothing_is_recorded_while_other_programs_use_the_processors(
    course: Path, busy_processors: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["notebooks", "--only", "03"]) == 2
    sentence = capsys.readouterr().err
    assert sentence.startswith("Other programs use ") and "--force" in sentence
    assert not list((course / "notebooks").glob("*.ipynb"))


def test_an_idle_machine_may_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebooks, "BUSY_PERCENT", 100.0)
    notebooks.require_idle(watch=0.1)


def test_outputs_that_name_this_machine_are_made_neutral(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISTLAB_DATA", "/mnt/class/data")
    text = f"{Path.home() / 'here'} {ROOT / 'labs'} /mnt/class/data/mnist.npz /tmp/distlab-abc/saved /dev/shm"
    notebook = new_notebook(cells=[new_code_cell(outputs=[new_output("stream", text=text)])])
    assert notebooks.clean(notebook).cells[0].outputs[0].text == "~/here …/labs …/mnist.npz /tmp/…/saved /dev/shm"


@pytest.fixture
def recorded(course: Path) -> Path:
    """The source of a notebook that is recorded with its outputs."""
    (course / "docs").mkdir()
    (course / "docs" / "glossary.md").write_text("# Glossary\n")
    source = course / "notebooks" / "src" / "03_topic.py"
    notebook = notebooks.convert(source)
    notebook.cells[0].outputs = [new_output("execute_result", data={"text/plain": "2"}, execution_count=1)]
    nbformat.write(notebook, notebooks.notebook_of(source))
    return source


def test_new_tags_need_no_new_run(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.write_text(recorded.read_text().replace("# %%", '# %% tags=["slide-output"]'))
    assert cli.main(["notebooks", "--tags", "--only", "03"]) == 0
    assert capsys.readouterr().out.strip() == "notebooks/03_topic.ipynb"
    [cell] = nbformat.read(notebooks.notebook_of(recorded), as_version=4).cells
    assert cell.metadata["tags"] == ["slide-output"]
    assert cell.outputs[0].data["text/plain"] == "2"


def test_a_notebook_that_was_edited_itself_is_not_made_again(recorded: Path) -> None:
    target = notebooks.notebook_of(recorded)
    notebook = nbformat.read(target, as_version=4)
    hand_edits.note_cells(notebook)
    notebook.cells[0].source = "1 + 1  # a note of a teacher"
    nbformat.write(notebook, target)
    edited = target.read_text()
    with pytest.raises(hand_edits.EditedByHand):
        notebooks.regenerate(recorded)
    assert target.read_text() == edited


@pytest.mark.parametrize("changed", ["# %%\n1 + 2\n", "# %%\n1 + 1\n\n# %%\n2\n"])
def test_tags_are_not_updated_where_code_has_changed(
    recorded: Path, changed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = notebooks.notebook_of(recorded).read_text()
    recorded.write_text(changed.replace("# %%", '# %% tags=["slide-output"]', 1))
    assert cli.main(["notebooks", "--tags", "--only", "03"]) == 2
    assert "Not only tags have changed in 03_topic.py" in capsys.readouterr().err
    assert notebooks.notebook_of(recorded).read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("# a comment\nprint(undefined_name)", "fails: NameError: name 'undefined_name' is not defined"),
        ("x = = 1", "fails: SyntaxError: "),
        ("__import__('time').sleep(60)", "takes longer than 10 s"),
        ("__import__('os')._exit(1)", "ends its kernel"),
        ("assert False", "fails: AssertionError"),
    ],
)
def test_a_cell_that_fails_is_named_and_the_notebook_stays(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, cell: str, said: str
) -> None:
    monkeypatch.setattr(notebooks, "SECONDS_PER_CELL", 10)
    target = notebooks.notebook_of(recorded)
    before = target.read_text()
    recorded.write_text(f"# %%\n1 + 1\n\n# %%\n{cell}\n")
    with pytest.raises(notebooks.NotRecorded) as raised:
        notebooks.regenerate(recorded)
    sentence, first = str(raised.value), cell.splitlines()[-1]
    assert sentence.startswith(f"{recorded}: the cell that begins with `{first}` {said}")
    assert sentence.endswith(f"; {target} is as it was.")
    assert "\n" not in sentence and "\x1b" not in sentence
    assert target.read_text() == before


@pytest.mark.slow
def test_the_command_says_in_one_sentence_which_cell_fails(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.write_text("# %%\nprint(undefined_name)\n")
    assert cli.main(["notebooks", "--only", "03", "--force"]) == 2
    assert capsys.readouterr().err == (
        "notebooks/src/03_topic.py: the cell that begins with `print(undefined_name)` fails: NameError: name "
        "'undefined_name' is not defined; notebooks/03_topic.ipynb is as it was.\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", "# ---\n# jupyter: {}\n# ---\n", "# %%\n\n", "# %% [raw]\n# text\n"])
def test_a_source_without_cells_replaces_nothing(recorded: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = notebooks.notebook_of(recorded).read_text()
    recorded.write_text(text)
    assert cli.main(["notebooks", "--only", "03", "--force"]) == 2
    assert capsys.readouterr().err.startswith("notebooks/src/03_topic.py has no cell with code or text")
    assert notebooks.notebook_of(recorded).read_text() == before


@pytest.mark.slow
def test_a_notebook_that_is_recorded_again_notes_its_cells(recorded: Path) -> None:
    recorded.write_text("# %%\n1 + 2\n")
    target = notebooks.regenerate(recorded)
    assert nbformat.read(target, as_version=4).cells[0].outputs[0].data["text/plain"] == "3"
    hand_edits.require_none(target, recorded)
