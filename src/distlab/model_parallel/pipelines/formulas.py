"""Time, bubble and memory of a pipeline: p stages, m micro-batches, v chunks a stage.

All stages take the same time for a micro-batch, t_f forward and t_b backward, and messages take none unless said. An
interleaved stage takes as long for its v chunks together.

Sources: Huang et al., arXiv:1811.06965, section 2.3; Narayanan et al., arXiv:2104.04473, section 2.2; for the memory of
the interleaved schedule Korthikanti et al., arXiv:2205.05198, section 4.2.3 (second-hand).
"""

import numpy as np
from numpy.typing import ArrayLike

from distlab.model_parallel.pipelines.schedules import SCHEDULES
from distlab.runtime.lookups import require_name

Numbers = np.ndarray | np.float64


def bubble_fraction(stages: ArrayLike, micro_batches: ArrayLike, chunks: ArrayLike = 1) -> Numbers:
    """The share of the devices' time in which they wait: (p − 1) / (vm + p − 1).

    Huang et al. give (K−1)/(M+K−1); Narayanan et al. divide by the ideal time instead and give (p−1)/m, and
    (1/v)·(p−1)/m interleaved, which is the same bubble. float64, of the shape that the arguments have together.
    """
    p, m, v = _floats(stages, micro_batches, chunks)
    return ((p - 1) / (v * m + p - 1))[()]


def seconds(
    stages: ArrayLike,
    micro_batches: ArrayLike,
    forward_seconds: float,
    backward_seconds: float,
    chunks: ArrayLike = 1,
) -> Numbers:
    """The time of a batch: (m + (p − 1)/v)(t_f + t_b), for GPipe, 1F1B and interleaved 1F1B alike."""
    p, m, v = _floats(stages, micro_batches, chunks)
    return ((m + (p - 1) / v) * (forward_seconds + backward_seconds))[()]


def activations_held(schedule: str, stages: int, micro_batches: int, stage: int, chunks: int = 1) -> float:
    """The most micro-batches whose activations stage s holds at once, each counted as its share of the whole stage.

    gpipe: m. 1f1b: min(p − s, m). interleaved: min((2(p − s − 1) + (v − 1)p + 1) / v, m), for stage 0 the p + (p − 1)/v
    of Korthikanti et al. Raises NoSuchName for an unknown schedule.
    """
    require_name(SCHEDULES, schedule, "schedule")
    p, m, s, v = stages, micro_batches, stage, chunks
    if schedule == "gpipe":
        return float(m)
    if schedule == "1f1b":
        return float(min(p - s, m))
    return min((2 * (p - s - 1) + (v - 1) * p + 1) / v, m)


def _floats(*numbers: ArrayLike) -> list[np.ndarray]:
    """All as float64 of one shape."""
    return list(np.broadcast_arrays(*(np.asarray(each, np.float64) for each in numbers)))
