"""Another launcher, such as `mpirun -np 2` in front of `distlab launch`, that has started this one several times.

Variables do not say so: they stay in the shells, and the batch scripts, that a rank starts. Who started this process
is certain.
"""

import os
import re
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import psutil

from distlab.launch.job import LaunchError

# What starts a rank and how many ranks it says there are, by the command that a person types. The numbered steps of a
# job are srun's; in the others Slurm runs a batch script, or the shell of an allocation, once.
_STARTERS = {
    "mpirun": (re.compile("mpirun|mpiexec|orterun|orted|prterun|prted"), "OMPI_COMM_WORLD_SIZE"),
    "mpiexec": (re.compile("hydra_pmi_proxy"), "PMI_SIZE"),
    "horovodrun": (re.compile("horovodrun"), "HOROVOD_SIZE"),
    "srun": (re.compile(r"slurmstepd: \[\S+\.\d+\]"), "SLURM_STEP_NUM_TASKS"),
}


def refuse() -> None:
    """Raise LaunchError if another launcher has started several of this process: each would run the whole job."""
    with suppress(psutil.Error):  # who started this process is not to be seen
        own = psutil.Process()
        for task, starter in pairwise([own, *own.parents()]):
            _check(task, starter)


def _check(task: psutil.Process, starter: psutil.Process) -> None:
    titles = {starter.name(), Path((starter.cmdline() or [""])[0]).name, " ".join(starter.cmdline())}
    for name, (pattern, size) in _STARTERS.items():
        count = os.environ.get(size, "")
        if not any(map(pattern.fullmatch, titles)) or not count.isdecimal() or int(count) < 2:
            continue
        if name == "srun" and task.terminal():  # `srun --pty bash`: other tasks of the step have ended without one
            continue
        raise LaunchError(
            f"{name} has started {count} launchers, each of which would run the whole job: leave out {name} in front "
            "of `distlab launch`, which starts the ranks itself."
        )
