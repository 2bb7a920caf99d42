"""A measurement of a cluster: what `distlab measure` writes and predictions read."""

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from distlab.runtime.errors import PlainError

FORMAT = "distlab measurement 1"
_QUARTILES_TO_DEVIATION = 2 * 0.6745  # the quartiles of a normal distribution are 0.6745 deviations from its mean


class WrongMeasurement(PlainError, ValueError):
    """A file is no measurement, or measurements do not belong together; the message is one sentence."""


@dataclass(frozen=True)
class Spread:
    """What several repeats took, in seconds."""

    median: float
    lower_quartile: float
    upper_quartile: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Spread":
        """Of the repeats."""
        lower, median, upper = np.quantile(seconds, (0.25, 0.5, 0.75))
        return cls(float(median), float(lower), float(upper))

    @property
    def relative(self) -> float:
        """The standard deviation of normal times with these quartiles, relative to the median."""
        return (self.upper_quartile - self.lower_quartile) / _QUARTILES_TO_DEVIATION / self.median


@dataclass(frozen=True)
class ClusterMeasurement:
    """One run of `distlab measure`; it names no host, user or folder.

    date: ISO 8601. versions: of Python and of the packages that decide, by name. communication: what moves the bytes.
    processor: of the ranks. model, batch: what was trained, and images per rank and step.
    gradient_bytes: of each gradient, in the order of the model's variables.
    fusion_bytes: how many bytes one all-reduce of gradients holds at most.
    ranks_per_host: one number for each host. machines: computers that these hosts are; fewer than the hosts where hosts
    are namespaces or containers of one computer and share its cores. cores: that the ranks may use, of all machines
    together. gpus: that the ranks use; 0 without. threads: of TensorFlow in each rank.
    sizes: bytes of the arrays of the sweep. all_reduces: the slowest rank's times for each, after a barrier.
    step_alone: a training step without communication while all ranks compute, the slowest rank's, after a barrier.
    gradients_alone: the all-reduce of all gradients while nothing is computed. step: a whole step, both together.
    """

    date: str
    versions: dict[str, str]
    communication: str
    processor: str
    model: str
    batch: int
    gradient_bytes: tuple[int, ...]
    fusion_bytes: int
    ranks_per_host: tuple[int, ...]
    machines: int
    cores: int
    gpus: int
    threads: int
    repeats: int
    sizes: tuple[int, ...]
    all_reduces: tuple[Spread, ...]
    step_alone: Spread
    gradients_alone: Spread
    step: Spread

    @property
    def ranks(self) -> int:
        """How many trained."""
        return sum(self.ranks_per_host)

    @property
    def hosts(self) -> int:
        """How many hosts they were on."""
        return len(self.ranks_per_host)

    @property
    def shares_cores(self) -> bool:
        """Whether several hosts are one computer."""
        return self.machines < self.hosts

    @property
    def most_ranks(self) -> int | None:
        """How many ranks it can say something about: those of one host if no network was measured, else any number."""
        return max(self.gpus or self.cores, self.ranks) if self.hosts == 1 else None

    @property
    def algorithm(self) -> str:
        """Of an all-reduce of a large array, as `costs.all_reduce` calls it: the ring, and halving-doubling with MPI.

        Gloo's default and NCCL's for large arrays is the ring (Patarasuk and Yuan, JPDC 69(2), 2009); Open MPI 4.1
        chooses Rabenseifner's algorithm (coll_tuned_decision_fixed.c).
        """
        return "halving_doubling" if "MPI" in self.communication and "nccl" not in self.versions else "ring"

    @property
    def fused_all_reduces(self) -> int:
        """How many all-reduces a step takes: as many gradients in each as fit, but none is divided."""
        return min(math.ceil(sum(self.gradient_bytes) / self.fusion_bytes), len(self.gradient_bytes))

    def source(self) -> str:
        """Where the numbers come from, in one line."""
        place = f"{self.ranks:,} rank{'s' * (self.ranks != 1)} on {self.hosts:,} host{'s' * (self.hosts != 1)}"
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        return f"measured on {self.date} with {place} ({self.communication}; {self.processor}; {versions})"


def write(measurement: ClusterMeasurement, file: Path) -> None:
    """Write it as JSON."""
    file.write_text(json.dumps({"format": FORMAT} | asdict(measurement), indent=1) + "\n")


def read(file: str | Path) -> ClusterMeasurement:
    """The measurement in a file; raises WrongMeasurement, in one sentence, for a file that holds none."""
    try:
        content = json.loads(Path(file).read_text(encoding="utf-8"), object_hook=_spread_or_entries)
        if content["format"] != FORMAT:
            raise ValueError
        entries: dict[str, Any] = {field.name: content[field.name] for field in fields(ClusterMeasurement)}
        tuples = {name: tuple(value) for name, value in entries.items() if isinstance(value, list)}
        return ClusterMeasurement(**entries | tuples)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise WrongMeasurement(f"{file} is no measurement; `distlab measure --output {file}` writes one.") from error


def _spread_or_entries(entries: dict[str, Any]) -> Any:
    return Spread(**entries) if "median" in entries else entries


def require_same_set_up(measurements: Sequence[ClusterMeasurement]) -> None:
    """Raise WrongMeasurement unless they differ in hosts and times only."""
    same = ("model", "batch", "gradient_bytes", "communication", "fusion_bytes", "threads", "processor", "versions")
    for name in (*same, "shares_cores"):
        values = list(dict.fromkeys(str(getattr(each, name)) for each in measurements))
        if len(values) > 1:
            raise WrongMeasurement(
                f"The measurements do not belong together: {name} is {' and '.join(values)}; measure them alike."
            )
