"""From measurements of a few ranks to the step of many: one model, with an interval.

    T(p) = C(p) + A(p) − h · min(C(p), A(p))

- A(p), the all-reduce of the gradients: n bytes in m = ⌈n / fusion bytes⌉ all-reduces (docs/tensor-fusion.md of
  Horovod), each at the cost that `costs.all_reduce` gives for the algorithm of the library: a ring with Gloo and NCCL,
  halving and doubling with MPI, where numbers of ranks that are no power of two cost twice the bytes. The latency α of
  a message and the seconds β of a byte come from the sweep. The result is scaled so that it agrees with the measured
  all-reduce of the gradients on the measured ranks.
- C(p), the computing: as measured, since each rank keeps its batch. Where the measured hosts share one machine's cores,
  it grows with the ranks' threads from as many threads as cores on: they take turns.
- h, the share of the shorter of the two that is hidden behind the longer one: as measured; below 0 where a whole step
  takes longer than both alone. The overlap is that of Li et al., arXiv:2006.15704, section 3.2.3.

With one number of ranks the sweep cannot tell the latency of messages, whose number grows with the ranks, from what
each all-reduce takes anyway (Horovod's ranks agree first what to send). The prediction then takes all of it as latency;
the interval reaches to the opposite. With several numbers of ranks the two are separate.

Left out: stragglers that only many ranks have, congestion between more hosts than were measured, faster links inside a
host (with several ranks per host, an all-reduce is as fast as its slowest links, those between hosts).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distlab.costs.formulas.collectives import all_reduce
from distlab.costs.formulas.cost import Array, Numbers, checked
from distlab.costs.formulas.measurements import Fit, fit
from distlab.costs.measured.measurement import ClusterMeasurement, WrongMeasurement, require_same_set_up

DEVIATIONS = 2
"""How many standard deviations the interval reaches to each side: 95 % of normal errors."""

_MEDIAN_ERROR = math.sqrt(math.pi / 2)
"""The standard error of the median of n normal numbers is √(π/2) deviations divided by √n, for large n."""


@dataclass(frozen=True)
class MeasuredPrediction:
    """What `predict_measured` gives; arrays have the shape of `ranks`, seconds are float64.

    base: the measurement with the most ranks, whose step, computing and overlap are those of the model.
    fit: α, β and, from several numbers of ranks (separates_overhead), the overhead of each all-reduce.
    correction: the measured all-reduce of the gradients, relative to the fit.
    hidden_share: h. deviation: the standard deviation of the corrected fit's relative errors, for arrays of at least a
    quarter of what an all-reduce of gradients moves: smaller ones behave differently on many networks.
    compute_seconds: C(p). communication_seconds: A(p). step_seconds: T(p), from lower_seconds to upper_seconds.
    efficiency: the throughput per rank relative to a rank that trains alone, from 0 to about 1.
    """

    measurements: tuple[ClusterMeasurement, ...]
    base: ClusterMeasurement
    fit: Fit
    separates_overhead: bool
    correction: float
    hidden_share: float
    deviation: float
    ranks: NDArray[np.int64]
    compute_seconds: Array
    communication_seconds: Array
    step_seconds: Array
    lower_seconds: Array
    upper_seconds: Array
    efficiency: Array

    @property
    def images_per_second(self) -> Array:
        """Of all ranks together."""
        return self.ranks * self.base.batch / self.step_seconds

    @property
    def devices(self) -> Array:
        """GPUs, or else cores, that these ranks keep busy: as many per rank as measured; shared ones do not grow."""
        base = self.base
        if base.shares_cores and not base.gpus:
            return np.full(self.ranks.shape, float(base.cores))
        return self.ranks * np.float64((base.gpus or base.cores) / base.ranks)


def predict_measured(
    measured: ClusterMeasurement | Sequence[ClusterMeasurement], ranks: ArrayLike
) -> MeasuredPrediction:
    """The step of each number of `ranks`, and its interval, from one measurement or several.

    Hosts that are namespaces or containers of one computer go on sharing its cores. The interval is DEVIATIONS standard
    errors wide on each side: the relative errors of the fit for communication, and the error of the median for
    computing. With one number of ranks it also covers start-up time that does not grow with the ranks.

    Raises WrongMeasurement where several do not belong together, or where one host alone was measured and more ranks
    are asked for than it has cores or GPUs; ValueError for impossible ranks.
    """
    measurements = (measured,) if isinstance(measured, ClusterMeasurement) else tuple(measured)
    require_same_set_up(measurements)
    base = max(measurements, key=lambda each: each.ranks)
    p = np.atleast_1d(checked(ranks)[0])
    if base.most_ranks is not None and p.max(initial=1) > base.most_ranks:
        raise WrongMeasurement(
            f"One host was measured, and so no network: ask for at most {base.most_ranks} ranks, "
            "or measure on two hosts."
        )
    swept = np.repeat([each.ranks for each in measurements], [len(each.sizes) for each in measurements])
    sizes = np.concatenate([each.sizes for each in measurements]).astype(np.float64)
    seconds = [spread.median for each in measurements for spread in each.all_reduces]
    separates_overhead = len(set(swept.tolist())) > 1
    fitted = fit(sizes, seconds, all_reduce(base.algorithm, swept, sizes), with_overhead=separates_overhead)
    alone, together = base.step_alone.median, base.gradients_alone.median
    correction = together / float(_gradient_seconds(fitted, base, np.float64(base.ranks)))
    near = sizes >= min(sum(base.gradient_bytes) / base.fused_all_reduces, max(base.sizes)) / 4
    deviation = float(np.sqrt(np.mean((correction * fitted.predicted[near] / fitted.measured[near] - 1) ** 2)))
    # No more than all of the shorter one can be hidden.
    hidden_share = min(1.0, (alone + together - base.step.median) / min(alone, together))
    compute, communication = _compute_seconds(base, p), correction * _gradient_seconds(fitted, base, p)
    other = communication
    if not separates_overhead:
        # If the start-up of an all-reduce is all overhead, it does not grow with the ranks.
        steps, measured_steps = (all_reduce(base.algorithm, count, 0.0).steps for count in (p, base.ranks))
        start_up = correction * base.fused_all_reduces * fitted.latency
        other = communication + np.where(p > 1, (measured_steps - steps) * start_up, 0.0)
    of_median = base.step_alone.relative * _MEDIAN_ERROR / math.sqrt(base.repeats)

    def step(communication: Array, errors: int = 0) -> Array:
        """T(p), and so many standard errors."""
        error = np.hypot(communication * deviation, compute * of_median)
        hidden = hidden_share * np.minimum(compute, communication)
        return np.asarray(compute + communication - hidden + errors * error)

    return MeasuredPrediction(
        measurements,
        base,
        fitted,
        separates_overhead,
        correction,
        hidden_share,
        deviation,
        p.astype(np.int64),
        compute,
        communication,
        step_seconds=step(communication),
        lower_seconds=np.maximum(step(np.minimum(communication, other), -DEVIATIONS), 0.0),
        upper_seconds=step(np.maximum(communication, other), DEVIATIONS),
        efficiency=_compute_seconds(base, np.ones(1)) / step(communication),
    )


def _compute_seconds(base: ClusterMeasurement, ranks: Array) -> Array:
    if base.gpus or not base.shares_cores:
        return np.full(ranks.shape, base.step_alone.median)
    turns = np.maximum(ranks * base.threads, base.cores) / max(base.ranks * base.threads, base.cores)
    return np.asarray(base.step_alone.median * turns)


def _gradient_seconds(fitted: Fit, base: ClusterMeasurement, ranks: Numbers) -> Array:
    """The all-reduce of the gradients by the fit; 0 for one rank."""
    count = base.fused_all_reduces
    cost = all_reduce(base.algorithm, ranks, sum(base.gradient_bytes) / count)
    return np.where(ranks > 1, count * fitted.seconds(cost), 0.0)
