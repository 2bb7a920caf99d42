"""What a chapter begins with, in its cells or as a program to copy, runs alone and needs nothing of the course."""

import re
from pathlib import Path

import nbformat
import pytest

from distlab import launch, programs
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


IN_CELLS = {notebook.stem: text for notebook in NOTEBOOKS if (text := program(notebook))}
TO_COPY = [*programs.FOLDER.glob("*/minimal*.py"), programs.FOLDER / "07_multi_worker" / "loop.py"]
# Those that run as the only process, with their arguments.
ALONE = {
    "07_multi_worker/minimal.py": ["0", "localhost:PORT"],
    "07_multi_worker/loop.py": ["saved", "0", "localhost:PORT"],
    "08b_keras_3/minimal.py": [],
    "09_horovod/minimal.py": [],
    "10_large_batch_and_warmup/minimal.py": [],
    "11_scaling_and_profiling/minimal.py": [],
    "13_fault_tolerance/minimal.py": ["saves"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*IN_CELLS, *ALONE])
def test_a_chapters_first_program_runs_alone_in_an_empty_folder(name: str, runs: PreparedRuns, tmp_path: Path) -> None:
    text = IN_CELLS.get(name) or (programs.FOLDER / name).read_text()
    if "horovod" in text and (reason := launch.horovod_problem()):
        pytest.skip(reason)
    (tmp_path / "program.py").write_text(text)
    arguments = [word.replace("PORT", free_addresses(1)[0].split(":")[1]) for word in ALONE.get(name, ())]
    finished = runs.run(tmp_path / "program.py", *arguments, folder=tmp_path)
    assert finished.status == 0, finished.output


def test_the_programs_to_copy_are_short_and_need_nothing_of_the_course() -> None:
    assert len(TO_COPY) >= 8
    for name, text in {**IN_CELLS, **{file: file.read_text() for file in TO_COPY}}.items():
        assert not re.search(r"^\s*(import|from) (distlab|course_tools)", text, re.MULTILINE), name
        assert sum(map(bool, text.splitlines())) <= (60 if "loop.py" in str(name) else 40), name
