"""Step time and scaling efficiency of synchronous data-parallel training, for one or for 100,000 numbers of ranks."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from distlab.costs.formulas.cost import checked
from distlab.costs.formulas.hierarchical import ALGORITHMS, hosts_of
from distlab.costs.prediction import hardware as machines
from distlab.costs.prediction import networks
from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.hardware import Hardware
from distlab.costs.prediction.networks import Model
from distlab.costs.prediction.overlap import Step, step
from distlab.simulate import Link

CHOICES = (*ALGORITHMS, "fastest")
"""What `predict` takes as an algorithm; "fastest" is, for each all-reduce by itself, the one that takes least time."""


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
    ranks: np.ndarray
    step_seconds: np.ndarray
    compute_seconds: np.ndarray
    communication_seconds: np.ndarray
    all_reduces: np.ndarray
    efficiency: np.ndarray

    @property
    def exposed_seconds(self) -> np.ndarray:
        """What communication adds to the step: what the backward pass does not hide, and the slowdown it causes."""
        return self.step_seconds - self.compute_seconds

    @property
    def images_per_second(self) -> np.ndarray:
        """Of all ranks together."""
        return self.ranks * self.batch / self.step_seconds

    @property
    def speedup(self) -> np.ndarray:
        """The throughput relative to that on `baseline_ranks` ranks, in units of one rank's share of that."""
        return self.efficiency * self.ranks


def predict(
    model: str | Model,
    hardware: str | Hardware,
    ranks: ArrayLike,
    algorithm: str | None = None,
    overlap: str = "fusion",
    *,
    batch: int | None = None,
    baseline_ranks: int = 1,
    assumptions: Assumptions | None = None,
) -> Prediction:
    """Weak scaling: every rank keeps its batch, and the ranks all-reduce the gradient in every step.

    model, hardware: names (see `models.MODELS` and `hardware.HARDWARE`) or your own.
    ranks: whole numbers of at least 1, one or an array of any shape.
    algorithm: of the all-reduce, one of CHOICES; by default the hardware's own.
    overlap: "fusion", "layers" or "none" (see `overlap.OVERLAPS`).
    batch: images per rank; by default that of the published speed, else the model's. A device is taken to train as many
        images per second with every batch.
    baseline_ranks: what efficiency is relative to: 1, or for example the ranks of one host.

    One device's speed is the published one where there is one, else estimated from FLOPs. Everything else is in
    `assumptions`. What the model leaves out: reading data, copying into the fusion buffer, how ranks agree on the order
    of all-reduces, congestion between hosts, anything a single device does not do.

    Which gradients are fused hangs on when each is ready, so that the step time is not quite smooth in the number of
    ranks: one all-reduce more or less can move the efficiency by about a point.

    Raises ValueError for unknown names, with those there are, and for impossible numbers.
    """
    model = networks.model(model) if isinstance(model, str) else model
    hardware = machines.hardware(hardware) if isinstance(hardware, str) else hardware
    assumptions = assumptions or Assumptions()
    algorithm = hardware.algorithm if algorithm is None else algorithm
    if algorithm not in CHOICES:
        raise ValueError(f"there is no algorithm {algorithm!r}; there are {', '.join(CHOICES)}")
    if batch is not None and (batch != int(batch) or batch < 1):
        raise ValueError(f"a batch per rank is a whole number of at least 1, not {batch}")

    p = np.asarray(checked(ranks)[0])
    baseline = np.asarray(checked(baseline_ranks)[0])
    if baseline.ndim:
        raise ValueError("baseline_ranks is one number")
    seconds, batch, speed_source = _one_device(model, hardware, batch, assumptions)
    every = np.append(p.ravel(), baseline)
    compute, run = _steps(model, hardware, every, seconds, algorithm, overlap, assumptions)
    shaped = [values[:-1].reshape(p.shape) for values in (run.seconds, compute, run.communication, run.all_reduces)]
    return Prediction(
        model,
        hardware,
        algorithm,
        overlap,
        assumptions,
        int(baseline),
        batch,
        speed_source,
        p.astype(np.int64),
        *shaped,
        efficiency=run.seconds[-1] / shaped[0],
    )


def expected_lateness(count: ArrayLike) -> np.ndarray | np.float64:
    """By how many standard deviations the slowest of `count` normal times exceeds the mean, on average; 0 for one.

    Blom's approximation Φ⁻¹((p − 3/8) / (p + 1/4)) of the expected largest order statistic (Statistical Estimates and
    Transformed Beta-Variables, 1958): within 5 % of the exact value from p = 2 on.
    """
    count = np.asarray(count, np.float64)
    return np.where(count > 1, ndtri((count - 0.375) / (count + 0.25)), 0.0)[()]


def _one_device(
    model: Model, hardware: Hardware, batch: int | None, assumptions: Assumptions
) -> tuple[float, int, str]:
    """Seconds of a step on one device, the batch, and where the speed is from."""
    measurement = model.measured.get(hardware.name)
    if measurement:
        batch = batch or measurement.batch
        kind = "second-hand" if measurement.second_hand else "published"
        source = f"{kind}: {measurement.images_per_second:g} images/s, {measurement.source}"
        return batch / measurement.images_per_second, batch, source
    batch = batch or model.batch
    source = f"estimated: {model.training_flops:.3g} FLOP per image at {hardware.flops:.3g} FLOP/s"
    return assumptions.step_overhead + batch * model.training_flops / hardware.flops, batch, source


def _steps(
    model: Model,
    hardware: Hardware,
    ranks: np.ndarray,
    seconds: float,
    algorithm: str,
    overlap: str,
    assumptions: Assumptions,
) -> tuple[np.ndarray, Step]:
    """The seconds of computing, and the step, for float64 `ranks` (n,)."""
    compute = seconds * (1 + assumptions.variation * expected_lateness(ranks))
    inside, between = (_real(link, assumptions.bandwidth_share) for link in (hardware.inside, hardware.between))
    # As slow as the slowest of the hosts' connections.
    slower = 1 + assumptions.variation * expected_lateness(hosts_of(ranks, hardware.ranks_per_host))

    def all_reduce(entries: np.ndarray, array_bytes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        waiting, moving = np.inf, np.inf
        for one in ALGORITHMS if algorithm == "fastest" else (algorithm,):
            levels = ALGORITHMS[one](ranks[entries], array_bytes, hardware.ranks_per_host)
            this_waiting = levels.waiting_seconds(inside, between)
            this_moving = levels.moving_seconds(inside, between, hardware.seconds_per_byte_reduced)
            is_faster = this_waiting + this_moving < waiting + moving
            waiting, moving = np.where(is_faster, this_waiting, waiting), np.where(is_faster, this_moving, moving)
        return waiting * slower[entries], moving * slower[entries]

    run = step(model.layers, compute, all_reduce, overlap, assumptions)
    alone = ranks == 1
    return compute, Step(
        np.where(alone, compute, run.seconds),
        np.where(alone, 0.0, run.communication),
        np.where(alone, 0, run.all_reduces),
    )


def _real(link: Link, share: float) -> Link:
    return Link(link.latency, link.seconds_per_byte / share)
