"""What a student's `train` does on the ranks of a fake cluster; runs in the process of the student's code.

The ranks are threads: of the fake Horovod, or workers of the fake strategy, as the program chooses. Each rank has a
folder of its own.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from lab_16.recording import StepRecord, epochs_saved, recorded_ranks

from distlab import models
from distlab.labs.fake_horovod import FakeHorovod, FakeJob, Observation, rank_here, run_ranks
from distlab.labs.observed_ranks import GaveNothing, fake_hvd_in, missing_in
from distlab.labs.plain_data import Array
from distlab.labs.student_programs import written

Weights = Sequence[Array]

SECONDS = 50.0


@dataclass(frozen=True)
class TrainedRank:
    """What `train` did on one rank.

    words: of the texts that went through the model in each step; before, after: the weights around each step; final:
    those at the end; texts, losses, seconds: of each step, as `train` returned them; written: whether there are new
    files in the rank's folder; missing: what is not in its newest checkpoint; epochs_saved: what that says of them;
    saved, newest: what the newest one said before each step, and its name.  shortest, longest: the seconds of each
    step, as it took at least and at most: between the steps before and after it.
    """

    words: list[Array]
    before: list[list[Array]]
    after: list[list[Array]]
    final: list[Array]
    optimizer: str
    rate: float
    momentum: float
    texts: list[float | None]
    losses: list[float | None]
    seconds: list[float | None]
    written: bool
    missing: list[str]
    epochs_saved: int
    saved: list[int]
    newest: list[str]
    shortest: list[float]
    longest: list[float]


@dataclass(frozen=True)
class ObservedRanks(Observation):
    """`train` on all ranks.

    way: "horovod", "strategy" or "" for a program that is neither; epochs_begun: `epochs_done` before the first step.
    """

    way: str
    epochs_begun: list[int | None]


class WrongForm(Exception):
    """`train` gives something else than a state and a list of steps."""


def training(
    namespace: Mapping[str, Any], options: Mapping[str, Any], size: int, saved: Mapping[str, Any] | None, way: str
) -> ObservedRanks:
    """Call `train(options)` on `size` ranks, each on a host of its own.

    saved: weights, slots and epochs_done of the checkpoint to go on from, which is in the folder of rank 0, and for
    the `way` "strategy" in all.
    """
    function = written(namespace, "train")
    if function is None:
        return ObservedRanks([], [], "", [])
    ways: set[str] = set()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folders = [Path(place) / f"rank-{rank}" for rank in range(size)]
        for rank, folder in enumerate(folders):
            folder.mkdir()
            if saved is not None and (rank == 0 or way == "strategy"):
                _save(folder, options, saved)
        record = stack.enter_context(recorded_ranks())
        stack.enter_context(fake_hvd_in(namespace))
        stack.enter_context(_faked(ways, record))
        begun: list[int | None] = [None] * size
        old = {_written_at(file) for folder in folders for file in folder.iterdir()}

        def rank_program() -> TrainedRank:
            rank = rank_here()
            record.folder, record.computed = folders[rank], False
            start = time.perf_counter()
            own = dict(options) | {"folder": folders[rank], "resume": saved is not None}
            try:
                returned = function(argparse.Namespace(**own))
            finally:
                begun[rank] = record.epochs_begun
            return _trained(returned, record, folders[rank], old, (start, time.perf_counter()))

        seen = run_ranks(FakeJob(size, 1, SECONDS), rank_program, initialised=False)
    return ObservedRanks(seen.values, seen.errors, max(ways, default=""), begun)


def _trained(
    returned: Any, record: StepRecord, folder: Path, old: set[tuple[str, int]], span: tuple[float, float]
) -> TrainedRank:
    """span: when `train` began and ended."""
    import tensorflow as tf

    if returned is None:
        raise GaveNothing
    try:
        state, steps = returned
        model, optimizer = state.model, state.optimizer
        texts, losses, seconds = ([_number(step.get(name)) for step in steps] for name in ("texts", "loss", "seconds"))
        final = model.get_weights()
        rate, momentum = float(np.asarray(optimizer.learning_rate)), float(getattr(optimizer, "momentum", 0.0))
    except (TypeError, ValueError, AttributeError) as error:
        raise WrongForm(f"{type(error).__name__}: {error}") from None
    words, before, after = ([list(column) for column in zip(*record.steps, strict=True)] or [[], [], []])[:3]
    ends = [span[0], *(end for _, end in record.times)]
    begins = [*(begin for begin, _ in record.times), span[1]]
    newest = tf.train.latest_checkpoint(str(folder))
    return TrainedRank(
        words,
        before,
        after,
        final,
        type(optimizer).__name__,
        rate,
        momentum,
        texts,
        losses,
        seconds,
        any(_written_at(file) not in old for file in folder.iterdir()),
        ["a checkpoint"] if newest is None else missing_in(newest),
        epochs_saved(folder),
        record.saved,
        record.newest,
        [end - begin for begin, end in record.times],
        [begin - end for begin, end in zip(begins[1:], ends, strict=False)],
    )


def _written_at(file: Path) -> tuple[str, int]:
    return str(file), file.stat().st_mtime_ns


def _number(value: Any) -> float | None:
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


def _save(folder: Path, options: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Write the checkpoint to go on from, as the serial program does."""
    import tensorflow as tf

    model = models.text_classifier(options["units"])
    model.set_weights(saved["weights"])
    optimizer = tf.keras.optimizers.SGD(options["rate"], momentum=0.9)
    optimizer.build(model.trainable_variables)
    slots = [variable for variable in optimizer.variables if variable.shape.rank]
    for variable, value in zip(slots, saved["slots"], strict=True):
        variable.assign(value)
    done = tf.Variable(saved["epochs_done"], dtype=tf.int64)
    state = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=done)
    state.save(str(folder / "checkpoint"))


@contextmanager
def _faked(ways: set[str], record: StepRecord) -> Iterator[None]:
    """The fake strategy and the fake Horovod note in `ways` which of them the program begins with."""
    import tensorflow as tf
    from lab_16.fake_cluster import FakeMultiWorkerStrategy

    begin = FakeHorovod.init

    class Strategy(FakeMultiWorkerStrategy):
        def __init__(self, *arguments: object, **keywords: object) -> None:
            ways.add("strategy")
            if record.computed:  # as the real one
                raise RuntimeError("Collective ops must be configured at program startup")
            super().__init__(*arguments, **keywords)

    def init(self: FakeHorovod) -> None:
        ways.add("horovod")
        begin(self)

    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(FakeHorovod, "init", init))
        for owner in (tf.distribute, tf.distribute.experimental):
            if hasattr(owner, "MultiWorkerMirroredStrategy"):
                stack.enter_context(mock.patch.object(owner, "MultiWorkerMirroredStrategy", Strategy))
        yield
