"""The four numbers that change together when ranks are added: per-replica batch, global batch, steps, learning rate."""

from dataclasses import dataclass

from distlab.large_batch import global_batches, schedules
from distlab.runtime.errors import PlainError

RULES = {
    "linear": schedules.linear_rule,
    "square root": schedules.square_root_rule,
    "unchanged": lambda rate, times: rate,
}


class DoesNotDivide(PlainError, ValueError):
    """A global batch cannot be divided evenly among the replicas."""


@dataclass(frozen=True)
class FourNumbers:
    """What follows from a data set, a number of replicas and a run on one device that is known to work.

    images: in the data set.  replicas: ranks or devices.  per_replica_batch: images that each gets in a step.
    known_rate, known_batch: a learning rate and the global batch it is right for.  rule: one of RULES.
    """

    images: int
    replicas: int
    per_replica_batch: int
    known_rate: float
    known_batch: int
    rule: str = "linear"

    @classmethod
    def of_global_batch(cls, images: int, replicas: int, global_batch: int, *known: object) -> "FourNumbers":
        """The same from the global batch (strong scaling, when it stays as it was). Raises DoesNotDivide."""
        if global_batch % replicas:
            raise DoesNotDivide(f"A global batch of {global_batch} cannot be divided evenly among {replicas} replicas.")
        return cls(images, replicas, global_batch // replicas, *known)

    @property
    def global_batch(self) -> int:
        """Images behind one update of the weights, of all replicas together."""
        return self.replicas * self.per_replica_batch

    @property
    def steps_per_epoch(self) -> int:
        """Updates after which every image was used once; rounded down. Raises BatchDoesNotFit when there is none."""
        return global_batches.steps_per_epoch(self.images, self.global_batch)

    @property
    def learning_rate(self) -> float:
        """By the rule, from the ratio of the global batches: the number of replicas does not enter."""
        return RULES[self.rule](self.known_rate, self.global_batch / self.known_batch)

    def row(self) -> str:
        """The four numbers in one line, under `header`."""
        values = (f"{self.per_replica_batch}", f"{self.global_batch}", f"{self.steps_per_epoch}")
        return _line(f"{self.replicas}", *values, f"{self.learning_rate:.4g}")

    @staticmethod
    def header() -> str:
        """The heads of the columns of `row`."""
        return _line("replicas", "per-replica batch", "global batch", "steps per epoch", "learning rate")


def _line(*cells: str) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, (8, 19, 14, 17, 15), strict=True))
