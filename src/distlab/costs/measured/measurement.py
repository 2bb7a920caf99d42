"""A measurement of a cluster: what `distlab measure` writes and predictions read."""

import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from distlab.runtime.errors import PlainError

FORMAT = "distlab measurement 1"
_MOST_CORES_TAKEN = 0.1  # an idle system's own programs take less
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
    cores_taken: what other programs had of the cores that the ranks of a machine needed, from 0 to 1.
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
    cores_taken: float = 0.0

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

    def place(self) -> str:
        """Ranks and hosts in words: "2 ranks on 2 hosts"."""
        return f"{_count(self.ranks, 'rank')} on {_count(self.hosts, 'host')}"

    def source(self) -> str:
        """Where the numbers come from, in one line."""
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        return f"measured on {self.date} with {self.place()} ({self.communication}; {self.processor}; {versions})"

    def remark(self) -> str | None:
        """Why the times say little, in one sentence; None if nothing is known against them."""
        if self.cores_taken <= _MOST_CORES_TAKEN:
            return None
        return (
            f"Other programs took {self.cores_taken:.0%} of the cores that the ranks needed: do not rely on these "
            "times, and measure again on an idle machine."
        )


def write(measurement: ClusterMeasurement, file: Path) -> None:
    """Write it as JSON."""
    file.write_text(json.dumps({"format": FORMAT} | asdict(measurement), indent=1) + "\n")


def read(file: str | Path) -> ClusterMeasurement:
    """The measurement in a file; raises WrongMeasurement, in one sentence, for a file that holds none."""
    file = Path(file)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WrongMeasurement(
            f"There is no file {file}; `mpirun -np 2 distlab measure --output {file}` writes one."
        ) from None
    except OSError as error:
        raise WrongMeasurement(f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise WrongMeasurement(f"{file} is no measurement: it is no JSON file; `distlab measure` writes one.") from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise WrongMeasurement(f"{file} is no measurement of this version of `distlab measure`; measure again.")
    try:
        return _checked(content)
    except (KeyError, TypeError, ValueError) as error:
        field = error.args[0] if error.args else "a field"
        raise WrongMeasurement(f"{file} is no whole measurement: {field} is missing or wrong; measure again.") from None


def require_same_set_up(measurements: Sequence[ClusterMeasurement]) -> None:
    """Raise WrongMeasurement unless they differ in hosts and times only."""
    first = measurements[0]
    for name in ("model", "batch", "gradient_bytes", "communication", "fusion_bytes", "threads", "processor"):
        if len({getattr(each, name) for each in measurements}) > 1:
            values = " and ".join(dict.fromkeys(_short(getattr(each, name)) for each in measurements))
            raise WrongMeasurement(f"The measurements do not belong together: {name} is {values}; measure them alike.")
    for each in measurements[1:]:
        if each.versions != first.versions:
            names = sorted(first.versions.keys() | each.versions.keys())
            different = next(name for name in names if first.versions.get(name) != each.versions.get(name))
            values = f"{first.versions.get(different, 'missing')} and {each.versions.get(different, 'missing')}"
            raise WrongMeasurement(
                f"The measurements do not belong together: the version of {different} is {values}; measure them alike."
            )
        if each.shares_cores != first.shares_cores:
            raise WrongMeasurement(
                "The measurements do not belong together: in one of them the hosts share the cores of one machine."
            )


def _checked(content: dict[str, Any]) -> ClusterMeasurement:
    """Raises KeyError, TypeError or ValueError with the name of a field."""
    converted: dict[str, Any] = {}
    for field in fields(ClusterMeasurement):
        if field.name not in content:
            if field.default is not MISSING:  # earlier measurements do not have it
                continue
            raise KeyError(field.name)
        try:
            converted[field.name] = _CONVERT[field.name](content[field.name])
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ValueError(field.name) from None
    measurement = ClusterMeasurement(**converted)
    if len(measurement.sizes) != len(measurement.all_reduces):
        raise ValueError("all_reduces")
    return measurement


def _spread(content: dict[str, Any]) -> Spread:
    spread = Spread(**{name: _seconds(value) for name, value in content.items()})
    if not spread.lower_quartile <= spread.median <= spread.upper_quartile:
        raise ValueError
    return spread


def _seconds(value: float) -> float:
    if isinstance(value, bool) or not 0 < float(value) < float("inf"):
        raise ValueError
    return float(value)


def _share(value: float) -> float:
    if isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ValueError
    return float(value)


def _whole(value: object, least: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError
    return value


def _several(values: object) -> tuple[int, ...]:
    if not isinstance(values, list) or not values:
        raise ValueError
    return tuple(_whole(value) for value in values)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


_CONVERT: dict[str, Callable[[Any], object]] = {
    "date": lambda text: date.fromisoformat(text).isoformat(),
    "versions": lambda table: {_text(name): _text(version) for name, version in table.items()},
    "communication": _text,
    "processor": _text,
    "model": _text,
    "batch": _whole,
    "gradient_bytes": _several,
    "fusion_bytes": _whole,
    "ranks_per_host": _several,
    "machines": _whole,
    "cores": _whole,
    "gpus": lambda number: _whole(number, 0),
    "threads": _whole,
    "repeats": _whole,
    "sizes": _several,
    "all_reduces": lambda spreads: tuple(_spread(spread) for spread in spreads),
    "step_alone": _spread,
    "gradients_alone": _spread,
    "step": _spread,
    "cores_taken": _share,
}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _short(value: object) -> str:
    return f"{sum(value):,} in {len(value)}" if isinstance(value, tuple) else str(value)
