"""Recorded results: what a program gave on some machine, for those who do not have what it needs.

A file holds the result and all that one must know to believe it or to make it again: framework, versions, kind of
machine, date, command, program and arguments.
"""

import json
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from distlab import devices, frameworks
from distlab.runtime.errors import PlainError

FOLDER = frameworks.PROGRAMS / "recorded"


class BadRecord(PlainError, ValueError):
    """What was recorded does not have what is asked for, or must not be kept; the message says why."""


class Recorded(NamedTuple):
    """A result and where it comes from; `date` is ISO 8601 (2026-11-20), `versions` by package, Python's among them."""

    framework: str
    versions: dict[str, str]
    machine: str
    date: str
    command: str
    program: str
    arguments: list[str]
    result: Any

    def source(self) -> str:
        """Where the result comes from, in one line."""
        versions = ", ".join(f"{package} {version}" for package, version in self.versions.items())
        return f"recorded on {self.date} ({self.machine}; {versions}) by `{self.command}`"


def machine() -> str:
    """The kind of this machine: processor, cores, GPUs."""
    gpus = devices.gpu_names()
    gpu_text = ", ".join(f"{gpus.count(name)} × {name}" for name in dict.fromkeys(gpus)) or "no GPU"
    return f"{platform.machine()}, {devices.cores()} cores, {gpu_text}"


def write(
    name: str,
    framework: str,
    versions: dict[str, str],
    command: str,
    program: str,
    arguments: list[str],
    result: object,
    folder: Path = FOLDER,
) -> None:
    """Record a result that this machine has given today."""
    today = datetime.now(UTC).date().isoformat()
    record = Recorded(framework, versions, machine(), today, command, program, arguments, result)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record._asdict(), indent=1) + "\n")


def read(name: str, folder: Path = FOLDER) -> Recorded:
    """A recorded result; raises FileNotFoundError if there is none of that name."""
    return Recorded(**json.loads((folder / f"{name}.json").read_text()))
