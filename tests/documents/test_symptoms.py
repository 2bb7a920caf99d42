"""Symptoms of the troubleshooting page that no other test brings about."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

needs_mpi = pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")


def run(command: list, **variables: str | None) -> subprocess.CompletedProcess[str]:
    """The command with these variables; None removes one."""
    environment = {name: value for name, value in (os.environ | variables).items() if value is not None}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


def program(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_make_says_which_python_it_needs_and_finds_the_first_that_fits(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    shims, good = tmp_path / "shims", tmp_path / "good"
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python"):
        program(shims / name, "#!/bin/sh\nexit 127\n")  # as pyenv's, which may not start
    (shims / "which").symlink_to(str(shutil.which("which")))
    command = [str(shutil.which("make")), "-C", str(tmp_path), "environment"]
    none = run(command, PATH=str(shims))
    assert none.returncode == 2
    assert "The course needs Python 3.11, 3.12 or 3.13" in none.stdout and "make setup PYTHON=/path" in none.stdout
    fits = program(good / "python3.12", "#!/bin/sh\necho started $0\n")
    for words, path in (([f"PYTHON={fits}"], f"{shims}"), ([], f"{shims}:{good}")):
        assert f"started {fits}" in run([*command, *words], PATH=path).stdout


def test_a_target_whose_program_the_system_kills_ends_with_killed(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    program(tmp_path / ".venv" / "bin" / "distlab", '#!/bin/sh\n[ "$1" = setup ] || kill -KILL $$\n')
    python = program(tmp_path / "python", "#!/bin/sh\nexit 0\n")
    done = run(["make", "-C", str(tmp_path), "lab", f"PYTHON={python}"])
    assert done.returncode == 2 and "lab] Killed" in done.stderr


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("09_horovod/train_tape", "No module named 'numpy'"),
        ("07_multi_worker/save_wrongly", "No module named 'distlab'"),
    ],
)
def test_a_python_without_the_courses_packages_names_a_module(root: Path, name: str, sentence: str) -> None:
    done = run([sys.executable, "-I", "-S", str(root / "notebooks/programs" / f"{name}.py")])
    assert done.returncode == 1 and sentence in done.stderr


@pytest.mark.slow
def test_what_a_child_writes_by_itself_does_not_reach_the_cell() -> None:
    source = f"import subprocess\nsubprocess.run([{sys.executable!r}, '-c', 'print(1)'])\nprint(2)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    assert [output.text for output in notebook.cells[0].outputs] == ["2\n"]


@needs_mpi
def test_mpi_refuses_more_ranks_than_slots_unless_told() -> None:
    refused = run(["mpirun", "-np", "500", "true"], OMPI_MCA_rmaps_base_oversubscribe=None)
    assert refused.returncode != 0 and "There are not enough slots available" in refused.stderr
    told = run(["mpirun", "--oversubscribe", "-np", "5", "true"], OMPI_MCA_rmaps_base_oversubscribe=None)
    assert told.returncode == 0


@pytest.mark.slow
@needs_mpi
@pytest.mark.skipif("OPAL_PREFIX" not in os.environ, reason="a system's own Open MPI knows its prefix")
def test_open_mpi_without_its_prefix_does_not_start() -> None:
    failed = run([sys.executable, "-c", "import mpi4py.MPI"], OPAL_PREFIX="")
    assert failed.returncode != 0
    assert "A system-required executable either could not be found" in failed.stderr


@needs_mpi
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root is refused")
def test_mpirun_refuses_root_unless_told() -> None:
    usual = {"OMPI_ALLOW_RUN_AS_ROOT": None, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": None}
    refused = run(["mpirun", "-np", "1", "true"], **usual)
    assert refused.returncode != 0 and "mpirun has detected an attempt to run as root" in refused.stderr
    assert run(["mpirun", "--allow-run-as-root", "-np", "1", "true"], **usual).returncode == 0
