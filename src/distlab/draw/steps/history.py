"""The steps of a run, read from its event log: which message belongs to which step, and what each rank showed when."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from distlab.simulate import Event, Events


class StepMessage(NamedTuple):
    """A message in the step in which it arrives (counted from 1), or was sent if nobody received it.

    content: what was sent, flattened.  position: where in the sender's array of `buffer_size` elements it began.
    """

    step: int
    source: int
    to: int
    content: np.ndarray
    position: int
    buffer_size: int
    received: bool


class Sight(NamedTuple):
    """A look at a rank's memory after step `after`: what it received, or the array that it sent from or added to.

    buffer: the whole array; content: the part of it that was sent or made by adding. If `received`, both are the
        message.
    """

    after: int
    received: bool
    content: np.ndarray
    buffer: np.ndarray


@dataclass
class Steps:
    """The steps of a run: how many, the messages in order, the sights of each rank in order of time."""

    last: int
    messages: list[StepMessage]
    sights: list[list[Sight]]


@dataclass
class _Progress:
    """How far a rank is: the steps behind it, and what will have ended at which time."""

    step: int = 0
    last_received: int = 0
    coming: list[tuple[float, int, np.ndarray | None]] = field(default_factory=list)
    sights: list[Sight] = field(default_factory=list)

    def go_on(self, time: float) -> None:
        """Take in all that has ended by `time`."""
        for item in [item for item in self.coming if item[0] <= time]:
            _, step, message = item
            self.coming.remove(item)
            if message is not None:
                after = max(step, self.sights[-1].after if self.sights else 0)
                self.sights.append(Sight(after, True, message, message))
            self.step = max(self.step, step)


def steps_of(events: Events, size: int) -> Steps:
    """The run in steps, as if each message took one step and all else no time.

    In a step a rank sends at most one message and receives at most one. A message is sent in the step after the one in
    which its sender got what it had when it sent; it arrives in that step or, if later, in the first in which its
    receiver's port is free. With links of equal speed these are the rounds of a collective.
    """
    ranks = [_Progress() for _ in range(size)]
    received = {event.operation for event in events.select("receive")}
    sent_in: dict[int, int] = {}
    sent: dict[int, Event] = {}
    messages = []
    for event in events:
        rank = ranks[event.rank]
        if event.kind == "receive":
            rank.last_received = max(sent_in[event.operation], rank.last_received + 1)
            rank.coming.append((event.end, rank.last_received, event.content))
            messages.append(_message(sent[event.operation], rank.last_received, True))
            continue
        rank.go_on(event.start)
        if event.kind != "compute":
            rank.sights.append(Sight(rank.step, False, event.content, event.buffer))
        if event.kind == "send":
            sent[event.operation], sent_in[event.operation] = event, rank.step + 1
            rank.coming.append((event.end, rank.step + 1, None))
            if event.operation not in received:
                messages.append(_message(event, rank.step + 1, False))
    for rank in ranks:
        rank.go_on(float("inf"))
    messages.sort(key=lambda message: (message.step, message.source, message.to))
    last = max([rank.step for rank in ranks] + [message.step for message in messages], default=0)
    return Steps(last, messages, [rank.sights for rank in ranks])


def _message(send: Event, step: int, received: bool) -> StepMessage:
    content = np.ravel(send.content)
    return StepMessage(step, send.rank, send.partner, content, send.position, send.buffer.size, received)
