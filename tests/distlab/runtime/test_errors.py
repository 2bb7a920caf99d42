"""Errors of users end in one sentence: no traceback in Jupyter or from a program, whichever part raises them."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from distlab import frameworks
from distlab.runtime import errors
from tests import small_disks

# What a user does wrong, and the sentence that Jupyter must show, alone.
MISTAKES = {
    "from distlab import data\ndata.load('mnits')": "UnknownDataset: ",
    "from distlab import cluster_spec\ncluster_spec.check('{}')": "ClusterSpecError: cluster is missing",
    "from distlab import launch\nlaunch.tensorflow('nowhere.py')": "LaunchError: There is no program nowhere.py",
    "from distlab import devices\nraise devices.DevicesAlreadyUsed('restart')": "DevicesAlreadyUsed: restart",
}


@pytest.fixture(autouse=True)
def no_files_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))


@pytest.mark.parametrize("cell", MISTAKES, ids=[sentence.partition(":")[0] for sentence in MISTAKES.values()])
def test_jupyter_shows_the_sentence_without_a_traceback(cell: str, capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell().run_cell(cell)
    shown = capsys.readouterr().out.strip()
    assert shown.startswith(MISTAKES[cell])
    assert "\n" not in shown


@pytest.mark.slow
def test_another_error_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell().run_cell("raise ValueError('no sentence')")
    assert "Traceback" in capsys.readouterr().out


def ended(program: str) -> str:
    """What a program that ends with an error writes about it."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and not done.stdout
    return done.stderr


def test_a_program_ends_with_the_sentence_and_without_a_traceback() -> None:
    said = ended("from distlab.large_batch import global_batches\nglobal_batches.numbers(0, 100, 101, 0)")
    assert said == "BatchDoesNotFit: A global batch of 101 does not fit into 100 images; choose 1 to 100.\n"


def test_another_error_of_a_program_keeps_its_traceback() -> None:
    assert ended("import distlab\nraise ValueError('no sentence')").startswith("Traceback")


@pytest.mark.parametrize(("name", "sentence"), [("distlab", "\nInterrupted.\n"), ("train.py", None)])
def test_an_interrupt_while_the_command_is_loaded_is_one_word(name: str, sentence: str | None, tmp_path: Path) -> None:
    program = tmp_path / name
    program.write_text("raise KeyboardInterrupt\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == -signal.SIGINT  # a shell says 130
    assert done.stderr == sentence or (sentence is None and "Traceback" in done.stderr)


@pytest.mark.parametrize("framework", errors.FRAMEWORKS)
def test_a_framework_of_another_environment_is_named_with_its_command(framework: str) -> None:
    part = frameworks.PARTS[framework]
    code = f"import sys\nsys.modules.pop('{framework}', None)\nsys.path.clear()\nimport {framework}"
    said = ended(code)
    assert said.count("\n") == 1 and said.startswith(f"{framework} is not in this environment")
    assert f"`{part.command}`" in said and f"{part.folder}/bin/python" in said


@pytest.mark.slow
@small_disks.needs_mounts
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("size=40k", "could not be written (No space left on device): make room on that disk, and start again."),
        ("ro", "could not be written (Read-only file system): choose a folder on another disk."),
    ],
)
@pytest.mark.parametrize("write", ["open(file, 'wb').write(bytes(10**6))", "h5py.File(file, 'w')['x'] = range(10**5)"])
def test_a_disk_that_refuses_is_one_sentence(options: str, sentence: str, write: str, tmp_path: Path) -> None:
    file = tmp_path / "big.h5"
    command = [sys.executable, "-c", f"import h5py\nfile = {str(file)!r}\n{write}"]
    command = small_disks.with_disk(tmp_path, options, command)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.splitlines()[0] in (f"{file} {sentence}", f"a file {sentence}")  # Python's own error names none


@small_disks.needs_mounts
def test_full_shared_memory_is_named() -> None:
    code = "import multiprocessing, pathlib\n"
    code += (
        "try:\n    pathlib.Path('/dev/shm/full').write_bytes(bytes(10**6))\nexcept OSError:\n    multiprocessing.Lock()"
    )
    command = small_disks.with_disk(Path("/dev/shm"), "size=64k", [sys.executable, "-c", code])
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("/dev/shm could not be written (No space left on device): make room on that disk")


@pytest.mark.long
def test_an_address_that_another_worker_has_is_one_sentence(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import tensorflow as tf\ntf.distribute.MultiWorkerMirroredStrategy()\n")
    with socket.socket() as earlier_run:
        earlier_run.bind(("", 0))
        earlier_run.listen()
        address = f"localhost:{earlier_run.getsockname()[1]}"
        config = {"cluster": {"worker": ["localhost:1", address]}, "task": {"type": "worker", "index": 1}}
        environment = os.environ | {"TF_CONFIG": json.dumps(config)}
        command = [sys.executable, str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    sentence = done.stderr.splitlines()[-1]
    assert sentence.startswith(f"{address}, the address of worker 1, is taken (Could not start gRPC")
    for cause in ("has index 1 too", "the addresses in another order", "a worker of an earlier run lives"):
        assert cause in sentence


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is not None, reason="JAX is installed here")
def test_a_backend_of_keras_that_is_not_here_is_named_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    assert ended("import keras").startswith("KERAS_BACKEND=jax in your shell lets Keras 3 run on jax, which is not in")
    assert "Traceback" in ended("import another_module")


def test_an_address_that_tf_config_does_not_name_keeps_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    error = RuntimeError(errors.NO_SERVER)
    for text in ("{}", "[]", "no JSON", '{"cluster": {}, "task": {"type": "worker", "index": 0}}'):
        monkeypatch.setenv("TF_CONFIG", text)
        assert errors.taken_address(error) is None
    monkeypatch.delenv("TF_CONFIG")
    assert errors.taken_address(error) is None


def test_another_package_that_is_missing_keeps_its_traceback() -> None:
    assert ended("import no_such_package").startswith("Traceback")
