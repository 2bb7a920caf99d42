"""A small `tf.data` and a model that trains nothing: the judge's own programs run on them, without TensorFlow."""

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from typing import Any

import numpy as np
from lab_02.observe import Watch


class Dataset:
    """What `tf.data.Dataset` does with the same names."""

    def __init__(self, passes: Callable[[], Iterable[Any]], name: str = "", source: "Dataset | None" = None) -> None:
        """`passes()` begins a new pass; `name` is that of the transformation of `source`."""
        self._passes, self.name, self._input_dataset = passes, name, source

    @classmethod
    def range(cls, stop: int) -> "Dataset":
        """The numbers from 0."""
        return cls(lambda: range(stop))

    def __iter__(self) -> Iterator[Any]:
        return iter(self._passes())

    def __len__(self) -> int:
        return len(self._passes())  # type: ignore[arg-type]  # of numbers only

    def map(self, function: Callable[..., Any]) -> "Dataset":
        """The function of each element, in each pass again."""
        arguments = lambda element: element if isinstance(element, tuple) else (element,)  # noqa: E731
        return Dataset(lambda: (function(*arguments(element)) for element in self), "map", self)

    def cache(self) -> "Dataset":
        """The elements of the first pass."""
        kept: list[Any] = []

        def passes() -> list[Any]:
            kept.extend(() if kept else self)
            return kept

        return Dataset(passes, "cache", self)

    def shuffle(self, buffer_size: int) -> "Dataset":
        """Each element is drawn from a buffer, which is filled again after it; in each pass another way."""
        seeds = count()

        def passes() -> Iterator[Any]:
            generator = np.random.default_rng(next(seeds))
            buffer: list[Any] = []
            for element in self:
                buffer.append(element)
                if len(buffer) >= buffer_size:
                    yield buffer.pop(int(generator.integers(len(buffer))))
            while buffer:
                yield buffer.pop(int(generator.integers(len(buffer))))

        return Dataset(passes, "shuffle", self)

    def batch(self, size: int, drop_remainder: bool = False) -> "Dataset":
        """Elements in groups, each of their fields as one array."""

        def passes() -> Iterator[Any]:
            elements = iter(self)
            while group := list(islice(elements, size)):
                if len(group) == size or not drop_remainder:
                    is_pair = isinstance(group[0], tuple)
                    yield tuple(map(np.stack, zip(*group, strict=True))) if is_pair else np.stack(group)

        return Dataset(passes, "batch", self)

    def repeat(self, times: int | None = None) -> "Dataset":
        """One pass after the other; without end if no number is given."""
        turns = lambda: count() if times is None else range(times)  # noqa: E731
        return Dataset(lambda: (element for _ in turns() for element in self), "repeat", self)

    def prefetch(self, buffer_size: int) -> "Dataset":
        """The same elements."""
        return Dataset(self._passes, "prefetch" if buffer_size else "empty prefetch", self)


class Noisy(Dataset):
    """Images with random numbers: a new pass draws the same ones again, but `repeat` draws on, as `tf.random` does."""

    def __init__(self, source: Dataset, times: int = 1) -> None:
        """`source` gives images and their numbers, in batches, so often in a pass."""

        def passes() -> Iterator[Any]:
            generator = np.random.default_rng(0)
            for _ in range(times):
                for images, numbers in source:
                    yield images + generator.random(images.shape), numbers

        super().__init__(passes, "map", source)
        self.repeat = lambda times: Noisy(source, times)  # type: ignore[method-assign]


class Model:
    """Trains nothing, and is watched."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch

    def compile(self, optimizer: str, loss: str, steps_per_execution: int = 1, jit_compile: bool = False) -> None:
        """Keep the options."""
        self._steps = steps_per_execution
        self._compiled = {"optimizer": optimizer, "rate": 0.01, "momentum": 0.0, "loss": loss, "XLA": jit_compile}

    def train_on_batch(self, images: Any, labels: Any) -> None:
        """One step."""
        self._watch.note(images, labels)

    def fit(self, dataset: Dataset, epochs: int = 1, verbose: int = 0) -> None:
        """A pass per epoch."""
        self._watch.fitted(dataset, self._compiled)
        for _ in range(epochs):
            for step, batch in enumerate(dataset):
                self._watch.note(*batch)
                if step % self._steps == 0:  # the first one of an execution
                    self._watch.ended()
