"""`minimal.py` and `parameter_server.py` of notebook 08 as real clusters, and the same on the virtual cluster."""

import importlib.util
import json
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import checks, collectives, launch
from distlab.simulate import Network, World

GRADIENTS, SECONDS, SLOW_SECONDS = 60, 0.1, 0.5
WORKERS, SERVERS = 2, 2
DEADLINES = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True}


def chapter_folder(root: Path, name: str) -> Path:
    return root / "notebooks/programs/08_other_strategies" / name


@pytest.fixture(scope="module")
def weights_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("weights") / "weights.npz"


@pytest.fixture(scope="module")
def asynchronous(root: Path, weights_file: Path) -> dict:
    """One launch of a chief, two workers and two parameter servers, for all tests."""
    arguments = ["--runs", "in_order", "equal", "slow", "--gradients", GRADIENTS, "--weights", weights_file]
    arguments += ["--seconds", SECONDS, "--slow-seconds", SLOW_SECONDS]
    program = chapter_folder(root, "parameter_server.py")
    return launch.tensorflow(program, *arguments, workers=WORKERS, parameter_servers=SERVERS, **DEADLINES).result


def by_worker(run: dict) -> list[np.ndarray]:
    """The staleness of each worker's gradients."""
    worker, staleness = np.array(run["worker"]), np.array(run["staleness"])
    return [staleness[worker == index] for index in range(WORKERS)]


@pytest.mark.slow
class TestParameterServer:
    @pytest.mark.parametrize(("name", "gradients"), [("in_order", 20), ("equal", GRADIENTS), ("slow", GRADIENTS)])
    def test_every_gradient_is_applied_once(self, asynchronous: dict, name: str, gradients: int) -> None:
        run = asynchronous["runs"][name]
        assert run["updates"] == gradients
        assert len(run["worker"]) == len(run["staleness"]) == len(run["time"]) == gradients
        assert set(run["worker"]) <= set(range(WORKERS))
        assert min(run["time"]) > 0

    @pytest.mark.parametrize("name", ["equal", "slow"])
    def test_the_loss_falls(self, asynchronous: dict, name: str) -> None:
        losses = [loss for _, _, loss in asynchronous["runs"][name]["curve"]]
        assert losses[0] == pytest.approx(np.log(10), abs=0.5)
        assert losses[-1] < 0.7 * losses[0]

    def test_in_order_nothing_is_stale_and_the_weights_are_those_of_one_device(
        self, asynchronous: dict, weights_file: Path
    ) -> None:
        assert set(asynchronous["runs"]["in_order"]["staleness"]) == {0}
        saved = list(np.load(weights_file).values())
        checks.assert_equal_weights([np.concatenate(saved[:SERVERS]), *saved[SERVERS:]], serial(20))

    @pytest.mark.parametrize("name", ["equal", "slow"])
    def test_the_mean_staleness_is_never_above_the_number_of_other_workers(self, asynchronous: dict, name: str) -> None:
        mean = np.mean(asynchronous["runs"][name]["staleness"])
        assert 0 < mean <= WORKERS - 1

    def test_the_slow_worker_does_less_and_is_staler(self, asynchronous: dict) -> None:
        fast, slow = by_worker(asynchronous["runs"]["slow"])
        assert len(fast) > len(slow) > 0
        assert slow.mean() > fast.mean()

    def test_the_large_variable_lies_on_both_servers(self, asynchronous: dict) -> None:
        pieces = [one for one in asynchronous["variables"] if "kernel/part_" in one["name"]]
        assert [piece["shape"] for piece in pieces] == [[392, 128], [392, 128]]
        assert {piece["device"].split("/device")[0] for piece in pieces} == {
            f"/job:ps/replica:0/task:{server}" for server in range(SERVERS)
        }
        assert len(asynchronous["variables"]) == 5
        assert all(one["device"].startswith("/job:ps/") for one in asynchronous["variables"])


class TestSimulated:
    """The virtual cluster against closed formulas, for the cases that notebook 08 compares."""

    @staticmethod
    def updates(seconds: list[float], steps: int) -> list[collectives.Update]:
        program = partial(
            collectives.parameter_server,
            gradient=lambda weights, worker, step: weights,
            steps=steps,
            seconds_per_gradient=lambda worker, step: seconds[worker - 1],
        )
        size = len(seconds) + 1
        return World(size, Network(1e-6, 1e-10)).run(program, [np.ones(1)] * size).results[0].updates

    @pytest.mark.parametrize("workers", [1, 2, 3, 8])
    def test_equal_workers_are_as_stale_as_there_are_others(self, workers: int) -> None:
        updates = self.updates([0.05] * workers, 20)
        assert {update.staleness for update in updates[workers:]} == {workers - 1}

    @pytest.mark.parametrize(("workers", "factor"), [(2, 4), (2, 9), (3, 4), (8, 3)])
    def test_a_worker_k_times_slower_misses_k_updates_of_each_other_one(self, workers: int, factor: int) -> None:
        # Not a whole number of times, so that no two gradients arrive together.
        factor += 0.5
        updates = self.updates([0.05] * (workers - 1) + [0.05 * factor], 60)
        last_common = max(i for i, update in enumerate(updates) if update.worker == 1)
        slow = [update.staleness for update in updates[:last_common] if update.worker == workers]
        assert slow
        assert all(abs(one - factor * (workers - 1)) <= workers for one in slow)

    @pytest.mark.parametrize("seconds", [[1, 1], [1, 4.5], [1, 2.3, 5.1], [1, 1, 1, 7.7]])
    def test_the_mean_is_the_number_of_other_workers_whatever_the_speeds(self, seconds: list[float]) -> None:
        updates = self.updates(seconds, 400)[:400]
        mean = np.mean([update.staleness for update in updates])
        others = len(seconds) - 1
        # At the two ends some updates meet no gradient under way.
        assert others * 0.95 < mean <= others

    def test_the_rates_of_the_workers_add_up(self) -> None:
        updates = [update for update in self.updates([0.05, 0.2], 200) if update.time < 8]
        assert len(updates) / 8 == pytest.approx(1 / 0.05 + 1 / 0.2, rel=0.02)


def serial(steps: int, learning_rate: float = 0.03) -> list[np.ndarray]:
    """The weights after so many steps of one device, over the same batches."""
    import tensorflow as tf  # here, since it takes seconds to start

    from distlab import data, models

    images, labels = (part[:1280] for part in data.load("digits").train)
    tf.keras.utils.set_random_seed(8)
    model = models.mlp(dropout=0.0)
    for step in range(steps):
        part = slice(32 * step, 32 * (step + 1))
        with tf.GradientTape() as tape:
            logits = model(images[part])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels[part], logits))
        for variable, gradient in zip(
            model.trainable_variables, tape.gradient(loss, model.trainable_variables), strict=True
        ):
            variable.assign_sub(learning_rate * gradient)
    return model.get_weights()


@pytest.fixture
def program(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program as a module."""
    spec = importlib.util.spec_from_file_location("parameter_server", chapter_folder(root, "parameter_server.py"))
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "parameter_server", module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rank", "task"),
    [(0, ("chief", 0)), (1, ("worker", 0)), (2, ("worker", 1)), (3, ("ps", 0)), (4, ("ps", 1))],
)
def test_the_place_in_the_list_of_addresses_is_the_role(program: ModuleType, rank: int, task: tuple) -> None:
    from distlab import cluster_spec

    spec = cluster_spec.check(program.tf_config(rank, [f"host{index}:23456" for index in range(5)], servers=2))
    assert (spec.task_type, spec.index) == task
    assert spec.address == f"host{rank}:23456"
    assert {job: len(addresses) for job, addresses in spec.cluster.items()} == {"chief": 1, "worker": 2, "ps": 2}


@pytest.mark.slow
def test_a_cluster_without_parameter_servers_is_refused(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = {"cluster": {"worker": ["h:1", "i:1"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setattr(sys, "argv", ["parameter_server.py"])
    monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
    with pytest.raises(SystemExit, match="There is no parameter server: start one more process"):
        program.main()


@pytest.mark.slow
def test_a_rank_beyond_the_addresses_is_refused(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["parameter_server.py", "--rank", "2", "--addresses", "h:1", "i:1"])
    with pytest.raises(SystemExit):
        program.main()
    assert "--rank is from 0 to 1" in capsys.readouterr().err


@pytest.mark.slow
def test_the_minimal_program_lowers_the_loss(root: Path) -> None:
    settings = {name: value for name, value in DEADLINES.items() if name != "result"}
    run = launch.tensorflow(chapter_folder(root, "minimal.py"), workers=WORKERS, parameter_servers=1, **settings)
    words = run.output["chief"].splitlines()[-1].split()
    assert float(words[-1]) < 0.5 * float(words[5].rstrip(","))
