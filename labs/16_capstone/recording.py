"""What happens on each rank while a student's program trains; runs in the process of the student's code."""

import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from distlab import models
from distlab.labs.observed_ranks import eagerly
from distlab.labs.plain_data import Array

MOST_STEPS = 40


class TooManySteps(Exception):
    """The program does not come to an end."""


class StepRecord(threading.local):
    """Of the rank whose thread this is.

    words: of the texts that the model got for the gradient since the last step; steps: of each one these texts, and
    the weights before and after it; saved: what the newest checkpoint said of the epochs before each step, −1 without
    one, newest: its name; times: when the optimizer began and ended to apply the gradients of each step; epochs_begun:
    `epochs_done` of the program's checkpoint object before the first step; computed: whether TensorFlow has computed
    anything.
    """

    def __init__(self) -> None:
        self.folder = Path()
        self.words: list[Array] = []
        self.steps: list[tuple[Array, list[Array], list[Array]]] = []
        self.saved: list[int] = []
        self.newest: list[str] = []
        self.times: list[tuple[float, float]] = []
        self.epochs_done: Any = None
        self.epochs_begun: int | None = None
        self.computed = False


def epochs_saved(folder: Path) -> int:
    """The epochs that the newest checkpoint in a folder says are done; −1 if it does not, or there is none."""
    import tensorflow as tf

    newest = tf.train.latest_checkpoint(str(folder))
    if newest is None:
        return -1
    reader, done = tf.train.load_checkpoint(newest), "epochs_done/.ATTRIBUTES/VARIABLE_VALUE"
    return int(reader.get_tensor(done)) if done in reader.get_variable_to_shape_map() else -1


@contextmanager
def recorded_ranks() -> Iterator[StepRecord]:
    """Note what goes through the model in each step, and the weights around it; eagerly, for the ranks are threads."""
    import tensorflow as tf
    from tensorflow.python.eager import context, record

    rank = StepRecord()
    make_model, make_state = models.text_classifier, tf.train.Checkpoint.__init__
    apply, ensure = tf.keras.optimizers.Optimizer.apply_gradients, context.Context.ensure_initialized

    def noted(*arguments: Any, **keywords: Any) -> Any:
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
        rank.saved.append(epochs_saved(rank.folder))
        rank.newest.append(tf.train.latest_checkpoint(str(rank.folder)) or "")
        began = time.perf_counter()
        pairs = list(gradients_and_variables)
        before = [variable.numpy() for _, variable in pairs]
        returned = apply(self, pairs, *more, **keywords)
        words = np.concatenate(rank.words) if rank.words else np.zeros((0, 1), np.int32)
        rank.steps.append((words, before, [variable.numpy() for _, variable in pairs]))
        rank.words.clear()
        rank.times.append((began, time.perf_counter()))
        return returned

    def ensured(self: Any) -> None:
        rank.computed = True
        ensure(self)

    with (
        eagerly(),
        warnings.catch_warnings(),
        mock.patch.object(models, "text_classifier", noted),
        mock.patch.object(tf.train.Checkpoint, "__init__", state_made),
        mock.patch.object(tf.keras.optimizers.Optimizer, "apply_gradients", applied),
        mock.patch.object(context.Context, "ensure_initialized", ensured),
    ):
        warnings.simplefilter("ignore")
        yield rank
