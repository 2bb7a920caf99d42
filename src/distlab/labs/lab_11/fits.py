"""Amdahl's law and α–β from measured times: two exercises of lab 11 and their judges.

Measurements are drawn from the law with known numbers, first exact, then with noise that is as large relative to each
time. Of many draws of the noise one is taken with which fits by absolute errors, or by two times only, are clearly off.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.comparisons import hint_of, is_near, two_numbers
from distlab.labs.verdict import Verdict, right, wrong

EXACT = 1e-3  # relative; the exact measurements allow any way to fit
NOISY = 0.05
CLEARLY_OFF = 0.12
NOISE = 0.05
DRAWS = 4000

Pair = tuple[float, float]


class Network(NamedTuple):
    """α in seconds and β in seconds per byte."""

    latency: float
    seconds_per_byte: float

    def ring(self, ranks: int, nbytes: float) -> float:
        """Seconds of a ring all-reduce."""
        return costs.all_reduce("ring", ranks, nbytes).seconds(*self)


def factors(columns: np.ndarray, seconds: np.ndarray, weights: np.ndarray | float) -> np.ndarray:
    """The two factors of the `columns` (n, 2) with the least sum of squares of (predicted − measured) · weights.

    seconds, weights: (n,) or (k, n) for k sets of measurements; float64 (2,) or (k, 2).
    """
    scale = np.abs(columns).max(axis=0)  # α and β differ by many powers of ten
    weighted = columns / scale * np.broadcast_to(weights, seconds.shape)[..., None]
    normal = np.swapaxes(weighted, -1, -2)
    found = np.linalg.solve(normal @ weighted, normal @ (seconds * weights)[..., None])
    return found[..., 0] / scale


def _noisy(generator: np.random.Generator, columns: np.ndarray, true: Pair) -> np.ndarray:
    """Times of the law with noise, which fits by absolute errors and through two points get wrong."""
    exact, ends = columns @ np.array(true), [0, -1]
    drawn = exact * (1 + NOISE * np.clip(generator.normal(size=(DRAWS, len(exact))), -2.5, 2.5))
    best = factors(columns, drawn, 1 / drawn)
    others = factors(columns, drawn, 1.0), factors(columns[ends], drawn[:, ends], 1.0)
    off = np.min([np.abs(other[:, 0] / best[:, 0] - 1) for other in others], axis=0)
    is_sound = np.all(np.abs(best / true - 1) < 0.5, axis=1)
    clear = np.flatnonzero(is_sound & (off > CLEARLY_OFF))
    return drawn[clear[0] if len(clear) else np.argmax(np.where(is_sound, off, 0))]


def amdahl_columns(ranks: Sequence[int]) -> np.ndarray:
    """What the serial and the parallel seconds are multiplied with, float64 (n, 2) for n numbers of ranks."""
    return np.stack([np.ones(len(ranks)), 1 / np.asarray(ranks, float)], axis=1)


def _ring_columns(ranks: int, sizes: Sequence[int]) -> np.ndarray:
    cost = costs.all_reduce("ring", ranks, np.asarray(sizes, float))
    return np.stack([cost.steps, cost.bytes_on_path], axis=1)


def _drawn_law(generator: np.random.Generator) -> Pair:
    parallel = float(generator.uniform(4, 30))
    return parallel * float(generator.uniform(0.08, 0.2)), parallel


def drawn_network(generator: np.random.Generator) -> Network:
    """α from 5 to 50 microseconds, β of 0.5 to 5 GB/s."""
    return Network(10 ** float(generator.uniform(-5.3, -4.3)), 10 ** float(generator.uniform(-9.7, -8.7)))


def judge_amdahl(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for exact times, half for noisy ones."""
    for ranks in ([1, 2, 4, 8], [2, 3, 6, 12, 24]):
        law = _drawn_law(generator)
        seconds = costs.Amdahl(*law).seconds(ranks)
        given = answer.call("amdahl", np.array(ranks), seconds)
        found = two_numbers(given)
        if found is None:
            return wrong("`amdahl` gives two numbers, the serial and the parallel seconds.")
        if not _are_near(found, law, EXACT):
            placed = "" if ranks[0] == 1 else "Right where the first time is that of one rank, and here it is not. "
            return wrong(placed + _hint_of_law(found, law, ranks, seconds))
    ranks = np.array([1, 2, 4, 8, 16])
    columns = amdahl_columns(ranks)
    seconds = _noisy(generator, columns, _drawn_law(generator))
    best = costs.fit_amdahl(ranks, seconds)
    found = two_numbers(answer.call("amdahl", ranks, seconds))
    wanted = best.serial_seconds, best.parallel_seconds
    if found is None or not _are_near(found, wanted, NOISY):
        return wrong(f"Right for exact times; with noise {_hint_of_noise(found, columns, seconds)}", 0.5)
    return right(
        f"The last measurements, with {NOISE:.0%} of noise: serial share {best.serial_share:.0%}, so a speed-up of "
        f"{best.speedup(64):.1f} on 64 ranks, and never more than {best.largest_speedup:.1f}."
    )


def _are_near(found: Pair, wanted: Pair, tolerance: float) -> bool:
    return all(is_near(one, other, tolerance) for one, other in zip(found, wanted, strict=True))


def _hint_of_law(found: Pair, law: Pair, ranks: Sequence[int], seconds: np.ndarray) -> str:
    serial, parallel = law
    together = serial + parallel
    slope, start = np.polyfit(ranks, seconds, 1)
    mistakes = [
        ((parallel, serial), "The two numbers are right, in the other order."),
        ((serial / together, parallel / together), "These are shares of one rank's time; seconds are asked for."),
        ((serial / together, together), "The first is a share of one rank's time; seconds are asked for."),
        ((start, slope), "That is a line over the number of ranks p. In which function of p is the law a line?"),
        ((slope, start), "That is a line over the number of ranks p. In which function of p is the law a line?"),
    ]
    for pair, hint in mistakes:
        if _are_near(found, pair, EXACT):
            return hint
    if is_near(found[1], together, EXACT) or is_near(found[1], seconds[0], EXACT):
        return "The parallel part is the whole time on the fewest ranks: the serial part is in that too."
    if is_near(found[0], seconds[-1], EXACT):
        return "The serial part is the time on the most ranks: some of the divided work is left in that."
    if min(found) < 0:
        return f"A part of {min(found):.3g} s cannot be: no part of the work takes less than no time."
    last = ranks[-1]
    return (
        f"With s = {found[0]:.4g} and w = {found[1]:.4g} the law gives {found[0] + found[1] / last:.4g} s on {last} "
        f"ranks, where {seconds[-1]:.4g} s were measured."
    )


def _hint_of_noise(found: Pair | None, columns: np.ndarray, seconds: np.ndarray) -> str:
    if found is None:
        return "there are no two numbers."
    if _are_near(found, factors(columns, seconds, 1.0), 0.01):
        return (
            "the longest times decide alone, since their errors are the largest in seconds. Which errors are to count?"
        )
    if _are_near(found, factors(columns[[0, -1]], seconds[[0, -1]], 1.0), 0.01):
        return "two of the times decide, with all their noise, and the others are not looked at."
    errors = columns @ np.array(found) / seconds - 1
    best = columns @ np.array(factors(columns, seconds, 1 / seconds)) / seconds - 1
    return (
        f"the sum of squared relative errors is {np.sum(errors**2):.3g}, and {np.sum(best**2):.3g} can be reached. "
        "What does your fit make as small as it can?"
    )


def judge_alpha_beta(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each of the two with exact times, on 8, 2 and 6 ranks; half for noisy ones."""
    sizes = 4 * 10 ** np.arange(2, 8)
    hints: dict[str, str] = {}
    names = ("latency", "seconds per byte")
    for ranks in (8, 2, 6):
        network = drawn_network(generator)
        given = answer.call("alpha_beta", ranks, sizes, _ring_columns(ranks, sizes) @ np.array(network))
        found = two_numbers(given)
        if found is None:
            return wrong("`alpha_beta` gives two numbers, the latency and the seconds per byte.")
        if _are_near(found, network[::-1], EXACT):
            return wrong("The two numbers are right, in the other order.")
        for name, one, mistakes, true in zip(names, found, _mistaken_network(network, ranks), network, strict=True):
            if not is_near(one, true, EXACT):
                hint = hint_of(one, mistakes, EXACT) or "how many messages follow one another, and of what size is one?"
                placed = "" if ranks == 8 else f"right on 8 ranks, not on {ranks}. "
                hints.setdefault(name, f"{placed}{one:.4g} is not right: {hint}")
    if hints:
        lines = "\n".join(f"{name}: {hint}" for name, hint in hints.items())
        return wrong(lines, 0.25 * (len(names) - len(hints)))
    columns, network = _ring_columns(8, sizes), drawn_network(generator)
    seconds = _noisy(generator, columns, network)
    best = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", 8, n))
    found = two_numbers(answer.call("alpha_beta", 8, sizes, seconds))
    if found is None or not _are_near(found, (best.latency, best.seconds_per_byte), NOISY):
        return wrong(f"Right for exact times; with noise {_hint_of_noise(found, columns, seconds)}", 0.5)
    return right(
        f"The last measurements, with {NOISE:.0%} of noise: α = {1e6 * best.latency:.1f} µs, "
        f"{best.bandwidth / 1e9:.2f} GB/s; the fit is off by {best.typical_residual:.1%}."
    )


def _mistaken_network(network: Network, ranks: int) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    latency, per_byte = network
    steps, share = 2 * (ranks - 1), 2 * (ranks - 1) / ranks
    units = "seconds are asked for, not another unit."
    return (
        [
            (steps * latency, "that is what a whole all-reduce of nothing takes; it has many messages."),
            (2 * latency, "a ring goes round twice: after the sum is scattered it is gathered."),
            (steps * latency / ranks, "the number of steps is not the number of ranks."),
            (1e3 * latency, units),
            (1e6 * latency, units),
        ],
        [
            (share * per_byte, "per byte of the array; per byte that a rank sends is asked for, and it sends more."),
            (2 * per_byte, "a ring goes round twice: after the sum is scattered it is gathered."),
            (share * per_byte / 2, "a rank sends no whole array, but chunks of it."),
            (per_byte / ranks, "in each step a rank sends one chunk, not the whole array."),
            (1 / per_byte, "that is the bandwidth, bytes per second."),
            (1e9 * per_byte, units),
            (1e6 * per_byte, units),
        ],
    )
