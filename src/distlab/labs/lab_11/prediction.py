"""The time of a step on more ranks than were measured: an exercise of lab 11 and its judge."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.lab_11.fits import (
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
from distlab.labs.lab_11.hints import Lab11Hint
from distlab.labs.number_judge import Expected, Mistakes, is_near, number
from distlab.labs.verdict import Verdict, right, wrong

MOST_DRAWS = 300
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


def drawn_measurements(generator: np.random.Generator, ranks: int, reducing_ranks: int) -> Measurements:
    """Without noise; all parts of the step count on `ranks` ranks."""
    computing_ranks, sizes = np.array([1, 2, 4, 8]), 4 * 10 ** np.arange(2, 8)
    while True:
        parallel = float(generator.uniform(2, 6))
        serial = parallel * float(generator.uniform(0.02, 0.06))
        network, nbytes = drawn_network(generator), int(generator.integers(10, 200)) * 10**6
        latencies = 2 * (ranks - 1) * network.latency
        of_bytes = float(network.ring(ranks, nbytes)) - latencies
        pieces = np.array([serial, parallel / ranks, of_bytes])
        if pieces.min() > 0.15 * pieces.sum() and latencies > 0.01 * pieces.sum():
            break
    computing, reducing = amdahl_seconds((serial, parallel), computing_ranks), network.ring(reducing_ranks, sizes)
    return Measurements(ranks, computing_ranks, computing, reducing_ranks, sizes, reducing, nbytes)


def _noisy_measurements(generator: np.random.Generator, exact: Measurements) -> Measurements:
    """The same with noise in the times, with which a fit of the computing by absolute errors predicts clearly wrong."""
    columns = amdahl_columns(exact.computing_ranks)
    reducing = exact.reducing_seconds * (1 + NOISE * generator.uniform(-1, 1, len(exact.sizes)))
    farthest_off, chosen = -1.0, exact
    for _ in range(MOST_DRAWS):
        computing = exact.computing_seconds * (1 + NOISE * generator.uniform(-1, 1, len(exact.computing_ranks)))
        noisy = exact._replace(computing_seconds=computing, reducing_seconds=reducing)
        at_ranks = np.array([1, 1 / noisy.ranks])
        best, by_absolute_errors = factors(columns, computing, 1 / computing), factors(columns, computing, 1.0)
        difference = float(abs((by_absolute_errors - best) @ at_ranks))
        off = difference / predicted(*noisy) if best.min() > 0 else 0.0
        if off > farthest_off:
            farthest_off, chosen = off, noisy
        if off > CLEARLY_OFF:
            break
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
    measured = _noisy_measurements(generator, drawn_measurements(generator, 64, 8))
    seconds, true = number(answer.call("predicted", *measured)), predicted(*measured)
    if seconds is None or not is_near(seconds, true, NOISY):
        hint = Lab11Hint.NOISE_MOVES_PREDICTION.says(noise=NOISE)
        return wrong(Lab11Hint.RIGHT_FOR_EXACT_TIMES.says().then(hint), 0.5)
    on_one = measured.computing_seconds[0]
    return right(f"A step of {on_one:.2f} s takes {seconds:.3f} s on 64 ranks: efficiency {on_one / seconds / 64:.0%}.")


def _mistakes(measured: Measurements) -> Mistakes:
    p, old, n = measured.ranks, measured.reducing_ranks, measured.nbytes
    law = costs.fit_amdahl(measured.computing_ranks, measured.computing_seconds)
    network = costs.fit(measured.sizes, measured.reducing_seconds, lambda sizes: costs.all_reduce("ring", old, sizes))

    def ring(ranks: int) -> float:
        return float(network.seconds(costs.all_reduce("ring", ranks, n)))

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
        (1e3 * total, Lab11Hint.UNIT),
    ]
