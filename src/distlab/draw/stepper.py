"""A widget to walk through the steps of a program, on any number of ranks."""

import ipywidgets
import matplotlib.pyplot as plt

from distlab.draw.style import svg
from distlab.draw.traces import Trace, trace
from distlab.simulate.world import Program

SIZES = range(2, 9)


class Stepper(ipywidgets.VBox):
    """The steps of an all-reduce to walk through: play, sliders for the step and the number of ranks, the picture.

    `draw.show_widget` displays it.

    play: the button.  step, ranks: the sliders.  picture: the HTML widget that holds the SVG.
    """

    def __init__(self, program: Program, size: int = 4) -> None:
        """Shows `program` on `size` ranks at first; 2 to 8 can be chosen."""
        self._program = program
        self._traces: dict[int, Trace] = {}
        last = self._trace(size).last
        self.play = ipywidgets.Play(value=0, min=0, max=last, interval=1500)
        self.step = ipywidgets.IntSlider(value=0, min=0, max=last, description="step")
        self.ranks = ipywidgets.SelectionSlider(options=list(SIZES), value=size, description="ranks")
        self.picture = ipywidgets.HTML()
        ipywidgets.jslink((self.play, "value"), (self.step, "value"))
        self.step.observe(lambda change: self._draw(), "value")
        self.ranks.observe(lambda change: self._choose(), "value")
        super().__init__([ipywidgets.HBox([self.play, self.step, self.ranks]), self.picture])
        self._draw()

    def _trace(self, size: int) -> Trace:
        if size not in self._traces:
            self._traces[size] = trace(self._program, size)
        return self._traces[size]

    def _choose(self) -> None:
        """Go back to the start, with as many steps as the chosen number of ranks needs."""
        self.play.value = 0
        self.play.max = self.step.max = self._trace(self.ranks.value).last
        if self.step.value:
            self.step.value = 0
        else:
            self._draw()

    def _draw(self) -> None:
        """The step that the slider shows: what the ranks hold before it and after it."""
        step, chosen = self.step.value, self._trace(self.ranks.value)
        figure = chosen.strip([step - 1, step] if step else [0])
        self.picture.value = svg(figure, chosen.describe())
        plt.close(figure)
