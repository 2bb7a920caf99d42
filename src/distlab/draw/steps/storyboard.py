"""A run prepared for drawing: its steps, what each rank holds after each, and how its array is cut into boxes."""

from dataclasses import dataclass

from distlab.draw.collective_tasks import Holding, Task
from distlab.draw.steps.faults import first_fault
from distlab.draw.steps.history import StepMessage, steps_of
from distlab.draw.steps.holdings import elements, holdings
from distlab.draw.traces import Source, trace_of
from distlab.simulate import Contributions, DeadlockError, SimulationError


@dataclass(frozen=True)
class Storyboard:
    """What there is to draw of a run.

    task: what the program had to do.  last: the number of the last step.  messages: all, in order of their steps.
    held: by step (0 is the start) and rank, what the rank holds.
    boxes: the first position of each box; a box is a chunk, or a part of one if its elements differ somewhere.
    error: what ended the run, or None.
    """

    task: Task
    last: int
    messages: list[StepMessage]
    held: list[list[Holding]]
    boxes: list[int]
    error: SimulationError | None

    @property
    def adds(self) -> bool:
        """Whether shares are added up in this run, so that a box needs a place for each rank's."""
        every = (element for by_rank in self.held for held in by_rank for element in held if element is not None)
        return self.task.adds or any(element.counts.total() > 1 for element in every)

    @property
    def is_over(self) -> bool:
        """Whether every rank's program ended, so that in the last step nothing may be missing."""
        return self.error is None

    def arriving_in(self, step: int) -> list[StepMessage]:
        """The messages of that step."""
        return [message for message in self.messages if message.step == step]

    def boxes_sent(self, message: StepMessage) -> list[int]:
        """The boxes, by number, whose content the message carries."""
        return [number for number in range(len(self.boxes)) if self.sent_from(message, number) is not None]

    def sent_from(self, message: StepMessage, box: int) -> Contributions | None:
        """The first element that the message carries from that box of its sender; None if there is none."""
        sent = elements(message.content)
        if message.buffer_size == self.task.length:
            places = range(message.position, message.position + len(sent))
        else:
            places = [min(element.positions) if element is not None else -1 for element in sent]
        inside = self._positions(box)
        return next((element for place, element in zip(places, sent, strict=True) if place in inside), None)

    def boxes_changed(self, step: int, rank: int) -> list[int]:
        """The boxes of that rank, by number, that hold after `step` what they did not hold before."""
        if step == 0:
            return []
        before, after = self.held[step - 1][rank], self.held[step][rank]
        return [
            number
            for number in range(len(self.boxes))
            if any(before[position] != after[position] for position in self._positions(number))
        ]

    def first_fault(self) -> str | None:
        """Where the run first went wrong, in words; None if nothing did."""
        return first_fault(self.task, self.held, self.is_over)

    def waiting(self) -> dict[int, str]:
        """Whom each rank of a deadlock waits for, in words, by rank."""
        if not isinstance(self.error, DeadlockError):
            return {}
        return {
            rank: "waits for a message" if wait.source is None else f"waits for rank {wait.source}"
            for rank, wait in self.error.waiting.items()
        }

    def _positions(self, box: int) -> range:
        stop = self.boxes[box + 1] if box + 1 < len(self.boxes) else self.task.length
        return range(self.boxes[box], stop)


def storyboard(source: Source, size: int | None, collective: str | None, root: int) -> Storyboard:
    """The storyboard of a trace, a run, events or an error; the arguments are those of `draw.step_strip`."""
    traced = trace_of(source, size, collective, root)
    steps = steps_of(traced.events, traced.size)
    held = holdings(traced.task, steps, traced.results)
    return Storyboard(traced.task, steps.last, steps.messages, held, _boxes(traced.task, held), traced.error)


def _boxes(task: Task, held: list[list[Holding]]) -> list[int]:
    rows = {row for by_rank in held for row in by_rank}
    return [
        position
        for position in range(task.length)
        if position == 0
        or task.chunk_of(position) != task.chunk_of(position - 1)
        or not all(_continues(row, position) for row in rows)
    ]


def _continues(row: Holding, position: int) -> bool:
    """Whether the element at `position` is like the one before it: the same shares, each one position further on."""
    before, here = row[position - 1], row[position]
    if before is None or here is None:
        return before is here
    return here.counts == {(rank, place + 1): count for (rank, place), count in before.counts.items()}
