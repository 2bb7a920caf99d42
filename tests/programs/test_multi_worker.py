"""`train.py` of notebook 07, on two workers that are started by hand."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, models, programs
from distlab.launch.job import free_addresses
from distlab.runtime import processes

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "07_multi_worker"

WORKERS, IMAGES, GLOBAL_BATCH, SEED = 2, 480, 48, 7
STEPS = IMAGES // GLOBAL_BATCH
DEADLINE = 900


def test_two_workers_by_hand_equal_one_process_and_the_chief_alone_leaves_files(tmp_path: Path) -> None:
    folder, file = tmp_path / "shared", tmp_path / "result.json"
    command = [sys.executable, str(CHAPTER / "train.py"), "--index", "INDEX"]
    command += ["--workers", *free_addresses(WORKERS), "--images", str(IMAGES)]
    command += ["--folder", str(folder), "--result", str(file)]

    def started(index: int) -> processes.Finished:  # TF_CONFIG is not set
        return processes.run([word.replace("INDEX", str(index)) for word in command], DEADLINE)

    with ThreadPoolExecutor(WORKERS) as together:
        for finished in together.map(started, range(WORKERS)):
            assert finished.status == 0, finished.output
    by_hand = json.loads(file.read_text())
    images, labels = data.load("digits").train
    order = np.random.default_rng(SEED).permutation(len(images))[:IMAGES]
    tf.keras.utils.set_random_seed(SEED)
    alone = models.cnn()
    alone.compile(tf.keras.optimizers.SGD(0.05), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order])).batch(GLOBAL_BATCH)
    alone.fit(samples, verbose=0)
    restored = models.cnn()
    checkpoint = tf.train.Checkpoint(model=restored).restore(str(folder / "checkpoints" / f"ckpt-{STEPS}"))
    checkpoint.expect_partial().assert_existing_objects_matched()
    for way, model in {"fit": tf.keras.models.load_model(folder / "fit" / "model.keras"), "loop": restored}.items():
        checks.assert_equal_weights(model.get_weights(), alone.get_weights())
        seen = np.array(by_hand[way]["seen"])
        assert seen.shape == (WORKERS, STEPS, GLOBAL_BATCH // WORKERS)
        for step in range(STEPS):  # each has its global batch, whoever gets which part
            first = GLOBAL_BATCH * step
            assert np.array_equal(np.sort(seen[:, step].ravel()), np.arange(first, first + GLOBAL_BATCH))
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    checkpoints = {f"checkpoints/ckpt-{STEPS}.{part}" for part in ("index", "data-00000-of-00001")}
    expected = {"fit/model.keras", "checkpoints/checkpoint", *checkpoints}
    assert {name for name in files if not name.startswith("checkpoints/ckpt-2")} == expected
