"""The exercises of lab 06: collectives as rank programs, judged by result, steps and bytes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_06 import hints_of_sums
from distlab.labs.lab_06.hints import hint_of_divisor, hint_of_error, hint_of_form, hint_of_shares
from distlab.labs.lab_06.runs import Attempt, attempt, attempt_tagged, inputs_afterwards
from distlab.labs.verdict import Verdict, right, wrong

ELEMENT = np.dtype(np.int64).itemsize

Case = tuple[int, int]
"""Ranks, and elements of the whole array."""


@dataclass(frozen=True)
class Collective:
    """What a program has to do, and what it may cost by the closed formula.

    kind: the collective's name in `distlab.draw`.  cost: from ranks and bytes of the whole array.
    of_shares: gives the hint for wrong sums.
    """

    name: str
    kind: str
    cost: Callable[[int, int], costs.Cost]
    of_shares: Callable[[Attempt, hints_of_sums.Read], str]
    on_ring: bool = True

    def most_steps(self, size: int) -> int:
        """The steps that the program may take.

        Off the ring and for other numbers of ranks than 2^k the formula is a lower bound: where the ranks that hand
        their array over first are the last ones, one more message has to wait for a port.
        """
        is_power = size & (size - 1) == 0
        return int(self.cost(size, 0).steps) + (not self.on_ring and not is_power)

    def most_bytes(self, one: Attempt) -> int:
        """The bytes that the rank that sends most may send: those of the formula, if all chunks were the longest."""
        chunks = one.size if self.on_ring else 1 << (one.size.bit_length() - 1)
        longest = max(map(len, one.inputs)) if self.kind == "all_gather" else -(-one.length // chunks)
        return int(self.cost(one.size, chunks * longest * ELEMENT).largest_bytes_sent)


REDUCE_SCATTER = Collective(
    "reduce_scatter", "reduce_scatter", costs.reduce_scatter_ring, hints_of_sums.of_reduce_scatter
)
ALL_GATHER = Collective("all_gather", "all_gather", costs.all_gather_ring, hints_of_sums.of_all_gather)
RING = Collective(
    "ring_all_reduce", "all_reduce", lambda p, n: costs.all_reduce("ring", p, n), hints_of_sums.of_ring_all_reduce
)
HALVING_DOUBLING = Collective(
    "halving_doubling_all_reduce",
    "all_reduce",
    lambda p, n: costs.all_reduce("halving_doubling", p, n),
    hints_of_sums.of_halving_doubling,
    on_ring=False,
)
COLLECTIVES = {one.name: one for one in (REDUCE_SCATTER, ALL_GATHER, RING, HALVING_DOUBLING)}


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
        return Verdict(powers.state, powers.text, 0.75 * powers.share, powers.picture)
    sizes = [int(size) for size in generator.choice([5, 6, 7, 9, 10, 11, 12], 3, replace=False)]
    others = _judged(HALVING_DOUBLING, answer, generator, [(3, 3), (3, 6), (6, 3), (5, 4), (7, 2)], sizes)
    if others.is_right:
        return right(f"{powers.text} And {others.text}", powers.picture)
    hint = f"Right for 2, 4, 8 … ranks. For other numbers: {others.text}"
    return wrong(hint, 0.75 + 0.25 * others.share, others.picture)


def _judged(
    collective: Collective,
    answer: Answer,
    generator: np.random.Generator,
    tagged: Sequence[Case],
    random_sizes: Sequence[int],
) -> Verdict:
    """A quarter of the points each for sums of equal chunks, for any sums, for the steps and for the bytes."""
    done: list[Attempt] = []
    for one in _attempts(collective, answer, generator, tagged, random_sizes):
        hint = _hint_of_result(collective, one)
        if hint is not None:
            share = 0.25 if any(past.size == 4 for past in done) else 0.0
            return wrong(_placed(hint, one, done), share, one.picture if one.tags else None)
        done.append(one)
    hints = [_hint_of_steps(collective, done), _hint_of_bytes(collective, done)]
    found = [hint for hint in hints if hint]
    if found:
        return wrong("The result is right. " + " ".join(found), 1 - 0.25 * len(found), done[0].picture)
    inputs = _numbers(generator, collective, done[0].size, 7)
    afterwards = answer.inside(inputs_afterwards, collective.name, inputs)
    if not (isinstance(afterwards, list) and len(afterwards) == len(inputs)) or not all(
        map(np.array_equal, inputs, afterwards)
    ):
        return wrong(
            "Result, steps and bytes are right, but the array that a rank was given is changed: the caller's gradient "
            "is overwritten. On what do you work?",
            0.75,
            done[0].picture,
        )
    reached = done[0]
    return right(
        f"{len(done)} runs on {min(one.size for one in done)} to {max(one.size for one in done)} ranks are right, with "
        f"{reached.steps} steps and at most {reached.largest_bytes_sent} bytes per rank for {reached.circumstances}.",
        reached.picture,
    )


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


def _numbers(generator: np.random.Generator, collective: Collective, size: int, length: int) -> list[np.ndarray]:
    lengths = generator.integers(0, length + 1, size) if collective.kind == "all_gather" else [length] * size
    return [generator.integers(-999, 999, length) for length in lengths]


def _hint_of_result(collective: Collective, one: Attempt) -> str | None:
    if one.error is not None:
        return hint_of_error(one.error, collective.on_ring)
    if one.is_right:
        return None
    return hint_of_form(one) or hint_of_divisor(one) or hint_of_shares(one, collective.of_shares)


def _placed(hint: str, one: Attempt, done: Sequence[Attempt]) -> str:
    """The hint with where it was found, and what was right before."""
    if done and one.size == 1:
        return f"Right on several ranks, wrong on one ({one.circumstances}). {hint}"
    if one.length % one.size and all(past.length % past.size == 0 for past in done) and done:
        return f"Right as long as all chunks have one length; wrong with {one.circumstances}. {hint}"
    if done:
        return f"Right on {_sizes(done)} ranks; wrong with {one.circumstances}. {hint}"
    return f"With {one.circumstances}: {hint}"


def _sizes(done: Sequence[Attempt]) -> str:
    return ", ".join(map(str, sorted({one.size for one in done})))


def _hint_of_steps(collective: Collective, done: Sequence[Attempt]) -> str | None:
    for one in done:
        needed = collective.most_steps(one.size)
        if one.steps <= needed:
            continue
        received = np.bincount([event.partner for event in one.events.select("send")], minlength=one.size)
        if one.size > 2 and received[0] >= one.size - 1 and received[0] > 2 * max(received[1:]) - 1:
            why = (
                "Every message comes from or goes to rank 0, which takes them one after another: use all links at once."
            )
        elif one.steps == needed + 1:
            why = "That is one round too many: what does the last one bring?"
        elif not collective.on_ring:
            why = "Each exchange has to halve what is left to do: after how many halvings is one part left per rank?"
        else:
            why = "Some ranks wait while others send: in each round every rank can send and receive at the same time."
        return f"But on {one.size} ranks it takes {one.steps} steps, and {needed} are enough. {why}"
    return None


def _hint_of_bytes(collective: Collective, done: Sequence[Attempt]) -> str | None:
    for one in done:
        allowed = collective.most_bytes(one)
        if one.largest_bytes_sent > allowed:
            whole = any(event.bytes >= one.length * ELEMENT > ELEMENT for event in one.events.select("send"))
            why = (
                "Messages hold the whole array: how much of it does the receiver need?"
                if whole
                else ("Some chunk travels further, or more often, than it has to.")
            )
            return (
                f"But with {one.circumstances} a rank sends {one.largest_bytes_sent} bytes, and {allowed} are enough. "
                f"{why}"
            )
    return None


LAB = Lab(
    "06_collectives_and_ring_all_reduce",
    [
        Exercise("reduce_scatter", 4, judge_ring(REDUCE_SCATTER)),
        Exercise("all_gather", 4, judge_ring(ALL_GATHER)),
        Exercise("ring_all_reduce", 4, judge_ring(RING)),
        Exercise("halving_doubling_all_reduce", 8, judge_halving_doubling),
    ],
    solved_in=["distlab.collectives"],
)
