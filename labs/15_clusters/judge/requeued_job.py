"""One attempt of a job that is queued again, on a virtual cluster: an exercise of lab 15 and its judge."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from lab_15 import given
from lab_15.hints import Lab15Hint

from distlab.labs.answer import Answer, OwnAnswer
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong
from distlab.simulate import (
    DeadlockError,
    Network,
    ProgramError,
    Rank,
    RankFailedError,
    Run,
    SimulationError,
    World,
)

ONE, SEVERAL, END, NEXT = "a notice for one rank", "notices for several", "the end", "the next attempt"
START_AGAIN, NEVER = 85, 1e9
# Sums of these are exact, so that a computation's seconds say which step it was.
TICK = 2.0**-12
WORLD = Network(latency=TICK, seconds_per_byte=0.0)


@dataclass(frozen=True)
class PlannedAttempt:
    """An attempt after the step `saved`; notices: for each rank in which step it receives one, None for no step.

    0: it has received one before the first step.
    """

    part: str
    steps: int
    saved: int
    notices: list[int | None]

    @property
    def last(self) -> int:
        """The last step that is done in this attempt."""
        steps = [max(step, self.saved + 1) for step in self.notices if step is not None]
        return min([*steps, self.steps])

    @property
    def is_cut(self) -> bool:
        """Whether it ends before all steps are done."""
        return self.last < self.steps

    def jobs(self) -> list[given.QueuedJob]:
        """What each rank gets; every step and every save takes a time of its own, on every rank."""
        numbers = range(self.steps + 4)
        jobs: list[given.QueuedJob] = []
        for rank, notice in enumerate(self.notices):
            step_seconds = [1 + 64 * TICK * rank + TICK * step for step in numbers]
            save_seconds = [8 + 64 * TICK * rank + TICK * step for step in numbers]
            seconds = NEVER if notice is None else self._middle_of(notice)
            jobs.append(
                {
                    "steps": self.steps,
                    "saved": self.saved,
                    "notice": seconds,
                    "step_seconds": step_seconds,
                    "save_seconds": save_seconds,
                    "done": [],
                }
            )
        return jobs

    def _middle_of(self, step: int) -> float:
        """A second in the middle of that step's computation: those before it, with their two all-reduces, are over."""
        if step == 0:
            return 0.0
        others = len(self.notices) - 1
        before = range(self.saved + 1, step)
        return sum(1 + TICK * (64 * others + number + 4 * others) for number in before) + 0.5


class Save(NamedTuple):
    """A checkpoint: who writes it, after which step, from when to when."""

    rank: int
    step: int
    start: float
    end: float


async def attempt(rank: Rank, job: given.QueuedJob) -> int:
    """The right program."""
    for step in range(job["saved"] + 1, job["steps"] + 1):
        await given.train_step(rank, job, step)
        notices = await given.add_up(rank, given.has_notice(rank, job))
        if notices > 0 and step < job["steps"]:
            if rank.index == 0:
                await given.save(rank, job, step)
            await given.add_up(rank, 0)
            return START_AGAIN
    return 0


def planned_attempts(generator: np.random.Generator) -> list[PlannedAttempt]:
    """Every part has at least two; ranks, steps and notices are drawn."""

    def drawn(low: int, high: int) -> int:
        return int(generator.integers(low, high))

    def some(part: str, saved: int, steps: int, *notices: int | None) -> PlannedAttempt:
        return PlannedAttempt(part, steps, saved, [notices[place] for place in generator.permutation(len(notices))])

    steps = drawn(8, 13)
    middle, later = drawn(3, 5), drawn(6, 8)
    size = drawn(3, 5)
    nobody: list[int | None] = [None] * (size - 1)
    saved = drawn(2, 4)
    return [
        PlannedAttempt(ONE, steps, 0, [*nobody, middle]),
        PlannedAttempt(ONE, steps, 0, [later, *nobody]),
        PlannedAttempt(ONE, steps, 0, [None, steps - 1, *nobody[1:]]),
        some(ONE, 0, steps, 0, *nobody),
        some(SEVERAL, 0, steps, middle, later, *nobody[1:]),
        some(SEVERAL, 0, steps, middle, middle, later, None),
        some(SEVERAL, 0, steps, 1, 1, 1),
        PlannedAttempt(END, steps, 0, [None, None]),
        PlannedAttempt(END, steps, 0, [*nobody, steps]),
        PlannedAttempt(NEXT, steps, saved, [None, *nobody]),
        some(NEXT, saved, steps, saved + 2, *nobody),
        PlannedAttempt(NEXT, steps, steps, [None, None]),
        PlannedAttempt(NEXT, steps, steps, [None, 0]),
    ]


def judge_attempt(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for one notice, several notices, the end, and the next attempt."""
    verdicts: dict[str, Verdict] = {}
    for planned in planned_attempts(generator):
        if verdicts.get(planned.part, right()).is_right:
            hint = _judged(answer, planned)
            verdicts[planned.part] = right() if hint is None else wrong(hint)
    return parts(verdicts)


def _judged(answer: Answer, planned: PlannedAttempt) -> AnyHint | None:
    try:
        run = answer.run("attempt", World(len(planned.notices), WORLD), planned.jobs())
    except RankFailedError as error:
        beyond = re.search(given.NO_STEP.format(r"(\d+)"), str(error))
        again = re.search(given.STEP_AGAIN.format(r"(\d+)"), str(error))
        if again:
            return Lab15Hint.NEVER_DONE.says(step=int(again[1]))
        if beyond is None:
            raise
        return Lab15Hint.TOO_MANY_STEPS.says(step=int(beyond[1]), steps=planned.steps)
    except ProgramError:
        raise
    except DeadlockError as error:
        ended = [(rank, wait.source) for rank, wait in error.waiting.items() if wait.source_has_finished]
        return Lab15Hint.NOT_MET.says(rank=ended[0][0], peer=ended[0][1]) if ended else Lab15Hint.SAVES_ALONE
    except SimulationError:
        return Lab15Hint.SAVES_ALONE
    return hint_of_run(planned, run)


def hint_of_run(planned: PlannedAttempt, run: Run) -> AnyHint | None:
    """What leads on a student whose ranks did this; None if it is right."""
    for rank, status in enumerate(run.results):
        if not isinstance(status, int) or isinstance(status, bool):
            return Lab15Hint.NO_STATUS.says(said=_brief(status), rank=rank)
    steps, saves = _done(planned, run)
    return (
        _hint_of_reason(planned, saves)
        or _hint_of_steps(planned, steps)
        or _hint_of_beginning(planned, run)
        or _hint_of_end(planned, run, saves)
    )


def _brief(value: object) -> str:
    return repr(value)[:40]


def _done(planned: PlannedAttempt, run: Run) -> tuple[list[int], list[Save]]:
    """The steps of rank 0, in order, and the saves."""
    jobs, steps, saves = planned.jobs(), [], []
    for event in run.events:
        if event.kind != "compute":
            continue
        seconds = event.end - event.start
        if seconds in jobs[event.rank]["step_seconds"] and event.rank == 0:
            steps.append(jobs[0]["step_seconds"].index(seconds))
        elif seconds in jobs[event.rank]["save_seconds"]:
            saves.append(Save(event.rank, jobs[event.rank]["save_seconds"].index(seconds), event.start, event.end))
    return steps, saves


def _hint_of_reason(planned: PlannedAttempt, saves: list[Save]) -> AnyHint | None:
    """For a save while no rank has a notice; one after the last step has a hint of its own."""
    first_notice = min(job["notice"] for job in planned.jobs())
    for save in saves:
        if save.start < first_notice and save.step < planned.steps:
            return Lab15Hint.SAVED_WITHOUT_NOTICE.says(step=save.step)
    return None


def _hint_of_steps(planned: PlannedAttempt, steps: list[int]) -> AnyHint | None:
    expected = [*range(planned.saved + 1, planned.last + 1)]
    if steps and steps[0] > planned.saved + 1:
        return Lab15Hint.STEP_LOST.says(step=planned.saved + 1, saved=planned.saved, said=steps[0])
    if steps and steps[0] <= planned.saved:
        return Lab15Hint.STEP_TWICE.says(step=steps[0], saved=planned.saved, said=steps[0])
    last = steps[-1] if steps else planned.saved
    if last > planned.steps:
        return Lab15Hint.TOO_MANY_STEPS.says(step=last, steps=planned.steps)
    if planned.is_cut and last > planned.last:
        return Lab15Hint.TOO_LATE.says(step=planned.last, said=last)
    if last == planned.steps - 1 and not planned.is_cut:
        return Lab15Hint.LAST_MISSING.says(said=last, steps=planned.steps)
    if last < planned.last:
        return Lab15Hint.TOO_EARLY.says(step=planned.last, said=last)
    if steps != expected:
        return Lab15Hint.STEPS_ORDER.says(said=steps, expected=expected)
    return None


def _hint_of_beginning(planned: PlannedAttempt, run: Run) -> AnyHint | None:
    """For what the ranks do before the first step; without one, they do nothing at all."""
    first = next((event for event in run.events if event.rank == 0), None)
    if first is None or first.kind == "compute":
        return None
    if planned.saved == planned.steps:
        return Lab15Hint.NOT_AT_ONCE
    return Lab15Hint.ADDED_BEFORE.says(step=planned.saved + 1)


def _guess(planned: PlannedAttempt, run: Run) -> AnyHint | None:
    """For a rank that lets time pass by itself instead of waiting for the others."""
    for rank, job in enumerate(planned.jobs()):
        for event in run.events:
            seconds = event.end - event.start
            if (event.rank, event.kind) == (rank, "compute") and seconds not in job["step_seconds"] + job[
                "save_seconds"
            ]:
                return Lab15Hint.GUESSED.says(rank=rank, seconds=seconds)
    return None


def _hint_of_end(planned: PlannedAttempt, run: Run, saves: list[Save]) -> AnyHint | None:
    status, expected = Lab15Hint.STATUS_85, 0
    if planned.is_cut:
        status, expected = Lab15Hint.STATUS_0, START_AGAIN
        if not saves:
            return Lab15Hint.NOT_SAVED
        others = [save.rank for save in saves if save.rank > 0]
        if others:
            return Lab15Hint.SAVED_BY_OTHERS.says(rank=others[0])
        if len(saves) > 1:
            return Lab15Hint.SAVED_OFTEN.says(count=len(saves))
        if saves[0].step != planned.last:
            return Lab15Hint.SAVED_STEP.says(said=saves[0].step, step=planned.last)
        if hint := _guess(planned, run):
            return hint
        early = [rank for rank, finished in enumerate(run.finished) if finished < saves[0].end]
        if early:
            return Lab15Hint.LEFT_EARLY.says(rank=early[0])
    elif saves:
        return Lab15Hint.SAVED_AT_END
    for rank, said in enumerate(run.results):
        if said != expected:
            return status.says(rank=rank, said=said)
    return None


def right_run(planned: PlannedAttempt) -> Run:
    """What the right program does."""
    namespace: dict[str, Any] = {"attempt": attempt}
    return OwnAnswer(namespace).run("attempt", World(len(planned.notices), WORLD), planned.jobs())
