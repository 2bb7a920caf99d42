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


def program(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("fault", ["exit 1", "exit 127", "echo no _ctypes; exit 1"])
def test_make_says_which_python_it_needs_and_finds_the_first_that_fits(root: Path, tmp_path: Path, fault: str) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    (tmp_path / "src" / "distlab").mkdir(parents=True)
    shims, good = tmp_path / "shims", tmp_path / "good"
    for folder in (shims, good):
        folder.mkdir()
    for name in ("python3", "python3.13", "python3.12", "python3.11", "python"):
        program(shims / name, f"#!/bin/sh\n{fault}\n")
    (shims / "which").symlink_to(str(shutil.which("which")))
    command = [str(shutil.which("make")), "-C", str(tmp_path), "environment"]
    variables = {**os.environ, "PATH": str(shims)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "The course needs Python 3.11, 3.12 or 3.13" in done.stdout and "make setup PYTHON=/path" in done.stdout
    fits = program(good / "python3.12", "#!/bin/sh\necho started $0\n")
    for words, path in (([f"PYTHON={fits}"], f"{shims}"), ([], f"{shims}:{good}")):
        done = subprocess.run(
            [*command, *words], env=variables | {"PATH": path}, capture_output=True, text=True, timeout=60
        )
        assert f"started {fits}" in done.stdout


def test_a_target_whose_program_the_system_kills_ends_with_killed(root: Path, tmp_path: Path) -> None:
    shutil.copy(root / "Makefile", tmp_path)
    (tmp_path / "src" / "distlab").mkdir(parents=True)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    program(tmp_path / ".venv" / "bin" / "distlab", '#!/bin/sh\n[ "$1" = setup ] || kill -KILL $$\n')
    python = program(tmp_path / "python", "#!/bin/sh\nexit 0\n")
    command = ["make", "-C", str(tmp_path), "lab", f"PYTHON={python}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "lab] Killed" in done.stderr


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("09_horovod/train_tape", "No module named 'numpy'"),
        ("07_multi_worker/minimal", "No module named 'distlab'"),
        ("06_collectives_and_ring_all_reduce/sum_with_mpi", "No module named 'numpy'"),
    ],
)
def test_a_python_without_the_courses_packages_names_a_module(root: Path, program: str, sentence: str) -> None:
    command = [sys.executable, "-I", "-S", str(root / "notebooks/programs" / f"{program}.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert sentence in done.stderr


@pytest.mark.slow
def test_what_a_child_writes_by_itself_does_not_reach_the_cell() -> None:
    source = f"import subprocess\nsubprocess.run([{sys.executable!r}, '-c', 'print(1)'])\nprint(2)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3", timeout=60).execute()
    assert [output.text for output in notebook.cells[0].outputs] == ["2\n"]


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in names}


@needs_mpi
def test_mpi_refuses_more_ranks_than_slots_unless_told() -> None:
    environment = without("OMPI_MCA_rmaps_base_oversubscribe")
    command = ["mpirun", "-np", "500", "true"]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "There are not enough slots available" in refused.stderr
    two = subprocess.run(["mpirun", "--oversubscribe", "-np", "5", "true"], env=environment, timeout=60)
    assert two.returncode == 0


@pytest.mark.slow
@needs_mpi
@pytest.mark.skipif("OPAL_PREFIX" not in os.environ, reason="a system's own Open MPI knows its prefix")
def test_open_mpi_without_its_prefix_does_not_start() -> None:
    command = [sys.executable, "-c", "import mpi4py.MPI"]
    failed = subprocess.run(command, env=os.environ | {"OPAL_PREFIX": ""}, capture_output=True, text=True, timeout=60)
    assert failed.returncode != 0
    assert "A system-required executable either could not be found" in failed.stderr
    assert subprocess.run(command, timeout=60).returncode == 0


@needs_mpi
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root is refused")
def test_mpirun_refuses_root_unless_told() -> None:
    environment = without("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")
    command = ["mpirun", "-np", "1", "true"]
    refused = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert refused.returncode != 0
    assert "mpirun has detected an attempt to run as root" in refused.stderr
    told = subprocess.run([command[0], "--allow-run-as-root", *command[1:]], env=environment, timeout=60)
    assert told.returncode == 0
