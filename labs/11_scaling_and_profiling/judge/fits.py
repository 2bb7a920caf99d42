"""Amdahl's law and α–β from measured times: two exercises of lab 11 and their judges.

Measurements are drawn from the law with known numbers, first exact, then with noise that is as large relative to each
time. Of many draws of the noise one is taken with which fits by other errors, or by two times only, are clearly off.
"""

from typing import NamedTuple

import numpy as np
from lab_11.hints import Lab11Hint
from numpy.typing import ArrayLike, NDArray

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, is_near, two_numbers
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

EXACT = 1e-3  # relative; the exact measurements allow any way to fit
NOISY = 0.05
CLEARLY_OFF = 0.08
NOISE = 0.08
DRAWS = 4000

Array = NDArray[np.float64]
Pair = tuple[float, float]


class AlphaBeta(NamedTuple):
    """α in seconds and β in seconds per byte."""

    latency: float
    seconds_per_byte: float

    def ring(self, ranks: int, nbytes: ArrayLike) -> Array:
        """Seconds of a ring all-reduce."""
        return np.asarray(costs.all_reduce("ring", ranks, nbytes).seconds(*self))


def amdahl_seconds(law: Pair, ranks: ArrayLike) -> Array:
    """Seconds by Amdahl's law, from the serial and the parallel ones."""
    return np.asarray(costs.Amdahl(*law).seconds(ranks))


def factors(columns: Array, seconds: Array, weights: Array | float) -> Array:
    """The two factors of the `columns` (n, 2) with the least sum of squares of (predicted − measured) · weights.

    seconds, weights: (n,) or (k, n) for k sets of measurements; float64 (2,) or (k, 2).
    """
    scale = np.abs(columns).max(axis=0)  # α and β differ by many powers of ten
    weighted = columns / scale * np.broadcast_to(weights, seconds.shape)[..., None]
    normal = np.swapaxes(weighted, -1, -2)
    solution: Array = np.linalg.solve(normal @ weighted, normal @ (seconds * weights)[..., None])
    unscaled: Array = solution[..., 0] / scale
    return unscaled


def poor_weights(columns: Array, seconds: Array) -> list[tuple[str, Array | float]]:
    """Weights of the errors in seconds that make no relative errors, with their names."""
    work = columns[:, 1] / columns[:, 1].max()
    return [
        ("nothing", 1.0),
        ("1/T", seconds**-0.5),
        ("1/T⁴", seconds**-2.0),
        ("the ranks or sizes", work**-0.5 + 0 * seconds),
    ]


def _by_logarithms(columns: Array, seconds: Array, start: Array) -> Array:
    """The factors with the least sum of squares of ln(predicted / measured), by Gauss and Newton from `start`."""
    solution = start
    for _ in range(6):
        predicted = np.maximum(solution @ columns.T, 1e-3 * seconds)
        solution = factors(columns, predicted - predicted * np.log(predicted / seconds), 1 / predicted)
    return solution


def _noisy(generator: np.random.Generator, columns: Array, true: Pair) -> Array:
    """Times of the law with noise, which fits by absolute errors and through two points get wrong."""
    exact, ends = columns @ np.array(true), [0, -1]
    noisy: Array = exact * (1 + NOISE * np.clip(generator.normal(size=(DRAWS, len(exact))), -2.5, 2.5))
    best = factors(columns, noisy, 1 / noisy)
    poor_fits = [factors(columns, noisy, weights) for _, weights in poor_weights(columns, noisy)]
    poor_fits.append(factors(columns[ends], noisy[:, ends], 1.0))
    off = np.min([np.max(np.abs(poor / best - 1), axis=1) for poor in poor_fits], axis=0)
    relative = np.abs(_by_logarithms(columns, noisy, best) / best - 1)  # another right way
    is_sound = np.all((np.abs(best / true - 1) < 0.5) & (relative < NOISY / 2), axis=1)
    clear = np.flatnonzero(is_sound & (off > CLEARLY_OFF))
    chosen: Array = noisy[clear[0] if len(clear) else np.argmax(np.where(is_sound, off, 0))]
    return chosen


def amdahl_columns(ranks: ArrayLike) -> Array:
    """What the serial and the parallel seconds are multiplied with, float64 (n, 2) for n numbers of ranks."""
    inverse = 1 / np.asarray(ranks, np.float64)
    return np.stack([np.ones_like(inverse), inverse], axis=1)


def _ring_columns(ranks: int, sizes: ArrayLike) -> Array:
    cost = costs.all_reduce("ring", ranks, sizes)
    return np.stack([np.asarray(cost.steps), np.asarray(cost.bytes_on_path)], axis=1)


def _drawn_law(generator: np.random.Generator) -> Pair:
    parallel = float(generator.uniform(4, 30))
    return parallel * float(generator.uniform(0.08, 0.2)), parallel


def drawn_network(generator: np.random.Generator) -> AlphaBeta:
    """α from 5 to 50 microseconds, β of 0.5 to 5 GB/s."""
    return AlphaBeta(10 ** float(generator.uniform(-5.3, -4.3)), 10 ** float(generator.uniform(-9.7, -8.7)))


def judge_amdahl(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for exact times, half for noisy ones."""
    for ranks in (np.array([1, 2, 4, 8]), np.array([2, 3, 6, 12, 24])):
        law = _drawn_law(generator)
        seconds = amdahl_seconds(law, ranks)
        pair = two_numbers(answer.call("amdahl", ranks, seconds))
        if pair is None:
            return wrong(Lab11Hint.NOT_TWO_SECONDS)
        if not _are_near(pair, law, EXACT):
            hint = _hint_of_law(pair, law, ranks, seconds)
            return wrong(hint if ranks[0] == 1 else Lab11Hint.RIGHT_FROM_ONE_RANK.says().then(hint))
    ranks = np.array([1, 2, 4, 8, 16])
    columns = amdahl_columns(ranks)
    seconds = _noisy(generator, columns, _drawn_law(generator))
    best = costs.fit_amdahl(ranks, seconds)
    pair = two_numbers(answer.call("amdahl", ranks, seconds))
    if pair is None or not _are_near(pair, (best.serial_seconds, best.parallel_seconds), NOISY):
        return wrong(Lab11Hint.RIGHT_FOR_EXACT_TIMES.says().then(_hint_of_noise(pair, columns, seconds)), 0.5)
    return right(
        f"The last measurements, with {NOISE:.0%} of noise: serial share {best.serial_share:.0%}, so a speed-up of "
        f"{best.speedup(64):.1f} on 64 ranks, and never more than {best.largest_speedup:.1f}."
    )


def _are_near(pair: Pair, expected: Pair, tolerance: float) -> bool:
    return all(is_near(value, true, tolerance) for value, true in zip(pair, expected, strict=True))


def _hint_of_law(pair: Pair, law: Pair, ranks: NDArray[np.int64], seconds: Array) -> AnyHint:
    serial, parallel = law
    together = serial + parallel
    slope, start = np.polyfit(ranks, seconds, 1).tolist()
    one_sided = np.linalg.lstsq(amdahl_columns(ranks) / seconds[:, None], seconds)[0]
    mistakes = [
        ((parallel, serial), Lab11Hint.OTHER_ORDER),
        ((one_sided[0], one_sided[1]), Lab11Hint.RIGHT_SIDE_NOT_DIVIDED),
        ((serial / together, parallel / together), Lab11Hint.SHARES),
        ((serial / together, together), Lab11Hint.FIRST_IS_A_SHARE),
        ((start, slope), Lab11Hint.LINE_OVER_RANKS),
        ((slope, start), Lab11Hint.LINE_OVER_RANKS),
    ]
    for mistaken, hint in mistakes:
        if _are_near(pair, mistaken, EXACT):
            return hint
    if is_near(pair[1], together, EXACT) or is_near(pair[1], float(seconds[0]), EXACT):
        return Lab11Hint.ALL_PARALLEL
    if is_near(pair[0], float(seconds[-1]), EXACT):
        return Lab11Hint.LAST_IS_SERIAL
    if min(pair) < 0:
        return Lab11Hint.NEGATIVE_PART.says(seconds=min(pair))
    last = int(ranks[-1])
    return Lab11Hint.OFF_ON_MOST_RANKS.says(
        serial=pair[0], parallel=pair[1], predicted=pair[0] + pair[1] / last, ranks=last, measured=seconds[-1]
    )


def _hint_of_noise(pair: Pair | None, columns: Array, seconds: Array) -> AnyHint:
    if pair is None:
        return Lab11Hint.NO_TWO_NUMBERS
    longest, ends = factors(columns, seconds, 1.0), factors(columns[[0, -1]], seconds[[0, -1]], 1.0)
    if _are_near(pair, (longest[0], longest[1]), 0.01):
        return Lab11Hint.LONGEST_DECIDES
    if _are_near(pair, (ends[0], ends[1]), 0.01):
        return Lab11Hint.TWO_TIMES_DECIDE
    for name, weights in poor_weights(columns, seconds)[1:]:
        poor = factors(columns, seconds, weights)
        if _are_near(pair, (poor[0], poor[1]), 0.01):
            return Lab11Hint.OTHER_WEIGHTS.says(weights=name)
    errors = columns @ np.array(pair) / seconds - 1
    best = columns @ factors(columns, seconds, 1 / seconds) / seconds - 1
    return Lab11Hint.ERRORS_TOO_LARGE.says(errors=np.sum(errors**2), best=np.sum(best**2))


def judge_alpha_beta(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each of the two with exact times, on 8, 2 and 6 ranks; half for noisy ones."""
    sizes = 4 * 10 ** np.arange(2, 8)
    names, noisy = ("latency", "seconds per byte"), "noisy times"
    problems: dict[str, Verdict] = {}
    for ranks in (8, 2, 6):
        network = drawn_network(generator)
        if ranks == 6:  # as slow as a telephone line: times of minutes
            network = AlphaBeta(1e3 * network.latency, 1e3 * network.seconds_per_byte)
        pair = two_numbers(answer.call("alpha_beta", ranks, sizes, _ring_columns(ranks, sizes) @ np.array(network)))
        if pair is None:
            return wrong(Lab11Hint.NOT_A_NETWORK)
        if _are_near(pair, network[::-1], EXACT):
            return wrong(Lab11Hint.OTHER_ORDER)
        placed = "on 8 ranks" if ranks == 8 else f"right on 8 ranks, not on {ranks}"
        for name, value, expected in zip(names, pair, _expected_network(network, ranks), strict=True):
            if hint := expected.hint_for(value):
                problems.setdefault(name, wrong(hint, context=f"{value:.4g}, {placed}: "))
    columns, network = _ring_columns(8, sizes), drawn_network(generator)
    seconds = _noisy(generator, columns, network)
    best = costs.fit(sizes, seconds, lambda n: costs.all_reduce("ring", 8, n))
    if problems:
        problems[noisy] = not_done("both numbers must be right for exact times first")
    else:
        pair = two_numbers(answer.call("alpha_beta", 8, sizes, seconds))
        if pair is None or not _are_near(pair, (best.latency, best.seconds_per_byte), NOISY):
            problems[noisy] = wrong(_hint_of_noise(pair, columns, seconds))
    if problems:
        weights = {names[0]: 1, names[1]: 1, noisy: 2}
        return parts({name: problems.get(name, right()) for name in weights}, weights=weights)
    return right(
        f"The last measurements, with {NOISE:.0%} of noise: α = {1e6 * best.latency:.1f} µs, "
        f"{best.bandwidth / 1e9:.2f} GB/s; the fit is off by {best.typical_residual:.1%}."
    )


def _expected_network(network: AlphaBeta, ranks: int) -> tuple[Expected, Expected]:
    latency, per_byte = network
    steps, share = 2 * (ranks - 1), 2 * (ranks - 1) / ranks
    latencies: Mistakes = [
        (steps * latency, Lab11Hint.WHOLE_ALL_REDUCE),
        (2 * latency, Lab11Hint.HALF_A_RING),
        (steps * latency / ranks, Lab11Hint.STEPS_ARE_RANKS),
        (1e3 * latency, Lab11Hint.UNIT),
        (1e6 * latency, Lab11Hint.UNIT),
    ]
    per_bytes: Mistakes = [
        (share * per_byte, Lab11Hint.PER_BYTE_OF_ARRAY),
        (2 * per_byte, Lab11Hint.HALF_A_RING),
        (share * per_byte / 2, Lab11Hint.WHOLE_ARRAYS),
        (per_byte / ranks, Lab11Hint.WHOLE_ARRAY_PER_STEP),
        (1 / per_byte, Lab11Hint.BANDWIDTH),
        (1e9 * per_byte, Lab11Hint.UNIT),
        (1e6 * per_byte, Lab11Hint.UNIT),
    ]
    return (
        Expected(latency, latencies, Lab11Hint.NETWORK_OTHERWISE, EXACT),
        Expected(per_byte, per_bytes, Lab11Hint.NETWORK_OTHERWISE, EXACT),
    )
