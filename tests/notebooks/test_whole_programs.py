"""The program with which a chapter begins runs when it is copied out of the course, and needs nothing of it."""

import re
import shutil
from pathlib import Path

import nbformat
import pytest

from distlab import launch
from distlab.launch.job import free_addresses
from tests.conftest import NOTEBOOKS
from tests.prepared_runs import PreparedRuns


def program(notebook: Path) -> str:
    """The cells with the tag `program`, below the parameters that they use; "" if there are none."""
    cells = nbformat.read(notebook, as_version=4).cells
    marked = [{"parameters", "program"} & set(cell.metadata.get("tags", [])) for cell in cells]
    if not any("program" in tags for tags in marked):
        return ""
    return "\n".join(cell.source for cell, tags in zip(cells, marked, strict=True) if tags)


PROGRAMS = {notebook.stem: text for notebook in NOTEBOOKS if (text := program(notebook))}


@pytest.mark.slow
@pytest.mark.parametrize("chapter", PROGRAMS)
def test_a_chapters_first_program_runs_alone_in_an_empty_folder(
    chapter: str, runs: PreparedRuns, tmp_path: Path
) -> None:
    text = PROGRAMS[chapter]
    assert "distlab" not in text and "course_tools" not in text
    assert sum(map(bool, text.splitlines())) <= 40
    (tmp_path / "program.py").write_text(text)
    finished = runs.run(tmp_path / "program.py", folder=tmp_path)
    assert finished.status == 0, finished.output


# By chapter: the program and its arguments, as the only process. For that of 11 see test_scaling_and_profiling.
COPIES = {
    "07": ["minimal.py", "0", "localhost:PORT"],
    "07, loop": ["loop.py", "saved", "0", "localhost:PORT"],
    "08b": ["minimal.py"],
    "09": ["minimal.py"],
    "10": ["minimal.py"],
    "13": ["minimal.py", "saves"],
}


@pytest.mark.slow
@pytest.mark.parametrize("chapter", COPIES)
def test_a_program_to_copy_runs_in_an_empty_folder(
    chapter: str, runs: PreparedRuns, root: Path, tmp_path: Path
) -> None:
    name, *arguments = COPIES[chapter]
    [program] = root.glob(f"notebooks/programs/{chapter.split(',')[0]}_*/{name}")
    if "horovod" in program.read_text() and (reason := launch.horovod_problem()):
        pytest.skip(reason)
    arguments = [word.replace("PORT", free_addresses(1)[0].split(":")[1]) for word in arguments]
    finished = runs.run(Path(shutil.copy(program, tmp_path)), *arguments, folder=tmp_path)
    assert finished.status == 0, finished.output


def test_the_programs_to_copy_are_short_and_need_nothing_of_the_course(root: Path) -> None:
    programs = [*root.glob("notebooks/programs/*/minimal*.py"), root / "notebooks/programs/07_multi_worker/loop.py"]
    assert len(programs) >= 8
    for program in programs:
        text = program.read_text()
        assert not re.search(r"^\s*(import|from) (distlab|course_tools)", text, re.MULTILINE), program
        assert sum(map(bool, text.splitlines())) <= (60 if program.stem == "loop" else 40), program
