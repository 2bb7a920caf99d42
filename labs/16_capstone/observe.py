"""What a student's `train` does on the ranks of a fake cluster; runs in the process of the student's code.

The ranks are threads: of the fake Horovod, or workers of the fake strategy, as the program chooses. Each rank has a
folder of its own.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from lab_16.recording import StepRecord, epochs_saved, recorded_ranks

from distlab import models
from distlab.labs.answer import is_untouched
from distlab.labs.fake_horovod import FakeJob, hvd, run_ranks
from distlab.labs.plain_data import Array, Plain, plain

Weights = Sequence[Array]

SECONDS = 50.0
_INIT: Any = type(hvd).init


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
    epochs_done: int
    written: bool
    missing: list[str]
    epochs_saved: int
    saved: list[int]
    newest: list[str]
    shortest: list[float]
    longest: list[float]


@dataclass(frozen=True)
class ObservedRanks:
    """`train` on all ranks: by rank its record, or "" and the class and message of its error.

    way: "horovod", "strategy" or "" for a program that is neither; epochs_begun: `epochs_done` before the first step.
    """

    is_written: bool
    way: str
    ranks: list[Plain]
    kinds: list[str]
    messages: list[str]
    epochs_begun: list[int | None]


class WrongForm(Exception):
    """`train` gives something else than a state and a list of steps."""


class ReturnedNothing(Exception):
    """`train` returned None."""


def training(
    namespace: Mapping[str, Any], options: Mapping[str, Any], size: int, saved: Mapping[str, Any] | None, way: str
) -> dict[str, Plain]:
    """Call `train(options)` on `size` ranks, each on a host of its own; the fields of an ObservedRanks.

    saved: weights, slots and epochs_done of the checkpoint to go on from, which is in the folder of rank 0, and for
    the `way` "strategy" in all.
    """
    function = namespace.get("train")
    if function is None or is_untouched(getattr(function, "python_function", function)):
        return plain_fields(ObservedRanks(False, "", [], [], [], []))
    ways: set[str] = set()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folders = [Path(place) / f"rank-{rank}" for rank in range(size)]
        for rank, folder in enumerate(folders):
            folder.mkdir()
            if saved is not None and (rank == 0 or way == "strategy"):
                _save(folder, options, saved)
        record = stack.enter_context(recorded_ranks())
        stack.enter_context(_faked(namespace, ways, record))
        begun: list[int | None] = [None] * size
        old = {_written_at(file) for folder in folders for file in folder.iterdir()}

        def rank_program() -> dict[str, Any]:
            hvd_rank = _rank()
            record.folder, record.computed = folders[hvd_rank], False
            start = time.perf_counter()
            own = dict(options) | {"folder": folders[hvd_rank], "resume": saved is not None}
            try:
                returned = function(argparse.Namespace(**own))
            finally:
                begun[hvd_rank] = record.epochs_begun
            return asdict(_trained(returned, record, folders[hvd_rank], old, (start, time.perf_counter())))

        outcomes = run_ranks(FakeJob(size, 1, SECONDS), rank_program, initialised=False)
    kinds, messages = zip(*(outcome.error or ("", "") for outcome in outcomes), strict=True)
    values = [outcome.value for outcome in outcomes]
    observed = ObservedRanks(True, max(ways, default=""), values, list(kinds), list(messages), begun)
    return plain_fields(observed)


def plain_fields(observation: ObservedRanks) -> dict[str, Plain]:
    """The observation as plain data."""
    fields = plain(asdict(observation))
    assert isinstance(fields, dict)
    return fields  # type: ignore[return-value]


def _trained(
    returned: Any, record: StepRecord, folder: Path, old: set[tuple[str, int]], span: tuple[float, float]
) -> TrainedRank:
    """span: when `train` began and ended."""
    if returned is None:
        raise ReturnedNothing
    try:
        state, steps = returned
        model, optimizer = state.model, state.optimizer
        texts, losses, seconds = ([_number(step.get(name)) for step in steps] for name in ("texts", "loss", "seconds"))
        final = model.get_weights()
        rate, momentum = float(np.asarray(optimizer.learning_rate)), float(getattr(optimizer, "momentum", 0.0))
        done = int(np.asarray(state.epochs_done))
    except (TypeError, ValueError, AttributeError) as error:
        raise WrongForm(f"{type(error).__name__}: {error}") from None
    words, before, after = ([list(column) for column in zip(*record.steps, strict=True)] or [[], [], []])[:3]
    ends = [span[0], *(end for _, end in record.times)]
    begins = [*(begin for begin, _ in record.times), span[1]]
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
        done,
        any(_written_at(file) not in old for file in folder.iterdir()),
        _missing(folder),
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


def _missing(folder: Path) -> list[str]:
    """What the newest checkpoint in a folder lacks."""
    import tensorflow as tf

    newest = tf.train.latest_checkpoint(str(folder))
    if newest is None:
        return ["a checkpoint"]
    names = tf.train.load_checkpoint(newest).get_variable_to_shape_map()
    needed = {"the weights": "model/", "the momentum": "optimizer/_variables/", "epochs_done": "epochs_done/"}
    return [what for what, start in needed.items() if not any(name.startswith(start) for name in names)]


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


def _rank() -> int:
    """The rank, also before hvd.init()."""
    _INIT(hvd)
    rank = hvd.rank()
    hvd.shutdown()
    return rank


@contextmanager
def _faked(namespace: Mapping[str, Any], ways: set[str], record: StepRecord) -> Iterator[None]:
    """The fake Horovod and the fake strategy for the student's code, which notes in `ways` what it begins with."""
    import tensorflow as tf
    from lab_16.fake_cluster import FakeMultiWorkerStrategy

    class Strategy(FakeMultiWorkerStrategy):
        def __init__(self, *arguments: object, **keywords: object) -> None:
            ways.add("strategy")
            if record.computed:  # as the real one
                raise RuntimeError("Collective ops must be configured at program startup")
            super().__init__(*arguments, **keywords)

    def init(self: object) -> None:
        ways.add("horovod")
        _INIT(self)

    # For a student who has imported Horovod itself.
    names = {} if namespace.get("hvd") is hvd else {"hvd": hvd}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict(namespace, names))
        stack.enter_context(mock.patch.object(type(hvd), "init", init))
        for owner in (tf.distribute, tf.distribute.experimental):
            if hasattr(owner, "MultiWorkerMirroredStrategy"):
                stack.enter_context(mock.patch.object(owner, "MultiWorkerMirroredStrategy", Strategy))
        yield
