"""The steps of a run, read from its event log: which message belongs to which step, and what each rank holds when."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.draw.collective_tasks import Element, Holding, Task
from distlab.simulate import Contributions, Event, Events
from distlab.simulate.events import Content

Array = NDArray[Any]  # of contributions, or of the numbers of a run that cannot be drawn


class StepMessage(NamedTuple):
    """A message in the step in which it arrives (counted from 1), or was sent if nobody received it.

    content: what was sent, flattened.  position: where in the sender's array of `buffer_size` elements it began.
    """

    step: int
    source: int
    to: int
    content: Array
    position: int
    buffer_size: int
    received: bool


class Snapshot(NamedTuple):
    """A part of a rank's memory after step `after`: what it received, or the array that it sent from or added to.

    buffer: the whole array; content: the part of it that was sent or made by adding. If `received`, both are the
        message.
    """

    after: int
    received: bool
    content: Array
    buffer: Array


@dataclass
class Steps:
    """The steps of a run: how many, the messages in order, the snapshots of each rank in order of time."""

    last: int
    messages: list[StepMessage]
    snapshots: list[list[Snapshot]]


@dataclass
class _Progress:
    """How far a rank is: the steps behind it, and what will have ended at which time."""

    step: int = 0
    last_received: int = 0
    coming: list[tuple[float, int, Array | None]] = field(default_factory=list)
    snapshots: list[Snapshot] = field(default_factory=list)

    def go_on(self, time: float) -> None:
        """Take in all that has ended by `time`."""
        for item in [item for item in self.coming if item[0] <= time]:
            _, step, message = item
            self.coming.remove(item)
            if message is not None:
                after = max(step, self.snapshots[-1].after if self.snapshots else 0)
                self.snapshots.append(Snapshot(after, True, message, message))
            self.step = max(self.step, step)


def content_of(event: Event) -> Content:
    """What a message carried, or a sum that was made, with the array that it is a part of.

    Raises ValueError if the run did not keep contents.
    """
    if event.content is None or event.buffer is None or event.position is None:
        raise ValueError("these events hold no contents: run the program with keep_contents=True")
    return Content(event.content, event.buffer, event.position)


def steps_of(events: Events, size: int) -> Steps:
    """The run in steps, as if each message took one step and all else no time.

    In a step a rank sends at most one message and receives at most one. A message is sent in the step after the one in
    which its sender got what it had when it sent; it arrives in that step or, if later, in the first in which its
    receiver's port is free. With links of equal speed these are the rounds of a collective.
    """
    ranks = [_Progress() for _ in range(size)]
    received = {event.operation for event in events.select("receive")}
    sent: dict[int, StepMessage] = {}
    messages = []
    for event in events:
        rank = ranks[event.rank]
        if event.kind == "receive":
            message = sent[event.operation]
            rank.last_received = max(message.step, rank.last_received + 1)
            rank.coming.append((event.end, rank.last_received, content_of(event).array))
            messages.append(message._replace(step=rank.last_received, received=True))
            continue
        rank.go_on(event.start)
        if event.kind == "compute":
            continue
        content = content_of(event)
        rank.snapshots.append(Snapshot(rank.step, False, content.array, content.buffer))
        if event.partner is not None:
            array, step = np.ravel(content.array), rank.step + 1
            message = StepMessage(step, event.rank, event.partner, array, content.position, content.buffer.size, False)
            sent[event.operation] = message
            rank.coming.append((event.end, step, None))
            if event.operation not in received:
                messages.append(message)
    for rank in ranks:
        rank.go_on(float("inf"))
    messages.sort(key=lambda message: (message.step, message.source, message.to))
    last = max([rank.step for rank in ranks] + [message.step for message in messages], default=0)
    return Steps(last, messages, [rank.snapshots for rank in ranks])


def holdings(task: Task, steps: Steps, results: Sequence[object] | None) -> list[list[Holding]]:
    """By step (0: the start) and rank, what the rank holds at each position of the whole array.

    The log shows a rank's whole array whenever the rank sends a part of it or adds to it, and the results show it at
    the end; what has changed since the last snapshot was done in between. What is received is held from that step on if
    it occurs unchanged in the rank's array later. Of ranks that have only parts of the array at hand, each element is
    placed where its own position says.
    """
    by_rank = [_of_rank(task, rank, steps, None if results is None else results[rank]) for rank in range(task.size)]
    return [[by_rank[rank][step] for rank in range(task.size)] for step in range(steps.last + 1)]


def elements(array: Array) -> list[Element]:
    """The elements of an array of contributions, None for any that says nothing."""
    return [element if isinstance(element, Contributions) else None for element in array.reshape(-1)]


def _of_rank(task: Task, rank: int, steps: Steps, result: object) -> list[Holding]:
    snapshots = list(steps.snapshots[rank])
    if isinstance(result, np.ndarray) and result.size:
        snapshots.append(
            Snapshot(snapshots[-1].after if snapshots else 0, False, result.reshape(-1), result.reshape(-1))
        )
    has_whole_result = result is not None and np.asarray(result).size == task.length
    messages = [elements(snapshot.content) if snapshot.received else None for snapshot in snapshots]
    wholes = [
        elements(snapshot.buffer) if snapshot.buffer.size == task.length and not snapshot.received else None
        for snapshot in snapshots
    ]

    now = list(task.begins[rank])
    last_whole = list(now)
    after = [tuple(now)] * (steps.last + 1)
    for number, (snapshot, message, whole) in enumerate(zip(snapshots, messages, wholes, strict=True)):
        if whole is not None:
            now = [new if new != old else kept for new, old, kept in zip(whole, last_whole, now, strict=True)]
            last_whole = whole
        elif message is None:
            part = snapshot.buffer if snapshot.buffer.size < task.length else snapshot.content
            _place_by_position(now, elements(part), rank)
        else:
            place = _place_seen(message, wholes[number + 1 :], messages[number + 1 :], last_whole)
            if place is not None:
                now[place : place + len(message)] = message
            elif not has_whole_result:
                _place_by_position(now, message, rank)
        after[snapshot.after :] = [tuple(now)] * (steps.last + 1 - snapshot.after)
    return after


def _place_seen(
    message: list[Element],
    wholes: Sequence[list[Element] | None],
    messages: Sequence[list[Element] | None],
    before: list[Element],
) -> int | None:
    """Where `message` is in the first of the later `wholes` that contains it, unless it was there `before`.

    `messages` are those received later: if one of them is the same, what it brings is its own doing.
    """
    if not any(message):
        return None
    for whole, received in zip(wholes, messages, strict=True):
        if received == message:
            return None
        for place in range(len(whole) - len(message) + 1 if whole else 0):
            stretch = slice(place, place + len(message))
            if whole is not None and whole[stretch] == message and before[stretch] != message:
                return place
    return None


def _place_by_position(holding: list[Element], part: list[Element], rank: int) -> None:
    """Put each element of `part` where its position says, unless something else is there that it does not contain."""
    for element in part:
        if element is None:
            continue
        own = [position for owner, position in element.counts if owner == rank]
        place = min(own or element.positions)
        there = holding[place]
        if there is None or there.counts <= element.counts:
            holding[place] = element
