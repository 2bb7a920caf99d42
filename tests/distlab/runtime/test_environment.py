"""Every process of the course starts with its variables, and MPI programs run however they are started."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import environment, processes

PROGRAMS = str(Path(sys.prefix) / "bin")
needs_horovod = pytest.mark.skipif(bool(launch.horovod_problem()), reason=launch.horovod_problem() or "")


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The variables of this process, replaced by a nearly empty set while the test runs."""
    variables = {"PATH": "/usr/bin:/bin", "HOME": "/home/student"}
    monkeypatch.setattr(os, "environ", variables)
    return variables


def test_what_the_user_has_set_wins(variables: dict[str, str]) -> None:
    variables |= {"TF_USE_LEGACY_KERAS": "0", "OPAL_PREFIX": "/opt/mpi", "TF_CPP_MIN_LOG_LEVEL": ""}
    environment.apply()
    assert variables["TF_USE_LEGACY_KERAS"] == "0"
    assert variables["OPAL_PREFIX"] == "/opt/mpi"
    assert variables["TF_CPP_MIN_LOG_LEVEL"] == ""
    assert variables["OMPI_MCA_mpi_yield_when_idle"] == "1"


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "localhost,127.0.0.1"), ({"no_grpc_proxy": "node2", "no_proxy": "node1"}, "node2,localhost,127.0.0.1")],
)
def test_no_proxy_stands_between_workers_on_this_machine(
    variables: dict[str, str], given: dict[str, str], expected: str
) -> None:
    variables |= given
    environment.apply()
    environment.apply()
    assert variables["no_grpc_proxy"] == expected


def test_install_writes_the_startup_file_and_the_kernels_settings_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user may not write into an environment that the administrator has set up."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    environment.install()
    assert (tmp_path / "distlab_environment.pth").read_text() == environment.STARTUP_LINE
    settings = (tmp_path / "etc" / "ipython" / "ipython_kernel_config.py").read_text()
    assert "c.IPKernelApp.capture_fd_output = False" in settings
    monkeypatch.setattr(Path, "write_text", lambda *arguments: pytest.fail("a file was written"))
    environment.install()


def child_says(code: str, **changed: str) -> object:
    """What a child Python prints, as JSON, which starts without the variables of the course."""
    inherited = {name: value for name, value in os.environ.items() if name not in environment.variables()}
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, env=inherited | changed, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(answer.stdout)


PRINT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_a_plain_child_and_its_child_have_the_courses_variables_without_importing_anything() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PRINT!r}], cwd='/')"
    found = child_says(nested, PATH="/usr/bin:/bin", DISTLAB_DATA="sets")
    assert {name: found[name] for name in environment.variables()} == environment.variables()
    assert found["PATH"] == f"{PROGRAMS}:/usr/bin:/bin"
    assert found["DISTLAB_DATA"] == str(Path.cwd() / "sets")


@pytest.mark.parametrize(("backend", "expected"), [("torch", "tensorflow"), ("jax", "jax")])
def test_a_backend_that_is_chosen_for_other_projects_reaches_no_program(backend: str, expected: str) -> None:
    """One program of the course runs on JAX too."""
    assert child_says(PRINT, KERAS_BACKEND=backend)["KERAS_BACKEND"] == expected


def test_starting_a_child_imports_nothing_that_takes_long() -> None:
    """The start-up file runs for each Python, pip and horovodrun included: it must stay light."""
    code = "import json, sys; print(json.dumps([name for name in sys.modules if name in ('tensorflow', 'numpy')]))"
    assert child_says(code) == []


# Each rank contributes its rank + 1; no import of distlab, as in a student's own program.
ALL_REDUCE = """
import json, sys
import horovod.tensorflow as hvd, tensorflow as tf

hvd.init()
total = hvd.allreduce(tf.constant([1.0, 10.0]) * (hvd.rank() + 1), op=hvd.Sum)
result = {"rank": hvd.rank(), "size": hvd.size(), "total": total.numpy().tolist()}
with open(f"{sys.argv[1]}/rank{hvd.rank()}.json", "w") as file:
    json.dump(result, file)
"""


@pytest.mark.slow
@needs_horovod
@pytest.mark.parametrize("launcher", [["horovodrun", "-np", "2", "--gloo"], ["mpirun", "-np", "2"]], ids=" ".join)
def test_horovod_program_runs_however_it_is_started(launcher: list[str], tmp_path: Path) -> None:
    """The folder's name has a space in it, as students' have."""
    folder = tmp_path / "my course"
    folder.mkdir()
    (folder / "program.py").write_text(ALL_REDUCE)
    command = [*launcher, sys.executable, str(folder / "program.py"), str(folder)]
    course = environment.variables()
    inherited = {name: value for name, value in os.environ.items() if name not in course}
    # mpirun is no Python program: nothing tells it that two ranks on one core, or root, are fine.
    inherited |= {name: value for name, value in course.items() if name.startswith("OMPI_")}
    finished = processes.run(command, seconds=300, env=inherited)
    assert finished.status == 0, finished.output
    results = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    assert results == [{"rank": rank, "size": 2, "total": [3.0, 30.0]} for rank in range(2)]
