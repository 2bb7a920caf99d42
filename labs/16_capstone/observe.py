"""What a student's `train` does on the ranks of a fake cluster; runs in the process of the student's code.

The ranks are threads: of the fake Horovod, or workers of the fake strategy, as the program chooses. Each rank has a
folder of its own.
"""

import argparse
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab import models
from distlab.labs.fake_horovod import FakeHorovod, FakeJob, Observation, rank_here, run_ranks
from distlab.labs.observed_ranks import GaveNothing, eagerly, fake_hvd_in, missing_in
from distlab.labs.plain_data import Array
from distlab.labs.student_programs import written

SECONDS = 50.0
MOST_STEPS = 40


@dataclass(frozen=True)
class TrainedRank:
    """What `train` did on one rank.

    words: of the texts that went through the model in each step; before, after: the weights around each step; newest:
    name and time of the newest checkpoint before each step; shortest, longest: the seconds of each step, as it took at
    least and at most: between the steps before and after it; final: the weights at the end; texts, losses, seconds: of
    each step, as `train` returned them; written: whether there are new files in the rank's folder; missing: what is not
    in its newest checkpoint; epochs_saved: what that says of them, −1 if it does not.
    """

    words: list[Array]
    before: list[list[Array]]
    after: list[list[Array]]
    newest: list[str]
    shortest: list[float]
    longest: list[float]
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


@dataclass(frozen=True)
class ObservedRanks(Observation):
    """`train` on all ranks.

    way: "horovod", "strategy" or "" for a program that is neither; epochs_begun: `epochs_done` before the first step.
    """

    way: str
    epochs_begun: list[int | None]


class WrongForm(Exception):
    """`train` gives something else than a state and a list of steps."""


class TooManySteps(Exception):
    """The program does not come to an end."""


class _Rank(threading.local):
    """What is noted of the rank whose thread this is.

    words: of the texts that the model got for the gradient since the last step; steps: of each one these texts, the
    weights before and after it, the newest checkpoint, and when the optimizer began and ended to apply the gradients;
    epochs_done: of the program's checkpoint object; computed: whether TensorFlow has computed anything.
    """

    def __init__(self) -> None:
        self.folder = Path()
        self.words: list[Array] = []
        self.steps: list[tuple[Array, list[Array], list[Array], str, float, float]] = []
        self.epochs_done: Any = None
        self.epochs_begun: int | None = None
        self.computed = False


def training(
    namespace: Mapping[str, Any], options: Mapping[str, Any], size: int, saved: Mapping[str, Any] | None, way: str
) -> ObservedRanks:
    """Call `train(options)` on `size` ranks, each on a host of its own.

    saved: weights, slots and epochs_done of the checkpoint to go on from, which is in the folder of rank 0, and for
    the `way` "strategy" in all.
    """
    function, ways = written(namespace, "train"), set[str]()
    if function is None:
        return ObservedRanks([], [], "", [])
    begun: list[int | None] = [None] * size
    with tempfile.TemporaryDirectory() as place, _noted(ways) as rank, fake_hvd_in(namespace), eagerly():
        folders = [Path(place) / f"rank-{number}" for number in range(size)]
        for number, folder in enumerate(folders):
            folder.mkdir()
            if saved is not None and (number == 0 or way == "strategy"):
                _save(folder, options, saved)
        old = {_written_at(file) for folder in folders for file in folder.iterdir()}

        def rank_program() -> TrainedRank:
            rank.folder, rank.computed, start = folders[rank_here()], False, time.perf_counter()
            own = dict(options) | {"folder": rank.folder, "resume": saved is not None}
            try:
                returned = function(argparse.Namespace(**own))
            finally:
                begun[rank_here()] = rank.epochs_begun
            return _trained(returned, rank, old, (start, time.perf_counter()))

        seen = run_ranks(FakeJob(size, 1, SECONDS), rank_program, initialised=False)
    return ObservedRanks(seen.values, seen.errors, max(ways, default=""), begun)


def _trained(returned: Any, rank: _Rank, old: set[tuple[str, int]], span: tuple[float, float]) -> TrainedRank:
    """old: the files that were there before; span: when `train` began and ended."""
    import tensorflow as tf

    if returned is None:
        raise GaveNothing
    try:
        state, steps = returned
        model, optimizer = state.model, state.optimizer
        of_steps = [[_number(step.get(name)) for step in steps] for name in ("texts", "loss", "seconds")]
        numbers = float(np.asarray(optimizer.learning_rate)), float(getattr(optimizer, "momentum", 0.0))
        of_state = model.get_weights(), type(optimizer).__name__, *numbers
    except (TypeError, ValueError, AttributeError) as error:
        raise WrongForm(f"{type(error).__name__}: {error}") from None
    words, before, after, names, begins, ends = map(list, zip(*rank.steps, strict=True)) if rank.steps else [[]] * 6
    newest = tf.train.latest_checkpoint(str(rank.folder))
    return TrainedRank(
        words,
        before,
        after,
        names,
        [end - begin for begin, end in zip(begins, ends, strict=True)],
        [begin - end for begin, end in zip([*begins[1:], span[1]], [span[0], *ends], strict=False)],
        *of_state,
        *of_steps,
        any(_written_at(file) not in old for file in rank.folder.iterdir()),
        ["a checkpoint"] if newest is None else missing_in(newest),
        _epochs_saved(newest),
    )


def _written_at(file: Path) -> tuple[str, int]:
    return str(file), file.stat().st_mtime_ns


def _number(value: Any) -> float | None:
    return None if value is None or np.size(value) != 1 else float(np.ravel(value)[0])


def _epochs_saved(checkpoint: str | None) -> int:
    """The epochs that a checkpoint says are done; −1 if it does not, or there is none."""
    import tensorflow as tf

    name = "epochs_done/.ATTRIBUTES/VARIABLE_VALUE"
    reader = checkpoint and tf.train.load_checkpoint(checkpoint)
    return int(reader.get_tensor(name)) if reader and name in reader.get_variable_to_shape_map() else -1


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
def _noted(ways: set[str]) -> Iterator[_Rank]:
    """Note what goes through the model in each step, the weights around it, and the way that the program takes."""
    import tensorflow as tf
    from lab_16.fake_cluster import FakeMultiWorkerStrategy
    from tensorflow.python.eager import context, record

    rank = _Rank()
    make_model, make_state, begin = models.text_classifier, tf.train.Checkpoint.__init__, FakeHorovod.init
    apply, ensure = tf.keras.optimizers.Optimizer.apply_gradients, context.Context.ensure_initialized

    def model_made(*arguments: Any, **keywords: Any) -> Any:
        model = make_model(*arguments, **keywords)
        call = model.call

        def called(words: Any, *more: Any, **options: Any) -> Any:
            # Without a tape there is no gradient: the pass is for a number such as the accuracy.
            if options.get("training") is not False and record.could_possibly_record():
                own = np.asarray(words)
                if not any(np.array_equal(own, earlier) for earlier in rank.words):
                    rank.words.append(own)
            return call(words, *more, **options)

        model.call = called
        return model

    def state_made(self: Any, root: Any = None, **parts: Any) -> None:
        make_state(self, root, **parts)
        rank.epochs_done = parts.get("epochs_done", rank.epochs_done)

    def applied(self: Any, gradients_and_variables: Any, *more: Any, **keywords: Any) -> Any:
        if len(rank.steps) >= MOST_STEPS:
            raise TooManySteps
        if not rank.steps and rank.epochs_done is not None:
            rank.epochs_begun = int(np.asarray(rank.epochs_done))
        checkpoint, began = tf.train.latest_checkpoint(str(rank.folder)), time.perf_counter()
        newest = str(_written_at(Path(f"{checkpoint}.index"))) if checkpoint else ""
        pairs = list(gradients_and_variables)
        before = [variable.numpy() for _, variable in pairs]
        returned = apply(self, pairs, *more, **keywords)
        after, words = [variable.numpy() for _, variable in pairs], rank.words or [np.zeros((0, 1), np.int32)]
        rank.steps.append((np.concatenate(words), before, after, newest, began, time.perf_counter()))
        rank.words = []
        return returned

    def ensured(self: Any) -> None:
        rank.computed = True
        ensure(self)

    def horovod_begun(self: FakeHorovod) -> None:
        ways.add("horovod")
        begin(self)

    class Strategy(FakeMultiWorkerStrategy):
        def __init__(self, *arguments: object, **keywords: object) -> None:
            ways.add("strategy")
            if rank.computed:  # as the real one
                raise RuntimeError("Collective ops must be configured at program startup")
            super().__init__(*arguments, **keywords)

    patches = [
        (models, "text_classifier", model_made),
        (tf.train.Checkpoint, "__init__", state_made),
        (tf.keras.optimizers.Optimizer, "apply_gradients", applied),
        (context.Context, "ensure_initialized", ensured),
        (FakeHorovod, "init", horovod_begun),
        *((owner, "MultiWorkerMirroredStrategy", Strategy) for owner in (tf.distribute, tf.distribute.experimental)),
    ]
    with ExitStack() as stack, warnings.catch_warnings():
        for patch in patches:
            stack.enter_context(mock.patch.object(*patch))
        warnings.simplefilter("ignore")
        yield rank
