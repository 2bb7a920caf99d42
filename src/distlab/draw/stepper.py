"""A widget to walk through the steps of a program, on any number of ranks."""

from collections.abc import Collection, Sequence

import ipywidgets
import matplotlib.pyplot as plt

from distlab.draw.style import svg
from distlab.draw.traces import Trace, require_drawable, trace
from distlab.runtime.arguments import require_kind, require_whole
from distlab.simulate.world import Program


class Stepper(ipywidgets.VBox):
    """A program's steps to walk through: play, a slider for the step, one for the number of ranks, and the picture.

    `draw.show_widget` displays it.

    play: the button.  step, ranks: the sliders.  picture: the HTML widget that holds the SVG.
    """

    def __init__(
        self,
        program: Program,
        size: int = 4,
        sizes: Sequence[int] = range(2, 9),
        collective: str | None = "all_reduce",
        root: int = 0,
    ) -> None:
        """Shows `program` on `size` ranks at first; `sizes` are the numbers of ranks to choose from.

        collective, root: what the program has to do, see `draw.trace`.

        Raises ValueError if `size` is not one of `sizes`, or one of them cannot be drawn.
        """
        require_kind("sizes", sizes, Collection, "a list of the numbers of ranks to choose from, such as range(2, 9)")
        for number in sizes:
            require_whole("a number in sizes", number, least=1)
            require_drawable(number)
        if size not in sizes:
            raise ValueError(f"size is {size}, but the sizes to choose from are {', '.join(map(str, sizes))}")
        self._program, self._collective, self._root = program, collective, root
        self._traces: dict[int, Trace] = {}
        last = self._trace(size).last
        self.play = ipywidgets.Play(value=0, min=0, max=last, interval=1500)
        self.step = ipywidgets.IntSlider(value=0, min=0, max=last, description="step")
        self.ranks = ipywidgets.SelectionSlider(options=list(sizes), value=size, description="ranks")
        self.picture = ipywidgets.HTML()
        ipywidgets.jslink((self.play, "value"), (self.step, "value"))
        self.step.observe(lambda change: self._draw(), "value")
        self.ranks.observe(lambda change: self._choose(), "value")
        super().__init__([ipywidgets.HBox([self.play, self.step, self.ranks]), self.picture])
        self._draw()

    def strip(self) -> str:
        """The whole strip of the chosen number of ranks as SVG text."""
        return _as_svg(self._trace(self.ranks.value))

    def _trace(self, size: int) -> Trace:
        if size not in self._traces:
            self._traces[size] = trace(self._program, size, collective=self._collective, root=self._root)
        return self._traces[size]

    def _choose(self) -> None:
        """Go back to the start, with as many steps as the chosen number of ranks needs."""
        last = self._trace(self.ranks.value).last
        self.play.value = 0
        self.play.max = self.step.max = last
        if self.step.value:
            self.step.value = 0
        else:
            self._draw()

    def _draw(self) -> None:
        """The step that the slider shows: what the ranks hold before it and after it."""
        step = self.step.value
        self.picture.value = _as_svg(self._trace(self.ranks.value), [step - 1, step] if step else [0])


def _as_svg(chosen: Trace, steps: list[int] | None = None) -> str:
    figure = chosen.strip(steps)
    try:
        return svg(figure, chosen.describe())
    finally:
        plt.close(figure)
