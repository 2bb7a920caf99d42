"""Chapter 14's program for Ray: both ways equal one process, and of the Ray that it starts nothing is left."""

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
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


@pytest.fixture
def ray_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="t-", dir="/tmp"))  # short, for Ray's sockets
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("way", ["RayExecutor", "TensorflowTrainer"])
def test_two_workers_equal_one_process_and_nothing_is_left(tmp_path: Path, ray_folder: Path, way: str) -> None:
    start, weights, file = write_start(tmp_path / "start.npz"), tmp_path / "weights.npz", tmp_path / "result.json"
    home = tmp_path / "home"
    home.mkdir()
    command = [str(frameworks.python("ray")), str(CHAPTER / "train_ray.py"), str(start), "--way", way]
    # Keras, which writes its settings there, has a folder of its own.
    folders = {"HOME": str(home), "KERAS_HOME": str(tmp_path / "keras"), "RAY_TMPDIR": str(ray_folder)}
    mark, pipes = processes.new_mark(), {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    try:
        options = ["--weights", str(weights), "--result", str(file)]
        program = processes.start([*command, *options], mark, env=os.environ | folders, **pipes)
        output, _ = program.communicate(timeout=900)
        assert program.returncode == 0, output
        files = [file for file in home.rglob("*") if file.is_file()]
        assert [*processes.alive(mark), *ray_folder.iterdir(), *files] == []
    finally:
        processes.end(mark)
    result = json.loads(file.read_text())
    assert (result["ranks"], result["steps"]) == (2, STEPS)
    expected, losses = serial(start)
    checks.assert_equal_weights(weights_in(weights), expected)
    np.testing.assert_allclose(result["losses"], losses, atol=1e-5)
    # Each worker with all images, or gradients that are not averaged, would be another run than this.
    doubled, _ = serial(start, rate=0.04)
    assert checks.largest_difference(weights_in(weights), doubled) > 100 * checks.TOLERANCE
