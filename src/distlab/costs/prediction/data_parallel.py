"""Step time and scaling efficiency of synchronous data-parallel training, for one or for 100,000 numbers of ranks.

In a step, gradients become ready during the backward pass, are joined, and are all-reduced one after another.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from distlab.costs.formulas.cost import Array, Numbers, checked
from distlab.costs.formulas.hierarchical import ALGORITHMS, hosts_of
from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.hardware import HARDWARE, Hardware
from distlab.costs.prediction.networks import BYTES_PER_PARAMETER, MODELS, Layer, Measurement, Model
from distlab.runtime.lookups import look_up, require_name

CHOICES = (*ALGORITHMS, "fastest")
"""What `predict` takes as an algorithm; "fastest" is, for each all-reduce by itself, the one that takes least time."""

OVERLAPS = {
    "fusion": "all-reduce gradients during the backward pass, those that wait together in one (Horovod)",
    "layers": "all-reduce each layer's gradient by itself during the backward pass",
    "none": "all-reduce after the backward pass",
}

AllReduceSeconds = Callable[[NDArray[np.int64], Array], tuple[Array, Array]]
"""From indices into the ranks and bytes, the seconds that an all-reduce waits and those in which bytes move."""


PHASES = 4
"""How many moments of the communication thread's cycle, evenly spread, a step with fusion is averaged over."""


class StepTimes(NamedTuple):
    """Seconds of a whole step and of its all-reduces together, and how many of them; float64, one per prediction."""

    seconds: Array
    communication: Array
    all_reduces: Array


@dataclass(frozen=True)
class Prediction:
    """What `predict` gives. All arrays have the shape of `ranks`; seconds are float64.

    step_seconds: of a whole step. compute_seconds: of its computing, by the slowest rank, were there no communication.
    communication_seconds: of all its all-reduces together, hidden or not. all_reduces: how many, on average; float64.
    efficiency: the throughput per rank, relative to that on `baseline_ranks` ranks.
    batch: images per rank and step. speed_source: where the speed of one device is from.
    """

    model: Model
    hardware: Hardware
    algorithm: str
    overlap: str
    assumptions: Assumptions
    baseline_ranks: int
    batch: int
    speed_source: str
    ranks: NDArray[np.int64]
    step_seconds: Array
    compute_seconds: Array
    communication_seconds: Array
    all_reduces: Array
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
    assumptions: Assumptions | None = None,
) -> Prediction:
    """Weak scaling: every rank keeps its batch, and the ranks all-reduce the gradient in every step.

    model, hardware: names (see `MODELS` and `HARDWARE`) or your own.
    ranks: whole numbers of at least 1, one or an array of any shape.
    algorithm: of the all-reduce, one of CHOICES; by default the hardware's own.
    overlap: "fusion", "layers" or "none" (see OVERLAPS).
    batch: images per rank; by default that of the published speed, else the model's. A device is taken to train as many
        images per second with every batch.
    baseline_ranks: what efficiency is relative to: 1, or for example the ranks of one host.
    speed: of one device; by default the published one of this model on this hardware.
    bytes_per_parameter: of the gradient on its way: 4, or 2 where it is sent in half precision.

    One device's speed is the published one where there is one, else estimated from FLOPs. Everything else is in
    `assumptions`. What the model leaves out: reading data, copying into the fusion buffer, how ranks agree on the order
    of all-reduces, congestion between hosts, anything a single device does not do.

    Which gradients are fused depends on when each is ready, so the step time is not quite smooth in the number of
    ranks: one all-reduce more or less can move the efficiency by about a point.

    Raises ValueError for unknown names, with those there are, and for impossible numbers.
    """
    model = look_up(MODELS, model, "model") if isinstance(model, str) else model
    hardware = look_up(HARDWARE, hardware, "hardware") if isinstance(hardware, str) else hardware
    assumptions = assumptions or Assumptions()
    algorithm = hardware.algorithm if algorithm is None else algorithm
    require_name(CHOICES, algorithm, "algorithm")
    p = np.asarray(checked(ranks)[0])
    every = np.append(p.ravel(), checked(baseline_ranks)[0])
    seconds, batch, speed_source = _one_device(model, hardware, speed, batch, assumptions)
    compute = np.asarray(seconds * (1 + assumptions.variation * straggler_delay(every)))
    all_reduce = _all_reduce_on(hardware, every, algorithm, assumptions)
    run = step(model.layers, compute, all_reduce, overlap, assumptions, bytes_per_parameter)
    nothing = np.zeros_like(compute)
    steps, *sent = np.where(every == 1, [compute, nothing, nothing], run)  # one rank alone has nobody to send to
    compute_seconds, step_seconds, communication_seconds, all_reduces = (
        values[:-1].reshape(p.shape) for values in (compute, steps, *sent)
    )
    return Prediction(
        model,
        hardware,
        algorithm,
        overlap,
        assumptions,
        baseline_ranks,
        batch,
        speed_source,
        p.astype(np.int64),
        step_seconds,
        compute_seconds,
        communication_seconds,
        all_reduces,
        efficiency=steps[-1] / step_seconds,
    )


def straggler_delay(count: ArrayLike) -> Numbers:
    """By how many standard deviations the slowest of `count` normal times exceeds the mean, on average; 0 for one.

    Blom's approximation Φ⁻¹((p − 3/8) / (p + 1/4)) of the expected largest order statistic (Statistical Estimates and
    Transformed Beta-Variables, 1958): within 5 % of the exact value from p = 2 on.
    """
    from scipy.special import ndtri  # takes half a second to import

    count = np.asarray(count, np.float64)
    return np.where(count > 1, ndtri((count - 0.375) / (count + 0.25)), 0.0)[()]


def _one_device(
    model: Model, hardware: Hardware, speed: Measurement | None, batch: int | None, assumptions: Assumptions
) -> tuple[float, int, str]:
    """Seconds of a step on one device, the batch, and where the speed is from."""
    kind = "given"
    if not speed and (speed := model.measured.get(hardware.name)):
        kind = "second-hand" if speed.second_hand else "published"
    if speed:
        batch = batch or speed.batch
        source = f"{kind}: {speed.images_per_second:g} images/s, {speed.source}"
        return batch / speed.images_per_second, batch, source
    batch = batch or model.batch
    source = f"estimated: {model.training_flops:.3g} FLOP per image at {hardware.flops:.3g} FLOP/s"
    return assumptions.step_overhead + batch * model.training_flops / hardware.flops, batch, source


def _all_reduce_on(hardware: Hardware, ranks: Array, algorithm: str, assumptions: Assumptions) -> AllReduceSeconds:
    """The all-reduce among float64 `ranks` (n,), on connections as slow as the slowest of their hosts'."""
    inside, between = hardware.links_under(assumptions)
    slower = np.asarray(1 + assumptions.variation * straggler_delay(hosts_of(ranks, hardware.ranks_per_host)))

    def all_reduce(entries: NDArray[np.int64], array_bytes: Array) -> tuple[Array, Array]:
        waiting = moving = np.full(entries.shape, np.inf)
        for name in ALGORITHMS if algorithm == "fastest" else (algorithm,):
            levels = ALGORITHMS[name](ranks[entries], array_bytes, hardware.ranks_per_host)
            this_waiting = levels.waiting_seconds(inside, between)
            this_moving = levels.moving_seconds(inside, between, hardware.seconds_per_byte_reduced)
            is_faster = this_waiting + this_moving < waiting + moving
            waiting, moving = np.where(is_faster, this_waiting, waiting), np.where(is_faster, this_moving, moving)
        return waiting * slower[entries], moving * slower[entries]

    return all_reduce


def step(
    layers: tuple[Layer, ...],
    compute_seconds: Array,
    all_reduce: AllReduceSeconds,
    overlap: str,
    assumptions: Assumptions,
    bytes_per_parameter: int = BYTES_PER_PARAMETER,
) -> StepTimes:
    """The step of every entry of `compute_seconds` (float64, all above 0), each with its own all-reduce times.

    Gradients become ready from the last layer to the first. One all-reduce runs at a time: it starts when the last has
    ended and the next gradient has been noticed, and takes every gradient that is ready, in order, as long as they fit
    into the fusion buffer; a gradient larger than the buffer goes alone. Computing is slower while bytes move. The step
    ends with the last all-reduce.

    A gradient is noticed up to a cycle after it is ready. Which gradients go together depends on that, so with fusion
    the step is the mean over PHASES delays; otherwise half a cycle is enough. Raises ValueError for an `overlap` that
    is not in OVERLAPS.
    """
    require_name(OVERLAPS, overlap, "overlap")
    # The share of the computing after which each gradient is ready.
    work = np.cumsum([layer.multiply_adds for layer in reversed(layers)], dtype=np.float64)
    ready: Array = 1 - assumptions.backward_share + assumptions.backward_share * work / work[-1]
    ready[0 if overlap == "none" else -1 :] = 1.0
    sent = np.cumsum([0.0] + [bytes_per_parameter * layer.parameters for layer in reversed(layers)])
    fusion_bytes = 0.0 if overlap == "layers" else assumptions.fusion_bytes
    phases = PHASES if overlap == "fusion" else 1
    delays = assumptions.cycle_seconds * (np.arange(phases) + 0.5) / phases
    count = len(compute_seconds)  # all phases run side by side: entry e of phase f is number f·count + e
    run = _run(
        ready,
        sent,
        np.tile(compute_seconds, phases),
        lambda entries, array_bytes: all_reduce(entries % count, array_bytes),
        fusion_bytes,
        np.repeat(delays, count),
        1 + assumptions.slowdown,
    )
    return StepTimes(*(values.reshape(phases, count).mean(axis=0) for values in run))


def _run(
    ready: Array,
    sent: Array,
    compute_seconds: Array,
    all_reduce: AllReduceSeconds,
    fusion_bytes: float,
    delays: Array,
    slowdown: float,
) -> StepTimes:
    """One step each: gradients are noticed `delays` seconds after they are ready; `slowdown` is computing's factor."""
    # `free` is when the last all-reduce ended, `computed` the share of the computing that was done by then.
    free, computed = np.zeros_like(compute_seconds), np.zeros_like(compute_seconds)
    communication, all_reduces = np.zeros_like(compute_seconds), np.zeros_like(compute_seconds)
    first = np.zeros(compute_seconds.shape, int)
    active = np.arange(len(compute_seconds))
    while len(active):
        total, index = compute_seconds[active], first[active]
        behind = (computed[active] - ready[index]) * total
        # A gradient that is overdue became ready while bytes moved, when computing was slower.
        ready_at = free[active] - np.where(behind > 0, behind * slowdown, behind)
        start = np.maximum(free[active], ready_at + delays[active])
        progress = np.minimum(computed[active] + (start - free[active]) / total, 1.0)
        # The first gradient counts as ready whatever rounding says, so that every turn takes at least one.
        available = np.searchsorted(ready, progress * (1 + 1e-12), side="right")
        fitting = np.searchsorted(sent, sent[index] + fusion_bytes, side="right") - 1
        last = np.maximum(index + 1, np.minimum(available, fitting))
        waiting, moving = all_reduce(active, sent[last] - sent[index])
        free[active] = start + waiting + moving
        computed[active] = np.minimum(progress + (waiting + moving / slowdown) / total, 1.0)
        communication[active] += waiting + moving
        all_reduces[active] += 1
        first[active] = last
        active = active[last < len(ready)]
    return StepTimes(free, communication, all_reduces)
