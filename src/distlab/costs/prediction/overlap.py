"""One training step: gradients become ready during the backward pass, are joined, and are all-reduced one by one."""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from distlab.costs.prediction.architectures import BYTES_PER_PARAMETER, Layer
from distlab.costs.prediction.assumptions import Assumptions

OVERLAPS = {
    "fusion": "all-reduce gradients during the backward pass, those that wait together in one (Horovod)",
    "layers": "all-reduce each layer's gradient by itself during the backward pass",
    "none": "all-reduce after the backward pass",
}

Seconds = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""From indices into the ranks and bytes, the seconds that an all-reduce waits and those in which bytes move."""


PHASES = 4
"""How many moments of the communication thread's cycle, evenly spread, a step with fusion is averaged over."""


@dataclass(frozen=True)
class Step:
    """Seconds of a whole step and of its all-reduces together, and how many of them; float64, one per prediction."""

    seconds: np.ndarray
    communication: np.ndarray
    all_reduces: np.ndarray


def step(
    layers: tuple[Layer, ...],
    compute_seconds: np.ndarray,
    all_reduce: Seconds,
    overlap: str,
    assumptions: Assumptions,
) -> Step:
    """The step of every entry of `compute_seconds` (float64, all above 0), each with its own all-reduce times.

    Gradients become ready from the last layer to the first. One all-reduce runs at a time: it starts when the last has
    ended and the next gradient has been noticed, and takes every gradient that is ready, in order, as long as they fit
    into the fusion buffer; a gradient larger than the buffer goes alone. Computing is slower while bytes move. The step
    ends with the last all-reduce.

    A gradient is noticed up to a cycle after it is ready. Which gradients go together hangs on that, so with fusion the
    step is the mean over PHASES delays; otherwise half a cycle does. Raises ValueError for an `overlap` that is not in
    OVERLAPS.
    """
    if overlap not in OVERLAPS:
        raise ValueError(f"there is no overlap {overlap!r}; there are {', '.join(OVERLAPS)}")
    ready = _ready(layers, assumptions.backward_share) if overlap != "none" else np.ones(len(layers))
    sent = np.cumsum([0.0] + [BYTES_PER_PARAMETER * layer.parameters for layer in reversed(layers)])
    fusion_bytes = 0.0 if overlap == "layers" else assumptions.fusion_bytes
    phases = PHASES if overlap == "fusion" else 1
    runs = [
        _run(ready, sent, compute_seconds, all_reduce, fusion_bytes, delay, 1 + assumptions.slowdown)
        for delay in assumptions.cycle_seconds * (np.arange(phases) + 0.5) / phases
    ]
    return Step(*(np.mean([getattr(run, field.name) for run in runs], axis=0) for field in fields(Step)))


def _run(
    ready: np.ndarray,
    sent: np.ndarray,
    compute_seconds: np.ndarray,
    all_reduce: Seconds,
    fusion_bytes: float,
    delay: float,
    slowdown: float,
) -> Step:
    """One step: a gradient is noticed `delay` seconds after it is ready, and `slowdown` is the factor on computing."""
    # `free` is when the last all-reduce ended, `computed` the share of the computing that was done by then.
    free, computed = np.zeros_like(compute_seconds), np.zeros_like(compute_seconds)
    communication, all_reduces = np.zeros_like(compute_seconds), np.zeros_like(compute_seconds)
    first = np.zeros(compute_seconds.shape, int)
    one = np.arange(len(compute_seconds))
    while len(one):
        total, index = compute_seconds[one], first[one]
        behind = (computed[one] - ready[index]) * total
        # A gradient that is overdue became ready while bytes moved, when computing was slower.
        ready_at = free[one] - np.where(behind > 0, behind * slowdown, behind)
        start = np.maximum(free[one], ready_at + delay)
        progress = np.minimum(computed[one] + (start - free[one]) / total, 1.0)
        # The first gradient counts as ready whatever rounding says, so that every turn takes at least one.
        available = np.searchsorted(ready, progress * (1 + 1e-12), side="right")
        fitting = np.searchsorted(sent, sent[index] + fusion_bytes, side="right") - 1
        last = np.maximum(index + 1, np.minimum(available, fitting))
        waiting, moving = all_reduce(one, sent[last] - sent[index])
        free[one] = start + waiting + moving
        computed[one] = np.minimum(progress + (waiting + moving / slowdown) / total, 1.0)
        communication[one] += waiting + moving
        all_reduces[one] += 1
        first[one] = last
        one = one[last < len(ready)]
    return Step(free, communication, all_reduces)


def _ready(layers: tuple[Layer, ...], backward_share: float) -> np.ndarray:
    """The share of the computing after which each gradient is ready, float64 (layers,), the last layer first."""
    work = np.cumsum([layer.multiply_adds for layer in reversed(layers)], dtype=np.float64)
    ready = 1 - backward_share + backward_share * work / work[-1]
    ready[-1] = 1.0
    return ready
