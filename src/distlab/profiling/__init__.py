"""What other programs record: Horovod's timelines, MPI's calls, NCCL's tests, TensorFlow's traces and graphs.

Begin with `horovod_timeline` or `mpi_profile`. It may import runtime. TensorFlow is imported only when it is used.
"""

from distlab.profiling import (
    horovod_timeline,
    messages,
    mpi_profile,
    mpi_reports,
    nccl_tests,
    replicas,
    tensorflow_trace,
)

__all__ = ["horovod_timeline", "messages", "mpi_profile", "mpi_reports", "nccl_tests", "replicas", "tensorflow_trace"]
