"""`train.py` of notebook 07, on two workers that are started by hand; its weights are compared in the notebook."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from distlab import programs
from distlab.launch.job import free_addresses
from distlab.runtime import processes

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

WORKERS, IMAGES, GLOBAL_BATCH = 2, 480, 48
STEPS = IMAGES // GLOBAL_BATCH


def test_two_workers_by_hand_share_each_global_batch_and_the_chief_alone_leaves_files(tmp_path: Path) -> None:
    folder, file = tmp_path / "shared", tmp_path / "result.json"
    command = [sys.executable, str(programs.FOLDER / "07_multi_worker" / "train.py"), "--images", str(IMAGES)]
    command += ["--workers", *free_addresses(WORKERS), "--folder", str(folder), "--result", str(file)]

    def started(index: int) -> processes.Finished:  # TF_CONFIG is not set
        return processes.run([*command, "--index", str(index)], 900)

    with ThreadPoolExecutor(WORKERS) as together:
        for finished in together.map(started, range(WORKERS)):
            assert finished.status == 0, finished.output
    by_hand = json.loads(file.read_text())
    for way in ("fit", "loop"):
        seen = np.array(by_hand[way]["seen"])
        assert seen.shape == (WORKERS, STEPS, GLOBAL_BATCH // WORKERS)
        for step in range(STEPS):  # each has its global batch, whoever gets which part
            first = GLOBAL_BATCH * step
            assert np.array_equal(np.sort(seen[:, step].ravel()), np.arange(first, first + GLOBAL_BATCH))
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    checkpoints = {f"checkpoints/ckpt-{STEPS}.{part}" for part in ("index", "data-00000-of-00001")}
    expected = {"fit/model.keras", "checkpoints/checkpoint", *checkpoints}
    assert {name for name in files if not name.startswith("checkpoints/ckpt-2")} == expected
