"""What a student's pipelines and training do, counted next to them: no clock is read.

Where the names of a notebook have no `tf`, as with the judge's own programs, fake pipelines take TensorFlow's place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array, Plain
from distlab.labs.student_programs import written

Namespace = Mapping[str, Any]
Pass = Sequence[tuple[int, float, float]]
"""The images in the order of one epoch: the number of each, and its two values."""


def watch_batches(namespace: Namespace, count: int, batch: int, epochs: int) -> Plain:
    """The batches of `mixed_batches(numbers, batch, epochs)`; a text says what is no dataset of batches."""
    mixed_batches = written(namespace, "mixed_batches")
    if mixed_batches is None:
        return None
    dataset_class = _dataset_class(namespace)
    batches = mixed_batches(dataset_class.range(count), batch, epochs)
    if batches is None:
        return None
    if not isinstance(batches, dataset_class):
        return type(batches).__name__
    most = epochs * (count // batch + 1) + 1
    numbers = [np.asarray(numbers) for numbers in islice(batches, most)]
    if any(array.ndim != 1 for array in numbers):
        return "a dataset of single numbers" if numbers[0].ndim == 0 else "a dataset of batches of batches"
    return [array.tolist() for array in numbers]


def watch_repeats(namespace: Namespace, batch: int, passes: Sequence[Pass], is_noisy: bool) -> Plain:
    """What `repeats(dataset)` says of a dataset whose passes are these in turn.

    is_noisy: random numbers are added to the images, which start again in each pass, but not in `repeat`.
    """
    repeats = written(namespace, "repeats")
    if repeats is None:
        return None
    begun: list[int] = []

    def batches() -> Iterator[tuple[Array, Array]]:
        epoch = passes[len(begun) % len(passes)]
        begun.append(1)
        for start in range(0, len(epoch), batch):
            part = np.array(epoch[start : start + batch], np.float32)
            yield part[:, 1:], part[:, 0].astype(np.int64)

    tf = namespace.get("tf")
    if tf is None:
        from lab_02.fake_pipelines import Noisy

        plain = _dataset_class(namespace)(batches)
        return repeats(Noisy(plain) if is_noisy else plain)
    specification = tf.TensorSpec((None, 2), tf.float32), tf.TensorSpec((None,), tf.int64)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=specification)
    if is_noisy:
        dataset = dataset.map(lambda images, numbers: (images + tf.random.uniform(tf.shape(images), seed=1), numbers))
    return repeats(dataset)


@dataclass
class Seen:
    """What happened while a program trained.

    compiled: by call of `fit` the options of `compile`.  chain: the transformations of what it trained on, the last one
    first.  steps: by step the images' numbers, what the augmentation has added to each, and the labels.
    """

    decoded: int = 0
    augmented: int = 0
    augments_images: bool = False
    executions: int = 0
    compiled: list[dict[str, Any]] = field(default_factory=list)
    chain: list[str] = field(default_factory=list)
    steps: list[list[list[int]]] = field(default_factory=list)


class Watch:
    """Sees decoding, augmentation, steps and executions while a program trains."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.seen, self._lock = Seen(), Lock()  # maps may run in parallel

    def decode(self, record: Any) -> Array:
        """An image of two numbers: its own, and what the augmentation has added."""
        with self._lock:
            self.seen.decoded += 1
        return np.array([record, 0], np.float32)

    def augment(self, images: Array) -> Array:
        """Add the number of this call, so that each call adds another one."""
        with self._lock:
            self.seen.augmented += 1
            added = self.seen.augmented
        self.seen.augments_images |= images.ndim == 1
        return np.float32(images + np.array([0, added]))

    def note(self, images: Array, labels: Array) -> None:
        """A step: its images, what was added to them, their labels."""
        images, labels = np.atleast_2d(images), np.atleast_1d(labels)
        self.seen.steps.append([images[:, 0].astype(int).tolist(), images[:, 1].astype(int).tolist(), labels.tolist()])

    def ended(self) -> None:
        """An execution."""
        self.seen.executions += 1

    def fitted(self, dataset: Any, compiled: dict[str, Any]) -> None:
        """The transformations of what is trained on, the last one first, without those that prepare nothing."""
        self.seen.compiled.append(compiled)
        chain = []
        while dataset is not None:
            name = getattr(dataset, "name", type(dataset).__name__).lower()
            chain.append(name if int(getattr(dataset, "_buffer_size", 1)) else f"empty {name}")
            dataset = getattr(dataset, "_input_dataset", None)
        self.seen.chain = [name for name in chain if "options" not in name and "repeat" not in name]


def watch_training(namespace: Namespace, count: int, batch: int, together: int, epochs: int) -> Seen | None:
    """What `train(records, decode, augment, model, batch, together, epochs)` does with so many records."""
    train = written(namespace, "train")
    if train is None:
        return None
    watch, tf = Watch(), namespace.get("tf")
    if tf is None:
        from lab_02.fake_pipelines import Dataset, Model

        def decode(record: int) -> tuple[Array, int]:
            return watch.decode(record), record

        def augment(images: Array, labels: Array) -> tuple[Array, Array]:
            return watch.augment(images), labels

        train(Dataset.range(count), decode, augment, Model(watch), batch, together, epochs)
    else:
        _train_with(tf, train, watch, count, batch, together, epochs)
    return watch.seen


def _train_with(tf: Any, train: Any, watch: Watch, count: int, *numbers: int) -> None:
    """The same with TensorFlow, on a dataset that does what is written and no more."""
    as_written = tf.data.Options()
    as_written.experimental_optimization.apply_default_optimizations = False

    def decode(record: Any) -> Any:
        image = tf.numpy_function(watch.decode, [record], tf.float32)
        image.set_shape([2])
        return image, record

    def augment(images: Any, labels: Any) -> Any:
        added = tf.numpy_function(watch.augment, [images], tf.float32)
        added.set_shape(images.shape)
        return added, labels

    class Model(tf.keras.Model):
        def train_step(self, data: Any) -> dict[str, Any]:
            tf.numpy_function(watch.note, list(data[:2]), [])
            return {"loss": tf.constant(0.0)}

        def compile(self, *arguments: Any, jit_compile: bool = False, **options: Any) -> None:
            self._with_xla = bool(jit_compile)  # only kept: XLA has no place for Python functions that count
            super().compile(*arguments, **options)

        def fit(self, x: Any = None, *arguments: Any, **options: Any) -> Any:
            if self.optimizer is not None:
                watch.fitted(x, {**_compiled(tf, self), "XLA": self._with_xla})
            return super().fit(x, *arguments, **options)

        def train_on_batch(self, x: Any, y: Any = None, *arguments: Any, **options: Any) -> None:
            watch.note(np.asarray(x), np.asarray(y))

    callbacks = tf.keras.callbacks.CallbackList
    end = callbacks.on_train_batch_end

    def ended(self: Any, step: int, logs: Any = None) -> None:
        watch.ended()
        end(self, step, logs)

    records = tf.data.Dataset.range(count).with_options(as_written)
    with mock.patch.object(callbacks, "on_train_batch_end", ended):
        train(records, decode, augment, Model(), *numbers)


def _compiled(tf: Any, model: Any) -> dict[str, Any]:
    """The optimizer and the loss of a model; a rate that is no number is given as -1."""
    options, loss = model.optimizer.get_config(), model.loss
    loss = tf.keras.losses.get(loss) if isinstance(loss, str) else loss
    rate = options.get("learning_rate")
    return {
        "optimizer": type(model.optimizer).__name__.lower(),
        "rate": -1.0 if rate is None or isinstance(rate, dict) else float(rate),
        "momentum": float(options.get("momentum", 0)),
        "loss": getattr(loss, "__name__", type(loss).__name__).replace("_", "").lower(),
    }


def _dataset_class(namespace: Namespace) -> Any:
    if (tf := namespace.get("tf")) is not None:
        return tf.data.Dataset
    from lab_02.fake_pipelines import Dataset

    return Dataset
