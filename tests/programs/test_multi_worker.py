"""The programs of chapter 07: `minimal.py` and `loop.py` alone, `feed.py`, `train.py`, and the wrong ones."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, launch, models, programs
from distlab.labs import registry
from distlab.launch.job import free_addresses
from distlab.runtime import processes
from tests.distlab.labs.solutions import solved_cells

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

CHAPTER = programs.FOLDER / "07_multi_worker"

WORKERS, IMAGES, GLOBAL_BATCH, SEED = 2, 480, 48, 7
STEPS = IMAGES // GLOBAL_BATCH
DEADLINE = 900
samples_seen = registry.lab("07")["samples_seen"].judge.right
HOW = {"seconds": DEADLINE, "start_seconds": DEADLINE, "echo": False}


def in_two_processes(command: list[str], **how: object) -> list[processes.Finished]:
    """Two starts of a program by hand, each with the index in the place of INDEX; TF_CONFIG is not set."""

    def started(index: int) -> processes.Finished:
        return processes.run([word.replace("INDEX", str(index)) for word in command], DEADLINE, **how)

    with ThreadPoolExecutor(WORKERS) as together:
        runs = list(together.map(started, range(WORKERS)))
    for finished in runs:
        assert finished.status == 0, finished.output
    return runs


def test_two_workers_by_hand_equal_one_process_and_the_chief_alone_leaves_files(tmp_path: Path) -> None:
    folder, file = tmp_path / "shared", tmp_path / "result.json"
    command = [sys.executable, str(CHAPTER / "train.py"), "--index", "INDEX"]
    command += ["--workers", *free_addresses(WORKERS), "--images", str(IMAGES), "--seed", str(SEED)]
    in_two_processes([*command, "--folder", str(folder), "--result", str(file)])
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


@pytest.mark.parametrize("name", ["minimal", "loop"])
def test_a_copied_program_trains_one_model_in_two_processes(tmp_path: Path, name: str) -> None:
    text = (CHAPTER / f"{name}.py").read_text()
    assert "distlab" not in text and sum(map(bool, text.splitlines())) <= {"minimal": 40, "loop": 60}[name]
    (tmp_path / "program.py").write_text(text)
    command = [sys.executable, "-P", "program.py", *["saved"] * (name == "loop"), "INDEX", *free_addresses(WORKERS)]
    runs = in_two_processes(command, cwd=tmp_path)
    [first], [second] = ([line for line in run.output.splitlines() if "loss " in line] for run in runs)
    if name == "loop":
        assert first.endswith(", chief: True") and second == first.replace("True", "False")
        assert (tmp_path / "saved" / "state.index").is_file()
    else:
        assert first == second and first.startswith("2 replicas; ")


def test_the_solution_of_lab_07_starts_two_real_workers_that_train_one_model(tmp_path: Path) -> None:
    cells, file = solved_cells("07"), tmp_path / "start.py"
    file.write_text(f"import json\nimport os\nimport subprocess\n\n{cells['tf_config']}\n{cells['start']}")
    finished = processes.run([sys.executable, str(CHAPTER / "two_workers.py"), str(file)], DEADLINE)
    assert finished.status == 0, finished.output
    assert "exit codes: [0, 0]" in finished.output and finished.output.count(": 2 replicas, ") == 2
    assert "largest difference of their weights: 0.0" in finished.output


def test_the_wrong_ways_to_save_fail_as_they_say(tmp_path: Path) -> None:
    options = ["--folder", tmp_path, "--patience", 4, "--result", tmp_path / "result.json"]
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.tensorflow(CHAPTER / "save_wrongly.py", *options, workers=WORKERS, **HOW)
    result = json.loads((tmp_path / "result.json").read_text())
    assert 1 <= result["everybody"]["failures"] <= WORKERS
    assert result["mixed"] == {"true": 2.0, "read alone": (2 + 100) / (1 + 3)}
    # The chief alone can write a checkpoint of mirrored variables, and hangs in model.save.
    assert result["combined on read"] == ["total:0", "count:0", "total:0", "count:0"]
    checkpoint = tf.train.Checkpoint(model=models.cnn())
    checkpoint.read(str(tmp_path / "alone")).expect_partial().assert_existing_objects_matched()
    assert (failure.value.rank, failure.value.exit_code) == ("worker 0", 3)
    said = failure.value.run.output["worker 0"]
    assert "after 4 s it gives up" in said and "model.save has returned" not in said


def test_a_sharded_feed_gives_every_number_to_one_worker_once_and_as_many_as_lab_07_says(tmp_path: Path) -> None:
    files = [tmp_path / f"numbers-{file}.tfrecord" for file in range(8)]
    for file, path in enumerate(files):
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(4 * file, 4 * file + 4):
                writer.write(str(number))
    run = launch.tensorflow(CHAPTER / "feed.py", "--files", *files, workers=WORKERS, **HOW)
    fed = [json.loads(run.output[f"worker {index}"].splitlines()[-1]) for index in range(WORKERS)]
    for way in ("OFF", "DATA", "FILE", "AUTO"):
        assert [len(worker[way]) for worker in fed] == samples_seen(way, [4] * 8, WORKERS, 2 * WORKERS)
    for way in ("DATA", "FILE", "AUTO", "from function"):
        assert sorted(fed[0][way] + fed[1][way]) == list(range(32))
    for way in ("OFF", "from function, shard forgotten"):
        assert all(sorted(worker[way]) == list(range(32)) for worker in fed)
    of_files = [{number // 4 for number in worker["FILE"]} for worker in fed]
    assert of_files[0].isdisjoint(of_files[1])  # whole files
