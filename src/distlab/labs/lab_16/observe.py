"""What a student's `train` does on the ranks of a fake cluster; runs in the process of the student's code.

The ranks are threads: of the fake Horovod, or workers of the fake strategy, as the program chooses. Each rank has a
folder of its own.
"""

import argparse
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab import models
from distlab.labs.answer import is_untouched
from distlab.labs.fake_horovod import FakeJob, hvd, run_ranks
from distlab.labs.plain_data import Array, Plain, plain

Weights = Sequence[Array]

MOST_STEPS = 40
SECONDS = 25.0
_INIT: Any = type(hvd).init


@dataclass(frozen=True)
class TrainedRank:
    """What `train` did on one rank.

    words: of the texts that went through the model in each step; before, after: the weights around each step; final:
    those at the end; texts, losses: of each step, as `train` returned them; written: whether there are new files in
    the rank's folder; missing: what is not in its newest checkpoint; epochs_saved: what that says of them.
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
    epochs_done: int
    written: bool
    missing: list[str]
    epochs_saved: int


@dataclass(frozen=True)
class ObservedRanks:
    """`train` on all ranks: by rank its record, or "" and the class and message of its error.

    way: "horovod", "strategy" or "" for a program that is neither.
    """

    is_written: bool
    way: str
    ranks: list[Plain]
    kinds: list[str]
    messages: list[str]


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.words: list[Array] = []
        self.steps: list[tuple[Array, list[Array], list[Array]]] = []


class TooManySteps(Exception):
    """The program does not come to an end."""


class WrongForm(Exception):
    """`train` gives something else than a state and a list of steps."""


class ReturnedNothing(Exception):
    """`train` returned None."""


def training(
    namespace: Mapping[str, Any],
    options: Mapping[str, Any],
    size: int,
    saved: Mapping[str, Any] | None,
    way: str,
) -> dict[str, Plain]:
    """Call `train(options)` on `size` ranks, each on a host of its own; the fields of an ObservedRanks.

    saved: weights, slots and epochs_done of the checkpoint to go on from, which is in the folder of rank 0, and for
    the `way` "strategy" in all.
    """
    function = namespace.get("train")
    if function is None or is_untouched(getattr(function, "python_function", function)):
        return plain_fields(ObservedRanks(False, "", [], [], []))
    ways: set[str] = set()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        folders = [Path(place) / f"rank-{rank}" for rank in range(size)]
        for rank, folder in enumerate(folders):
            folder.mkdir()
            if saved is not None and (rank == 0 or way == "strategy"):
                _save(folder, options, saved)
        stack.enter_context(_faked(namespace, ways))
        record = stack.enter_context(_recorded())
        old = {_written_at(file) for folder in folders for file in folder.iterdir()}

        def rank_program() -> dict[str, Any]:
            hvd_rank = _rank()
            own = dict(options) | {"folder": folders[hvd_rank], "resume": saved is not None}
            returned = function(argparse.Namespace(**own))
            return asdict(_trained(returned, record, folders[hvd_rank], old))

        outcomes = run_ranks(FakeJob(size, 1, SECONDS), rank_program, initialised=False)
    kinds, messages = zip(*(outcome.error or ("", "") for outcome in outcomes), strict=True)
    values = [outcome.value for outcome in outcomes]
    observed = ObservedRanks(True, max(ways, default=""), values, list(kinds), list(messages))
    return plain_fields(observed)


def plain_fields(observation: ObservedRanks) -> dict[str, Plain]:
    """The observation as plain data."""
    fields = plain(asdict(observation))
    assert isinstance(fields, dict)
    return fields  # type: ignore[return-value]


def _trained(returned: Any, record: _OfThread, folder: Path, old: set[tuple[str, int]]) -> TrainedRank:
    if returned is None:
        raise ReturnedNothing
    try:
        state, steps = returned
        model, optimizer = state.model, state.optimizer
        texts, losses = ([_number(step.get(name)) for step in steps] for name in ("texts", "loss"))
        final = model.get_weights()
        rate, momentum = float(np.asarray(optimizer.learning_rate)), float(getattr(optimizer, "momentum", 0.0))
        done = int(state.epochs_done)
    except (TypeError, ValueError, AttributeError) as error:
        raise WrongForm(f"{type(error).__name__}: {error}") from None
    missing, epochs_saved = _contents(folder, optimizer)
    words, before, after = ([list(column) for column in zip(*record.steps, strict=True)] or [[], [], []])[:3]
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
        done,
        any(_written_at(file) not in old for file in folder.iterdir()),
        missing,
        epochs_saved,
    )


def _written_at(file: Path) -> tuple[str, int]:
    return str(file), file.stat().st_mtime_ns


def _number(value: Any) -> float | None:
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


def _contents(folder: Path, optimizer: Any) -> tuple[list[str], int]:
    """What the newest checkpoint in a folder lacks, and the epochs that it says are done; −1 if it does not."""
    import tensorflow as tf

    newest = tf.train.latest_checkpoint(str(folder))
    if newest is None:
        return ["a checkpoint"], -1
    reader = tf.train.load_checkpoint(newest)
    names = reader.get_variable_to_shape_map()
    needed = {"the weights": "model/", "the momentum": "optimizer/_variables/", "epochs_done": "epochs_done/"}
    missing = [what for what, start in needed.items() if not any(name.startswith(start) for name in names)]
    done = "epochs_done/.ATTRIBUTES/VARIABLE_VALUE"
    return missing, int(reader.get_tensor(done)) if done in names else -1


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
def _faked(namespace: Mapping[str, Any], ways: set[str]) -> Iterator[None]:
    """The fake Horovod and the fake strategy for the student's code, which notes in `ways` what it begins with."""
    import tensorflow as tf

    from distlab.labs.lab_16.fake_cluster import FakeMultiWorkerStrategy

    class Strategy(FakeMultiWorkerStrategy):
        def __init__(self, *arguments: object, **keywords: object) -> None:
            ways.add("strategy")
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


@contextmanager
def _recorded() -> Iterator[_OfThread]:
    """Note what goes through the model in each step, and the weights around it; eagerly, for the ranks are threads."""
    import tensorflow as tf

    record = _OfThread()
    make, apply = models.text_classifier, tf.keras.optimizers.Optimizer.apply_gradients

    def noted(*arguments: Any, **keywords: Any) -> Any:
        model = make(*arguments, **keywords)
        call = model.call

        def called(words: Any, *more: Any, **options: Any) -> Any:
            if options.get("training") is not False:
                record.words.append(np.asarray(words))
            return call(words, *more, **options)

        model.call = called
        return model

    def applied(self: Any, gradients_and_variables: Any, *more: Any, **keywords: Any) -> Any:
        if len(record.steps) >= MOST_STEPS:
            raise TooManySteps
        pairs = list(gradients_and_variables)
        before = [variable.numpy() for _, variable in pairs]
        returned = apply(self, pairs, *more, **keywords)
        words = np.concatenate(record.words) if record.words else np.zeros((0, 1), np.int32)
        record.steps.append((words, before, [variable.numpy() for _, variable in pairs]))
        record.words.clear()
        return returned

    was_eager = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        with (
            warnings.catch_warnings(),
            mock.patch.object(models, "text_classifier", noted),
            mock.patch.object(tf.keras.optimizers.Optimizer, "apply_gradients", applied),
        ):
            warnings.simplefilter("ignore")
            yield record
    finally:
        tf.config.run_functions_eagerly(was_eager)
