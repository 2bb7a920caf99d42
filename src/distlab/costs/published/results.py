"""Published scaling results: what was run where, how it scaled, and what a prediction of it needs.

The rows, their sources and the rules by which they were chosen are in `results.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distlab.costs.prediction.networks import BYTES_PER_PARAMETER, Measurement


@dataclass(frozen=True)
class PublishedResult:
    """A published scaling efficiency, relative to `baseline_ranks` GPUs.

    speed: of one GPU in this very experiment, where it is not the one that `MODELS` has for the machine.
    blind_test: 0 where the row was in view when the assumptions were chosen; 1 or 2 where the model computed it for the
        first time after all of them had been fixed, in the first blind test or in the second.
    program: what was run, where one machine has rows of several.
    reason: why the row may come out wrong, from what its authors say and the model leaves out.
    """

    model: str
    hardware: str
    ranks: int
    efficiency: float
    source: str
    baseline_ranks: int = 1
    speed: Measurement | None = None
    overlap: str = "fusion"
    bytes_per_parameter: int = BYTES_PER_PARAMETER
    blind_test: int = 0
    program: str = ""
    reason: str = ""


def _rows(
    network: str,
    machine: str,
    source: str,
    *,
    baseline: int = 1,
    efficiency: Mapping[str, float] | None = None,
    images_per_second: Mapping[str, float] | None = None,
    batch: int | None = None,
    one_gpu: float = 0.0,
    one_gpu_source: str = "",
    second_hand: bool = False,
    reason: str = "",
    **options: Any,
) -> Iterator[PublishedResult]:
    """A row for each number of GPUs above the baseline, from an entry of `results.toml`."""
    source = _CONTENT["sources"][source]
    efficiencies = {int(gpus): of_one for gpus, of_one in (efficiency or {}).items()}
    if images_per_second:
        speeds = {int(gpus): speed for gpus, speed in images_per_second.items()}
        baseline = min(speeds)
        one_gpu = speeds.pop(baseline) / baseline
        efficiencies = {gpus: speed / gpus / one_gpu for gpus, speed in speeds.items()}
    speed = Measurement(one_gpu, batch, one_gpu_source or source, second_hand) if batch else None
    reason = _CONTENT["reasons"][reason] if reason else ""
    for gpus, of_one in efficiencies.items():
        yield PublishedResult(network, machine, gpus, of_one, source, baseline, speed, reason=reason, **options)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
RESULTS = tuple(row for entry in _CONTENT["results"] for row in _rows(**entry))
"""Every result; the first four are the ones most often quoted."""
