"""Scaling results that were published, the model's prediction for each, and how far to trust it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from distlab.costs.prediction.assumptions import DESCRIPTIONS, Assumptions
from distlab.costs.prediction.data_parallel import predict
from distlab.costs.prediction.hardware import hardware
from distlab.simulate import Link

WITHIN = 5.0
"""Percentage points: how close a prediction is to be."""


@dataclass(frozen=True)
class PublishedResult:
    """A published scaling efficiency, relative to `baseline_ranks` GPUs.

    is_described: False for TCP, which the assumptions' share of the bandwidth is not meant for.
    is_blind: True when the result was first looked at after the assumptions had been chosen.
    """

    model: str
    hardware: str
    ranks: int
    efficiency: float
    source: str
    baseline_ranks: int = 1
    is_described: bool = True
    is_blind: bool = False


@dataclass(frozen=True)
class Comparison:
    """A published result beside the prediction; efficiencies are fractions."""

    published: PublishedResult
    predicted: float

    @property
    def difference(self) -> float:
        """Predicted minus published, in percentage points: above 0 where the model is too optimistic."""
        return 100 * (self.predicted - self.published.efficiency)

    @property
    def is_within(self) -> bool:
        """Whether the prediction is at most WITHIN points off."""
        return abs(self.difference) <= WITHIN


def _throughputs(cluster: str, ranks: int, network: str, *rows: tuple[str, float, float]) -> list[PublishedResult]:
    """Results given as images per second on one GPU and on `ranks`."""
    source = f"Horovod README of 2017 until October, {network}, all-reduce on GPU with NCCL"
    return [
        PublishedResult(name, cluster, ranks, all_gpus / (ranks * one_gpu), source, is_described="RDMA" in network)
        for name, one_gpu, all_gpus in rows
    ]


_README = "Horovod README, October 2017: 32 servers with 4 Pascal GPUs, RoCE-capable 25 Gbit/s"
_DOCUMENTATION = "Horovod docs/benchmarks ('512-GPU Benchmark'): 128 servers with 4 Pascal GPUs, RoCE-capable 25 Gbit/s"
_NVIDIA = "NVIDIA DeepLearningExamples, PyTorch ResNet50 v1.5, training performance of March 2021"
_GOYAL = "Goyal et al., arXiv:1706.02677, section 5.5 and figure 8: from 8 to 256 P100, about 90 %"

RESULTS: tuple[PublishedResult, ...] = (
    PublishedResult("inception_v3", "horovod-roce25", 512, 0.90, _DOCUMENTATION),
    PublishedResult("resnet101", "horovod-roce25", 512, 0.90, _DOCUMENTATION),
    PublishedResult("vgg16", "horovod-roce25", 512, 0.68, _DOCUMENTATION),
    PublishedResult("resnet50", "bigbasin-ethernet50", 256, 0.90, _GOYAL, baseline_ranks=8),
    PublishedResult("inception_v3", "horovod-roce25", 128, 0.90, _README),
    PublishedResult("resnet101", "horovod-roce25", 128, 0.90, _README),
    PublishedResult("vgg16", "horovod-roce25", 128, 0.79, _README),
    *_throughputs(
        "horovod-roce25",
        16,
        "25 Gbit/s RDMA",
        ("inception_v3", 134.4, 2022.6),
        ("resnet101", 119.4, 1746.2),
        ("vgg16", 130.9, 1787.4),
    ),
    PublishedResult("resnet50", "dgx1-v100", 8, 2855 / (8 * 367), _NVIDIA, is_blind=True),
    PublishedResult("resnet50", "dgx-a100", 8, 7248 / (8 * 938), _NVIDIA, is_blind=True),
    *_throughputs(
        "horovod-tcp25",
        16,
        "25 Gbit/s TCP",
        ("inception_v3", 134.4, 1990.7),
        ("resnet101", 119.4, 1685.1),
        ("vgg16", 130.9, 1308.7),
    ),
    *_throughputs(
        "horovod-tcp40",
        64,
        "40 Gbit/s TCP",
        ("inception_v3", 148.8, 7932.1),
        ("resnet101", 136.0, 7741.6),
        ("vgg16", 149.6, 6084.2),
    ),
)
"""Every result; the first four are the ones most often quoted.

Horovod's 68 % for VGG-16 is for 128 *servers*, so 512 GPUs; for 128 GPUs the README of October 2017 has 79 %.
"""


def compare(
    assumptions: Assumptions | None = None,
    overlap: str = "fusion",
    results: Sequence[PublishedResult] = RESULTS,
) -> list[Comparison]:
    """Each published result with its prediction; all under the same assumptions (by default `Assumptions()`)."""
    return [Comparison(result, _efficiency(result, assumptions, overlap)) for result in results]


def table(comparisons: Sequence[Comparison]) -> str:
    """The comparisons as text: published and predicted efficiency in %, the difference in points."""
    lines = [f"{'model':14}{'cluster':22}{'GPUs':>9}{'published':>11}{'predicted':>11}{'difference':>12}"]
    for comparison in comparisons:
        result = comparison.published
        gpus = f"{result.baseline_ranks}→{result.ranks}"
        mark = "  blind" if result.is_blind else "" if result.is_described else "  TCP: not what is assumed"
        lines.append(
            f"{result.model:14}{result.hardware:22}{gpus:>9}{100 * result.efficiency:10.1f}%"
            f"{100 * comparison.predicted:10.1f}%{comparison.difference:+12.1f}{mark}"
        )
    return "\n".join(lines)


VARIATIONS: dict[str, tuple[float, float]] = {
    "bandwidth_share": (0.7, 0.95),
    "backward_share": (0.6, 0.75),
    "variation": (0.0, 0.05),
    "slowdown": (0.0, 0.4),
    "fusion_bytes": (16 * 2**20, 256 * 2**20),
    "cycle_seconds": (0.0, 0.02),
}
"""For each assumption that these results depend on, a low and a high value that could also be defended."""


LATENCIES = (0.5, 2.0)
"""Factors on all latencies, which are the hardware's and not among the assumptions."""


def sensitivity(results: Sequence[PublishedResult] = RESULTS[:4]) -> dict[tuple[str, float], np.ndarray]:
    """By (assumption, value), how many points each prediction changes when that assumption alone takes that value.

    The arrays are float64 (results,). Beside the assumptions in VARIATIONS there are ("latency", factor) for the
    factors in LATENCIES, and ("overlap", 0) for no overlap at all.
    """
    usual = _efficiencies(results)
    changed = {
        (name, value): _efficiencies(results, replace(Assumptions(), **{name: value}))
        for name, values in VARIATIONS.items()
        for value in values
    }
    changed |= {("latency", factor): _efficiencies(results, latency_factor=factor) for factor in LATENCIES}
    changed["overlap", 0.0] = _efficiencies(results, overlap="none")
    return {key: 100 * (efficiencies - usual) for key, efficiencies in changed.items()}


def implied_bandwidth_share(result: PublishedResult, assumptions: Assumptions | None = None) -> float:
    """The share of the link, to a hundredth, whose prediction comes closest to the published efficiency.

    The model read backwards: what the network must have given, if all other assumptions hold.
    """

    def closest(shares: np.ndarray) -> float:
        changed = [replace(assumptions or Assumptions(), bandwidth_share=float(share)) for share in shares]
        misses = [abs(_efficiency(result, one) - result.efficiency) for one in changed]
        return float(shares[int(np.argmin(misses))])

    coarse = closest(np.arange(10, 101, 10) / 100)
    around = np.round(100 * coarse) + np.arange(-9, 10)
    return closest(around[(around > 0) & (around <= 100)] / 100)


def _efficiency(
    result: PublishedResult,
    assumptions: Assumptions | None = None,
    overlap: str = "fusion",
    latency_factor: float = 1.0,
) -> float:
    machine = hardware(result.hardware)
    inside, between = (
        Link(latency_factor * link.latency, link.seconds_per_byte) for link in (machine.inside, machine.between)
    )
    prediction = predict(
        result.model,
        replace(machine, inside=inside, between=between),
        result.ranks,
        overlap=overlap,
        baseline_ranks=result.baseline_ranks,
        assumptions=assumptions,
    )
    return float(prediction.efficiency)


def _efficiencies(results: Sequence[PublishedResult], *arguments: object, **options: object) -> np.ndarray:
    return np.array([_efficiency(result, *arguments, **options) for result in results])


def describe_sensitivity(results: Sequence[PublishedResult] = RESULTS[:4]) -> str:
    """`sensitivity` as a table: points by which each prediction changes."""
    heads = "".join(f"{result.model + ' ' + str(result.ranks):>18}" for result in results)
    lines = [f"{'assumption':18}{'value':>10}{heads}"]
    for (name, value), changes in sensitivity(results).items():
        shown = f"{value / 2**20:g} MiB" if name == "fusion_bytes" else f"{value:g}"
        shown = "none" if name == "overlap" else f"× {value:g}" if name == "latency" else shown
        lines.append(f"{name:18}{shown:>10}" + "".join(f"{change:+18.1f}" for change in changes))
    return "\n".join(lines)


def describe_assumptions(assumptions: Assumptions | None = None) -> str:
    """One line for each assumption: its value and what it means."""
    assumptions = assumptions or Assumptions()
    return "\n".join(f"{name} = {getattr(assumptions, name):.3g}: {text}" for name, text in DESCRIPTIONS.items())
