"""What each rank holds after each step, worked out from what the event log shows of its memory."""

from collections.abc import Sequence

import numpy as np

from distlab.draw.collective_tasks import Holding, Task
from distlab.draw.steps.history import Sight, Steps
from distlab.simulate import Contributions

Held = list[Contributions | None]


def holdings(task: Task, steps: Steps, results: Sequence | None) -> list[list[Holding]]:
    """By step (0: the start) and rank, what the rank holds at each position of the whole array.

    The log shows a rank's whole array whenever the rank sends a part of it or adds to it, and the results show it at
    the end; what has changed since the last look was done in between. What is received is held from that step on if it
    turns up unchanged in the rank's array later. Of ranks that have only parts of the array at hand, each element is
    placed where its own position says.
    """
    by_rank = [_of_rank(task, rank, steps, None if results is None else results[rank]) for rank in range(task.size)]
    return [[by_rank[rank][step] for rank in range(task.size)] for step in range(steps.last + 1)]


def elements(array: object) -> Held:
    """The elements of an array of contributions, None for any that says nothing; [] for what is not an array."""
    if not isinstance(array, np.ndarray):
        return []
    return [element if isinstance(element, Contributions) else None for element in array.reshape(-1)]


def _of_rank(task: Task, rank: int, steps: Steps, result: object) -> list[Holding]:
    sights = list(steps.sights[rank])
    if result is not None and elements(result):
        final = np.ravel(result)
        sights.append(Sight(sights[-1].after if sights else 0, False, final, final))
    wholes = [
        elements(sight.buffer) if sight.buffer.size == task.length and not sight.received else None for sight in sights
    ]
    messages = [elements(sight.content) if sight.received else None for sight in sights]

    held: Held = list(task.begins[rank])
    last_whole: Held = list(held)
    after = [tuple(held)] * (steps.last + 1)
    for number, sight in enumerate(sights):
        whole = wholes[number]
        if whole is not None:
            held = [new if new != old else kept for new, old, kept in zip(whole, last_whole, held, strict=True)]
            last_whole = whole
        elif not sight.received:
            part = sight.buffer if sight.buffer.size < task.length else sight.content
            _place_by_position(held, elements(part), rank)
        else:
            message = messages[number]
            place = _place_seen(message, wholes[number + 1 :], messages[number + 1 :], last_whole)
            if place is not None:
                held[place : place + len(message)] = message
            elif result is None or np.size(result) != task.length:
                _place_by_position(held, message, rank)
        after[sight.after :] = [tuple(held)] * (steps.last + 1 - sight.after)
    return after


def _place_seen(message: Held, wholes: list[Held | None], messages: list[Held | None], before: Held) -> int | None:
    """Where `message` stands in the first of the later `wholes` in which it does, unless it stood there before.

    `messages` are those received later: what the same message brings once more is that one's doing.
    """
    if not any(message):
        return None
    for whole, received in zip(wholes, messages, strict=True):
        if received == message:
            return None
        for place in range(len(whole) - len(message) + 1 if whole else 0):
            stretch = slice(place, place + len(message))
            if whole[stretch] == message and before[stretch] != message:
                return place
    return None


def _place_by_position(held: Held, part: Held, rank: int) -> None:
    """Put each element of `part` where its position says, unless something else is there that it does not contain."""
    for element in part:
        if element is None:
            continue
        own = [position for owner, position in element.counts if owner == rank]
        place = min(own or element.positions)
        there = held[place]
        if there is None or there.counts <= element.counts:
            held[place] = element
