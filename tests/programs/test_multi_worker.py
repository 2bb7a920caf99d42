"""The programs of notebook 07: `minimal.py`, `feed.py`, `train.py` by hand and resumed, and the wrong ones."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, data, launch, models, programs
from distlab.launch.job import free_addresses
from distlab.runtime import processes

# isort: split
import tensorflow as tf

pytestmark = pytest.mark.slow

WORKERS, IMAGES, GLOBAL_BATCH, SEED = 2, 480, 48, 7
STEPS = IMAGES // GLOBAL_BATCH
DEADLINE = 900
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
    options = ["--images", str(IMAGES), "--seed", str(SEED), "--folder", str(folder), "--result", str(file)]

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


@pytest.fixture(scope="module")
def resumed(by_hand: dict, chapter_folder: Path, folder: Path) -> dict:
    """What one process makes of the checkpoint that two workers left, with as many steps again."""
    file = folder.parent / f"{folder.name}_resumed.json"
    options = ["--images", str(IMAGES), "--epochs", "2", "--seed", str(SEED), "--folder", str(folder), "--resume"]
    command = [sys.executable, str(chapter_folder / "train.py"), "--ways", "loop", *options, "--result", str(file)]
    finished = processes.run(command, DEADLINE)
    assert finished.status == 0, finished.output
    return json.loads(file.read_text())


def restored(folder: Path, step: int) -> list[np.ndarray]:
    model = models.cnn()
    checkpoint = tf.train.Checkpoint(model=model)
    checkpoint.restore(str(folder / "checkpoints" / f"ckpt-{step}")).expect_partial().assert_existing_objects_matched()
    return model.get_weights()


def one_process(epochs: int) -> list[np.ndarray]:
    """The weights of a run without a strategy, over the same global batches."""
    images, labels = data.load("digits").train
    order = np.random.default_rng(SEED).permutation(len(images))[:IMAGES]
    tf.keras.utils.set_random_seed(SEED)
    model = models.cnn()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.05), loss)
    samples = tf.data.Dataset.from_tensor_slices((images[order], labels[order])).batch(GLOBAL_BATCH)
    model.fit(samples, epochs=epochs, verbose=0)
    return model.get_weights()


def is_disjoint_and_complete(seen: list) -> bool:
    return np.array_equal(np.sort(np.ravel(seen)), np.arange(IMAGES))


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_every_sample_goes_to_one_worker_once(by_hand: dict, way: str) -> None:
    assert np.shape(by_hand[way]["seen"]) == (WORKERS, STEPS, GLOBAL_BATCH // WORKERS)
    assert is_disjoint_and_complete(by_hand[way]["seen"])


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_each_step_has_its_global_batch_whoever_gets_which_part(by_hand: dict, way: str) -> None:
    for step in range(STEPS):
        batch = np.sort(np.array(by_hand[way]["seen"])[:, step].ravel())
        np.testing.assert_array_equal(batch, np.arange(GLOBAL_BATCH * step, GLOBAL_BATCH * (step + 1)))


def test_the_chief_alone_leaves_files(by_hand: dict, folder: Path) -> None:
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    checkpoints = {f"checkpoints/ckpt-{STEPS}.{part}" for part in ("index", "data-00000-of-00001")}
    assert {name for name in files if not name.startswith("checkpoints/ckpt-2")} == {
        "fit/model.keras",
        "checkpoints/checkpoint",
        "trained_on.txt",
        *checkpoints,
    }


@pytest.mark.parametrize("way", ["fit", "loop"])
def test_two_workers_by_hand_equal_one_process(by_hand: dict, folder: Path, way: str) -> None:
    saved = tf.keras.models.load_model(folder / "fit" / "model.keras").get_weights()
    checks.assert_equal_weights(saved if way == "fit" else restored(folder, STEPS), one_process(epochs=1))


def test_a_resumed_run_is_the_uninterrupted_one(resumed: dict, folder: Path) -> None:
    assert (resumed["loop"]["first_step"], len(resumed["loop"]["losses"])) == (STEPS, STEPS)
    uninterrupted = one_process(epochs=2)
    checks.assert_equal_weights(restored(folder, 2 * STEPS), uninterrupted)
    assert checks.largest_difference(restored(folder, STEPS), uninterrupted) > 100 * checks.TOLERANCE


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--index", "2", "--workers", "h:1", "i:1"], "task.index is 2, but cluster.worker has 2 addresses"),
        (["--index", "0", "--workers", "h", "i:1"], 'cluster.worker[0] is "h", without a port'),
        (["--index", "0"], "--index and --workers belong together"),
        (["--ways", "fit", "--folder", "saved", "--resume"], "only the loop resumes: add it to --ways"),
    ],
)
def test_a_mistake_in_the_cluster_ends_the_program_with_a_sentence(
    chapter_folder: Path,
    arguments: list[str],
    sentence: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    train = programs.module(chapter_folder / "train.py")
    monkeypatch.setattr(sys, "argv", ["train.py", *arguments])
    monkeypatch.delenv("TF_CONFIG", raising=False)
    with pytest.raises(SystemExit) as error:
        train.main()
    assert error.value.code not in (0, None)
    assert sentence in f"{error.value.code} {capsys.readouterr().err}"


def test_a_cluster_with_parameter_servers_is_refused(chapter_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train = programs.module(chapter_folder / "train.py")
    cluster = {"chief": ["h:1"], "worker": ["i:1"], "ps": ["j:1"]}
    monkeypatch.setattr(sys, "argv", ["train.py"])
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    with pytest.raises(SystemExit, match="this strategy has no parameter servers: start workers only"):
        train.main()


@pytest.fixture(scope="module")
def wrong(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict, launch.WorkerFailed, Path]:
    """What the wrong ways to save gave, how the job ended, and where they saved."""
    folder = tmp_path_factory.mktemp("wrong")
    file = folder.parent / f"{folder.name}.json"
    options = ["--folder", folder, "--patience", 4, "--result", file]
    with pytest.raises(launch.WorkerFailed) as failure:
        launch.tensorflow(chapter_folder / "save_wrongly.py", *options, workers=WORKERS, **HOW)
    return json.loads(file.read_text()), failure.value, folder


def test_saves_by_all_to_one_path_fail_sooner_or_later(wrong: tuple) -> None:
    assert 1 <= wrong[0]["everybody"]["failures"] <= WORKERS


def test_a_metric_read_by_the_chief_alone_takes_up_what_the_others_sum(wrong: tuple) -> None:
    assert wrong[0]["mixed"] == {"true": 2.0, "read alone": (2 + 100) / (1 + 3)}


def test_the_chief_alone_can_write_a_checkpoint_of_mirrored_variables(wrong: tuple) -> None:
    assert wrong[0]["combined on read"] == ["total:0", "count:0", "total:0", "count:0"]
    checkpoint = tf.train.Checkpoint(model=models.cnn())
    checkpoint.read(str(wrong[2] / "alone")).expect_partial().assert_existing_objects_matched()


def test_the_chief_alone_hangs_in_model_save_until_its_patience_ends(wrong: tuple) -> None:
    _, failure, _ = wrong
    assert (failure.rank, failure.exit_code) == ("worker 0", 3)
    assert "no answer for 4 s, it gives up" in failure.run.output["worker 0"]
    assert "model.save has returned" not in failure.run.output["worker 0"]


@pytest.mark.parametrize("in_time", [False, True])
def test_collective_operations_must_be_configured_first(chapter_folder: Path, in_time: bool) -> None:
    run = launch.tensorflow(chapter_folder / "too_late.py", *(["--in-time"] if in_time else []), workers=1, **HOW)
    message = "Collective ops must be configured at program startup"
    assert (message in run.output["worker 0"]) is not in_time


def test_the_minimal_program_lowers_the_loss_on_every_worker(chapter_folder: Path) -> None:
    run = launch.tensorflow(chapter_folder / "minimal.py", workers=WORKERS, **HOW)
    lines = {output.splitlines()[-1] for output in run.output.values()}
    assert len(lines) == 1
    first, last = json.loads(lines.pop().partition(": ")[2])
    assert last < first < np.log(10)


@pytest.fixture(scope="module")
def fed(chapter_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[int]]]:
    """What each of two workers is given of 32 numbers in 8 files."""
    folder = tmp_path_factory.mktemp("files")
    files = [folder / f"numbers-{file}.tfrecord" for file in range(8)]
    for file, path in enumerate(files):
        with tf.io.TFRecordWriter(str(path)) as writer:
            for number in range(4 * file, 4 * file + 4):
                writer.write(str(number))
    run = launch.tensorflow(chapter_folder / "feed.py", "--files", *files, workers=WORKERS, **HOW)
    return [json.loads(run.output[f"worker {index}"].splitlines()[-1]) for index in range(WORKERS)]


@pytest.mark.parametrize("way", ["DATA", "FILE", "AUTO", "from function"])
def test_a_sharded_feed_gives_every_number_to_one_worker_once(fed: list[dict], way: str) -> None:
    first, second = (worker[way] for worker in fed)
    assert sorted(first + second) == list(range(32))


@pytest.mark.parametrize("way", ["OFF", "from function, shard forgotten"])
def test_without_sharding_every_worker_gets_every_number(fed: list[dict], way: str) -> None:
    assert all(sorted(worker[way]) == list(range(32)) for worker in fed)


def test_file_and_auto_give_whole_files_and_data_does_not(fed: list[dict]) -> None:
    files = [{way: {number // 4 for number in worker[way]} for way in ("FILE", "AUTO", "DATA")} for worker in fed]
    for way in ("FILE", "AUTO"):
        assert files[0][way].isdisjoint(files[1][way])
    assert files[0]["DATA"] == files[1]["DATA"] == set(range(8))
