"""The programs of chapter 07: `minimal.py` and `loop.py` alone, `feed.py`, `train.py`, and the wrong ones."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, launch, models
from distlab.labs import registry
from distlab.launch.job import free_addresses
from distlab.runtime import processes
from tests.distlab.labs.solutions import solved_cells

# isort: split
import tensorflow as tf

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

WORKERS, IMAGES, GLOBAL_BATCH, SEED = 2, 480, 48, 7
STEPS = IMAGES // GLOBAL_BATCH
DEADLINE = 900
samples_seen = registry.lab("07")["samples_seen"].judge.right
HOW = {"seconds": DEADLINE, "start_seconds": DEADLINE, "echo": False}


@pytest.fixture(scope="module")
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/07_multi_worker"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the chief saves, and nothing but its files may appear."""
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="module")
def by_hand(chapter_folder: Path, folder: Path) -> dict:
    """The result of two processes, each started alone with its --index; TF_CONFIG is not set."""
    addresses = free_addresses(WORKERS)
    file = folder.parent / f"{folder.name}.json"
    options = ["--images", str(IMAGES), "--folder", str(folder), "--result", str(file)]

    def started(index: int) -> processes.Finished:
        command = [
            sys.executable,
            str(chapter_folder / "train.py"),
            "--index",
            str(index),
            "--workers",
            *addresses,
            *options,
        ]
        return processes.run(command, DEADLINE)

    with ThreadPoolExecutor(WORKERS) as together:
        for finished in together.map(started, range(WORKERS)):
            assert finished.status == 0, finished.output
    return json.loads(file.read_text())


def restored(folder: Path, step: int) -> list[np.ndarray]:
    model = models.cnn()
    checkpoint = tf.train.Checkpoint(model=model)
    checkpoint.restore(str(folder / "checkpoints" / f"ckpt-{step}")).expect_partial().assert_existing_objects_matched()
    return model.get_weights()


def one_process() -> list[np.ndarray]:
    """The weights of a run without a strategy, over the same global batches."""
    images, labels = data.load("digits").train
    order = np.random.default_rng(SEED).permutation(len(images))[:IMAGES]
    tf.keras.utils.set_random_seed(SEED)
    model = models.cnn()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.05), loss)
    samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order])).batch(GLOBAL_BATCH)
    model.fit(samples, verbose=0)
    return model.get_weights()


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_each_step_has_its_global_batch_whoever_gets_which_part(by_hand: dict, way: str) -> None:
    assert np.shape(by_hand[way]["seen"]) == (WORKERS, STEPS, GLOBAL_BATCH // WORKERS)
    for step in range(STEPS):
        batch = np.sort(np.array(by_hand[way]["seen"])[:, step].ravel())
        np.testing.assert_array_equal(batch, np.arange(GLOBAL_BATCH * step, GLOBAL_BATCH * (step + 1)))


def test_the_chief_alone_leaves_files(by_hand: dict, folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    checkpoints = {f"checkpoints/ckpt-{STEPS}.{part}" for part in ("index", "data-00000-of-00001")}
    assert {name for name in files if not name.startswith("checkpoints/ckpt-2")} == {
        "fit/model.keras",
        "checkpoints/checkpoint",
        *checkpoints,
    }


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_two_workers_by_hand_equal_one_process(by_hand: dict, folder: Path, way: str) -> None:
    saved = tf.keras.models.load_model(folder / "fit" / "model.keras").get_weights()
    checks.assert_equal_weights(saved if way == "fit" else restored(folder, STEPS), one_process())


@pytest.mark.parametrize("name", ["minimal", "loop"])
def test_a_copied_program_trains_one_model_in_two_processes(chapter_folder: Path, tmp_path: Path, name: str) -> None:
    text = (chapter_folder / f"{name}.py").read_text()
    assert "distlab" not in text and sum(map(bool, text.splitlines())) <= {"minimal": 40, "loop": 60}[name]
    (tmp_path / "program.py").write_text(text)
    addresses, where = free_addresses(WORKERS), ["saved"] * (name == "loop")

    def started(index: int) -> processes.Finished:
        command = [sys.executable, "-P", "program.py", *where, str(index), *addresses]
        return processes.run(command, DEADLINE, cwd=tmp_path)

    with ThreadPoolExecutor(WORKERS) as together:
        runs = list(together.map(started, range(WORKERS)))
    for finished in runs:
        assert finished.status == 0, finished.output
    [first], [second] = ([line for line in run.output.splitlines() if "loss " in line] for run in runs)
    if name == "loop":
        assert first.endswith(", chief: True") and second == first.replace("True", "False")
        assert (tmp_path / "saved" / "state.index").is_file()
    else:
        assert first == second and first.startswith("2 replicas; ")


def test_the_solution_of_lab_07_starts_two_real_workers_that_train_one_model(
    chapter_folder: Path, tmp_path: Path
) -> None:
    cells, file = solved_cells("07"), tmp_path / "start.py"
    file.write_text(f"import json\nimport os\nimport subprocess\n\n{cells['tf_config']}\n{cells['start']}")
    finished = processes.run([sys.executable, str(chapter_folder / "two_workers.py"), str(file)], DEADLINE)
    assert finished.status == 0, finished.output
    assert "exit codes: [0, 0]" in finished.output and finished.output.count(": 2 replicas, ") == 2
    assert "largest difference of their weights: 0.0" in finished.output


def test_the_chief_is_the_task_of_that_type_where_there_is_one(chapter_folder: Path, tmp_path: Path) -> None:
    head, *worker = free_addresses(2)
    cluster = {"chief": [head], "worker": worker}
    folder, file = tmp_path / "saved", tmp_path / "result.json"

    def started(kind: str) -> processes.Finished:
        program, options = str(chapter_folder / "train.py"), ["--images", "96"]
        command = [sys.executable, program, *options, "--folder", str(folder), "--result", str(file)]
        return processes.run(
            command, DEADLINE, env=os.environ | {"TF_CONFIG": json.dumps(config | {"task": task(kind)})}
        )

    config = {"cluster": cluster}

    def task(kind: str) -> dict:
        return {"type": kind, "index": 0}

    with ThreadPoolExecutor(2) as together:
        of_chief, of_worker = together.map(started, ["chief", "worker"])
    assert of_chief.status == of_worker.status == 0, of_chief.output + of_worker.output
    assert ", the chief" in of_chief.output and ", the chief" not in of_worker.output


def test_the_wrong_ways_to_save_fail_as_they_say(chapter_folder: Path, tmp_path: Path) -> None:
    options = ["--folder", tmp_path, "--patience", 4, "--result", tmp_path / "result.json"]
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.tensorflow(chapter_folder / "save_wrongly.py", *options, workers=WORKERS, **HOW)
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


def test_a_sharded_feed_gives_every_number_to_one_worker_once_and_as_many_as_lab_07_says(
    chapter_folder: Path, tmp_path: Path
) -> None:
    files = [tmp_path / f"numbers-{file}.tfrecord" for file in range(8)]
    for file, path in enumerate(files):
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(4 * file, 4 * file + 4):
                writer.write(str(number))
    run = launch.tensorflow(chapter_folder / "feed.py", "--files", *files, workers=WORKERS, **HOW)
    fed = [json.loads(run.output[f"worker {index}"].splitlines()[-1]) for index in range(WORKERS)]
    for way in ("OFF", "DATA", "FILE", "AUTO"):
        assert [len(worker[way]) for worker in fed] == samples_seen(way, [4] * 8, WORKERS, 2 * WORKERS)
    for way in ("DATA", "FILE", "AUTO", "from function"):
        assert sorted(fed[0][way] + fed[1][way]) == list(range(32))
    for way in ("OFF", "from function, shard forgotten"):
        assert all(sorted(worker[way]) == list(range(32)) for worker in fed)
    of_files = [{number // 4 for number in worker["FILE"]} for worker in fed]
    assert of_files[0].isdisjoint(of_files[1])  # whole files
