"""The four numbers as a widget: choose the replicas and what stays fixed, and see what follows."""

import ipywidgets

from distlab.large_batch.four_numbers import RULES, FourNumbers
from distlab.runtime.errors import PlainError

KEPT = {"each replica's batch (weak scaling)": False, "the global batch (strong scaling)": True}


class FourNumbersPanel(ipywidgets.VBox):
    """Sliders for the replicas and the batch, menus for what is kept and for the rule; `numbers` is a table in HTML."""

    def __init__(self, images: int, known_rate: float, known_batch: int) -> None:
        """`known_rate` is right for `known_batch` on one device; the batch slider goes round `known_batch`."""
        self._images, self._known = images, (known_rate, known_batch)
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

    def chosen(self) -> FourNumbers:
        """The numbers for what the controls say; raises a PlainError when they do not fit together."""
        make = FourNumbers.of_global_batch if self.kept.value else FourNumbers
        return make(self._images, self.replicas.value, self.batch.value, *self._known, self.rule.value)

    def _show(self) -> None:
        try:
            four = self.chosen()
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
