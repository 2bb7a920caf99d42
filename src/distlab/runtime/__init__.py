"""What every process of the course relies on: errors, processes, environment variables, lookups, tables.

It imports nothing else of distlab. Begin with `processes` (start, watch and end programs) and `errors`.
"""

import importlib
from types import ModuleType


def __getattr__(name: str) -> ModuleType:
    """`processes` is loaded when it is first used: each Python of the environment imports this package as it starts."""
    if name == "processes":
        return importlib.import_module("distlab.runtime.processes")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
