"""The judges of `throughput` and of `profile`: numbers out of measured steps and out of a timeline."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from lab_16.hints import Lab16NumberHint as Hints

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, NumberHint, NumberJudge, is_near, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, wrong

Steps = Sequence[tuple[int, float]]
RATES = ("texts/s", "speed-up", "efficiency")
PARTS = ("input", "computing", "all-reduce")
BOTTLENECK = "bottleneck"


class TimelineEvent(NamedTuple):
    """Something that a rank did in a step: one of PARTS, from and to so many seconds."""

    step: int
    name: str
    start: float
    end: float


def throughput(measured: Mapping[int, Steps], warm_up: int) -> dict[int, dict[str, float]]:
    """The numbers of RATES by ranks."""
    rates = {ranks: float(np.median([n / s for n, s in steps[warm_up:]])) for ranks, steps in measured.items()}
    return {
        ranks: dict(zip(RATES, (rate, rate / rates[1], rate / rates[1] / ranks), strict=True))
        for ranks, rate in rates.items()
    }


def drawn_measurements(generator: np.random.Generator, warm_up: int) -> dict[int, list[tuple[int, float]]]:
    """Steps on 1, 2, 4 and 8 ranks, in any order: slow at first, a few disturbed, one batch in four small."""
    batch, seconds = int(generator.integers(100, 400)), float(generator.uniform(0.05, 0.2))
    measured = {}
    for ranks in generator.permutation([1, 2, 4, 8]).tolist():
        count = warm_up + 4 * int(generator.integers(2, 4))
        mean = seconds * (0.15 + 0.85 / ranks)
        times = mean * generator.uniform(0.9, 1.1, count)
        times[:warm_up] *= generator.uniform(5, 20, warm_up)
        times[-2] *= 6  # somebody else used the machine
        texts = [batch if number % 4 else batch // 3 for number in range(1, count + 1)]
        measured[ranks] = [(n, float(s * (0.5 if n < batch else 1))) for n, s in zip(texts, times, strict=True)]
    return measured


def judge_throughput(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A third of the points for each number, on any ranks."""
    judge = NumberJudge("throughput", RATES)
    cases = [(warm_up, drawn_measurements(generator, warm_up)) for warm_up in (2, 1, 3)]
    answers = [answer.call("throughput", measured, warm_up) for warm_up, measured in cases]
    one_of_two = any(
        all(_takes(place, *case, answered) for case, answered in zip(cases, answers, strict=True)) for place in (0, -1)
    )
    for (warm_up, measured), answered in zip(cases, answers, strict=True):
        if not isinstance(answered, dict) or set(answered) != set(measured):
            return wrong(Hints.NOT_BY_RANKS)
        right_rates = throughput(measured, warm_up)
        for ranks in measured:
            expected = _rates(measured, warm_up, ranks, right_rates, one_of_two)
            if problem := judge.compare(answered[ranks], expected, f"{ranks} ranks"):
                return problem
            _follow(judge, answered[ranks], answered[1], ranks)
    return judge.verdict("")


def _middle(steps: Steps, warm_up: int) -> list[float]:
    """The one or two rates in the middle."""
    rates = sorted(texts / seconds for texts, seconds in steps[warm_up:])
    return rates[(len(rates) - 1) // 2 : len(rates) // 2 + 1]


def _takes(place: int, warm_up: int, measured: Mapping[int, Steps], answered: Plain) -> bool:
    """Whether each rate is the lower or the higher one in the middle; a single one may also be another mistake."""
    if not isinstance(answered, dict) or set(answered) != set(measured):
        return False
    rates = {ranks: values.get(RATES[0]) for ranks, values in answered.items() if isinstance(values, dict)}
    return all(is_near(number(rates.get(ranks)), _middle(measured[ranks], warm_up)[place]) for ranks in measured)


def _follow(judge: NumberJudge, values: Plain, of_one: Plain, ranks: int) -> None:
    """What follows from a wrong throughput is not said twice."""
    assert isinstance(values, dict)
    own, alone = number(values["texts/s"]), number(of_one.get("texts/s")) if isinstance(of_one, dict) else None
    if own is not None and alone:
        judge.follow(values, {"speed-up": ("texts/s", own / alone), "efficiency": ("texts/s", own / alone / ranks)})


def _rates(
    measured: dict[int, list[tuple[int, float]]],
    warm_up: int,
    ranks: int,
    by_ranks: dict[int, dict[str, float]],
    one_of_two: bool,
) -> dict[str, Expected]:
    steps = measured[ranks]
    later = np.array(steps[warm_up:])
    rates = later[:, 0] / later[:, 1]
    rate, speedup, efficiency = (by_ranks[ranks][name] for name in RATES)
    everything = np.array(steps)
    mistakes: list[tuple[float | None, Hints]] = [
        *((rate if one_of_two else None, Hints.ONE_OF_TWO) for rate in _middle(steps, warm_up)),
        (float(np.median(everything[:, 0] / everything[:, 1])), Hints.WARM_UP_INCLUDED),
        (float(np.median(rates[1:])), Hints.ONE_LEFT_OUT),
        (float(np.mean(rates)), Hints.MEAN_RATE),
        (float(later[:, 0].sum() / later[:, 1].sum()), Hints.SUM_OF_ALL),
        (float(later[:, 0].max() / np.median(later[:, 1])), Hints.FULL_BATCHES),
        (float(np.median(later[:, 0]) / np.median(later[:, 1])), Hints.FULL_BATCHES),
        (rate / ranks if ranks > 1 else None, Hints.RATE_OF_ONE),
        (rate * ranks if ranks > 1 else None, Hints.RATE_MULTIPLIED),
    ]
    is_parallel = ranks > 1
    return {
        "texts/s": Expected(rate, mistakes, Hints.RATE_OTHERWISE),
        "speed-up": Expected(
            speedup,
            [
                (1 / speedup if is_parallel else None, Hints.UPSIDE_DOWN),
                (efficiency if is_parallel else None, Hints.SPEEDUP_IS_EFFICIENCY),
                (float(ranks) if is_parallel else None, Hints.SPEEDUP_IDEAL),
            ],
            Hints.SPEEDUP_OTHERWISE,
        ),
        "efficiency": Expected(
            efficiency,
            [
                (speedup if is_parallel else None, Hints.EFFICIENCY_IS_SPEEDUP),
                (100 * efficiency, Hints.PER_CENT),
            ],
            Hints.EFFICIENCY_OTHERWISE,
        ),
    }


def drawn_timeline(generator: np.random.Generator, slow: str, steps: int = 4) -> list[TimelineEvent]:
    """The events of a rank in which one of PARTS takes longest; the first step is slow everywhere."""
    lengths = dict(zip(PARTS, generator.uniform(2, 3, 3), strict=True))
    lengths[slow] *= 4
    events, now = [], float(generator.uniform(0, 5))
    for step in range(steps):
        factor = (9.0 if step == 0 else 1.0) * generator.uniform(0.7, 1.4, 3)
        taken = {name: float(lengths[name] * own) for name, own in zip(PARTS, factor, strict=True)}
        events.append(TimelineEvent(step, "input", now, now + taken["input"]))
        now += taken["input"] + float(generator.uniform(0.2, 0.5))
        forward = now + 0.4 * taken["computing"]
        events.append(TimelineEvent(step, "computing", now, forward))
        begin = forward + float(generator.uniform(0.2, 0.4))  # a gap
        end = begin + 0.6 * taken["computing"]
        events.append(TimelineEvent(step, "computing", begin, end))
        early = begin + 0.5 * (end - begin)  # two all-reduces: one is hidden at first, one begins before the end
        middle = max(early + 0.4 * taken["all-reduce"], end - 0.1)
        events.append(TimelineEvent(step, "all-reduce", early, middle))
        last = max(middle, end) + 0.8 * taken["all-reduce"]
        events.append(TimelineEvent(step, "all-reduce", middle, last))
        now = last + float(generator.uniform(0.3, 0.9))  # between two steps
    return [events[place] for place in generator.permutation(len(events))]


BY_HAND: list[list[tuple[str, float, float]]] = [
    [("computing", 0, 4), ("all-reduce", 1, 6)],  # the all-reduce is longer than the computing, its exposed part is not
    [("computing", 0, 2), ("all-reduce", 2, 3), ("computing", 4, 6)],  # exposed before the last computing
    [("computing", 0, 2), ("all-reduce", 2, 6), ("input", 4, 5)],  # input hides nothing
]
"""The events of a step that show what drawn timelines do not."""


def timelines(generator: np.random.Generator) -> list[tuple[str, list[TimelineEvent]]]:
    """The timelines of the check, each with what a hint calls it."""
    cases = [("one of the timelines", drawn_timeline(generator, slow)) for slow in generator.permutation(PARTS)]
    factor = int(generator.integers(1, 4))
    for events in BY_HAND:
        scaled = [TimelineEvent(1, name, factor * start, factor * end) for name, start, end in events]
        said = ", ".join(f"{event.name} from {event.start:g} to {event.end:g}" for event in scaled)
        cases.append((f"a step with {said}", scaled))
    return cases


def exposed(events: Sequence[TimelineEvent]) -> float:
    """The seconds of all-reduce in which nothing is computed."""
    hidden = sum(
        max(0.0, min(exchange.end, event.end) - max(exchange.start, event.start))
        for exchange in events
        if exchange.name == "all-reduce"
        for event in events
        if event.name == "computing"
    )
    return _length(events, "all-reduce") - hidden


def _after_the_last_computing(events: Sequence[TimelineEvent]) -> float:
    """The seconds of all-reduce that follow the last computing of their step."""
    last: dict[int, float] = {}
    for event in events:
        if event.name == "computing":
            last[event.step] = max(event.end, last.get(event.step, event.end))
    return sum(
        max(0.0, event.end - max(event.start, last.get(event.step, event.start)))
        for event in events
        if event.name == "all-reduce"
    )


def _length(events: Sequence[TimelineEvent], name: str) -> float:
    return sum(event.end - event.start for event in events if event.name == name)


def _duration(events: Sequence[TimelineEvent]) -> float:
    """From the first start to the last end in each step, added up."""
    steps = {event.step for event in events}
    return sum(
        max(event.end for event in events if event.step == step)
        - min(event.start for event in events if event.step == step)
        for step in steps
    )


def profile(events: Sequence[TimelineEvent]) -> dict[str, float]:
    """The shares of PARTS, without step 0."""
    later = [event for event in events if event.step > 0]
    taken = (_length(later, "input"), _length(later, "computing"), exposed(later))
    return {name: seconds / _duration(later) for name, seconds in zip(PARTS, taken, strict=True)}


def judge_profile(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each share, and for the bottleneck."""
    judge = NumberJudge("profile", (*PARTS, BOTTLENECK))
    for case, events in timelines(generator):
        answered = answer.call("profile", [event._asdict() for event in events])
        shares = profile(events)
        if problem := judge.compare(answered, _shares(events, shares), case):
            return problem
        assert isinstance(answered, dict)
        largest = max(shares, key=lambda name: shares[name])
        if answered[BOTTLENECK] != largest:
            known = answered[BOTTLENECK] in PARTS
            hint = Hints.ANOTHER_BOTTLENECK.says(case=case) if known else Hints.UNKNOWN_BOTTLENECK
            judge.note(BOTTLENECK, wrong(_follows(answered, shares) or hint))
    return judge.verdict("")


def _follows(answered: dict[Any, Plain], shares: Mapping[str, float]) -> AnyHint | None:
    """What is said of a bottleneck that is the largest of the student's own shares, of which some are wrong."""
    own = {name: number(answered[name]) or 0.0 for name in PARTS}
    wrong_ones = [name for name in PARTS if not is_near(own[name], shares[name])]
    if wrong_ones and answered[BOTTLENECK] == max(own, key=lambda name: own[name]):
        return NumberHint.FOLLOWS.says(source=" and ".join(wrong_ones))
    return None


def _shares(events: list[TimelineEvent], shares: dict[str, float]) -> dict[str, Expected]:
    later = [event for event in events if event.step > 0]
    duration, everything = _duration(later), _duration(events)
    busy = sum(event.end - event.start for event in later)
    whole_time = max(event.end for event in later) - min(event.start for event in later)
    steps = sorted({event.step for event in later})
    taken = {name: share * duration for name, share in shares.items()}

    def mistakes(name: str) -> list[tuple[float | None, Hints]]:
        full = exposed(events) if name == "all-reduce" else _length(events, name)
        by_step = [profile([event for event in later if event.step == step])[name] for step in steps]
        return [
            (full / everything, Hints.FIRST_STEP_INCLUDED),
            (taken[name] / busy, Hints.OF_BUSY_TIME),
            (taken[name] / sum(taken.values()), Hints.OF_BUSY_TIME),
            (taken[name] / whole_time, Hints.BETWEEN_STEPS),
            (float(np.mean(by_step)), Hints.MEAN_OF_SHARES),
            (taken[name], Hints.SECONDS_NOT_SHARE),
            (100 * shares[name], Hints.PER_CENT),
        ]

    expected = {name: Expected(shares[name], mistakes(name), Hints.SHARE_OTHERWISE) for name in PARTS}
    whole = _length(later, "all-reduce")
    of_all_reduce = [
        (_after_the_last_computing(later) / duration, Hints.AFTER_THE_LAST),
        (
            exposed([event._replace(name="computing") if event.name == "input" else event for event in later])
            / duration,
            Hints.HIDDEN_BY_INPUT,
        ),
        (whole / duration, Hints.HIDDEN_COUNTED),
        ((whole - taken["all-reduce"]) / duration, Hints.HIDDEN_PART),
        *mistakes("all-reduce"),
    ]
    expected["all-reduce"] = Expected(shares["all-reduce"], of_all_reduce, Hints.EXPOSED_OTHERWISE)
    return expected
