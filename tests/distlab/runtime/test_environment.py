"""Every process of the course starts with its variables, and MPI programs run however they are started."""

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from jupyter_client import kernelspec
from jupyter_core import paths

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
    [
        ({}, "localhost,127.0.0.1"),
        ({"no_proxy": ".lan, 127.0.0.1"}, ".lan,127.0.0.1,localhost"),
        ({"NO_PROXY": "node1,"}, "node1,localhost,127.0.0.1"),
        ({"no_grpc_proxy": "node2", "no_proxy": "node1"}, "node2,localhost,127.0.0.1"),
    ],
)
def test_no_proxy_stands_between_workers_on_this_machine(
    variables: dict[str, str], given: dict[str, str], expected: str
) -> None:
    variables |= given
    environment.apply()
    environment.apply()
    assert variables["no_grpc_proxy"] == expected


def test_programs_of_the_environment_come_first_and_once(variables: dict[str, str]) -> None:
    environment.apply()
    environment.apply()
    assert variables["PATH"] == f"{PROGRAMS}:/usr/bin:/bin"


def test_programs_of_the_environment_are_found_without_any_path(variables: dict[str, str]) -> None:
    del variables["PATH"]
    environment.apply()
    assert variables["PATH"].split(os.pathsep)[0] == PROGRAMS
    assert "/usr/bin" in variables["PATH"]


@pytest.mark.parametrize(("user", "allowed"), [(0, True), (1000, False)])
def test_open_mpi_may_run_as_root_only_for_root(monkeypatch: pytest.MonkeyPatch, user: int, allowed: bool) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert ("OMPI_ALLOW_RUN_AS_ROOT" in environment.variables()) is allowed


def test_an_open_mpi_of_the_system_keeps_its_own_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert "OPAL_PREFIX" not in environment.variables()
    assert "OMPI_MCA_mca_base_param_files" not in environment.variables()  # that MPI reads the user's file
    (tmp_path / "share" / "openmpi").mkdir(parents=True)
    assert environment.variables()["OPAL_PREFIX"] == str(tmp_path)


def test_cache_folder_is_in_the_users_cache(variables: dict[str, str], tmp_path: Path) -> None:
    assert environment.cache_folder() == Path("/home/student/.cache/distlab")
    variables["XDG_CACHE_HOME"] = ""
    assert environment.cache_folder() == Path("/home/student/.cache/distlab")
    variables["XDG_CACHE_HOME"] = str(tmp_path / "elsewhere")
    assert environment.cache_folder() == tmp_path / "elsewhere" / "distlab"
    assert not (tmp_path / "elsewhere").exists()


def test_install_writes_the_startup_file_and_the_kernels_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    for _ in range(2):
        environment.install()
        assert (tmp_path / "distlab_environment.pth").read_text() == environment.STARTUP_LINE
        settings = (tmp_path / "etc" / "ipython" / "ipython_kernel_config.py").read_text()
        assert "c.IPKernelApp.capture_fd_output = False" in settings


def child_variables(code: str, **changed: str) -> dict[str, str]:
    """The variables that a child Python has which starts without those of the course; `code` must print them."""
    inherited = {name: value for name, value in os.environ.items() if name not in environment.variables()}
    command = [sys.executable, "-c", code]
    answer = subprocess.run(command, env=inherited | changed, capture_output=True, text=True, check=True, timeout=600)
    return json.loads(answer.stdout)


PRINT = "import json, os; print(json.dumps(dict(os.environ)))"


def test_a_plain_child_has_the_courses_variables_without_importing_anything() -> None:
    found = child_variables(PRINT, PATH="/usr/bin:/bin")
    assert found["TF_USE_LEGACY_KERAS"] == "1"
    assert {name: found[name] for name in environment.variables()} == environment.variables()
    assert found["PATH"] == f"{PROGRAMS}:/usr/bin:/bin"


def test_a_plain_child_keeps_what_the_user_has_set() -> None:
    assert child_variables(PRINT, TF_USE_LEGACY_KERAS="0")["TF_USE_LEGACY_KERAS"] == "0"


@pytest.mark.parametrize(
    ("backend", "expected"), [("torch", "tensorflow"), ("", "tensorflow"), ("jax", "jax")], ids=["torch", "none", "jax"]
)
def test_a_backend_that_is_chosen_for_other_projects_reaches_no_program(backend: str, expected: str) -> None:
    """One program of the course runs on JAX too."""
    assert child_variables(PRINT, KERAS_BACKEND=backend)["KERAS_BACKEND"] == expected


def test_a_childs_child_finds_the_programs_once_too() -> None:
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {PRINT!r}])"
    found = child_variables(nested, PATH="/usr/bin:/bin")
    assert found["PATH"].split(os.pathsep).count(PROGRAMS) == 1


def test_starting_a_child_does_not_import_tensorflow() -> None:
    """The start-up file runs for each Python, pip and horovodrun included: it must stay light."""
    code = "import json, sys; print(json.dumps([name for name in sys.modules if name in ('tensorflow', 'numpy')]))"
    assert child_variables(code) == []


# Each rank contributes its rank + 1; no import of distlab, as in a student's own program.
ALL_REDUCE = """
import json, sys
import horovod.tensorflow as hvd, tensorflow as tf

hvd.init()
total = hvd.allreduce(tf.constant([1.0, 10.0]) * (hvd.rank() + 1), op=hvd.Sum)
gathered = hvd.allgather(tf.constant([hvd.rank()]))
result = {"rank": hvd.rank(), "size": hvd.size(), "total": total.numpy().tolist(), "ranks": gathered.numpy().tolist()}
with open(f"{sys.argv[1]}/rank{hvd.rank()}.json", "w") as file:
    json.dump(result, file)
"""


@pytest.mark.slow
@needs_horovod
@pytest.mark.parametrize(
    ("launcher", "ranks"),
    [([], 1), (["horovodrun", "-np", "2", "--gloo"], 2), (["mpirun", "-np", "2"], 2)],
    ids=["python", "horovodrun --gloo", "mpirun"],
)
def test_horovod_program_runs_however_it_is_started(launcher: list[str], ranks: int, tmp_path: Path) -> None:
    """Without a launcher it is one rank; the folder's name has a space in it, as students' have."""
    folder = tmp_path / "my course"
    folder.mkdir()
    (folder / "program.py").write_text(ALL_REDUCE)
    command = [*launcher, sys.executable, str(folder / "program.py"), str(folder)]
    course = environment.variables()
    inherited = {name: value for name, value in os.environ.items() if name not in course}
    if launcher:  # mpirun is no Python program: nothing tells it that two ranks on one core, or root, are fine
        inherited |= {name: value for name, value in course.items() if name.startswith("OMPI_")}
    finished = processes.run(command, seconds=300, env=inherited)
    assert finished.status == 0, finished.output
    results = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    total = [1.0, 10.0] if ranks == 1 else [3.0, 30.0]
    expected = {"size": ranks, "total": total, "ranks": list(range(ranks))}
    assert results == [{"rank": rank} | expected for rank in range(ranks)]


def test_jsonschema_does_without_the_grammar_that_takes_seconds_to_build() -> None:
    code = (
        "import sys, nbformat; nbformat.validate(nbformat.v4.new_notebook()); print(sys.modules.get('rfc3987_syntax'))"
    )
    finished = processes.run([sys.executable, "-c", code], 300)
    assert (finished.status, finished.output) == (0, "None\n")


@pytest.mark.slow
def test_importing_tensorflow_looks_for_garbage_seldom() -> None:
    code = "import gc; import tensorflow; print(sum(generation['collections'] for generation in gc.get_stats()))"
    finished = processes.run([sys.executable, "-c", code], 600)
    assert finished.status == 0
    assert int(finished.output.splitlines()[-1]) < 100  # with Python's own thresholds it is 680


def test_a_data_folder_is_the_same_for_children_that_run_elsewhere(tmp_path: Path) -> None:
    show = "import os; print(os.environ['DISTLAB_DATA'])"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {show!r}], cwd='/')"
    options = {"cwd": tmp_path, "env": {**os.environ, "DISTLAB_DATA": "sets"}}
    finished = processes.run([sys.executable, "-c", program], 300, **options)
    assert finished.output.strip() == str(tmp_path / "sets")


def test_what_is_installed_already_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ordinary user may not write into an environment that the administrator has set up."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    environment.install()
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) == 2
    monkeypatch.setattr(Path, "write_text", lambda *arguments: pytest.fail("a file was written"))
    environment.install()


@pytest.mark.slow
def test_what_keras_is_told_for_other_projects_does_not_choose_its_backend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keras.json").write_text('{"backend": "torch"}')
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    monkeypatch.delenv("KERAS_BACKEND")
    code = "import distlab, keras; print(keras.backend.backend())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.stdout == "tensorflow\n", done.stderr


@pytest.mark.parametrize(
    ("settings", "is_left_out"),
    [
        (
            '{"floatx": "float16", "epsilon": 1e-07, "backend": "tensorflow", "image_data_format": "channels_last"}',
            True,
        ),
        ('{"image_data_format": "channels_first"}', True),
        ('{"floatx": "float32", "epsilon": 1e-07, "backend": "jax", "image_data_format": "channels_last"}', False),
        ("{", False),
        ("[]", False),
    ],
)
def test_keras_computes_as_the_course_whatever_it_is_told_for_other_projects(
    settings: str, is_left_out: bool, variables: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text(settings)
    variables["HOME"] = str(tmp_path)
    environment.apply()
    assert ("KERAS_HOME" in variables) == is_left_out
    variables["KERAS_HOME"] = "/own"
    environment.apply()
    assert variables["KERAS_HOME"] == "/own"


def test_a_kernel_of_the_same_name_for_other_packages_is_not_found(variables: dict[str, str], tmp_path: Path) -> None:
    for place in ("home/.local/share/jupyter", "site"):
        folder = tmp_path / place / "kernels" / "python3"
        folder.mkdir(parents=True)
        of_others = {
            "argv": ["/opt/gone/python", "-m", "ipykernel_launcher"],
            "display_name": "x",
            "language": "python",
        }
        (folder / "kernel.json").write_text(json.dumps(of_others))
    variables |= {
        "HOME": str(tmp_path / "home"),
        "JUPYTER_PATH": str(tmp_path / "site"),
        "JUPYTER_PREFER_ENV_PATH": "0",
    }
    environment.apply()
    environment.apply()
    assert variables["JUPYTER_PATH"].split(os.pathsep)[1:] == [str(tmp_path / "site")]
    argv = kernelspec.KernelSpecManager(kernel_dirs=paths.jupyter_path("kernels")).get_kernel_spec("python3").argv
    assert argv[0] != "/opt/gone/python"


def test_a_keras_that_is_chosen_for_other_projects_is_said_and_replaced(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in ("1", "True"):
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", value)
        environment.choose_legacy_keras()
        assert (os.environ["TF_USE_LEGACY_KERAS"], capsys.readouterr().out) == (value, "")
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "0")
    environment.choose_legacy_keras()
    assert os.environ["TF_USE_LEGACY_KERAS"] == "1"
    said = "TF_USE_LEGACY_KERAS=0 is set for other projects: the notebooks run with 1.\n"
    assert capsys.readouterr().out == said
