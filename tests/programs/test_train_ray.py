"""Chapter 14's program for Ray: both ways equal one process, and of the Ray that it starts nothing is left."""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import psutil
import pytest

from distlab import checks, frameworks, launch
from distlab.runtime import processes
from tests.programs.frameworks_chapter import CHAPTER, STEPS, serial, weights_in, write_start

MISSING = frameworks.problem("ray") or launch.horovod_problem()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(MISSING is not None, reason=str(MISSING)),
]

DEADLINE = 900


class Place:
    """A start, an empty home folder and an empty folder for Ray, and the program run there."""

    def __init__(self, folder: Path, ray_folder: Path) -> None:
        self.start, self.ray_folder = write_start(folder / "start.npz"), ray_folder
        self.home, self.weights, self.result = folder / "home", folder / "weights.npz", folder / "result.json"
        self.home.mkdir()
        self.mark = processes.new_mark()

    def begin(self, *options: str) -> subprocess.Popen:
        command = [str(frameworks.python("ray")), str(CHAPTER / "train_ray.py"), str(self.start), *options]
        # Keras, which writes its settings there, has a folder of its own.
        variables = {"HOME": str(self.home), "KERAS_HOME": str(self.weights.parent / "keras")}
        variables["RAY_TMPDIR"] = str(self.ray_folder)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return processes.start(command, self.mark, env=os.environ | variables, **pipes)

    def has_raylet(self) -> bool:
        for process in processes.alive(self.mark):
            try:
                if process.name() == "raylet":
                    return True
            except psutil.Error:
                continue
        return False

    def left(self) -> list:
        """Processes and files that are there."""
        files = [file for file in self.home.rglob("*") if file.is_file()]
        return [*processes.alive(self.mark), *self.ray_folder.iterdir(), *files]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    ray_folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))  # short, for Ray's sockets
    place = Place(tmp_path, ray_folder)
    yield place
    processes.end(place.mark)
    shutil.rmtree(ray_folder)


def becomes_true(what: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not (is_true := what()) and time.monotonic() < end:
        time.sleep(0.1)
    return is_true


@pytest.mark.parametrize("way", ["RayExecutor", "TensorflowTrainer"])
def test_two_workers_equal_one_process_and_nothing_is_left(place: Place, way: str) -> None:
    program = place.begin("--way", way, "--weights", str(place.weights), "--result", str(place.result))
    output, _ = program.communicate(timeout=DEADLINE)
    assert program.returncode == 0, output
    assert place.left() == []
    result = json.loads(place.result.read_text())
    assert (result["ranks"], result["steps"]) == (2, STEPS)
    weights, losses = serial(place.start)
    checks.assert_equal_weights(weights_in(place.weights), weights)
    np.testing.assert_allclose(result["losses"], losses, atol=1e-5)
    # Each worker with all images, or gradients that are not averaged, would be another run than this.
    doubled, _ = serial(place.start, rate=0.04)
    assert checks.largest_difference(weights_in(place.weights), doubled) > 100 * checks.TOLERANCE


def test_a_program_that_is_killed_leaves_nothing(place: Place) -> None:
    program = place.begin("--way", "RayExecutor")
    assert becomes_true(place.has_raylet, 600)
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=300)
    assert program.returncode != 0
    assert becomes_true(lambda: not place.left(), 60), place.left()
