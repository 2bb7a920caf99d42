"""What a scaling study says: whom to trust, speed-up, efficiency, and how many nodes pay: an exercise of lab 15."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_15 import enlargement
from lab_15.enlargement import pays_up_to
from lab_15.hints import Lab15Hint
from lab_15.scripts import counted

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, Raised
from distlab.labs.number_judge import NumberHint, is_near, is_rounded, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Hint, Verdict, not_done, parts, right, wrong

NAMES = ("trusted", "speedup", "efficiency", "pays")
COMPLETED = "COMPLETED"
BATCH = 64


class StudyRun(NamedTuple):
    """A run of a scaling study: its nodes, how it ended, when it began and ended, a node's batch, seconds of a step."""

    nodes: int
    state: str
    start: int
    end: int
    batch: int
    step: float


Table = list[StudyRun]


def overlapping(runs: Table, place: int) -> list[int]:
    """The other runs that ran at the same time."""
    own = runs[place]
    return [peer for peer, run in enumerate(runs) if peer != place and run.start < own.end and run.end > own.start]


def trusted(runs: Table) -> list[int]:
    """The numbers of the complete runs that were alone."""
    return [place for place, run in enumerate(runs) if run.state == COMPLETED and not overlapping(runs, place)]


def speedups(runs: Table) -> dict[int, float]:
    """Images per second over those on one node, for trusted runs by their nodes in increasing order."""
    rates = {runs[place].nodes: runs[place].nodes * runs[place].batch / runs[place].step for place in trusted(runs)}
    return {nodes: rates[nodes] / rates[1] for nodes in sorted(rates)}


def read_table(runs: Table) -> dict[str, Any]:
    """All four by name."""
    gains = speedups(runs)
    return {
        "trusted": trusted(runs),
        "speedup": [*gains.values()],
        "efficiency": [gain / nodes for nodes, gain in gains.items()],
        "pays": pays_up_to(gains),
    }


def _study(generator: np.random.Generator, sizes: Sequence[int], gains: Sequence[float], unit: float) -> Table:
    """Runs one after the other that reach these speed-ups, in any order, some of them touching; batches differ."""
    runs, now = [], 0
    factors = generator.choice([1, 2, 3, 4, 6, 8], len(sizes), replace=False)
    for place, factor in zip(generator.permutation(len(sizes)), map(int, factors), strict=True):
        seconds, batch = int(generator.integers(200, 400)), BATCH * factor
        step = unit * factor * sizes[place] / gains[place]
        runs.append(StudyRun(sizes[place], COMPLETED, now, now + seconds, batch, step))
        now += seconds + int(generator.integers(0, 2)) * 30
    return runs


def _disturbed(generator: np.random.Generator, runs: Table, states: Sequence[str]) -> Table:
    """The same with runs that are not to be trusted: failed ones, and pairs that disturbed one another."""
    end = max(run.end for run in runs)
    batch, faster = runs[0].batch, min(run.step for run in runs) * 0.9
    first, second = (int(size) for size in generator.choice([run.nodes for run in runs], 2, replace=False))
    state, failed = states
    added = [
        StudyRun(first, COMPLETED, end + 50, end + 300, batch, faster),
        StudyRun(second, COMPLETED, end + 250, end + 500, batch, 4 * faster),
        StudyRun(1, COMPLETED, end + 600, end + 1000, batch, 3 * faster),
        StudyRun(2, failed, end + 700, end + 800, batch, faster),
        StudyRun(4, state, end + 1100, end + 1200, batch, faster),
        StudyRun(2, COMPLETED, end + 1350, end + 1400, batch, faster),
        StudyRun(4, COMPLETED, end + 1300, end + 1500, batch, faster),
        StudyRun(first, COMPLETED, end + 1600, end + 1800, batch, faster),
        StudyRun(first, state, end + 1700, end + 1900, batch, faster),
    ]
    together = [*runs, *added]
    return [together[place] for place in generator.permutation(len(together))]


def drawn_studies(generator: np.random.Generator) -> list[Table]:
    """Studies in which a middle size, the last or the first one pays, and in which nodes bring exactly half."""

    def near(gain: float) -> float:
        return gain * float(generator.uniform(0.97, 1.03))

    unit = float(generator.integers(20, 60)) / 1000
    middle = _study(generator, (1, 2, 4, 8, 16), (1, near(1.9), near(3.5), near(4.8), near(10.5)), unit)
    growing = _study(generator, (1, 2, 4, 8), (1, 1.6, 2.7, near(5.0)), unit)
    worthless = _study(generator, (1, 2, 4), (1, near(1.3), near(1.9)), unit)
    exactly_half = _study(generator, (1, 2, 6, 10), (1, 2, 4, 5), 1.0)
    last_half = _study(generator, (1, 3, 5), (1, 2.5, near(3.2)), unit)
    states = ("FAILED", "TIMEOUT"), ("CANCELLED", "FAILED"), ("NODE_FAIL", "TIMEOUT")
    with_states = zip((middle, growing, last_half), states, strict=True)
    return [*(_disturbed(generator, runs, names) for runs, names in with_states), worthless, exactly_half]


EXAMPLE: Table = [
    StudyRun(1, "COMPLETED", 0, 300, 64, 0.1),
    StudyRun(4, "COMPLETED", 300, 500, 32, 0.08),
    StudyRun(2, "COMPLETED", 600, 900, 64, 0.11),
    StudyRun(8, "FAILED", 910, 950, 64, 0.12),
    StudyRun(8, "COMPLETED", 1000, 1300, 64, 0.3),
    StudyRun(2, "COMPLETED", 1200, 1400, 64, 0.2),
]


class StudyAnswer(NamedTuple):
    """What was said of one study: the runs, the student's dictionary, and by name the hint, None where it is right."""

    runs: Table
    table: Mapping[Any, Plain]
    hints: Mapping[str, AnyHint | None]


def judge_read_table(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each name, if it is right for all studies."""
    studies: list[StudyAnswer] = []
    for runs in (EXAMPLE, *drawn_studies(generator)):
        try:
            table = answer.call("read_table", [run._asdict() for run in runs])
        except Raised as error:
            if _fails_only_where_runs_touch(answer, runs):
                return wrong(Lab15Hint.NO_BASE, context=f"{error}. ")
            raise
        if not isinstance(table, dict) or not set(NAMES) <= set(table):
            return wrong(Lab15Hint.NO_TABLE.says(names=", ".join(NAMES)))
        if all(table[name] is None for name in NAMES):
            return not_done("`read_table` gives None")
        studies.append(StudyAnswer(runs, table, _hints(runs, table)))
    return parts({name: _verdict(name, studies) for name in NAMES})


def _verdict(name: str, studies: Sequence[StudyAnswer]) -> Verdict:
    """On one name. Where other runs are trusted, other numbers follow: the other studies decide, if there are any."""
    mistaken = [study for study in studies if study.hints[name] is not None]
    if not mistaken:
        return right()
    trusting = [study for study in studies if study.hints["trusted"] is None]
    if name != "trusted" and trusting:
        mistaken = [study for study in mistaken if study in trusting]
        if not mistaken:
            return wrong(NumberHint.FOLLOWS.says(source="trusted"))
    if mistaken[0].table[name] is None:
        return not_done("`read_table` gives None")
    hint = _hint_of_pays(trusting or studies) if name == "pays" else mistaken[0].hints[name]
    assert hint is not None
    return wrong(hint)


def _fails_only_where_runs_touch(answer: Answer, runs: Table) -> bool:
    """Whether the function gives something if each run ends a second before the next one begins."""
    try:
        answer.call("read_table", [run._replace(end=run.end - 1)._asdict() for run in runs])
    except AnswerError:
        return False
    return True


def _hints(runs: Table, table: Mapping[Any, Plain]) -> dict[str, AnyHint | None]:
    """What is said of each name in one study; of pays, which is judged over all studies, only whether it is right."""
    gains = speedups(runs)
    efficiencies = {nodes: gain / nodes for nodes, gain in gains.items()}
    return {
        "trusted": _hint_of_trusted(runs, table["trusted"]),
        "speedup": _hint_of_numbers(runs, table["speedup"], gains, Lab15Hint.SPEEDUP_OTHERWISE),
        "efficiency": _hint_of_numbers(runs, table["efficiency"], efficiencies, Lab15Hint.EFFICIENCY_OTHERWISE),
        "pays": None if number(table["pays"]) == pays_up_to(gains) else Lab15Hint.PAYS_OTHERWISE,
    }


def _numbers(value: Plain) -> list[float | None] | None:
    values = value.tolist() if isinstance(value, np.ndarray) and value.ndim == 1 else value
    return [number(item) for item in values] if isinstance(values, (list, tuple)) else None


def _pays_by(runs: Table, value: Plain) -> int | None:
    """The nodes that pay by the student's own speed-ups, if these are a number for each trusted run."""
    values, sizes = _numbers(value), [*speedups(runs)]
    if values is None or len(values) != len(sizes):
        return None
    gains = {nodes: item for nodes, item in zip(sizes, values, strict=True) if item is not None}
    return pays_up_to(gains) if len(gains) == len(sizes) else None


def _hint_of_trusted(runs: Table, value: Plain) -> AnyHint | None:
    numbers, expected = _numbers(value), trusted(runs)
    if numbers is None:
        return Lab15Hint.NO_LIST
    places = [int(place) for place in numbers if place is not None and place.is_integer()]
    if len(places) < len(numbers):
        return Lab15Hint.NO_LIST
    if places == expected:
        return None
    if places == [place + 1 for place in expected]:
        return Lab15Hint.TRUSTED_FROM_1
    for place in places:
        if place not in range(len(runs)):
            return Lab15Hint.TRUSTED_ORDER
        if place not in expected:
            run = runs[place]
            if run.state != COMPLETED:
                return Lab15Hint.FAILED_TRUSTED.says(place=place, state=run.state)
            return Lab15Hint.DISTURBED_TRUSTED.says(place=place, peer=overlapping(runs, place)[0])
    left_out = [place for place in expected if place not in places]
    return Lab15Hint.TRUSTED_LEFT_OUT.says(place=left_out[0]) if left_out else Lab15Hint.TRUSTED_ORDER


def _hint_of_numbers(runs: Table, value: Plain, expected: Mapping[int, float], otherwise: Lab15Hint) -> AnyHint | None:
    values, sizes = _numbers(value), [*expected]
    if values is None or None in values:
        return Lab15Hint.NO_LIST
    if len(values) != len(sizes):
        return Lab15Hint.TABLE_LENGTH.says(count=len(values), expected=len(sizes))
    if _near(values, expected.values()):
        return None
    if all(is_rounded(item, right_one) for item, right_one in zip(values, expected.values(), strict=True)):
        return NumberHint.ROUNDED
    if _near(sorted(map(float, values)), sorted(expected.values())):  # type: ignore[arg-type]
        return Lab15Hint.TABLE_ORDER
    steps = {runs[place].nodes: runs[place].step for place in trusted(runs)}
    ratios = [steps[1] / steps[nodes] for nodes in sizes]
    same_batch = [nodes * ratio for nodes, ratio in zip(sizes, ratios, strict=True)]
    mistakes: list[tuple[list[float], Hint]] = [
        (ratios, Lab15Hint.TIMES_RATIO),
        ([ratio / nodes for ratio, nodes in zip(ratios, sizes, strict=True)], Lab15Hint.TIMES_RATIO),
        (same_batch, Lab15Hint.BATCH_LEFT_OUT),
        ([1 / item for item in expected.values()], Lab15Hint.UPSIDE_DOWN),
        ([1 / ratio for ratio in ratios], Lab15Hint.UPSIDE_DOWN),
    ]
    if otherwise is Lab15Hint.EFFICIENCY_OTHERWISE:
        mistakes[2] = (ratios, Lab15Hint.BATCH_LEFT_OUT)
        mistakes = [([*speedups(runs).values()], Lab15Hint.EFFICIENCY_IS_SPEEDUP), *mistakes[1:]]
    else:
        mistakes = [mistakes[0], *mistakes[2:]]
    for mistaken, hint in mistakes:
        if _near(values, mistaken):
            return hint
    nodes, said = next(
        (nodes, item) for nodes, item in zip(sizes, values, strict=True) if not is_near(item, expected[nodes])
    )
    return otherwise.says(nodes=counted(nodes, "node"), said=said)


def _near(values: Sequence[float | None], expected: Any) -> bool:
    return all(is_near(value, number_expected) for value, number_expected in zip(values, expected, strict=True))


def _hint_of_pays(answered: Sequence[StudyAnswer]) -> AnyHint:
    """The hint of the mistake that gives all that was said, or else of the first wrong number."""
    if all(number(study.table["pays"]) == _pays_by(study.runs, study.table["speedup"]) for study in answered):
        return NumberHint.FOLLOWS.says(source="speedup")
    studies = [(speedups(study.runs), study.table["pays"]) for study in answered]
    for rule, hint in enlargement.RULES:
        if all(number(said) == rule(gains) for gains, said in studies):
            return hint
    said = next(said for gains, said in studies if number(said) != pays_up_to(gains))
    return Lab15Hint.PAYS_OTHERWISE.says(said=repr(said)[:40])
