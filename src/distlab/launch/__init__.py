"""Start N processes of one program on this machine, watch them, and leave none behind; see `starters`.

    run = launch.tensorflow("train.py", "--steps", 20, workers=2)      # each with its TF_CONFIG
    run = launch.mpirun("train.py", "--out", "{result}", ranks=4)      # run.result: what it wrote to that file as JSON

Every line of every process but TensorFlow's C++ notes is printed, tagged with its rank, unless echo=False. A job that
fails, hangs or is interrupted raises an error that says which rank did, and every process of it is ended, even when
this process is killed. Under TF_CONFIG the launcher gives each worker its GPU; a program of Horovod or PyTorch
chooses its own by its local rank.
It imports `cluster_spec`, `devices` and `runtime` only.
"""

from typing import TYPE_CHECKING

from distlab.launch.horovod import HorovodMissing, horovod_problem, require_horovod
from distlab.launch.job import DeadlinePassed, LaunchedRun, LaunchError, Settings, WorkerFailed, WorkerMissing
from distlab.launch.starters import alone, horovodrun, mpirun, mxnet, tensorflow, torchrun

if TYPE_CHECKING:
    from distlab.launch.engines import Engines

__all__ = [
    "DeadlinePassed",
    "HorovodMissing",
    "LaunchError",
    "LaunchedRun",
    "Settings",
    "WorkerFailed",
    "WorkerMissing",
    "alone",
    "horovod_problem",
    "horovodrun",
    "mpirun",
    "mxnet",
    "require_horovod",
    "start_engines",
    "tensorflow",
    "torchrun",
]


def start_engines(ranks: int) -> "Engines":
    """Start that many ranks of one MPI job, which wait for cells with `%%px`; see `engines`."""
    from distlab.launch import engines  # it imports Jupyter's kernel

    return engines.start_engines(ranks)
