"""The interval between saves with which a job takes least time, by simulation: an exercise of lab 13 and its judge."""

from typing import Any, NamedTuple

import numpy as np
from lab_13.disturbed_runs import elapsed, expected_seconds
from lab_13.elapsed_seconds import DisturbedRun
from lab_13.hints import Lab13Hint
from lab_13.plan import young_interval
from numpy.typing import NDArray

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, NotDone, Raised
from distlab.labs.number_judge import NumberHint, described, is_near, number, problem_of_names
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

FAULTS, FACTORS, RUNS = 40, (0.25, 0.5, 1.0, 2.0, 4.0), 24

Array = NDArray[np.float64]


class Candidates(NamedTuple):
    """Candidates for the interval, the seconds of work, of a save and of a start; for each run when faults come."""

    intervals: list[float]
    work: float
    save: float
    restart: float
    runs: list[list[float]]

    def seconds(self) -> Array:
        """What each run takes with each interval, shape (intervals, runs)."""
        return np.array(
            [
                [elapsed(self.work, interval, self.save, self.restart, run) for run in self.runs]
                for interval in self.intervals
            ]
        )


EXAMPLE = Candidates([40.0, 10.0, 20.0], 80.0, 2.0, 5.0, [[11.0, 50.0], [70.0], [18.0, 300.0]])


MOST_RUNS = Candidates([10.0, 80.0], 80.0, 2.0, 5.0, [[], [], [70.0]])
"""In two of three runs the second interval is better, and its mean is worse."""


def _drawn(generator: np.random.Generator) -> tuple[Candidates, float]:
    """Young's interval with shorter and longer ones, in any order, and the mean seconds between faults."""
    between_faults, save = float(generator.integers(2000, 5000)), float(generator.integers(15, 40))
    young = round(young_interval(save, between_faults))
    work = 4.0 * young * round(FAULTS * between_faults / young / 4)
    intervals = [float(round(factor * young)) for factor in generator.permutation(FACTORS)]
    # Enough that none runs out of faults, also with the worst interval.
    faults = np.cumsum(generator.exponential(between_faults, (RUNS, 3 * FAULTS)), axis=1).round(6)
    return Candidates(intervals, work, save, float(generator.integers(60, 200)), faults.tolist()), between_faults


def _drawn_with_faults_after_saves(generator: np.random.Generator) -> Candidates:
    """Every fault comes soon after a save of the longest interval, which is far from Young's, and is the best."""
    longest, save, restart = (float(generator.integers(*range_)) for range_ in ((60, 90), (2, 4), (5, 9)))
    between_faults = longest + save + restart
    runs = [[longest + save + late + place * (between_faults + late) for place in range(8)] for late in (0.5, 1.0, 1.5)]
    intervals = generator.permutation([longest, longest / 2, longest / 4]).tolist()
    return Candidates(intervals, 5 * longest, save, restart, runs)


def judge_compare(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for the means, half for the best interval."""
    verdicts = {"means": right(), "best": right()}
    drawn, between_faults = _drawn(generator)
    for comparison in (EXAMPLE, drawn, MOST_RUNS, _drawn_with_faults_after_saves(generator)):
        try:
            compared = answer.call("compare", *comparison)
        except Raised as error:
            if hint := _hint_without_elapsed(answer, error):
                return wrong(hint)
            raise
        if problem := problem_of_names("compare", ("means", "best"), compared):
            return problem
        assert isinstance(compared, dict)
        if compared["means"] is compared["best"] is None:
            return not_done("`compare` gives a dictionary in which all values are None")
        seconds = comparison.seconds()
        hints = {
            "means": _hint_of_means(comparison, seconds, compared["means"], answer),
            "best": _hint_of_best(comparison, seconds, compared),
        }
        for name, hint in hints.items():
            if hint is not None and verdicts[name].is_right:
                verdicts[name] = wrong(hint)
    if all(verdict.is_right for verdict in verdicts.values()):
        return right(_table(drawn, drawn.seconds().mean(axis=1), between_faults))
    return parts(verdicts)


def _hint_without_elapsed(answer: Answer, error: Raised) -> AnyHint | None:
    """If `compare` fails because `elapsed` of the exercise before is not there, or gives None."""
    try:
        answer.call("elapsed", *DisturbedRun(80.0, 10.0, 2.0, 5.0, []))
    except NotDone:
        if error.kind == "NameError" and "'elapsed'" in error.message:
            return Lab13Hint.ELAPSED_MISSING
        if error.kind == "TypeError" and "None" in error.message:
            return Lab13Hint.ELAPSED_EMPTY
    except AnswerError:
        pass
    return None


def _hint_of_means(comparison: Candidates, seconds: Array, said: Plain, answer: Answer) -> AnyHint | None:
    numbers = _numbers(said)
    if len(numbers) != len(comparison.intervals) or None in numbers:
        return Lab13Hint.NO_MEANS.says(count=len(comparison.intervals), got=described(said))
    means = seconds.mean(axis=1)
    if _are_near(numbers, means):
        return None
    is_callable, hint = _hint_of_elapsed(answer, comparison)
    if hint is not None:
        return hint
    exchanged = comparison._replace(save=comparison.restart, restart=comparison.save)
    joined = comparison._replace(runs=[sorted(fault for run in comparison.runs for fault in run)])
    mistakes: list[tuple[Array, AnyHint]] = [
        (seconds.sum(axis=1), Lab13Hint.SUMS),
        (seconds[:, 0], Lab13Hint.FIRST_RUN),
        (seconds[:, -1], Lab13Hint.FIRST_RUN),
        (np.median(seconds, axis=1), Lab13Hint.MEDIANS),
        (means - comparison.work, Lab13Hint.WORK_SUBTRACTED),
        (_with_changed_lists(comparison).mean(axis=1), Lab13Hint.LIST_CHANGED),
        (exchanged.seconds().mean(axis=1), Lab13Hint.SAVE_AND_RESTART),
        (_with_work_for_interval(comparison).mean(axis=1), Lab13Hint.WORK_AND_INTERVAL),
        (joined.seconds().mean(axis=1), Lab13Hint.RUNS_JOINED),
        (np.floor(means), NumberHint.ROUNDED),
        (np.round(means), NumberHint.ROUNDED),
    ]
    for mistaken, hint in mistakes:
        if _are_near(numbers, mistaken):
            return hint
    if _are_near(sorted(value for value in numbers if value is not None), np.sort(means)):
        return Lab13Hint.MEANS_ANOTHER_ORDER
    first = next(place for place, value in enumerate(numbers) if not is_near(value, float(means[place])))
    combined = Lab13Hint.MEANS_COMBINED if is_callable else Lab13Hint.MEANS_OTHERWISE
    return combined.says(interval=comparison.intervals[first], mean=float(means[first]))


def _hint_of_elapsed(answer: Answer, comparison: Candidates) -> tuple[bool, AnyHint | None]:
    """Whether the student's `elapsed` can be called, and the hint on the first run for which it is wrong."""
    _, work, save, restart, runs = comparison
    try:
        for interval in comparison.intervals:
            for run in runs:
                if not _is_right(answer, whole := DisturbedRun(work, interval, save, restart, run)):
                    return True, _hint_of_run(answer, _shortened(answer, whole))
    except (NotDone, Raised):
        return False, None
    return True, None


def _is_right(answer: Answer, run: DisturbedRun) -> bool:
    return is_near(number(answer.call("elapsed", *run)), elapsed(*run))


def _shortened(answer: Answer, run: DisturbedRun) -> DisturbedRun:
    """A run with few faults for which `elapsed` is wrong too: without the last ones, and as if begun at one of them."""
    for last in range(len(run.faults)):
        if not _is_right(answer, shorter := run._replace(faults=run.faults[:last])):
            run = shorter
            break
    for first in range(len(run.faults), 0, -1):
        faults = [round(fault - run.faults[first - 1], 6) for fault in run.faults[first:]]
        if not _is_right(answer, shorter := run._replace(faults=faults)):
            return shorter
    return run


def _hint_of_run(answer: Answer, run: DisturbedRun) -> AnyHint:
    seconds = answer.call("elapsed", *run)
    said = number(seconds)
    if said is None:
        return Lab13Hint.NO_SECONDS.says(got=described(seconds))
    call = "elapsed({:g}, {:g}, {:g}, {:g}, {})".format(*run)
    return Lab13Hint.ELAPSED_WRONG.says(call=call, said=said, true=elapsed(*run))


def _numbers(said: Plain) -> list[float | None]:
    values = said.tolist() if isinstance(said, np.ndarray) else said
    return [number(value) for value in values] if isinstance(values, (list, tuple)) else []


def _with_changed_lists(comparison: Candidates) -> Array:
    """What an `elapsed` gives that takes every fault that has come out of its list."""
    _, work, save, restart, runs = comparison
    seconds = np.zeros((len(comparison.intervals), len(runs)))
    for column, run in enumerate(runs):
        coming = list(run)
        for row, interval in enumerate(comparison.intervals):
            end = seconds[row, column] = elapsed(work, interval, save, restart, coming)
            coming = [fault for fault in coming if fault >= end]
    return seconds


def _with_work_for_interval(comparison: Candidates) -> Array:
    """What comes out if work and interval are exchanged in every call of `elapsed`."""
    intervals, work, save, restart, runs = comparison
    return np.array([[elapsed(interval, work, save, restart, run) for run in runs] for interval in intervals])


def _are_near(numbers: list[float | None] | list[float], expected: Array) -> bool:
    return all(is_near(value, float(mean)) for value, mean in zip(numbers, expected, strict=True))


def _hint_of_best(comparison: Candidates, seconds: Array, compared: dict[Any, Plain]) -> AnyHint | None:
    means, said = seconds.mean(axis=1), compared["best"]
    value, lowest = number(said), int(means.argmin())
    if value == comparison.intervals[lowest]:
        return None
    if value is None:
        return Lab13Hint.BEST_NO_NUMBER.says(said=said)
    own = _numbers(compared["means"])
    if len(own) == len(means) and None not in own and value == comparison.intervals[int(np.argmin(np.array(own)))]:
        return NumberHint.FOLLOWS.says(source="means")
    if is_near(value, float(means[lowest])):
        return Lab13Hint.BEST_IS_MEAN
    if value == lowest:
        return Lab13Hint.BEST_IS_INDEX
    wins = np.bincount(seconds.argmin(axis=0), minlength=len(means))
    if value == comparison.intervals[int(wins.argmax())]:
        return Lab13Hint.BEST_IN_MOST_RUNS
    if value == _nearest_to_young(comparison):
        return Lab13Hint.BEST_BY_YOUNG
    return Lab13Hint.BEST_IS_WORST if value == comparison.intervals[means.argmax()] else Lab13Hint.BEST_OTHERWISE


def _nearest_to_young(comparison: Candidates) -> float:
    """The candidate nearest to Young's interval for the mean time between the faults of these runs."""
    between_faults = np.concatenate([np.diff([0.0, *run]) for run in comparison.runs]).mean()
    young = young_interval(comparison.save, float(between_faults))
    return min(comparison.intervals, key=lambda interval: abs(interval - young))


def _table(comparison: Candidates, means: Array, between_faults: float) -> str:
    """Simulated and expected seconds of every interval, the shortest first."""
    _, work, save, restart, _ = comparison
    lines = [
        f"{work:g} s of work, a fault every {between_faults:g} s, a save of {save:g} s: "
        f"Young's interval is {young_interval(save, between_faults):.0f} s.",
        "interval   mean of your runs   expected (Daly)",
    ]
    for place in np.argsort(comparison.intervals):
        interval = comparison.intervals[place]
        expected = expected_seconds(work, interval, save, restart, between_faults)
        lines.append(f"{interval:>6.0f} s {means[place]:>17.0f} s {expected:>15.0f} s")
    return "\n".join(lines)
