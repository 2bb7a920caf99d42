"""Set-up of a machine: the doctor, the build of Horovod's wheel, the other frameworks and their environments.

It may import the teaching library and `runtime`, never `labs`, `grading`, `sandbox` or `course`. Begin with `command`,
which has the subcommands. Notebooks reach `setup.doctor` and `setup.frameworks`.
"""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """`doctor` and `frameworks` are loaded when they are first used: `distlab setup` itself needs little."""
    if name in ("doctor", "frameworks"):
        return importlib.import_module(f"distlab.setup.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
