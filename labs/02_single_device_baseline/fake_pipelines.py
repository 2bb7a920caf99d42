"""A small `tf.data` and a model that trains nothing: the judge's own programs run on them, without TensorFlow."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

Passes = Callable[[], Iterable[Any]]


class Dataset:
    """What `tf.data.Dataset` does with the same names."""

    def __init__(self, passes: Passes, name: str = "", length: int = 0, source: "Dataset | None" = None) -> None:
        """`passes()` begins a new pass; `name` is that of the transformation of `source`."""
        self._passes, self.name, self._length, self._input_dataset = passes, name, length, source

    @classmethod
    def range(cls, stop: int) -> "Dataset":
        """The numbers from 0."""
        return cls(lambda: range(stop), length=stop)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._passes())

    def __len__(self) -> int:
        return self._length

    def map(self, function: Callable[..., Any]) -> "Dataset":
        """The function of each element, in each pass again."""
        passes = lambda: (function(*(element if isinstance(element, tuple) else (element,))) for element in self)  # noqa: E731
        return Dataset(passes, "map", self._length, self)

    def cache(self) -> "Dataset":
        """The elements of the first whole pass."""
        kept: list[list[Any]] = []

        def passes() -> Iterator[Any]:
            elements: list[Any] = []
            for element in kept[0] if kept else self:
                elements.append(element)
                yield element
            kept.append(elements)

        return Dataset(passes, "cache", self._length, self)

    def shuffle(self, buffer_size: int, reshuffle_each_iteration: bool = True) -> "Dataset":
        """Each element is drawn from a buffer, which is filled again after it."""
        seeds = count()

        def passes() -> Iterator[Any]:
            generator = np.random.default_rng(next(seeds) if reshuffle_each_iteration else 0)
            buffer: list[Any] = []
            for element in self:
                buffer.append(element)
                if len(buffer) >= buffer_size:
                    yield buffer.pop(int(generator.integers(len(buffer))))
            while buffer:
                yield buffer.pop(int(generator.integers(len(buffer))))

        return Dataset(passes, "shuffle", self._length, self)

    def batch(self, size: int, drop_remainder: bool = False) -> "Dataset":
        """Elements in groups, each of their fields as one array."""

        def passes() -> Iterator[Any]:
            elements = iter(self)
            while group := list(islice(elements, size)):
                if len(group) == size or not drop_remainder:
                    yield _stacked(group)

        return Dataset(passes, "batch", -(-self._length // size), self)

    def repeat(self, times: int | None = None) -> "Dataset":
        """One pass after the other; without end if no number is given."""
        turns = lambda: count() if times is None else range(times)  # noqa: E731
        return Dataset(
            lambda: (element for _ in turns() for element in self), "repeat", self._length * (times or 1), self
        )

    def take(self, most: int) -> "Dataset":
        """The first elements."""
        return Dataset(lambda: islice(self, most), "take", min(most, self._length), self)

    def prefetch(self, buffer_size: int) -> "Dataset":
        """The same elements."""
        return Dataset(self._passes, "prefetch" if buffer_size else "empty prefetch", self._length, self)


class Noisy(Dataset):
    """Images with random numbers: a new pass draws the same ones again, but `repeat` draws on, as `tf.random` does."""

    def __init__(self, source: Dataset) -> None:
        """`source` gives images and their numbers, in batches."""
        super().__init__(lambda: self._epochs(1), "map", len(source), source)
        self._source = source

    def _epochs(self, times: int) -> Iterator[Any]:
        generator = np.random.default_rng(0)
        for _ in range(times):
            for images, numbers in self._source:
                yield images + generator.random(images.shape), numbers

    def repeat(self, times: int | None = None) -> Dataset:
        """All epochs in one pass."""
        return Dataset(lambda: self._epochs(times or 1), "repeat", len(self) * (times or 1), self)


def _stacked(group: Sequence[Any]) -> Any:
    if isinstance(group[0], tuple):
        return tuple(np.stack(field) for field in zip(*group, strict=True))
    return np.stack(group)


class Model:
    """`note(images, labels)` is called for each step, and `ended()` for each execution.

    `fitted(dataset, compiled)` is called before, with the options of `compile` by name.
    """

    def __init__(
        self, note: Callable[..., object], ended: Callable[[], object], fitted: Callable[[Any, Any], object]
    ) -> None:
        self._note, self._ended, self._fitted = note, ended, fitted

    def compile(
        self, optimizer: str = "rmsprop", loss: str = "", steps_per_execution: int = 1, jit_compile: bool = False
    ) -> None:
        """Keep the options."""
        self._steps = steps_per_execution
        self._compiled = {"optimizer": optimizer, "rate": 0.01, "momentum": 0.0, "loss": loss, "XLA": jit_compile}

    def train_on_batch(self, images: Any, labels: Any) -> None:
        """One step."""
        self._note(images, labels)

    def fit(self, dataset: Dataset, epochs: int = 1, steps_per_epoch: int | None = None, verbose: int = 0) -> None:
        """A pass per epoch, or one pass that goes on."""
        self._fitted(dataset, self._compiled)
        passes = iter(dataset)
        for _ in range(epochs):
            batches = list(islice(passes, steps_per_epoch) if steps_per_epoch else dataset)
            for place, batch in enumerate(batches):
                self._note(*batch)
                if (place + 1) % self._steps == 0 or place + 1 == len(batches):
                    self._ended()
