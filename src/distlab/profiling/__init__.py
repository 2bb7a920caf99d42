"""What other programs record: Horovod's timelines, MPI's calls, TensorFlow's traces and graphs.

Each module reads the recordings of one program: begin with `horovod_timeline` or `mpi_profile`. It may import runtime.
`messages` needs TensorFlow and is imported only when it is used.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from distlab.profiling import horovod_timeline, mpi_profile, tensorflow_trace

if TYPE_CHECKING:
    from distlab.profiling import messages

__all__ = ["horovod_timeline", "messages", "mpi_profile", "tensorflow_trace"]


def __getattr__(name: str) -> ModuleType:
    if name == "messages":
        return import_module("distlab.profiling.messages")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
