"""The step strip: what each rank holds after each step of a run, and the messages between."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from distlab.draw.diagram import arrow, canvas, line_of
from distlab.draw.steps.chunk_boxes import POINTS, Boxes
from distlab.draw.steps.history import History, StepMessage
from distlab.draw.steps.legend import legend
from distlab.draw.steps.stamps import Stamp, stamp_on, words
from distlab.draw.style import INK, QUIET

_NAMES = 0.6  # the room for the ranks' names, in inches
_GAP = 0.28  # between two columns, for the arrows
_HEAD = 0.52  # above the first row, for the steps' and the chunks' numbers
_ROW_GAP = 0.23
_WIDEST = 7.3  # in a column of 760 pixels a letter of POINTS then has 12; with many ranks it is wider


def draw_strip(trace: History, steps: Iterable[int] | None = None) -> Figure:
    """What each rank holds after each step, as the program really ran: a column per step, a row per rank.

    A rank's row has the chunks of its array. The coloured, numbered segments of a chunk are the ranks whose share
    has been added so far, each at its own place, so that an empty place is a share that has yet to come. A small
    triangle below a chunk says that it is sent in the next step, one above it that the step changed it; arrows lead
    from the sender to the receiver. A thick frame is a finished chunk. What is wrong (a share added twice, a share
    of another chunk, at the end a missing one) is black, or a dash, in a dashed frame with an exclamation mark, and
    a line below the picture says where it first went wrong. A run that ended in an error is drawn up to where it
    stopped.

    steps: the columns to draw; 0 is the start. Default: all of them, in as many lines as needed.
    """
    steps = list(range(trace.last + 1) if steps is None else steps)
    boxes = Boxes(trace)
    waiting = trace.waiting()
    pitch = boxes.width + _GAP
    margin = 0.15 + (1.05 if waiting else 0.0)
    in_a_line = max(2, int((_WIDEST + (trace.size > 5) * 2 - _NAMES - margin + _GAP) / pitch))
    # A line begins with the last column of the one before, so that no arrow is cut.
    lines = [steps[:in_a_line]]
    while lines[-1][-1] != steps[-1]:
        begin = (in_a_line - 1) * len(lines)
        lines.append(steps[begin : begin + in_a_line])
    row = boxes.box[1] + _ROW_GAP
    line_height = _HEAD + trace.size * row
    width = max(_NAMES + max(map(len, lines)) * pitch - _GAP + margin, 5.2)
    explained, below = legend(boxes, steps, width - 0.3)

    height = len(lines) * line_height + below + 0.1
    figure, axes = canvas(width, height)
    for number, columns in enumerate(lines):
        top = height - number * line_height
        _draw_line(axes, boxes, columns, top - _HEAD, row)
    for rank, text in waiting.items():
        x = _NAMES + len(lines[-1]) * pitch - _GAP + 0.12
        y = height - (len(lines) - 1) * line_height - _HEAD - rank * row - boxes.box[1] / 2
        stamp_on(axes, [Stamp(words(text, POINTS, INK, align="left"), x, y)])
    stamp_on(axes, [Stamp(stamp.shape, 0.15 + stamp.x, below + stamp.y) for stamp in explained])
    return figure


def describe(trace: History) -> str:
    """The strip in words, for the picture's description: who sends to whom in each step, and how it ends."""
    size = trace.size
    parts = [
        f"Step strip of {size} rank{'s' if size > 1 else ''} in {trace.last} step{'s' if trace.last != 1 else ''}."
    ]
    for step in range(1, trace.last + 1):
        sent = [_in_words(trace, message) for message in trace.arriving_in(step)]
        listed = "; ".join(sent[:8]) + (f"; and {len(sent) - 8} more" if len(sent) > 8 else "")
        parts.append(f"Step {step}: {listed or 'no message'}.")
    fault = trace.first_fault()
    if trace.error is not None:
        parts.append(f"Then it stopped: {' '.join(str(trace.error).split())}.")
    if fault:
        parts.append(fault)
    elif trace.error is None:
        parts.append("In the end every rank holds what it should.")
    return " ".join(parts)


def _draw_line(axes: Axes, boxes: Boxes, columns: list[int], top: float, row: float) -> None:
    """One line of columns, whose first row of boxes has its upper edge at `top`."""
    trace = boxes.trace
    stamps = []
    ranks = range(trace.size)
    for rank in ranks:
        stamps.append(
            Stamp(words(f"rank {rank}", POINTS, INK, align="left"), 0.12, top - rank * row - boxes.box[1] / 2)
        )
    for place, step in enumerate(columns):
        x = _NAMES + place * (boxes.width + _GAP)
        title = "start" if step == 0 else f"step {step}"
        stamps.append(Stamp(words(title, POINTS, INK, bold=True), x + boxes.width / 2, top + 0.39))
        stamps += boxes.chunk_numbers(x, top + 0.21)
        for rank in ranks:
            y = top - rank * row - boxes.box[1]
            stamps += boxes.of_rank(step, rank, x, y)
            stamps += boxes.marks(step, rank, x, y)
    for place, (before, after) in enumerate(pairwise(columns)):
        left = _NAMES + place * (boxes.width + _GAP) + boxes.width
        if after != before + 1:
            stamps.append(Stamp(words("…", 12, QUIET), left + _GAP / 2, top + 0.39))
            continue
        for message in trace.arriving_in(after):
            _draw_message(axes, message, left, top - boxes.box[1] / 2, row)
    stamp_on(axes, stamps)


def _draw_message(axes: Axes, message: StepMessage, left: float, first: float, row: float) -> None:
    """An arrow in the darkened colour of its sender; one that nobody received is dashed and ends in a cross."""
    colour = line_of(message.source)
    start = (left + 0.04, first - message.source * row)
    end = (left + _GAP - 0.04, first - message.to * row)
    arrow(axes, start, end, colour, "-" if message.received else ":")
    if not message.received:
        # Nearer to the receiver, since crossing arrows meet in the middle.
        x, y = (0.28 * begin + 0.72 * stop for begin, stop in zip(start, end, strict=True))
        cross = replace(words("×", 13, INK, bold=True), name="lost message")
        stamp_on(axes, [Stamp(cross, x, y)], zorder=3)


def _in_words(trace: History, message: StepMessage) -> str:
    chunks = sorted({trace.task.chunk_of(trace.boxes[number].start) for number in trace.boxes_sent(message)})
    what = "nothing"
    if chunks:
        what = f"chunk {chunks[0]}" if len(chunks) == 1 else f"chunks {', '.join(map(str, chunks))}"
    lost = "" if message.received else ", which nobody receives"
    return f"rank {message.source} sends {what} to rank {message.to}{lost}"
