"""The staleness of gradients, counted from a log: an exercise of lab 08 and its judge."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from lab_08.hints import Lab08Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import described, number
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, right, wrong

EQUAL, SLOW, PAUSE = "workers that take turns", "a slow worker", "a worker that pauses"
READS, UPDATES = "reads", "updates"


class ServerLog(NamedTuple):
    """The part of the exercise that it belongs to, and (worker, event) in the order of time."""

    part: str
    events: list[tuple[int, str]]

    def __str__(self) -> str:
        updates = sum(event == UPDATES for _, event in self.events)
        return f"a log of {len(self.events)} events, {updates} of them updates"

    def since_read(self, update: int) -> str:
        """The worker of an update and the events between its read and this update, in words."""
        place = [place for place, (_, event) in enumerate(self.events) if event == UPDATES][update]
        worker = self.events[place][0]
        read = max(at for at in range(place) if self.events[at] == (worker, READS))
        between = ", ".join(f"{peer} {event}" for peer, event in self.events[read + 1 : place])
        return f"worker {worker} reads, {between + ', ' if between else ''}{worker} updates"


EXAMPLE = ServerLog(
    SLOW,
    [
        (0, READS),
        (1, READS),
        (0, UPDATES),
        (0, READS),
        (2, READS),
        (0, UPDATES),
        (1, UPDATES),
        (1, READS),
        (2, UPDATES),
    ],
)


def staleness(events: Sequence[tuple[int, str]]) -> list[int]:
    """For each update the number of updates by other workers since its own worker's last read."""
    updates, at_read, stale = 0, {}, []
    for worker, event in events:
        if event == READS:
            at_read[worker] = updates
        else:
            stale.append(updates - at_read[worker])
            updates += 1
    return stale


def _drawn(generator: np.random.Generator, part: str) -> ServerLog:
    """Each worker computes for its own time; in PAUSE one waits a while before it reads again."""
    workers = int(generator.integers(3, 6))
    seconds = generator.uniform(0.9, 1.1, workers)
    if part == SLOW:
        seconds[generator.integers(workers)] *= generator.uniform(3, 5)
    pause = float(generator.uniform(2, 3)) if part == PAUSE else 1e-3
    paused = int(generator.integers(workers))
    events = []
    for worker in range(workers):
        now = 1e-4 * worker
        while now < 9:
            end = now + float(seconds[worker]) * float(generator.uniform(0.8, 1.2))
            events += [(now, worker, READS), (end, worker, UPDATES)]
            now = end + (pause if worker == paused else 1e-3)
    return ServerLog(part, [(worker, event) for _, worker, event in sorted(events)])


def judge_staleness(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each kind of log."""

    def part_case(log: ServerLog) -> PartCase:
        return PartCase(log.part, lambda: _verdict(log, answer.call("staleness", log.events)), f"in {log}: ")

    return judge_cases(map(part_case, [*(_drawn(generator, part) for part in (EQUAL, SLOW, PAUSE)), EXAMPLE]))


def _verdict(log: ServerLog, answer: Plain) -> Verdict:
    expected = staleness(log.events)
    values = answer.tolist() if isinstance(answer, np.ndarray) else answer
    numbers = [number(value) for value in values] if isinstance(values, (list, tuple)) else []
    if len(numbers) != len(expected) or None in numbers:
        return wrong(Lab08Hint.NO_STALENESS.says(count=len(expected), got=described(answer)), context=f"in {log}: ")
    if numbers == expected:
        return right()
    hint = next((hint for mistaken, hint in _mistakes(log) if numbers == mistaken), Lab08Hint.STALENESS_OTHERWISE)
    place = next(place for place, value in enumerate(numbers) if value != expected[place])
    return wrong(hint, context=f"update {place} has {numbers[place]:g} ({log.since_read(place)}): ")


def _mistakes(log: ServerLog) -> list[tuple[list[int], AnyHint]]:
    expected = staleness(log.events)
    reads, workers = [], []
    last: dict[int, int] = {}
    for place, (worker, event) in enumerate(log.events):
        if event == READS:
            last[worker] = place
        else:
            between = log.events[last[worker] + 1 : place]
            reads.append(len(between))
            workers.append(len({peer for peer, peers_event in between if peers_event == UPDATES}))
    size = len({worker for worker, _ in log.events})
    return [
        ([stale + 1 for stale in expected], Lab08Hint.OWN_UPDATE),
        (list(range(len(expected))), Lab08Hint.SINCE_THE_BEGINNING),
        (reads, Lab08Hint.READS_COUNTED),
        (workers, Lab08Hint.WORKERS_COUNTED),
        ([size - 1] * len(expected), Lab08Hint.MEAN_ASSUMED),
    ]
