"""The ways to start N processes of one program: TF_CONFIG, mpirun, horovodrun, torchrun, or one."""

import importlib.util
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from distlab import devices
from distlab.cluster_spec import tf_config
from distlab.launch import elastic_hosts, rank_process, starter_options
from distlab.launch.job import Command, Job, LaunchedRun, LaunchError, free_addresses, shell, side_by_side
from distlab.launch.launched_program import LaunchedProgram, Settings
from distlab.launch.rank_process import SOCKET

PROCESSES = 2
MOST_PROCESSES = 1024
# Two processes of TensorFlow on one GPU compete for its memory, and NCCL refuses them.
_NO_GPU = "-1"


def tensorflow(
    program: str | Path,
    *arguments: object,
    workers: int = PROCESSES,
    parameter_servers: int = 0,
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a TensorFlow program as a cluster of processes, each with its TF_CONFIG.

    Without parameter servers the cluster has `workers` processes of type worker. With them it also has a chief, and
    the job is over when the chief ends; the launcher then ends the workers and the parameter servers. Names of the
    processes: "worker 0", "chief", "ps 0". The chief and each worker get their own GPU where there are enough, and none
    otherwise.
    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    _check_count("parameter_servers", parameter_servers, 0)
    _check_count("workers", workers, 1)
    counts = {"chief": 1, "worker": workers, "ps": parameter_servers} if parameter_servers else {"worker": workers}
    launched = LaunchedProgram(program, arguments, settings)
    if workers > 1 and launched.begins_with("horovod"):
        raise LaunchError(
            f"{launched.name} trains with Horovod, which does not look at TF_CONFIG: each of {workers} workers would "
            'train alone; start them by launch.mpirun or launch.horovodrun, or with "--with mpirun".'
        )
    return launched.with_other_ports(lambda: launched.run(_cluster(counts, launched)))


def alone(program: str | Path, *arguments: object, **settings: Unpack[Settings]) -> LaunchedRun:
    """Run a program as one process, which may start others; its name is "program".

    Raises WorkerFailed and DeadlinePassed, both LaunchErrors; in no case is a process left.
    """
    launched = LaunchedProgram(program, arguments, settings)
    command = Command("program", launched.command, launched.environment)
    return launched.run(Job([command], [], [command.name], shell(launched.as_typed, launched.environment)))


def mpirun(
    program: str | Path,
    *arguments: object,
    ranks: int = PROCESSES,
    options: Sequence[str] = (),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a program as ranks of MPI; `options` go to mpirun. Names of the processes: "rank 0" and so on.

    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    as_root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    starter_options.check("mpirun", options)
    # With more ranks than cores those that wait must not spin.
    polite = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # A rank that fails would wait for the others in MPI's finalisation, and they for it: mpi4py aborts the job.
    abort_on_failure = ["-m", "mpi4py"] if importlib.util.find_spec("mpi4py") else []
    launched = LaunchedProgram(program, arguments, settings, abort_on_failure)
    return _run_ranks(["mpirun", *as_root, *polite, "-np", str(ranks), *options], launched, ranks)


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
    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    starter_options.check("horovodrun", options)
    _check_own_name()
    launched = LaunchedProgram(program, arguments, settings)
    script = elastic_hosts.script_of(options)
    if script is not None:
        elastic_hosts.check(script)
    return _run_ranks(["horovodrun", "-np", str(ranks), *options], launched, ranks, script is not None)


def mxnet(
    program: str | Path, *arguments: object, workers: int = 2, servers: int = 1, **settings: Unpack[Settings]
) -> LaunchedRun:
    """Run a program of MXNet with a scheduler, `servers` that hold the key-value store, and `workers`.

    The job is over when all workers are; the launcher then ends the rest. Names of the processes: "scheduler",
    "server 0", "worker 0". MXNet numbers the workers itself, in the order in which they come: "worker 0" may have
    another rank. `start_seconds` is for the scheduler.
    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    _check_count("workers", workers, 1)
    _check_count("servers", servers, 1)
    launched = LaunchedProgram(program, arguments, settings)
    decisive = _names("worker", workers)

    def job() -> Job:
        [address] = free_addresses(1)
        host, _, port = address.partition(":")
        place = {"DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port, "DMLC_NODE_HOST": host}
        place |= {"DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": str(servers)}
        commands = [
            Command(
                name,
                launched.command,
                {"DMLC_ROLE": name.split()[0]} | place | _threads(workers) | launched.environment,
            )
            for name in ["scheduler", *_names("server", servers), *decisive]
        ]
        by_hand = side_by_side([shell(launched.as_typed, command.environment) for command in commands])
        return Job(commands, ["scheduler"], decisive, by_hand, {"scheduler": address})

    return launched.with_other_ports(lambda: launched.run(job()))


def torchrun(
    program: str | Path,
    *arguments: object,
    ranks: int = PROCESSES,
    options: Sequence[str] = (),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a PyTorch program under torchrun; `options` go to it. Names of the processes: "rank 0" and so on.

    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    starter_options.check("torchrun", options)
    launched = LaunchedProgram(program, arguments, settings)
    starter = ["torchrun", "--standalone", "--no-python", "--nproc-per-node", str(ranks), *options]
    return _run_ranks(starter, launched, ranks)


def _check_own_name() -> None:
    """Raise LaunchError when this machine's name has no address: Horovod's ranks would end by signal 11."""
    try:
        socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
    except OSError:
        name = socket.gethostname()
        raise LaunchError(
            f"The name of this machine, {name}, has no address, by which Horovod's ranks find each other; add the line "
            f"'127.0.1.1 {name}' to /etc/hosts."
        ) from None


def _run_ranks(
    starter: Sequence[str], launched: LaunchedProgram, ranks: int, ranks_may_fail: bool = False
) -> LaunchedRun:
    """Run a job whose ranks are started by one command, each through `rank_process`."""
    _check_count("ranks", ranks, 1)
    name, *options = starter
    variables = _threads(ranks) | launched.environment
    reporting = [sys.executable, "-I", "-S", rank_process.__file__, SOCKET]
    waiting = [] if ranks_may_fail else starter_options.waiting(name, options, launched.limits().seconds)
    command = Command(name, [launched.starter(name), *options, *waiting, *reporting, *launched.command], variables)
    by_hand = shell([*starter, *launched.as_typed], variables)
    return launched.run(Job([command], _names("rank", ranks), [name], by_hand, ranks_may_fail=ranks_may_fail))


def _cluster(counts: Mapping[str, int], launched: LaunchedProgram) -> Job:
    """A job of one process for each task of a TF_CONFIG cluster, at addresses that are free now."""
    tasks = [(kind, index) for kind, count in counts.items() for index in range(count)]
    addresses = dict(zip(tasks, free_addresses(len(tasks)), strict=True))
    cluster = {kind: [addresses[kind, index] for index in range(count)] for kind, count in counts.items()}
    computing = [task for task in tasks if task[0] != "ps"]
    gpus = dict(zip(computing, _gpus(len(computing)), strict=True))
    names = {(kind, index): kind if kind == "chief" else f"{kind} {index}" for kind, index in tasks}
    commands = []
    for task in tasks:
        variables = {"TF_CONFIG": tf_config(cluster, *task)} | _threads(len(computing))
        if any(gpus.values()):
            variables["CUDA_VISIBLE_DEVICES"] = gpus.get(task) or _NO_GPU
        commands.append(Command(names[task], launched.command, variables | launched.environment))
    by_hand = side_by_side([shell(launched.as_typed, command.environment) for command in reversed(commands)])
    decisive = ["chief"] if "chief" in counts else list(names.values())
    by_name = {names[task]: address for task, address in addresses.items()}
    return Job(commands, list(names.values()), decisive, by_hand, by_name)


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind} {index}" for index in range(count)]


def _threads(count: int) -> dict[str, str]:
    """Variables that let each of `count` processes use its share of the cores, so that they do not compete for them."""
    share = str(max(1, devices.cores() // count))
    return {name: share for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS") if name not in os.environ}


def _gpus(count: int) -> Sequence[str | None]:
    """A GPU for each of `count` processes, `_NO_GPU` for each if there are too few, None without any."""
    gpus = [str(index) for index in range(len(devices.gpu_names()))]
    if gpus and "CUDA_VISIBLE_DEVICES" in os.environ:
        gpus = [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name not in ("", _NO_GPU)]
    if not gpus:
        return [None] * count
    return gpus[:count] if len(gpus) >= count else [_NO_GPU] * count


def _check_count(name: str, value: int, least: int) -> None:
    if not hasattr(value, "__index__"):
        raise LaunchError(f"{name}={value!r} makes no sense: it must be a whole number.")
    if value < least:
        raise LaunchError(f"{name}={value} makes no sense: it must be {least} or more.")
    if value > MOST_PROCESSES:
        raise LaunchError(f"{name}={value} is too many for one machine: {MOST_PROCESSES:,} are the most.")
