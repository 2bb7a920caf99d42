"""Step time and scaling efficiency of synchronous data-parallel training.

In a step, gradients become ready during the backward pass, are joined, and are all-reduced one after another.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distlab.costs.formulas.cost import Array, Numbers, checked
from distlab.costs.formulas.hierarchical import ALGORITHMS, hosts_of
from distlab.costs.prediction.presets import (
    ASSUMED,
    BYTES_PER_PARAMETER,
    Hardware,
    Layer,
    Measurement,
    Model,
    hardware_of,
    model_of,
)
from distlab.runtime.lookups import require_name
from distlab.simulate import Link

CHOICES = (*ALGORITHMS, "fastest")
"""What `predict` takes as an algorithm; "fastest" is, for each all-reduce by itself, the one that takes least time."""

OVERLAPS = {
    "fusion": "all-reduce gradients during the backward pass, those that wait together in one (Horovod)",
    "layers": "all-reduce each layer's gradient by itself during the backward pass",
    "none": "all-reduce after the backward pass",
}

AllReduce = Callable[[float], tuple[float, float]]
"""From bytes, the seconds that an all-reduce waits and those in which bytes move."""

PHASES = 4
"""How many moments of the communication thread's cycle, evenly spread, a step with fusion is averaged over."""


@dataclass(frozen=True)
class Prediction:
    """What `predict` gives, in float64 arrays (n,); seconds are those of a whole step.

    compute_seconds: of its computing, by the slowest rank, were there no communication.
    communication_seconds: of all its all-reduces together, hidden or not.
    efficiency: the throughput per rank, relative to that on `baseline_ranks` ranks.
    batch: images per rank and step. speed_source: where the speed of one device is from.
    """

    model: Model
    hardware: Hardware
    algorithm: str
    overlap: str
    baseline_ranks: int
    batch: int
    speed_source: str
    ranks: NDArray[np.int64]
    step_seconds: Array
    compute_seconds: Array
    communication_seconds: Array
    efficiency: Array

    @property
    def exposed_seconds(self) -> Array:
        """What communication adds to the step: what the backward pass does not hide, and the slowdown it causes."""
        return self.step_seconds - self.compute_seconds

    @property
    def images_per_second(self) -> Array:
        """Of all ranks together."""
        return self.ranks * self.batch / self.step_seconds


def predict(
    model: str | Model,
    hardware: str | Hardware,
    ranks: ArrayLike,
    algorithm: str | None = None,
    overlap: str = "fusion",
    *,
    batch: int | None = None,
    baseline_ranks: int = 1,
    speed: Measurement | None = None,
    bytes_per_parameter: int = BYTES_PER_PARAMETER,
) -> Prediction:
    """Weak scaling: every rank keeps its batch, and the ranks all-reduce the gradient in every step.

    model, hardware: names (see `MODELS` and `HARDWARE`), or your own or their files.
    ranks: whole numbers of at least 1, one or (n,).
    algorithm: of the all-reduce, one of CHOICES; by default the hardware's own.
    overlap: "fusion", "layers" or "none" (see OVERLAPS).
    batch: images per rank; by default that of the published speed, else the model's. A device is taken to train as many
        images per second with every batch.
    baseline_ranks: what efficiency is relative to: 1, or for example the ranks of one host.
    speed: of one device; by default the model's own or the published one of this model on this hardware.
    bytes_per_parameter: of the gradient on its way: 4, or 2 where it is sent in half precision.

    One device's speed is the published one where there is one, else estimated from FLOPs. Everything else is in
    `assumptions.toml`. What the model leaves out: reading data, copying into the fusion buffer, how ranks agree on the
    order of all-reduces, congestion between hosts, anything a single device does not do.

    Which gradients are fused depends on when each is ready, so the step time is not quite smooth in the number of
    ranks: one all-reduce more or less can move the efficiency by about a point.

    Raises ValueError for unknown names, with those there are, and for impossible numbers.
    """
    model, hardware = model_of(model), hardware_of(hardware)
    algorithm = hardware.algorithm if algorithm is None else algorithm
    require_name(CHOICES, algorithm, "algorithm")
    require_name(OVERLAPS, overlap, "overlap")
    p = np.atleast_1d(checked(ranks)[0])
    alone, batch, speed_source = _one_device(model, hardware, speed, batch)

    def times(count: float) -> tuple[float, float, float]:
        """Seconds of the step, its computing and its all-reduces."""
        computing = alone * (1 + ASSUMED.variation * float(straggler_delay(count)))
        if count == 1:  # nobody to send to
            return computing, computing, 0.0
        all_reduce = _all_reduce_on(hardware, count, algorithm)
        seconds, communication = step(model.layers, computing, all_reduce, overlap, bytes_per_parameter)
        return seconds, computing, communication

    steps, computing, communication = np.array([times(count) for count in p.tolist()]).T
    efficiency = times(float(checked(baseline_ranks)[0]))[0] / steps
    about = (model, hardware, algorithm, overlap, baseline_ranks, batch, speed_source)
    return Prediction(*about, p.astype(np.int64), steps, computing, communication, efficiency)


def straggler_delay(count: ArrayLike) -> Numbers:
    """By how many standard deviations the slowest of `count` normal times exceeds the mean, on average; 0 for one.

    Blom's approximation Φ⁻¹((p − 3/8) / (p + 1/4)) of the expected largest order statistic (Statistical Estimates and
    Transformed Beta-Variables, 1958): within 5 % of the exact value from p = 2 on.
    """
    from scipy.special import ndtri  # takes half a second to import

    count = np.asarray(count, np.float64)
    return np.where(count > 1, ndtri((count - 0.375) / (count + 0.25)), 0.0)[()]


def _one_device(
    model: Model, hardware: Hardware, speed: Measurement | None, batch: int | None
) -> tuple[float, int, str]:
    """Seconds of a step on one device, the batch, and where the speed is from."""
    kind = "given"
    speed = speed or model.given
    if not speed and (speed := model.measured.get(hardware.name)):
        kind = "second-hand" if speed.second_hand else "published"
    if speed:
        batch = batch or speed.batch
        source = f"{kind}: {speed.images_per_second:g} images/s, {speed.source}"
        return batch / speed.images_per_second, batch, source
    batch = batch or model.batch
    source = f"estimated: {model.training_flops:.3g} FLOP per image at {hardware.flops:.3g} FLOP/s"
    return ASSUMED.step_overhead + batch * model.training_flops / hardware.flops, batch, source


def _all_reduce_on(hardware: Hardware, ranks: float, algorithm: str) -> AllReduce:
    """The all-reduce among so many ranks, on connections as slow as the slowest of their hosts'."""
    inside, between = hardware.reached_links()
    slower = 1 + ASSUMED.variation * float(straggler_delay(hosts_of(ranks, hardware.ranks_per_host)))
    choices = []  # of each algorithm the seconds that it waits, and those of a byte
    for name in ALGORITHMS if algorithm == "fastest" else (algorithm,):
        levels = ALGORITHMS[name](ranks, 1.0, hardware.ranks_per_host)
        waiting = levels.seconds(Link(inside.latency, 0), Link(between.latency, 0))
        moving = levels.seconds(
            Link(0, inside.seconds_per_byte), Link(0, between.seconds_per_byte), hardware.seconds_per_byte_reduced
        )
        choices.append((slower * float(waiting), slower * float(moving)))

    def all_reduce(array_bytes: float) -> tuple[float, float]:
        waiting, per_byte = min(choices, key=lambda choice: choice[0] + choice[1] * array_bytes)
        return waiting, per_byte * array_bytes

    return all_reduce


def step(
    layers: Sequence[Layer],
    computing: float,
    all_reduce: AllReduce,
    overlap: str,
    bytes_per_parameter: int = BYTES_PER_PARAMETER,
) -> tuple[float, float]:
    """Seconds of a step with so many of computing, more than 0, and of its all-reduces; `overlap` is one of OVERLAPS.

    Gradients become ready from the last layer to the first. One all-reduce runs at a time: it starts when the last has
    ended and the next gradient has been noticed, and takes every gradient that is ready, in order, as long as they fit
    into the fusion buffer; a gradient larger than the buffer goes alone. Computing is slower while bytes move. The step
    ends with the last all-reduce.

    A gradient is noticed up to a cycle after it is ready. Which gradients go together depends on that, so with fusion
    the step is the mean over PHASES delays; otherwise half a cycle is enough.
    """
    # The share of the computing after which each gradient is ready.
    work = np.cumsum([layer.multiply_adds for layer in reversed(layers)], dtype=np.float64)
    ready: Array = 1 - ASSUMED.backward_share + ASSUMED.backward_share * work / work[-1]
    ready[0 if overlap == "none" else -1 :] = 1.0
    sent = np.cumsum([0.0] + [bytes_per_parameter * layer.parameters for layer in reversed(layers)])
    fusion_bytes = 0.0 if overlap == "layers" else ASSUMED.fusion_bytes
    phases = PHASES if overlap == "fusion" else 1
    delays = [ASSUMED.cycle_seconds * (phase + 0.5) / phases for phase in range(phases)]
    runs = [_run(ready.tolist(), sent.tolist(), computing, all_reduce, fusion_bytes, delay) for delay in delays]
    seconds, communication = (sum(values) / phases for values in zip(*runs, strict=True))
    return seconds, communication


def _run(
    ready: list[float], sent: list[float], computing: float, all_reduce: AllReduce, fusion_bytes: float, delay: float
) -> tuple[float, float]:
    """The step in which gradients are noticed `delay` seconds after they are ready."""
    slowdown = 1 + ASSUMED.slowdown
    free = computed = communication = 0.0  # when the last all-reduce ended, and which share was computed by then
    first = 0
    while first < len(ready):
        behind = (computed - ready[first]) * computing
        # A gradient that is overdue became ready while bytes moved, when computing was slower.
        ready_at = free - (behind * slowdown if behind > 0 else behind)
        start = max(free, ready_at + delay)
        progress = min(computed + (start - free) / computing, 1.0)
        # The first gradient counts as ready whatever rounding says, so that every turn takes at least one.
        available = bisect_right(ready, progress * (1 + 1e-12))
        fitting = bisect_right(sent, sent[first] + fusion_bytes) - 1
        last = max(first + 1, min(available, fitting))
        waiting, moving = all_reduce(sent[last] - sent[first])
        free = start + waiting + moving
        computed = min(progress + (waiting + moving / slowdown) / computing, 1.0)
        communication += waiting + moving
        first = last
    return free, communication
