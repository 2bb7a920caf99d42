"""What `predict` takes for granted; the numbers, what they mean and the reason for each are in `assumptions.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Assumptions:
    """The numbers behind a prediction, the same for every model, cluster and number of ranks; shares are fractions."""

    bandwidth_share: float
    tcp_core_bandwidth: float
    backward_share: float
    variation: float
    slowdown: float
    fusion_bytes: float
    cycle_seconds: float
    step_overhead: float
    matrix_share: float


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
ASSUMED = Assumptions(**{name: entry["number"] for name, entry in _CONTENT.items()})
MEANINGS = {name: entry["meaning"] for name, entry in _CONTENT.items()}
"""What each number is, in words."""
