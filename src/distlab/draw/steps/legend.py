"""What the marks in a step strip mean, and in words what went wrong."""

import textwrap
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from distlab.draw.diagram import fill_of
from distlab.draw.steps.chunk_boxes import Boxes
from distlab.draw.steps.stamps import Stamp, polygon, rectangle, width_of, words
from distlab.draw.style import INK, QUIET

_POINTS = 7.5
_LINE = 0.19
_SAMPLE = 0.2
_DOWN = [(-0.045, 0.045), (0.045, 0.045), (0, -0.045)]
_RIGHT = [(-0.045, 0.045), (-0.045, -0.045), (0.045, 0)]
_MOST_LINES_OF_ERROR = 10


class LegendEntry(NamedTuple):
    """A mark, with places relative to the entry's, and what it means."""

    mark: list[Stamp]
    meaning: str

    @property
    def width(self) -> float:
        """The width in inches."""
        return _SAMPLE + 0.05 + width_of(self.meaning, _POINTS) + 0.22


class Legend:
    """The lines below a strip; only marks that the strip shows are explained."""

    def __init__(self, boxes: Boxes, steps: list[int], width: float, with_marks: bool = True) -> None:
        """`steps` are those drawn, `with_marks` with their triangles; `width`, in inches, is what a line may take."""
        self._width = width
        self._lines = self._broken(self._entries(boxes, steps, with_marks))
        trace = boxes.trace
        characters = int(width / width_of("n", _POINTS, bold=True))
        # The lines in words, and whether each is bold.
        self._text: list[tuple[str, bool]] = []
        if trace.error is not None:
            lines = [part for line in str(trace.error).splitlines() for part in textwrap.wrap(line, characters)]
            hidden = len(lines) - _MOST_LINES_OF_ERROR
            self._text.append(("The run stopped here:", True))
            self._text += [(line, False) for line in lines[:_MOST_LINES_OF_ERROR]]
            self._text += [(f"… and {hidden} more lines", False)] if hidden > 0 else []
        self._text += [(line, True) for line in textwrap.wrap(trace.first_fault() or "", characters)]

    @property
    def height(self) -> float:
        """The height in inches."""
        return _LINE * (len(self._lines) + len(self._text)) + 0.12

    def stamps(self, x: float, top: float) -> list[Stamp]:
        """The legend, from its upper left corner."""
        stamps = []
        y = top - _LINE / 2
        for line in self._lines:
            left = x
            for entry in line:
                stamps += [Stamp(stamp.shape, left + stamp.x, y + stamp.y) for stamp in entry.mark]
                stamps.append(Stamp(words(entry.meaning, _POINTS, INK, align="left"), left + _SAMPLE + 0.05, y))
                left += entry.width
            y -= _LINE
        for text, bold in self._text:
            stamps.append(Stamp(words(text, _POINTS, INK, bold=bold, align="left"), x, y))
            y -= _LINE
        return stamps

    def _broken(self, entries: Iterable[LegendEntry]) -> list[list[LegendEntry]]:
        """The entries in lines."""
        lines: list[list[LegendEntry]] = [[]]
        room = self._width
        for entry in entries:
            if entry.width > room and lines[-1]:
                lines.append([])
                room = self._width
            lines[-1].append(entry)
            room -= entry.width
        return lines

    def _entries(self, boxes: Boxes, steps: list[int], with_marks: bool) -> Iterator[LegendEntry]:
        trace = boxes.trace
        places = [(step, rank) for step in steps for rank in range(trace.size)]
        stamps = [stamp for place in places for stamp in boxes.of_rank(*place, 0, 0)]
        if with_marks:
            stamps += [stamp for place in places for stamp in boxes.marks(*place, 0, 0)]
        names = {stamp.shape.name for stamp in stamps}
        if trace.adds:
            meaning = "rank 1's share has been added"
        elif trace.task.moves_between_chunks:
            meaning = "1.0 is chunk 0 of rank 1 at the start"
        else:
            meaning = "data of rank 1"
        label = "1.0" if trace.task.moves_between_chunks and not trace.adds else "1"
        yield LegendEntry(_sample(fill_of(1), label, INK), meaning)
        if "finished chunk" in names:
            yield LegendEntry(
                [Stamp(rectangle("sample", 0.16, 0.12, "white", INK, 1.5), 0.02, -0.06)], "finished chunk"
            )
        if "changed" in names:
            yield LegendEntry([Stamp(polygon("sample", _DOWN, INK), 0.1, 0.0)], "changed in this step")
        if "sent next" in names:
            yield LegendEntry([Stamp(polygon("sample", _RIGHT, INK), 0.1, 0.0)], "sent in the next step")
        if not all(message.received for message in trace.messages if message.step in steps):
            yield LegendEntry([Stamp(words("×", 12, INK, bold=True), 0.1, 0.0)], "received by nobody")
        if any(name.endswith(" twice") for name in names):
            yield LegendEntry(_sample(INK, "2×", "white"), "added twice")
        if any(name.startswith("strange") for name in names):
            yield LegendEntry(_sample(INK, "1", "white"), "share of another chunk")
        if any(name.startswith("missing") for name in names):
            yield LegendEntry(_sample("white", "–", INK), "missing in the end")
        if "wrong chunk" in names:
            yield LegendEntry(
                [Stamp(rectangle("sample", 0.16, 0.12, "white", INK, 1.5, dashed=True), 0.02, -0.06)], "! wrong chunk"
            )


def _sample(face: str, text: str, colour: str) -> list[Stamp]:
    box = rectangle("sample", 0.2, 0.14, face, QUIET, 0.5)
    return [Stamp(box, 0.0, -0.07), Stamp(words(text, 7, colour, bold=face == INK), 0.1, 0.0)]
