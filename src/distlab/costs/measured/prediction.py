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
class ClusterModel:
    """What the measurements say. Make it with `model_of`.

    base: the measurement with the most ranks, whose step, computing and overlap are those of the model.
    fit: α, β and, from several numbers of ranks, the overhead of each all-reduce.
    correction: the measured all-reduce of the gradients, relative to the fit.
    hidden_share: h. deviation: the standard deviation of the corrected fit's relative errors, for arrays of at least a
    quarter of what an all-reduce of gradients moves: smaller ones behave differently on many networks.
    separates_overhead: whether latency and overhead are known separately.
    """

    measurements: tuple[ClusterMeasurement, ...]
    base: ClusterMeasurement
    fit: Fit
    correction: float
    hidden_share: float
    deviation: float
    separates_overhead: bool

    def communication_seconds(self, ranks: Array) -> Array:
        """A(p), float64 of the shape of `ranks`."""
        return self.correction * gradient_seconds(self.fit, self.base, ranks)

    def communication_range(self, ranks: Array) -> tuple[Array, Array]:
        """A(p) where the start-up of an all-reduce is all overhead, and where it is as predicted; the lower first."""
        predicted = self.communication_seconds(ranks)
        if self.separates_overhead:
            return predicted, predicted
        algorithm = self.base.algorithm
        measured_steps = all_reduce(algorithm, self.base.ranks, 0.0).steps
        steps = np.asarray(all_reduce(algorithm, ranks, np.zeros_like(ranks)).steps)
        scale = self.correction * self.base.fused_all_reduces * self.fit.latency
        constant = predicted + np.where(ranks > 1, (measured_steps - steps) * scale, 0.0)
        return np.minimum(predicted, constant), np.maximum(predicted, constant)

    def compute_seconds(self, ranks: Array, own_cores: bool = False) -> Array:
        """C(p); with `own_cores` as if the hosts shared no cores."""
        base = self.base
        if own_cores or not base.shares_cores or base.gpus:
            return np.full_like(ranks, base.step_alone.median)
        turns = np.maximum(ranks * base.threads, base.cores) / max(base.ranks * base.threads, base.cores)
        return np.asarray(base.step_alone.median * turns)

    def step_seconds(self, compute: Array, communication: Array) -> Array:
        """T(p)."""
        return compute + communication - self.hidden_share * np.minimum(compute, communication)

    def standard_error(self, compute: Array, communication: Array) -> Array:
        """Of T(p): the fit's errors for communication, the error of the median for computing."""
        of_median = self.base.step_alone.relative * _MEDIAN_ERROR / math.sqrt(self.base.repeats)
        return np.hypot(communication * self.deviation, compute * of_median)


@dataclass(frozen=True)
class MeasuredPrediction:
    """What `predict_measured` gives; arrays have the shape of `ranks`, seconds are float64.

    lower_seconds, upper_seconds: the interval of the step. own_cores: whether each rank has cores of its own.
    efficiency: throughput per rank relative to a rank that trains alone.
    """

    model: ClusterModel
    own_cores: bool
    ranks: NDArray[np.int64]
    compute_seconds: Array
    communication_seconds: Array
    step_seconds: Array
    lower_seconds: Array
    upper_seconds: Array

    @property
    def images_per_second(self) -> Array:
        """Of all ranks together."""
        return self.ranks * self.model.base.batch / self.step_seconds

    @property
    def efficiency(self) -> Array:
        """From 0 to about 1."""
        return self.model.compute_seconds(np.ones(1), self.own_cores) / self.step_seconds

    @property
    def devices(self) -> Array:
        """GPUs, or else cores, that these ranks keep busy: as many per rank as measured; shared ones do not grow."""
        base = self.model.base
        if base.gpus:
            return self.ranks * np.float64(base.gpus / base.ranks)
        if self.own_cores:
            return self.ranks * np.float64(base.cores / base.ranks)
        return np.full(self.ranks.shape, float(base.cores))

    @property
    def device(self) -> str:
        """What `devices` counts: "GPU" or "core"."""
        return "GPU" if self.model.base.gpus else "core"

    def device_hours(self, images: float) -> Array:
        """GPU or core hours to train on that many images."""
        return self.devices * images / self.images_per_second / 3600


def model_of(*measurements: ClusterMeasurement) -> ClusterModel:
    """The model that one measurement gives, or several that differ in the number of ranks.

    Raises WrongMeasurement where they do not belong together.
    """
    require_same_set_up(measurements)
    base = max(measurements, key=lambda each: each.ranks)
    ranks = np.repeat([each.ranks for each in measurements], [len(each.sizes) for each in measurements])
    sizes = np.concatenate([each.sizes for each in measurements]).astype(np.float64)
    seconds = [spread.median for each in measurements for spread in each.all_reduces]
    separates_overhead = len(set(ranks.tolist())) > 1
    fitted = fit(sizes, seconds, all_reduce(base.algorithm, ranks, sizes), with_overhead=separates_overhead)
    alone, communication = base.step_alone.median, base.gradients_alone.median
    # No more than all of the shorter one can be hidden.
    hidden = min(1.0, (alone + communication - base.step.median) / min(alone, communication))
    correction = communication / float(gradient_seconds(fitted, base, np.float64(base.ranks)))
    near = sizes >= min(sum(base.gradient_bytes) / base.fused_all_reduces, max(base.sizes)) / 4
    errors = correction * fitted.predicted[near] / fitted.measured[near] - 1
    deviation = math.sqrt(float(np.mean(errors**2)))
    return ClusterModel(tuple(measurements), base, fitted, correction, hidden, deviation, separates_overhead)


def gradient_seconds(fitted: Fit, measurement: ClusterMeasurement, ranks: Numbers) -> Array:
    """The all-reduce of the gradients by the fit; 0 for one rank."""
    count = measurement.fused_all_reduces
    cost = all_reduce(measurement.algorithm, ranks, sum(measurement.gradient_bytes) / count)
    return np.where(ranks > 1, count * fitted.seconds(cost), 0.0)


def predict_measured(
    measured: ClusterMeasurement | Sequence[ClusterMeasurement], ranks: ArrayLike, *, own_cores: bool | None = None
) -> MeasuredPrediction:
    """The step of each number of `ranks`, and its interval, from one measurement or several.

    own_cores: whether each host has cores of its own; by default as measured: hosts that are namespaces or containers
        of one computer go on sharing its cores. True predicts such a network with a computer for each host.

    The interval is DEVIATIONS standard errors wide on each side: the relative errors of the fit for communication, and
    the error of the median for computing. With one number of ranks it also covers start-up time that does not grow with
    the ranks.

    Raises WrongMeasurement where several do not belong together, or where one host alone was measured and more ranks
    are asked for than it has cores or GPUs; ValueError for impossible ranks.
    """
    measurements = (measured,) if isinstance(measured, ClusterMeasurement) else tuple(measured)
    model = model_of(*measurements)
    p = np.atleast_1d(checked(ranks)[0])
    limit = model.base.most_ranks
    if limit is not None and p.max(initial=1) > limit:
        raise WrongMeasurement(
            f"One host was measured, and so no network: ask for at most {limit} ranks, or measure on two hosts."
        )
    own_cores = not model.base.shares_cores if own_cores is None else own_cores
    compute, communication = model.compute_seconds(p, own_cores), model.communication_seconds(p)
    low, high = model.communication_range(p)
    lower = model.step_seconds(compute, low) - DEVIATIONS * model.standard_error(compute, low)
    upper = model.step_seconds(compute, high) + DEVIATIONS * model.standard_error(compute, high)
    step = model.step_seconds(compute, communication)
    return MeasuredPrediction(
        model, own_cores, p.astype(np.int64), compute, communication, step, np.maximum(lower, 0.0), upper
    )
