"""The exercises of lab 06: collectives as rank programs, judged by result, steps and bytes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.lab import Exercise, Lab
from lab_06 import diagnosis, wrong_sums
from lab_06.hints import Lab06Hint, joined
from lab_06.observe import inputs_afterwards
from lab_06.runs import Attempt, attempt, attempt_tagged
from distlab.labs.plain_data import Array
from distlab.labs.verdict import Advice, Verdict, right, wrong
from distlab.simulate import Event

ELEMENT = np.dtype(np.int64).itemsize

Case = tuple[int, int]
"""Ranks, and elements of the whole array."""


@dataclass(frozen=True)
class Collective:
    """What a program has to do, and what it may cost by the closed formula.

    kind: the collective's name in `distlab.draw`.  cost: from ranks and bytes of the whole array.
    of_sums: advises on wrong sums.
    """

    name: str
    kind: str
    cost: Callable[[int, int], costs.Cost]
    of_sums: Callable[[wrong_sums.Reading], Advice]
    on_ring: bool = True

    def most_steps(self, size: int) -> int:
        """The steps that the program may take.

        Off the ring the formula is a lower bound unless the number of ranks is 2^k: where the ranks that hand their
        array over first are the last ones, one more message has to wait for a port.
        """
        is_power = size & (size - 1) == 0
        return int(self.cost(size, 0).steps) + (not self.on_ring and not is_power)

    def least_bytes(self, run: Attempt) -> int:
        """What the rank that sends most sends at least, whatever the program (Patarasuk and Yuan 2009)."""
        halves = 2 if self.kind == "all_reduce" else 1
        return halves * (run.size - 1) * (run.length // run.size) * ELEMENT

    def most_bytes(self, run: Attempt) -> int:
        """The bytes that the rank that sends most may send: those of the formula, if all chunks were the longest."""
        chunks = run.size if self.on_ring else 1 << (run.size.bit_length() - 1)
        longest = max(map(len, run.inputs)) if self.kind == "all_gather" else -(-run.length // chunks)
        return int(self.cost(run.size, chunks * longest * ELEMENT).largest_bytes_sent)


REDUCE_SCATTER = Collective("reduce_scatter", "reduce_scatter", costs.reduce_scatter_ring, wrong_sums.of_reduce_scatter)
ALL_GATHER = Collective("all_gather", "all_gather", costs.all_gather_ring, wrong_sums.of_all_gather)
RING = Collective(
    "ring_all_reduce", "all_reduce", lambda p, n: costs.all_reduce("ring", p, n), wrong_sums.of_ring_all_reduce
)
HALVING_DOUBLING = Collective(
    "halving_doubling_all_reduce",
    "all_reduce",
    lambda p, n: costs.all_reduce("halving_doubling", p, n),
    wrong_sums.of_halving_doubling,
    on_ring=False,
)
COLLECTIVES = {collective.name: collective for collective in (REDUCE_SCATTER, ALL_GATHER, RING, HALVING_DOUBLING)}


def target(name: str, sizes: Sequence[int] = (2, 3, 4, 8), length: int = 24) -> str:
    """A table of what a program of this lab has to reach, by the closed formula, for `length` elements of 8 bytes."""
    collective = COLLECTIVES[name]
    lines = [f"{length} elements of {ELEMENT} bytes", "ranks   steps at most   bytes sent by a rank at most"]
    for size in sizes:
        cost = collective.cost(size, length * ELEMENT)
        lines.append(f"{size:>5}{collective.most_steps(size):>16}{cost.largest_bytes_sent:>31.0f}")
    return "\n".join(lines)


def judge_ring(collective: Collective) -> Callable[[Answer, np.random.Generator], Verdict]:
    """The judge of a program for any number of ranks."""

    def judge(answer: Answer, generator: np.random.Generator) -> Verdict:
        tagged = [(4, 4), (2, 4), (1, 4), (3, 5), (4, 5), (5, 3)]
        return _judged(collective, answer, generator, tagged, [int(generator.integers(2, 10)) for _ in range(3)])

    return judge


def judge_halving_doubling(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Powers of two, for three quarters of the points, and other numbers of ranks."""
    powers = _judged(HALVING_DOUBLING, answer, generator, [(4, 4), (2, 4), (1, 4), (8, 2), (4, 5), (2, 5)], [8, 16])
    if not powers.is_right:
        return replace(powers, share=0.75 * powers.share)
    sizes = [int(size) for size in generator.choice([5, 6, 7, 9, 10, 11, 12], 3, replace=False)]
    others = _judged(HALVING_DOUBLING, answer, generator, [(3, 3), (3, 6), (6, 3), (5, 4), (7, 2)], sizes)
    if others.is_right:
        return right(f"{powers.text} And {others.text}", powers.picture)
    advice = joined(Lab06Hint.OTHER_NUMBERS_OF_RANKS, Advice(others.text, others.hints))
    return wrong(advice, 0.75 + 0.25 * others.share, others.picture)


def _judged(
    collective: Collective,
    answer: Answer,
    generator: np.random.Generator,
    tagged: Sequence[Case],
    random_sizes: Sequence[int],
) -> Verdict:
    """A quarter of the points each for sums of equal chunks, for any sums, for the steps and for the bytes."""
    done: list[Attempt] = []
    for run in _attempts(collective, answer, generator, tagged, random_sizes):
        advice = diagnosis.of_result(run, collective.of_sums, collective.on_ring)
        if advice is not None:
            can_add = any(past.size == 4 for past in done) and _adds_equal_chunks(collective, answer, generator)
            return wrong(_placed(advice, run, done), 0.25 if can_add else 0.0, run.picture)
        done.append(run)
    first = done[0]
    if advice := _not_sent(collective, done):
        return wrong(joined(Lab06Hint.RESULT_IS_RIGHT, advice), 0.0, first.picture)
    waste = [*_steps_wasted(collective, done), *_bytes_wasted(collective, done)]
    off_ring = _off_ring(done) if collective.on_ring else None
    if waste or off_ring:
        share = 0.5 if off_ring else 1 - 0.25 * len(waste)
        faults = waste or [off_ring or Advice("")]  # whoever wastes messages sees that first
        return wrong(joined(Lab06Hint.RESULT_IS_RIGHT, *faults), share, first.picture)
    inputs = _numbers(generator, collective, first.size, 7)
    afterwards = answer.inside(inputs_afterwards, collective.name, inputs)
    if not (isinstance(afterwards, list) and len(afterwards) == len(inputs)) or not all(
        isinstance(array, np.ndarray) and np.array_equal(array, before)
        for array, before in zip(afterwards, inputs, strict=True)
    ):
        return wrong(Lab06Hint.INPUT_CHANGED, 0.75, first.picture)
    sizes = [run.size for run in done]
    return right(
        f"{len(done)} runs on {min(sizes)} to {max(sizes)} ranks are right, with {first.steps} steps and at most "
        f"{first.largest_bytes_sent} bytes per rank for {first.circumstances}.",
        first.picture,
    )


def _adds_equal_chunks(collective: Collective, answer: Answer, generator: np.random.Generator) -> bool:
    """Whether it is right for numbers too that nobody can foresee, unlike those that can be recognised in sums."""
    elements = 3 if collective.kind == "all_gather" else 12
    inputs = [generator.integers(-999, 999, elements) for _ in range(4)]
    return attempt(answer, collective.name, collective.kind, inputs).is_right


def _attempts(
    collective: Collective,
    answer: Answer,
    generator: np.random.Generator,
    tagged: Sequence[Case],
    random_sizes: Sequence[int],
) -> Iterator[Attempt]:
    for size, length in tagged:
        yield attempt_tagged(answer, collective.name, collective.kind, size, length)
    for size in random_sizes:
        length = int(generator.integers(1, 60))
        yield attempt(answer, collective.name, collective.kind, _numbers(generator, collective, size, length))


def _numbers(generator: np.random.Generator, collective: Collective, size: int, length: int) -> list[Array]:
    lengths = generator.integers(0, length + 1, size) if collective.kind == "all_gather" else [length] * size
    return [generator.integers(-999, 999, length) for length in lengths]


def _placed(advice: Advice, run: Attempt, done: Sequence[Attempt]) -> Advice:
    """The advice after where the run went wrong, and what was right before."""
    if not done:
        return advice.after(f"With {run.circumstances}: ")
    if run.size == 1:
        return joined(Lab06Hint.ONLY_ON_ONE_RANK.says(run=run.circumstances), advice)
    if run.length % run.size and all(past.length % past.size == 0 for past in done):
        return joined(Lab06Hint.UNEQUAL_CHUNKS.says(run=run.circumstances), advice)
    sizes = ", ".join(map(str, sorted({past.size for past in done})))
    return joined(Lab06Hint.LATER_RUN.says(sizes=sizes, run=run.circumstances), advice)


def _steps_wasted(collective: Collective, done: Sequence[Attempt]) -> list[Advice]:
    for run in done:
        needed = collective.most_steps(run.size)
        if run.steps > needed:
            steps = Lab06Hint.TOO_MANY_STEPS.says(size=run.size, steps=run.steps, needed=needed)
            return [joined(steps, _why_steps(collective, run, needed))]
    return []


def _why_steps(collective: Collective, run: Attempt, needed: int) -> Lab06Hint:
    receivers = [send.partner for send in _sends(run) if send.partner is not None]
    received = np.bincount(receivers, minlength=run.size)
    if run.size > 2 and received[0] >= run.size - 1 and received[0] > 2 * max(received[1:]) - 1:
        return Lab06Hint.THROUGH_RANK_0
    if run.steps == needed + 1:
        return Lab06Hint.ONE_ROUND_TOO_MANY
    return Lab06Hint.SOME_RANKS_WAIT if collective.on_ring else Lab06Hint.DOES_NOT_HALVE


def _bytes_wasted(collective: Collective, done: Sequence[Attempt]) -> list[Advice]:
    for run in done:
        needed = collective.most_bytes(run)
        if run.largest_bytes_sent > needed:
            is_whole = any(send.bytes >= run.length * ELEMENT > ELEMENT for send in _sends(run))
            why = Lab06Hint.SENDS_THE_WHOLE_ARRAY if is_whole else Lab06Hint.LONG_WAY
            sent = Lab06Hint.TOO_MANY_BYTES.says(run=run.circumstances, sent=run.largest_bytes_sent, needed=needed)
            return [joined(sent, why)]
    return []


def _not_sent(collective: Collective, done: Sequence[Attempt]) -> Advice | None:
    """Whether ranks know what nobody has sent."""
    for run in done:
        least = collective.least_bytes(run) if collective.kind != "all_gather" or run.tags else 0
        if run.largest_bytes_sent < least:
            return Lab06Hint.TOO_LITTLE_IS_SENT.says(run=run.circumstances, sent=run.largest_bytes_sent, least=least)
    return None


def _off_ring(done: Sequence[Attempt]) -> Advice | None:
    """Whether some rank sends to another one than its neighbour in the direction of all messages."""
    for run in done:
        partners: dict[int, set[int]] = {}
        for send in _sends(run):
            if send.partner is not None:
                partners.setdefault(send.rank, set()).add(send.partner)
        steps = {(partner - rank) % run.size for rank, peers in partners.items() for partner in peers}
        if steps <= {1} or steps <= {run.size - 1}:
            continue
        rank = next((rank for rank, peers in sorted(partners.items()) if len(peers) > 1), min(partners))
        names = " and ".join(f"rank {partner}" for partner in sorted(partners[rank]))
        return Lab06Hint.NOT_A_RING.says(size=run.size, rank=rank, partners=names)
    return None


def _sends(run: Attempt) -> Iterator[Event]:
    return iter(()) if run.events is None else iter(run.events.select("send"))


LAB = Lab(
    "06_collectives_and_ring_all_reduce",
    [
        Exercise("reduce_scatter", 4, judge_ring(REDUCE_SCATTER)),
        Exercise("all_gather", 4, judge_ring(ALL_GATHER)),
        Exercise("ring_all_reduce", 4, judge_ring(RING)),
        Exercise("halving_doubling_all_reduce", 8, judge_halving_doubling),
    ],
    solved_in=["distlab.collectives"],
    target=target,
)
