"""Recorded results: what a program gave on some machine, for those who do not have what it needs.

A file holds the result and all that one must know to believe it or to make it again: framework, versions, kind of
machine, date, command, program and arguments.
"""

import json
import platform
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, NamedTuple

from distlab import devices, frameworks
from distlab.runtime.errors import PlainError

FOLDER = frameworks.PROGRAMS / "recorded"


class BadRecord(PlainError, ValueError):
    """A recorded result does not say what it must; the message names the file and the field."""


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
    """Record a result that this machine has given today; raises BadRecord, and writes nothing, if a field is wrong."""
    today = datetime.now(UTC).date().isoformat()
    record = Recorded(framework, versions, machine(), today, command, program, arguments, result)
    _check(record._asdict(), name)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(record._asdict(), indent=1) + "\n")


def read(name: str, folder: Path = FOLDER) -> Recorded:
    """A recorded result; raises BadRecord if there is none of that name or a field is missing or wrong."""
    try:
        fields = json.loads((folder / f"{name}.json").read_text())
    except FileNotFoundError:
        raise BadRecord(f"There is no recorded result {name}.") from None
    _check(fields, name)
    return Recorded(**fields)


def measured_or_recorded(name: str, missing: str | None, run: Callable[[], Any]) -> tuple[Any, str]:
    """What `run` gives, unless something is `missing`, then the recorded result; and a line that says which it is."""
    if missing:
        record = read(name)
        return record.result, f"{record.source()}. {missing}"
    return run(), "measured here"


def _check(fields: object, name: str) -> None:
    if not isinstance(fields, dict) or set(fields) != set(Recorded._fields):
        raise BadRecord(f"{name}.json must have exactly the fields {', '.join(Recorded._fields)}.")
    for field in ("framework", "machine", "command", "program"):
        if not isinstance(fields[field], str) or not fields[field].strip():
            raise BadRecord(f"{name}.json: {field} must be text.")
    if "cores" not in fields["machine"] or "GPU" not in fields["machine"]:
        raise BadRecord(f"{name}.json: machine must say cores and GPUs, as in 'x86_64, 2 cores, no GPU'.")
    versions = fields["versions"]
    if not isinstance(versions, dict) or "python" not in versions or len(versions) < 2 or not all(versions.values()):
        raise BadRecord(f"{name}.json: versions must name Python's and the framework's.")
    try:
        date.fromisoformat(fields["date"])
    except (TypeError, ValueError):
        raise BadRecord(f"{name}.json: date must be like 2026-11-20.") from None
    if not fields["result"]:
        raise BadRecord(f"{name}.json: there is no result.")
