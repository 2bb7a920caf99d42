"""The time of a step on more ranks than were measured: an exercise of lab 11 and its judge."""

from typing import NamedTuple

import numpy as np
from lab_11.fits import (
    CLEARLY_OFF,
    EXACT,
    NOISE,
    NOISY,
    Array,
    amdahl_columns,
    amdahl_seconds,
    drawn_network,
    factors,
)
from lab_11.hints import Lab11Hint
from numpy.typing import NDArray

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, is_near, number
from distlab.labs.verdict import Verdict, right, wrong

MOST_DRAWS = 2000
SMALL = 0.01  # of a gradient so small, the latencies of the ring are a part of the step that counts
Whole = NDArray[np.int64]


class Measurements(NamedTuple):
    """What is measured, and what is asked: the step's seconds on `ranks` ranks, `nbytes` of gradient."""

    ranks: int
    computing_ranks: Whole
    computing_seconds: Array
    reducing_ranks: int
    sizes: Whole
    reducing_seconds: Array
    nbytes: int


def predicted(
    ranks: int,
    computing_ranks: Whole,
    computing_seconds: Array,
    reducing_ranks: int,
    sizes: Whole,
    reducing_seconds: Array,
    nbytes: int,
) -> float:
    """Seconds of a step on `ranks` ranks: computing by Amdahl's law, then a ring all-reduce of the gradient."""
    law = costs.fit_amdahl(computing_ranks, computing_seconds)
    network = costs.fit(sizes, reducing_seconds, lambda n: costs.all_reduce("ring", reducing_ranks, n))
    return float(law.seconds(ranks) + network.seconds(costs.all_reduce("ring", ranks, nbytes)))


def drawn_measurements(
    generator: np.random.Generator, ranks: int, reducing_ranks: int, scale: float = 1.0
) -> Measurements:
    """Without noise; all parts of the step count on `ranks` ranks. With a small `scale` the latencies count too."""
    computing_ranks, sizes = np.array([1, 2, 4, 8]), 4 * 10 ** np.arange(2, 8)
    while True:
        parallel = scale * float(generator.uniform(2, 6))
        serial = parallel * float(generator.uniform(0.02, 0.06))
        network, nbytes = drawn_network(generator), int(scale * generator.integers(10, 200) * 10**6)
        latencies = 2 * (ranks - 1) * network.latency
        of_bytes = float(network.ring(ranks, nbytes)) - latencies
        pieces = np.array([serial, parallel / ranks, of_bytes])
        if pieces.min() > 0.15 * pieces.sum() and latencies > 0.01 * pieces.sum():
            break
    computing, reducing = amdahl_seconds((serial, parallel), computing_ranks), network.ring(reducing_ranks, sizes)
    return Measurements(ranks, computing_ranks, computing, reducing_ranks, sizes, reducing, nbytes)


def _noisy_measurements(generator: np.random.Generator, exact: Measurements) -> Measurements:
    """The same with noise in the times, with which each fit by absolute errors alone predicts clearly wrong."""
    whole = float(predicted(*exact))
    computing = _misleading(generator, exact.computing_seconds, _computing_columns(exact), whole)
    noisy = exact._replace(computing_seconds=computing)
    already = float(_off_by_absolute_errors(computing, *_computing_columns(exact)))
    reducing = _misleading(generator, exact.reducing_seconds, _reducing_columns(exact), whole, already)
    return noisy._replace(reducing_seconds=reducing)


def _misleading(
    generator: np.random.Generator, exact: Array, columns: tuple[Array, Array], whole: float, already: float = 0.0
) -> Array:
    """Noisy times with which the fit by absolute errors is off by a clear part of `whole`, if there are.

    It is off so too if it is off by `already` for another reason.
    """
    noisy: Array = exact * (1 + NOISE * generator.uniform(-1, 1, (MOST_DRAWS, len(exact))))
    best = factors(columns[0], noisy, 1 / noisy)
    absolute = _off_by_absolute_errors(noisy, *columns)
    smaller = np.minimum(np.abs(absolute), np.abs(absolute + already)) / whole
    off = np.where(best.min(axis=1) > 0, smaller, 0.0)
    clear = np.flatnonzero(off > 2 * CLEARLY_OFF)
    chosen: Array = noisy[clear[0] if len(clear) else np.argmax(off)]
    return chosen


def judge_predicted(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for exact measurements, half for noisy ones."""
    for ranks, reducing_ranks in ((64, 8), (64, 4), (48, 8)):
        measured = drawn_measurements(generator, ranks, reducing_ranks)
        seconds = number(answer.call("predicted", *measured))
        if seconds is None:
            return wrong(Lab11Hint.NOT_ONE_NUMBER)
        expected = Expected(predicted(*measured), _mistakes(measured), Lab11Hint.PREDICTION_OTHERWISE, EXACT)
        if hint := expected.hint_for(seconds):
            case = f"{seconds:.4g} s on {ranks} ranks, the all-reduce measured on {reducing_ranks}: "
            return wrong(hint, context=case)
    measured = _noisy_measurements(generator, drawn_measurements(generator, 64, 8, SMALL))
    seconds, true = number(answer.call("predicted", *measured)), predicted(*measured)
    if seconds is None or not is_near(seconds, true, NOISY):
        hint = _hint_of_noise(measured, seconds).says(noise=NOISE)
        return wrong(Lab11Hint.RIGHT_FOR_EXACT_TIMES.says().then(hint), 0.5)
    on_one = measured.computing_seconds[0]
    efficiency = on_one / seconds / 64
    return right(
        f"A step of {1e3 * on_one:.1f} ms takes {1e3 * seconds:.1f} ms on 64 ranks: efficiency {efficiency:.0%}."
    )


def _hint_of_noise(measured: Measurements, seconds: float | None) -> Lab11Hint:
    """Which of the two fits is by absolute errors, if only one is."""
    computing = _off_by_absolute_errors(measured.computing_seconds, *_computing_columns(measured))
    reducing = _off_by_absolute_errors(measured.reducing_seconds, *_reducing_columns(measured))
    if is_near(seconds, predicted(*measured) + float(computing), 0.01):
        return Lab11Hint.NOISE_MOVES_COMPUTING
    if is_near(seconds, predicted(*measured) + float(reducing), 0.01):
        return Lab11Hint.NOISE_MOVES_ALL_REDUCE
    return Lab11Hint.NOISE_MOVES_PREDICTION


def _computing_columns(measured: Measurements) -> tuple[Array, Array]:
    """What the two unknowns of the computing are multiplied with where it was measured, and where it is asked for."""
    return amdahl_columns(measured.computing_ranks), np.array([1, 1 / measured.ranks])


def _reducing_columns(measured: Measurements) -> tuple[Array, Array]:
    """The same of the all-reduce."""
    steps = 2 * (measured.reducing_ranks - 1)
    first = np.full(len(measured.sizes), float(steps))
    columns = np.stack([first, steps / measured.reducing_ranks * measured.sizes], axis=1)
    return columns, 2 * (measured.ranks - 1) * np.array([1, measured.nbytes / measured.ranks])


def _off_by_absolute_errors(seconds: Array, columns: Array, asked: Array) -> Array:
    """By how much the fit by absolute errors predicts more at `asked` than the right one; () or (k,) for k sets."""
    difference = factors(columns, seconds, 1.0) - factors(columns, seconds, 1 / seconds)
    return np.asarray(difference @ asked)


def _mistakes(measured: Measurements) -> Mistakes:
    p, old, n = measured.ranks, measured.reducing_ranks, measured.nbytes
    law = costs.fit_amdahl(measured.computing_ranks, measured.computing_seconds)
    network = costs.fit(measured.sizes, measured.reducing_seconds, lambda sizes: costs.all_reduce("ring", old, sizes))

    def ring(ranks: int) -> float:
        return float(network.seconds(costs.all_reduce("ring", ranks, n)))

    latencies = 2 * (p - 1) * network.latency
    on_one, computing, reducing = float(law.seconds(1)), float(law.seconds(p)), ring(p)
    total = computing + reducing
    return [
        (computing, Lab11Hint.COMPUTING_ALONE),
        (reducing, Lab11Hint.ALL_REDUCE_ALONE),
        (law.parallel_seconds / p + reducing, Lab11Hint.NO_SERIAL_PART),
        (on_one / p + reducing, Lab11Hint.SERIAL_PART_DIVIDED),
        (on_one + reducing, Lab11Hint.COMPUTING_OF_ONE_RANK),
        (computing + ring(old), Lab11Hint.MEASURED_ALL_REDUCE),
        (computing + ring(old) * p / old, Lab11Hint.ALL_REDUCE_IN_PROPORTION),
        (computing + ring(old) * old / p, Lab11Hint.ALL_REDUCE_SHORTER),
        (total / p, Lab11Hint.STEP_DIVIDED),
        (computing + reducing / p, Lab11Hint.ALL_REDUCE_DIVIDED),
        (computing + network.latency + n * network.seconds_per_byte, Lab11Hint.SINGLE_MESSAGE),
        (max(computing, reducing), Lab11Hint.OVERLAPPED),
        (computing + reducing - latencies, Lab11Hint.NO_LATENCY),
        (computing + latencies, Lab11Hint.LATENCY_ALONE),
        (1e3 * total, Lab11Hint.UNIT),
    ]
