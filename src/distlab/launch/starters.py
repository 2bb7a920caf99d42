"""The ways to start N processes of one program: TF_CONFIG, mpirun, horovodrun, torchrun, MXNet's roles, or one.

All accept the fields of `job.Settings` by name. All raise LaunchError, once processes run WorkerFailed, WorkerMissing
or DeadlinePassed; in no case is one left.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Unpack

from distlab import devices
from distlab.cluster_spec import tf_config
from distlab.launch.job import Command, Job, LaunchedProgram, LaunchedRun, Settings, free_addresses
from distlab.launch.supervisor import run

PROCESSES = 2
# Two processes of TensorFlow on one GPU compete for its memory, and NCCL refuses them.
_NO_GPU = "-1"


def tensorflow(
    program: str | Path,
    *arguments: object,
    workers: int = PROCESSES,
    parameter_servers: int = 0,
    may_lose: bool = False,
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a TensorFlow program as a cluster of processes, each with its TF_CONFIG.

    Without parameter servers the cluster has `workers` processes of type worker. With them it also has a chief, and
    the job is over when the chief ends; the launcher then ends the workers and the parameter servers. Names of the
    processes: "worker 0", "chief", "ps 0". The chief and each worker get their own GPU where there are enough, and none
    otherwise.

    may_lose: with parameter servers, only the chief's end counts; it may go on without a worker.
    """
    counts = {"chief": 1, "worker": workers, "ps": parameter_servers} if parameter_servers else {"worker": workers}
    tasks = {(kind, index): f"{kind} {index}" for kind, count in counts.items() for index in range(count)}
    tasks |= {("chief", 0): "chief"} if parameter_servers else {}
    names = list(tasks.values())
    gpus, threads = _gpus(tasks), thread_variables(len(tasks) - parameter_servers)
    launched = LaunchedProgram(program, arguments, **settings)

    def job() -> Job:
        addresses = dict(zip(names, free_addresses(len(names)), strict=True))
        cluster = {kind: [addresses[tasks[kind, index]] for index in range(count)] for kind, count in counts.items()}
        commands = [
            Command(name, {"TF_CONFIG": tf_config(cluster, *task), **threads, **gpus[task], **launched.environment})
            for task, name in tasks.items()
        ]
        return Job(commands, names, ["chief"] if parameter_servers else names, addresses, may_lose)

    return run(launched, job)


def alone(program: str | Path, *arguments: object, **settings: Unpack[Settings]) -> LaunchedRun:
    """Run a program as one process, which may start others; its name is "program"."""
    launched = LaunchedProgram(program, arguments, **settings)
    return run(launched, lambda: Job([Command("program", launched.environment)], [], ["program"]))


def mpirun(
    program: str | Path,
    *arguments: object,
    ranks: int = PROCESSES,
    options: Sequence[str] = (),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a program as ranks of MPI; `options` go to mpirun. Names of the processes: "rank 0" and so on."""
    as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    # With more ranks than cores those that wait must not spin.
    polite = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # A rank that fails would wait for the others in MPI's finalisation, and they for it: mpi4py aborts the job.
    abort_on_failure = ["-m", "mpi4py"]
    launched = LaunchedProgram(program, arguments, abort_on_failure, **settings)
    return _run_ranks(launched, ranks, "mpirun", [*as_root, *polite, "-np", str(ranks), *options])


def horovodrun(
    program: str | Path,
    *arguments: object,
    ranks: int = PROCESSES,
    options: Sequence[str] = ("--gloo",),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a program under horovodrun; `options` go to it. Names of the processes: "rank 0" and so on.

    With --host-discovery-script among the options the job is elastic: ranks may fail, and only horovodrun's own exit
    code counts.
    """
    launched = LaunchedProgram(program, arguments, **settings)
    is_elastic = any(option.startswith("--host-discovery-script") for option in options)
    return _run_ranks(launched, ranks, "horovodrun", ["-np", str(ranks), *options], is_elastic)


def mxnet(
    program: str | Path, *arguments: object, workers: int = 2, servers: int = 1, **settings: Unpack[Settings]
) -> LaunchedRun:
    """Run a program of MXNet with a scheduler, `servers` that hold the key-value store, and `workers`.

    The job is over when all workers are; the launcher then ends the rest. Names of the processes: "scheduler",
    "server 0", "worker 0". MXNet numbers the workers itself, in the order in which they come: "worker 0" may have
    another rank. `start_seconds` is for the scheduler.
    """
    launched = LaunchedProgram(program, arguments, **settings)
    decisive = _names("worker", workers)

    def job() -> Job:
        [address] = free_addresses(1)
        host, _, port = address.partition(":")
        place = {"DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port, "DMLC_NODE_HOST": host}
        place |= {"DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": str(servers)} | thread_variables(workers)
        commands = [
            Command(name, {"DMLC_ROLE": name.split()[0], **place, **launched.environment})
            for name in ["scheduler", *_names("server", servers), *decisive]
        ]
        return Job(commands, ["scheduler"], decisive, {"scheduler": address})

    return run(launched, job)


def torchrun(
    program: str | Path,
    *arguments: object,
    ranks: int = PROCESSES,
    options: Sequence[str] = (),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a PyTorch program under torchrun; `options` go to it. Names of the processes: "rank 0" and so on."""
    launched = LaunchedProgram(program, arguments, **settings)
    own_options = ["--standalone", "--no-python", "--nproc-per-node", str(ranks), *options]
    return _run_ranks(launched, ranks, "torchrun", own_options)


def _run_ranks(
    launched: LaunchedProgram, ranks: int, starter: str, options: Sequence[str], ranks_may_fail: bool = False
) -> LaunchedRun:
    """Run a job whose ranks are started by one command."""
    command = Command(
        starter, {**thread_variables(ranks), **launched.environment}, [launched.starter(starter), *options]
    )
    return run(launched, lambda: Job([command], _names("rank", ranks), [starter], ranks_may_fail=ranks_may_fail))


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind} {index}" for index in range(count)]


def thread_variables(count: int) -> dict[str, str]:
    """Variables that let each of `count` processes use its share of the cores, so that they do not compete for them."""
    share = str(max(1, devices.cores() // count))
    return {name: share for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS") if name not in os.environ}


def _gpus(tasks: Iterable[tuple[str, int]]) -> dict[tuple[str, int], dict[str, str]]:
    """Variables that give each task but parameter servers its own GPU, or no task one if there are too few."""
    gpus = [str(index) for index in range(len(devices.gpu_names()))]
    if gpus and "CUDA_VISIBLE_DEVICES" in os.environ:
        gpus = [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name not in ("", _NO_GPU)]
    if not gpus:
        return {task: {} for task in tasks}
    computing = [task for task in tasks if task[0] != "ps"]
    own = dict(zip(computing, gpus, strict=False)) if len(gpus) >= len(computing) else {}
    return {task: {"CUDA_VISIBLE_DEVICES": own.get(task, _NO_GPU)} for task in tasks}
