"""A rank's chunks after one step, as boxes: a segment for each rank's share, and marks for what happens to a chunk."""

from collections import Counter

from matplotlib.colors import to_hex

from distlab.draw.collective_tasks import Element, Fault
from distlab.draw.diagram import fill_of, tint
from distlab.draw.steps.history import History
from distlab.draw.steps.stamps import Stamp, polygon, rectangle, words
from distlab.draw.style import INK, QUIET

POINTS = 8.4  # of letters
_PALE = to_hex(tint(QUIET, 0.45))


class Boxes:
    """Draws the boxes of a run; lengths are in inches.

    columns, segment: the segments side by side in a box, and the width and height of one.  box: the width and height of
    a box; the marks need 0.09 inches more above and below it.  pitch: from one box to the next.  width: that of all
    boxes of a rank, side by side.
    """

    def __init__(self, trace: History) -> None:
        """The sizes for that many ranks and boxes."""
        self.trace = trace
        few = trace.size <= 6
        self.columns = 2 if trace.adds and trace.size > 4 else 1
        self.lines = -(-trace.size // self.columns) if trace.adds else 1
        if not trace.adds:
            wide, narrow = (0.26, 0.225) if trace.task.moves_between_chunks else (0.22, 0.185)
            width, height = wide if few else narrow, 0.19
        else:
            width, height = (0.14, 0.135) if self.columns == 1 else (0.095, 0.125)
        self.segment = width, height
        self.box = self.columns * self.segment[0], self.lines * self.segment[1]
        between = 0.045 if few else 0.035
        self.pitch = self.box[0] + between
        self.width = self.pitch * len(trace.boxes) - between

    def of_rank(self, step: int, rank: int, x: float, y: float) -> list[Stamp]:
        """The boxes of `rank` after `step`, from the lower left corner at x, y."""
        stamps = []
        for number in range(len(self.trace.boxes)):
            stamps += self.box_after(step, rank, number, x + number * self.pitch, y)
        return stamps

    def box_after(self, step: int, rank: int, number: int, x: float, y: float) -> list[Stamp]:
        """Box `number` of `rank` after `step`, with its lower left corner at x, y."""
        element = self._element(step, rank, number)
        task, position = self.trace.task, self.trace.boxes[number].start
        fault = self.trace.fault(step, rank, position) or Fault()
        counts = Counter(element.ranks if element else ())
        strange = {owner for owner, _ in fault.strange}

        stamps = [Stamp(rectangle("box", *self.box, "white", _PALE, 0.6), x, y)]
        if self.trace.adds:
            places = {}
            for owner in range(task.size):
                line, column = divmod(owner, self.columns)
                places[owner] = x + column * self.segment[0], y + (self.lines - 1 - line) * self.segment[1]
        else:
            owners = list(counts) or list(fault.missing)[:1]
            places = dict.fromkeys(owners, (x, y))
        for owner, place in places.items():
            if owner in strange:
                stamps += self._segment(f"strange share {owner}", self._name(owner, element), place, INK)
            elif owner in fault.twice:
                stamps += self._segment(f"share {owner} twice", f"{counts[owner]}×", place, INK)
            elif owner in counts:
                stamps += self._segment(f"share {owner}", self._name(owner, element), place, fill_of(owner))
            elif owner in fault.missing:
                stamps += self._segment(f"missing share {owner}", "–", place, "white")
        if is_wrong := fault != Fault():
            name, edge, width = "wrong chunk", INK, 1.5
            stamps.append(Stamp(words("!", POINTS, INK, bold=True), x + self.box[0] / 2, self._above(y)))
        elif element is None:
            name, edge, width = "no chunk", _PALE, 0.6
        elif element == task.ends[rank][position]:
            name, edge, width = "finished chunk", INK, 1.5
        else:
            name, edge, width = "chunk", QUIET, 0.6
        stamps.append(Stamp(rectangle(name, *self.box, "none", edge, width, dashed=is_wrong, layer=2), x, y))
        return stamps

    def marks(self, step: int, rank: int, x: float, y: float) -> list[Stamp]:
        """The triangles of the boxes of `rank`, whose row begins at x, y: changed in `step`, sent in the next one."""
        stamps = []
        size = 0.038
        down = polygon("changed", [(-size, size), (size, size), (0, -size)], INK)
        right = polygon("sent next", [(-size, size), (-size, -size), (size, 0)], INK)
        for number in self.trace.boxes_changed(step, rank):
            if self.trace.fault(step, rank, self.trace.boxes[number].start) is None:
                stamps.append(Stamp(down, self._middle(x, number), self._above(y)))
        for message in self.trace.arriving_in(step + 1):
            if message.source == rank:
                for number in self.trace.boxes_sent(message):
                    below, middle = y - 0.08, self._middle(x, number)
                    sent = self.trace.sent_from(message, self.trace.boxes[number])
                    if sent is not None and not self.trace.adds and sent != self._element(step, rank, number):
                        # Another chunk has taken its place in the picture; the program still has it elsewhere.
                        stamps.append(Stamp(words(self._name(sent.ranks[0], sent), POINTS), middle, below))
                        middle += 0.15
                    stamps.append(Stamp(right, middle, below))
        return stamps

    def chunk_numbers(self, x: float, y: float) -> list[Stamp]:
        """The number of each box's chunk in a line at height y above boxes that begin at x."""
        chunks = [str(self.trace.task.chunk_of(box.start)) for box in self.trace.boxes]
        return [Stamp(words(chunk, POINTS, QUIET), self._middle(x, number), y) for number, chunk in enumerate(chunks)]

    def _name(self, owner: int, element: Element) -> str:
        """The text of a segment: whose share it is, and where chunks change places which of its chunks it was."""
        if self.trace.adds or not self.trace.task.moves_between_chunks or element is None:
            return str(owner)
        return f"{owner}.{self.trace.task.chunk_of(min(element.positions))}"

    def _segment(self, name: str, text: str, place: tuple[float, float], face: str) -> list[Stamp]:
        width, height = self.segment
        colour = "white" if face == INK else INK
        shape = rectangle(name, width, height, face, "white", 0.5, layer=1)
        number = words(text, POINTS, colour, bold=face == INK)
        return [Stamp(shape, *place), Stamp(number, place[0] + width / 2, place[1] + height / 2)]

    def _element(self, step: int, rank: int, number: int) -> Element:
        """The first element of the box."""
        return self.trace.holdings[step][rank][self.trace.boxes[number].start]

    def _middle(self, x: float, number: int) -> float:
        return x + number * self.pitch + self.box[0] / 2

    def _above(self, y: float) -> float:
        return y + self.box[1] + 0.065
