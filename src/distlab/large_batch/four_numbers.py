"""The four numbers that change together when ranks are added: per-replica batch, global batch, steps, learning rate.

`FourNumbersPanel` shows them as a widget: choose the replicas and what stays fixed, and see what follows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import ipywidgets

from distlab.large_batch import global_batches, schedules
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import look_up

RULES: dict[str, Callable[[float, float], float]] = {
    "linear": schedules.linear_rule,
    "square root": schedules.square_root_rule,
    "unchanged": lambda rate, times: rate,
}
KEPT = {"each replica's batch (weak scaling)": False, "the global batch (strong scaling)": True}


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
    def of_global_batch(
        cls, images: int, replicas: int, global_batch: int, known_rate: float, known_batch: int, rule: str = "linear"
    ) -> "FourNumbers":
        """The same from the global batch (strong scaling, when it stays as it was). Raises BatchDoesNotFit."""
        if global_batch % replicas:
            raise global_batches.BatchDoesNotFit(
                f"A global batch of {global_batch} cannot be divided evenly among {replicas} replicas."
            )
        return cls(images, replicas, global_batch // replicas, known_rate, known_batch, rule)

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
        return look_up(RULES, self.rule, "scaling rule")(self.known_rate, self.global_batch / self.known_batch)

    def row(self) -> str:
        """The four numbers in one line, under `header`."""
        values = (f"{self.per_replica_batch}", f"{self.global_batch}", f"{self.steps_per_epoch}")
        return _line(f"{self.replicas}", *values, f"{self.learning_rate:.4g}")

    @staticmethod
    def header() -> str:
        """The heads of the columns of `row`."""
        return _line("replicas", "per-replica batch", "global batch", "steps per epoch", "learning rate")


class FourNumbersPanel(ipywidgets.VBox):
    """Sliders for the replicas and the batch, menus for what is kept and for the rule; `numbers` is a table in HTML."""

    def __init__(self, images: int, known_rate: float, known_batch: int) -> None:
        """`known_rate` is right for `known_batch` on one device; the batch slider begins at `known_batch`."""
        self._images, self._known_rate, self._known_batch = images, known_rate, known_batch
        sizes = [known_batch * 2**power for power in range(5)]
        self.replicas = ipywidgets.SelectionSlider(options=[1, 2, 4, 8, 16, 32, 64], value=8, description="replicas")
        self.batch = ipywidgets.SelectionSlider(options=sizes, value=known_batch, description="batch")
        self.kept = ipywidgets.Dropdown(options=KEPT, description="the batch is")
        self.rule = ipywidgets.Dropdown(options=list(RULES), description="rule")
        self.numbers = ipywidgets.HTML()
        for control in (self.replicas, self.batch, self.kept, self.rule):
            control.observe(lambda change: self._show(), "value")
        super().__init__([self.replicas, self.batch, self.kept, self.rule, self.numbers])
        self._show()

    def _show(self) -> None:
        make = FourNumbers.of_global_batch if self.kept.value else FourNumbers
        chosen = (self.replicas.value, self.batch.value, self._known_rate, self._known_batch, self.rule.value)
        try:
            four = make(self._images, *chosen)
            values = {
                "per-replica batch": f"{four.per_replica_batch:,}",
                "global batch": f"{four.global_batch:,}",
                "steps per epoch": f"{four.steps_per_epoch:,}",
                "learning rate": f"{four.learning_rate:.4g}",
            }
            rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in values.items())
            self.numbers.value = f"<table>{rows}</table>"
        except PlainError as error:
            self.numbers.value = f"<p>{error}</p>"


def _line(*cells: str) -> str:
    return "".join(f"{cell:>{width}}" for cell, width in zip(cells, (8, 19, 14, 17, 15), strict=True))
