"""The steps of a run, read from its event log: which message belongs to which step, and what each rank holds when."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from distlab.draw.collective_tasks import Element, Fault, Holding, Task
from distlab.simulate import Contributions, DeadlockError, Events, SimulationError
from distlab.simulate.events import Content

Array = NDArray[Any]  # of contributions, or of the numbers of a run that cannot be drawn


class StepMessage(NamedTuple):
    """A message in the step in which it arrives (counted from 1), or was sent if nobody received it.

    content: what was sent.  position: where in the sender's array it began, None if that is not the whole array.
    """

    step: int
    source: int
    to: int
    content: list[Element]
    position: int | None
    received: bool


class Known(NamedTuple):
    """What the log shows of a rank's memory after step `after`: its whole array, a part of one, or what it received."""

    after: int
    kind: Literal["whole", "part", "received"]
    content: list[Element]


@dataclass
class History:
    """What a program did on the virtual cluster, in steps: who sent what to whom, and what each rank held then.

    task: what each rank began with and must hold at the end.
    events: everything that happened, with contents.
    results: what the program returned, by rank; None if the run ended in an error, or if it is no array of sums.
    error: the error that ended the run, or None.
    last: the number of the last step.
    messages: all of them, in order of their steps.
    """

    task: Task
    events: Events
    results: Sequence[object] | None = None
    error: SimulationError | None = None
    last: int = field(init=False)
    messages: list[StepMessage] = field(init=False)

    def __post_init__(self) -> None:
        """Divide the run into steps."""
        self.last, self.messages, self._known = _steps_of(self.events, self.task)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self.task.size

    @cached_property
    def holdings(self) -> list[list[Holding]]:
        """By step (0 is the start) and rank, what the rank holds at each position of the whole array.

        The log shows a rank's whole array whenever the rank sends a part of it or adds to it, and the results show it
        at the end; what has changed since the last snapshot was done in between. What is received is held from that
        step on if it occurs unchanged in the rank's array later. Of ranks that have only parts of the array at hand,
        each element is placed where its own position says.
        """
        results = self.results or [None] * self.size
        by_rank = [_held_by(self.task, rank, known, self.last, results[rank]) for rank, known in enumerate(self._known)]
        return [list(by_step) for by_step in zip(*by_rank, strict=True)]

    @cached_property
    def boxes(self) -> list[range]:
        """The positions in each box; a box is a chunk, or a part of one if its elements differ somewhere."""
        rows = {row for by_rank in self.holdings for row in by_rank}
        chunk_of = self.task.chunk_of
        starts = [
            position
            for position in range(self.task.length)
            if position == 0
            or chunk_of(position) != chunk_of(position - 1)
            or not all(_continues(row, position) for row in rows)
        ]
        return [range(start, end) for start, end in pairwise([*starts, self.task.length])]

    @cached_property
    def adds(self) -> bool:
        """Whether shares are added in this run, so that a box needs a place for each rank's."""
        every = (element for by_rank in self.holdings for row in by_rank for element in row if element is not None)
        return self.task.adds or any(element.counts.total() > 1 for element in every)

    def arriving_in(self, step: int) -> list[StepMessage]:
        """The messages of that step."""
        return [message for message in self.messages if message.step == step]

    def boxes_sent(self, message: StepMessage) -> list[int]:
        """The boxes, by number, whose content the message carries."""
        return [number for number, box in enumerate(self.boxes) if self.sent_from(message, box) is not None]

    def sent_from(self, message: StepMessage, box: range) -> Element:
        """The first element that the message carries from that box of its sender; None if there is none."""
        for number, element in enumerate(message.content):
            place = min(element.positions) if element is not None else -1
            if (place if message.position is None else message.position + number) in box:
                return element
        return None

    def boxes_changed(self, step: int, rank: int) -> list[int]:
        """The boxes of that rank, by number, whose content differs after `step` from what it was before."""
        before, after = self.holdings[max(step - 1, 0)][rank], self.holdings[step][rank]
        cuts = [slice(box.start, box.stop) for box in self.boxes]
        return [number for number, cut in enumerate(cuts) if before[cut] != after[cut]]

    def fault(self, step: int, rank: int, position: int) -> Fault | None:
        """What is wrong at that position of `rank` after `step`, in the end also if it should not be returned."""
        at_end = self._is_end(step)
        fault = self.task.fault(rank, position, self.holdings[step][rank][position], at_end)
        needed = self.task.needed(rank)
        if fault or not (at_end and self.results and needed) or position in needed:
            return fault
        is_returned = position in _returned(self.task, rank, self.results[rank])
        return Fault(needed=self.task.chunk_of(needed[0])) if is_returned else None

    def first_fault(self) -> str | None:
        """Where the run first went wrong, in words, and how many chunks are wrong at the end; None if nothing is."""
        first = None
        faults: dict[tuple[int, int], Fault] = {}
        for step in range(self.last + 1):
            faults = {
                (rank, position): fault
                for rank in range(self.size)
                for position in range(self.task.length)
                if (fault := self.fault(step, rank, position))
            }
            if faults and first is None:
                (rank, position), fault = next(iter(faults.items()))
                when = "In the end" if self._is_end(step) else f"After step {step}"
                first = f"{when} chunk {self.task.chunk_of(position)} of rank {rank} {self._in_words(fault)}."
        if first is None:
            return self._wrong_result()
        wrong = len({(rank, self.task.chunk_of(position)) for rank, position in faults})
        counted = f"{wrong} chunk{' is' if wrong == 1 else 's are'}"
        if all(None not in holding for holding in self.task.ends):
            counted = f"{wrong} of {self.size * min(self.size, self.task.length)} chunks are"
        return f"{first} {counted} wrong {'where it stopped' if self.error else 'in the end'}."

    def waiting(self) -> dict[int, str]:
        """Whom each rank of a deadlock waits for, in words, by rank."""
        if not isinstance(self.error, DeadlockError):
            return {}
        return {
            rank: "waits for a message" if wait.source is None else f"waits for rank {wait.source}"
            for rank, wait in self.error.waiting.items()
        }

    def _is_end(self, step: int) -> bool:
        """Whether every rank's program has ended, so that nothing may be missing."""
        return self.error is None and step == self.last

    def _wrong_result(self) -> str | None:
        """In words, that something else was returned than what is needed, although no chunk is wrong."""
        if self.error is None and self.results is None:
            return "The ranks do not return one array of sums each."
        for rank, result in enumerate(self.results or ()):
            needed = [self.task.ends[rank][position] for position in self.task.needed(rank)]
            if needed and elements(result) != needed:
                return f"Rank {rank} does not return the array that it should."
        return None

    def _in_words(self, fault: Fault) -> str:
        """The fault as the rest of a sentence that begins with the chunk."""
        parts = []
        if fault.twice:
            times = {owner: "twice" if count == 2 else f"{count} times" for owner, count in fault.twice.items()}
            parts.append("has " + " and ".join(f"rank {owner}'s share {often}" for owner, often in times.items()))
        owners: dict[int, set[int]] = {}
        for owner, position in fault.strange:
            owners.setdefault(self.task.chunk_of(position), set()).add(owner)
        parts += [f"has chunk {chunk} of {_ranks(ranks)} in it" for chunk, ranks in sorted(owners.items())]
        if fault.missing:
            parts.append(f"lacks the share of {_ranks(fault.missing)}")
        if fault.needed is not None:
            parts.append(f"is returned, but chunk {fault.needed} is needed")
        return ", and ".join(parts)


@dataclass
class _Progress:
    """How far a rank is: the steps behind it, and by when what will have ended."""

    step: int = 0
    last_received: int = 0
    coming: list[tuple[float, int, list[Element] | None]] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)

    def go_on(self, time: float) -> None:
        """Take in all that has ended by `time`."""
        for item in [item for item in self.coming if item[0] <= time]:
            _, step, message = item
            self.coming.remove(item)
            if message is not None:
                self.known.append(Known(max(step, self.known[-1].after if self.known else 0), "received", message))
            self.step = max(self.step, step)


def _steps_of(events: Events, task: Task) -> tuple[int, list[StepMessage], list[list[Known]]]:
    """How many steps, the messages in order, and what is known of each rank in order of time.

    It is as if each message took one step and all else no time. In a step a rank sends at most one message and receives
    at most one. A message is sent in the step after the one in which its sender got what it had when it sent; it
    arrives in that step or, if later, in the first in which its receiver's port is free. With links of equal speed
    these are the rounds of a collective.
    """
    ranks = [_Progress() for _ in range(task.size)]
    received = {event.operation for event in events.select("receive")}
    sent: dict[int, StepMessage] = {}
    messages = []
    for event in events:
        rank = ranks[event.rank]
        if event.kind == "receive":
            message = sent[event.operation]
            rank.last_received = max(message.step, rank.last_received + 1)
            rank.coming.append((event.end, rank.last_received, elements(event.content)))
            messages.append(message._replace(step=rank.last_received, received=True))
            continue
        rank.go_on(event.start)
        if event.kind == "compute":
            continue
        content, buffer, position = cast(Content, event[-3:])
        rank.known.append(_known(rank.step, task, content, buffer))
        if event.partner is not None:
            place = position if buffer.size == task.length else None
            message = StepMessage(rank.step + 1, event.rank, event.partner, elements(content), place, False)
            sent[event.operation] = message
            rank.coming.append((event.end, message.step, None))
            if event.operation not in received:
                messages.append(message)
    for rank in ranks:
        rank.go_on(float("inf"))
    messages.sort(key=lambda message: (message.step, message.source, message.to))
    last = max([rank.step for rank in ranks] + [message.step for message in messages], default=0)
    return last, messages, [rank.known for rank in ranks]


def _known(after: int, task: Task, content: Array, buffer: Array) -> Known:
    """What is known by an array that was used, and by the one in memory that it is a part of."""
    if buffer.size == task.length:
        return Known(after, "whole", elements(buffer))
    return Known(after, "part", elements(buffer if buffer.size < task.length else content))


def elements(array: object) -> list[Element]:
    """The elements of an array of contributions, None for any that says nothing; nothing of what is no array."""
    found = array.reshape(-1) if isinstance(array, np.ndarray) else ()
    return [element if isinstance(element, Contributions) else None for element in found]


def _held_by(task: Task, rank: int, known: Sequence[Known], last: int, result: object) -> list[Holding]:
    """What a rank holds after each step, up to the `last`."""
    found = list(known)
    if isinstance(result, np.ndarray) and result.size:
        found.append(_known(found[-1].after if found else 0, task, result, result))
    now = list(task.begins[rank])
    last_whole = list(now)
    after = [tuple(now)] * (last + 1)
    for number, (step, kind, content) in enumerate(found):
        if kind == "whole":
            now = [new if new != old else kept for new, old, kept in zip(content, last_whole, now, strict=True)]
            last_whole = content
        elif kind == "received" and (place := _place_seen(content, found[number + 1 :], last_whole)) is not None:
            now[place : place + len(content)] = content
        elif kind == "part" or result is None or np.asarray(result).size != task.length:
            _place_by_position(now, content, rank)
        after[step:] = [tuple(now)] * (last + 1 - step)
    returned, needed = _returned(task, rank, result), task.needed(rank)
    if isinstance(result, np.ndarray) and returned.keys() <= set(needed):
        for position in needed:
            now[position] = returned.get(position)
        after[-1] = tuple(now)
    return after


def _returned(task: Task, rank: int, result: object) -> dict[int, Element]:
    """What the rank returned, by position: the whole array, or each element where its position says."""
    found = elements(result)
    if len(found) == task.length:
        return dict(enumerate(found))
    return {_own_position(element, rank): element for element in found if element is not None}


def _place_seen(message: list[Element], later: Sequence[Known], before: list[Element]) -> int | None:
    """Where `message` is in the first of the `later` whole arrays that contains it, unless it was there `before`.

    If the same is received again, what comes after that is its doing.
    """
    for _, kind, content in later if any(message) else ():
        if kind == "received" and content == message:
            return None
        for place in range(len(content) - len(message) + 1 if kind == "whole" else 0):
            stretch = slice(place, place + len(message))
            if content[stretch] == message and before[stretch] != message:
                return place
    return None


def _place_by_position(holding: list[Element], part: list[Element], rank: int) -> None:
    """Put each element of `part` where its position says, unless something else is there that it does not contain."""
    for element in part:
        if element is None:
            continue
        place = _own_position(element, rank)
        there = holding[place]
        if there is None or there.counts <= element.counts:
            holding[place] = element


def _own_position(element: Contributions, rank: int) -> int:
    """Where the element belongs in the array of `rank`: where its own share was, if that is in it."""
    own = [position for owner, position in element.counts if owner == rank]
    return min(own or element.positions)


def _continues(row: Holding, position: int) -> bool:
    """Whether the element at `position` is like the one before it: the same shares, each one position further on."""
    before, here = row[position - 1], row[position]
    if before is None or here is None:
        return before is here
    return here.counts == {(rank, place + 1): count for (rank, place), count in before.counts.items()}


def _ranks(numbers: Collection[int]) -> str:
    *first, last = map(str, sorted(numbers))
    return f"ranks {', '.join(first)} and {last}" if first else f"rank {last}"
