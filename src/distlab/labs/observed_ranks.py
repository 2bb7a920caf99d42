"""What a student's program does on the ranks of the fake Horovod; observed in the process of the student's code."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest import mock

from distlab.labs.fake_horovod import hvd, run_ranks
from distlab.labs.fake_job import FakeJob
from distlab.labs.plain_data import Plain, Record, as_record

_WAITING = ("Stalled", "TimeoutError", "Abandoned")  # errors of ranks that wait for one that has failed
_NEEDED = {"the weights": "model/", "the momentum": "optimizer/_variables/", "epochs_done": "epochs_done/"}


class GaveNothing(Exception):
    """A function that must return something returned None: it is not written yet."""


class RankError(NamedTuple):
    """An error on a rank: its class and its message."""

    rank: int
    kind: str
    message: str

    @property
    def first_line(self) -> str:
        """Of the message, shortened."""
        lines = [line.strip() for line in self.message.splitlines() if line.strip()]
        return lines[0][:200] if lines else "without a message"

    def __str__(self) -> str:
        return f"{self.kind}: {self.first_line}"


@dataclass(frozen=True)
class Observation:
    """What a function did when every rank called it: by rank, its value, and class and message of its error, if any.

    values: the fields of a dataclass, by name, or what the function returned; none where it is not written.
    """

    values: list[Plain]
    errors: list[tuple[str, str] | None]

    @property
    def is_written(self) -> bool:
        """Whether there is such a function."""
        return bool(self.values)

    @property
    def cause(self) -> RankError | None:
        """The error that explains the others: one of a rank that waits only if no other rank failed."""
        errors = [RankError(rank, *error) for rank, error in enumerate(self.errors) if error]
        order = {kind: place for place, kind in enumerate(_WAITING, start=1)}
        return min(errors, key=lambda error: order.get(error.kind, 0), default=None)

    def records(self, kind: type[Record]) -> list[Record]:
        """The values, by rank, when no rank failed."""
        return [as_record(value, kind) for value in self.values]


def observed(job: FakeJob, program: Callable[[], Any], initialised: bool = True) -> Observation:
    """What `program()` gives on every rank."""
    values, errors = zip(*run_ranks(job, program, initialised), strict=True)
    return Observation(list(values), list(errors))


def missing_in(checkpoint: str) -> list[str]:
    """What of the state of a training is not in a checkpoint: weights, momentum, epochs_done."""
    import tensorflow as tf

    names = [name for name, _ in tf.train.list_variables(checkpoint)]
    return [what for what, start in _NEEDED.items() if not any(name.startswith(start) for name in names)]


@contextmanager
def eagerly() -> Iterator[None]:
    """Without graphs, in which ranks that wait would take the threads of ranks that are waited for."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def fake_hvd_in(namespace: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """The fake Horovod as `hvd`, also for a student who has imported Horovod itself or made another fake."""
    return nullcontext() if namespace.get("hvd") is hvd else mock.patch.dict(namespace, {"hvd": hvd})
