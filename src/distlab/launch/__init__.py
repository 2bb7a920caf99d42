"""Start N processes of one program on this machine, watch them, and leave none behind.

    from distlab import launch

    run = launch.tensorflow("train.py", "--steps", 20, workers=2)      # each with its TF_CONFIG
    run = launch.mpirun("train.py", ranks=4, result=True)              # run.result: what the program wrote as JSON
    run = launch.horovodrun("train.py", ranks=2)
    run = launch.torchrun("train.py", ranks=2)
    run = launch.mxnet("train.py", workers=2, servers=1)               # and a scheduler
    run = launch.alone("train.py")                                     # one process

The shell commands that do the same by hand are printed, then every line of every process, tagged with its rank, through
`print`, so that a notebook keeps them. A job that fails, hangs or is interrupted raises an error that says which rank
did, and every process of it is ended, even when this process is killed. Under TF_CONFIG the launcher gives each worker
its GPU; a program of Horovod or PyTorch chooses its own by its local rank.
"""

from distlab.launch.errors import DeadlinePassed, LaunchError, WorkerFailed, WorkerMissing
from distlab.launch.horovod import HorovodMissing, horovod_problem, require_horovod
from distlab.launch.job import Run
from distlab.launch.starters import How, alone, horovodrun, mpirun, mxnet, tensorflow, torchrun

__all__ = [
    "DeadlinePassed",
    "HorovodMissing",
    "How",
    "LaunchError",
    "Run",
    "WorkerFailed",
    "WorkerMissing",
    "alone",
    "horovod_problem",
    "horovodrun",
    "mpirun",
    "mxnet",
    "require_horovod",
    "tensorflow",
    "torchrun",
]
