"""What other programs record: Horovod's timelines, MPI's calls, NCCL's tests, TensorFlow's traces and graphs.

Begin with `horovod_timeline` or `mpi_profile`. It may import runtime. `messages` and `replicas` need TensorFlow and are
imported only when they are used.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from distlab.profiling import horovod_timeline, mpi_profile, mpi_reports, nccl_tests, tensorflow_trace

if TYPE_CHECKING:
    from distlab.profiling import messages, replicas

__all__ = ["horovod_timeline", "messages", "mpi_profile", "mpi_reports", "nccl_tests", "replicas", "tensorflow_trace"]


def __getattr__(name: str) -> ModuleType:
    if name in ("messages", "replicas"):
        return import_module(f"distlab.profiling.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
