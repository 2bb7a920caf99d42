"""The judge of `predict`: a step on many ranks, from a step on one and the cluster's α and β."""

from dataclasses import astuple, dataclass, replace

import numpy as np
from lab_16.hints import Lab16NumberHint as Hints

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, NumberJudge, is_near, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import Verdict

NAMES = ("step", "texts/s", "efficiency", "most ranks")


@dataclass(frozen=True)
class PredictedJob:
    """What `predict` gets, in this order; times in seconds."""

    ranks: int
    batch: int
    fixed: float
    each: float
    nbytes: int
    latency: float
    seconds_per_byte: float
    at_least: float

    def all_reduce(self) -> float:
        """Of a ring on all ranks."""
        cost = costs.all_reduce("ring", self.ranks, self.nbytes)
        return float(cost.seconds(latency=self.latency, seconds_per_byte=self.seconds_per_byte))

    @property
    def share(self) -> int:
        """The texts of the rank that has most."""
        return -(-self.batch // self.ranks)

    def step(self) -> float:
        """Computing, then the all-reduce."""
        return self.fixed + self.each * self.share + self.all_reduce()

    def efficiency(self) -> float:
        """The speed-up over one rank, by ranks."""
        return replace(self, ranks=1).step() / self.step() / self.ranks

    def most_ranks(self) -> int:
        """The largest power of two up to `ranks` with an efficiency of `at_least`."""
        powers = [1 << power for power in range(self.ranks.bit_length())]
        return max(count for count in powers if replace(self, ranks=count).efficiency() >= self.at_least)

    def predicted(self) -> dict[str, float]:
        """The numbers of NAMES."""
        values = (self.step(), self.batch / self.step(), self.efficiency(), self.most_ranks())
        return dict(zip(NAMES, values, strict=True))


EXAMPLE = PredictedJob(64, 1000, 0.002, 0.0001, 4_000_000, 2e-5, 1e-9, 0.5)


def drawn(generator: np.random.Generator) -> list[PredictedJob]:
    """Clusters on which 1 rank, some, or all are worth it; the batch is no multiple of the ranks."""

    def case(ranks: int, each: float, slow: float, at_least: float) -> PredictedJob:
        batch = ranks * int(generator.integers(10, 30)) + int(generator.integers(1, ranks))
        return PredictedJob(
            ranks,
            batch,
            float(generator.uniform(1e-3, 3e-3)),
            each * float(generator.uniform(0.8, 1.2)),
            int(generator.integers(10**6, 10**7)),
            slow * float(generator.uniform(1e-5, 3e-5)),
            slow * float(generator.uniform(1e-10, 1e-9)),
            at_least,
        )

    return [
        case(64, 1e-4, 1, 0.5),
        case(48, 1e-4, 3, 0.6),
        case(64, 1e-2, 0.01, 0.7),
        case(48, 1e-2, 0.01, 0.7),  # all 48 would be worth it, which is no power of two
        case(24, 1e-5, 30, 0.8),
        case(2, 1e-3, 1, 0.5),
        case(16, 3e-4, 1, 0.7),
        # Powers of two without rounding: the efficiency is exactly 1.
        PredictedJob(16, 16 * int(generator.integers(10, 30)), 0.0, 2.0**-10, 2**20, 0.0, 0.0, 1.0),
    ]


def judge_predict(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each number."""
    judge = NumberJudge("predict", NAMES)
    cases = drawn(generator)
    answers = [answer.call("predict", *astuple(case)) for case in cases]
    overlapped = all(_is_overlapped(case, answered) for case, answered in zip(cases, answers, strict=True))
    for case, answered in zip(cases, answers, strict=True):
        if problem := judge.compare(answered, _expected(case, overlapped), f"{case.ranks} ranks"):
            return problem
        if isinstance(answered, dict) and isinstance(step := answered["step"], float) and step > 0:
            alone = replace(case, ranks=1).step()
            judge.follow(
                answered, {"texts/s": ("step", case.batch / step), "efficiency": ("step", alone / step / case.ranks)}
            )
            most = number(answered["most ranks"])
            judge.follow(answered, {"most ranks": ("efficiency", most)})
            judge.follow(answered, {"most ranks": ("step", most)})
    return judge.verdict("")


def _is_overlapped(case: PredictedJob, answered: Plain) -> bool:
    """Whether the step is the longer of computing and all-reduce; in a single case that may also be one of them."""
    longer = max(case.fixed + case.each * case.share, case.all_reduce())
    return isinstance(answered, dict) and is_near(number(answered.get("step")), longer)


def _expected(case: PredictedJob, overlapped: bool) -> dict[str, Expected]:
    values = case.predicted()
    compute, exchange = case.fixed + case.each * case.share, case.all_reduce()
    alone = replace(case, ranks=1)
    tree = costs.all_reduce("ring", case.ranks, case.nbytes * case.ranks)
    mistakes_of_step: list[tuple[float | None, Hints]] = [
        (max(compute, exchange) if overlapped else None, Hints.OVERLAPPED),
        (compute, Hints.NO_EXCHANGE),
        (exchange, Hints.NO_COMPUTING),
        (case.fixed + case.each * case.batch / case.ranks + exchange, Hints.PARTS_OF_TEXTS),
        (case.fixed + case.each * (case.batch // case.ranks) + exchange, Hints.ROUNDED_DOWN),
        ((case.fixed + case.each * case.batch) / case.ranks + exchange, Hints.FIXED_DIVIDED),
        (case.each * case.share + exchange, Hints.FIXED_FORGOTTEN),
        (case.fixed + case.each * case.batch + exchange, Hints.NOT_DIVIDED),
        (compute + case.latency + case.nbytes * case.seconds_per_byte, Hints.ONE_MESSAGE),
        (compute + exchange / 2, Hints.HALF_RING),
        (
            compute + float(tree.seconds(latency=case.latency, seconds_per_byte=case.seconds_per_byte)),
            Hints.WHOLE_ARRAYS,
        ),
    ]
    speedup = alone.step() / case.step()
    powers = [1 << power for power in range(case.ranks.bit_length())]
    worth = [count for count in powers if replace(case, ranks=count).efficiency() >= case.at_least]
    more = [count for count in powers if replace(case, ranks=count).efficiency() > case.at_least]
    strictly = float(max(more, default=1))
    every = [count for count in range(1, case.ranks + 1) if replace(case, ranks=count).efficiency() >= case.at_least]
    return {
        "step": Expected(values["step"], mistakes_of_step, Hints.STEP_OTHERWISE),
        "texts/s": Expected(
            values["texts/s"],
            [
                (case.batch / case.step() / case.ranks, Hints.RATE_OF_ONE),
                (case.batch * case.ranks / case.step(), Hints.BATCH_OF_ALL),
                (case.step() / case.batch, Hints.UPSIDE_DOWN),
                (case.share * case.ranks / case.step(), Hints.ROUNDED_BATCH),
            ],
            Hints.RATE_FROM_STEP,
        ),
        "efficiency": Expected(
            values["efficiency"],
            [
                (speedup, Hints.EFFICIENCY_IS_SPEEDUP),
                (100 * values["efficiency"], Hints.PER_CENT),
                (1 / speedup, Hints.UPSIDE_DOWN),
                (compute / case.step(), Hints.COMPUTING_SHARE),
            ],
            Hints.EFFICIENCY_OTHERWISE,
        ),
        "most ranks": Expected(
            values["most ranks"],
            [
                (strictly if strictly < max(worth) else None, Hints.EXACTLY_ENOUGH),
                (float(max(every)), Hints.NO_POWER),
                (float(min(worth)) if len(worth) > 1 else None, Hints.FEWEST_RANKS),
                (float(2 * max(worth)), Hints.ONE_TOO_FAR),
                (float(max(worth) // 2) if len(worth) > 1 else None, Hints.STOPS_EARLY),
                (float(case.ranks), Hints.ALL_RANKS),
            ],
            Hints.MOST_OTHERWISE,
        ),
    }
