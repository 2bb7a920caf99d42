"""The ways to start N processes of one program on this machine: TF_CONFIG, mpirun, horovodrun, torchrun, or one."""

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from distlab import devices
from distlab.cluster_spec import tf_config
from distlab.launch import by_hand, ports, rank_process
from distlab.launch.errors import LaunchError, PortTaken
from distlab.launch.job import Command, Job, Limits, Run
from distlab.launch.supervisor import SOCKET, Supervisor

# Importing TensorFlow alone takes a loaded machine most of a minute.
SECONDS, START_SECONDS = 600.0, 120.0
# How often to try with other ports.
_ATTEMPTS = 3
# Two processes of TensorFlow on one GPU fight for its memory, and NCCL refuses them.
_NO_GPU = "-1"


class How(TypedDict, total=False):
    """What every way of starting takes besides.

    seconds: for the whole job (600).  start_seconds: until every rank has connected (120).  echo: print the shell
    commands that do the same by hand, and every line as it comes (True).  result: add `--result FILE` to the arguments
    and read that JSON file afterwards (False).  environment: variables of all processes, which win over those that the
    launcher sets.  python: the interpreter of another environment that runs the program, with its torchrun beside it
    (this one's).
    """

    seconds: float
    start_seconds: float
    echo: bool
    result: bool
    environment: Mapping[str, str]
    python: str | Path


def tensorflow(
    program: str | Path, *arguments: object, workers: int = 2, parameter_servers: int = 0, **how: Unpack[How]
) -> Run:
    """Run a TensorFlow program as a cluster of processes, each with its TF_CONFIG.

    Without parameter servers the cluster has `workers` processes of type worker. With them it has a chief besides, and
    the job is over when the chief ends; the launcher then ends the workers and the parameter servers. Names of the
    processes: "worker 0", "chief", "ps 0". The chief and each worker get a GPU of their own where there are enough, and
    none otherwise.
    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    _check_count("workers", workers, 1)
    _check_count("parameter_servers", parameter_servers, 0)
    counts = {"chief": 1, "worker": workers, "ps": parameter_servers} if parameter_servers else {"worker": workers}

    def job(arguments: list[str], as_typed: list[str]) -> Job:
        return _cluster(counts, [_python(how), *arguments], ["python", *as_typed], how.get("environment", {}))

    return _with_other_ports(job, program, arguments, how)


def alone(program: str | Path, *arguments: object, **how: Unpack[How]) -> Run:
    """Run a program as one process, which may start others; its name is "program".

    Raises WorkerFailed and DeadlinePassed, both LaunchErrors; in no case is a process left.
    """
    name, variables = "program", dict(how.get("environment", {}))

    def job(arguments: list[str], as_typed: list[str]) -> Job:
        command = Command(name, [_python(how), *arguments], variables)
        return Job([command], [], [name], by_hand.shell(["python", *as_typed], variables))

    return _run(job, program, arguments, how)


def mpirun(
    program: str | Path, *arguments: object, ranks: int = 2, options: Sequence[str] = (), **how: Unpack[How]
) -> Run:
    """Run a program as ranks of MPI; `options` go to mpirun. Names of the processes: "rank 0" and so on.

    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    as_root = ["--allow-run-as-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    # With more ranks than cores those that wait must not spin.
    polite = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    # A rank that fails would wait for the others in MPI's finalisation, and they for it: mpi4py aborts the job.
    abort_on_failure = ["-m", "mpi4py"] if importlib.util.find_spec("mpi4py") else []
    starter = ["mpirun", *as_root, *polite, "-np", str(ranks), *options]
    return _run_ranks(starter, abort_on_failure, program, arguments, ranks, how)


def horovodrun(
    program: str | Path,
    *arguments: object,
    ranks: int = 2,
    options: Sequence[str] = ("--gloo",),
    **how: Unpack[How],
) -> Run:
    """Run a program under horovodrun; `options` go to it. Names of the processes: "rank 0" and so on.

    With --host-discovery-script among the options the job is elastic: ranks may fail, and only horovodrun's own exit
    code counts. Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    starter = ["horovodrun", "-np", str(ranks), *options]
    return _run_ranks(starter, [], program, arguments, ranks, how, "--host-discovery-script" in options)


def mxnet(program: str | Path, *arguments: object, workers: int = 2, servers: int = 1, **how: Unpack[How]) -> Run:
    """Run a program of MXNet with a scheduler, `servers` that hold the key-value store, and `workers`.

    The job is over when all workers are; the launcher then ends the rest. Names of the processes: "scheduler",
    "server 0", "worker 0". MXNet numbers the workers itself, in the order in which they come: "worker 0" may have
    another rank. `start_seconds` is for the scheduler.
    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    _check_count("workers", workers, 1)
    _check_count("servers", servers, 1)
    names = ["scheduler", *_names("server", servers), *_names("worker", workers)]

    def job(arguments: list[str], as_typed: list[str]) -> Job:
        [address] = ports.free_addresses(1)
        host, _, port = address.partition(":")
        place = {"DMLC_PS_ROOT_URI": host, "DMLC_PS_ROOT_PORT": port, "DMLC_NODE_HOST": host}
        place |= {"DMLC_NUM_WORKER": str(workers), "DMLC_NUM_SERVER": str(servers)}
        commands, shown = [], []
        for name in names:
            variables = {"DMLC_ROLE": name.split()[0]} | place | _threads(workers) | dict(how.get("environment", {}))
            commands.append(Command(name, [_python(how), *arguments], variables))
            shown.append(by_hand.shell(["python", *as_typed], variables))
        decisive = _names("worker", workers)
        return Job(commands, ["scheduler"], decisive, by_hand.side_by_side(shown), {"scheduler": address})

    return _with_other_ports(job, program, arguments, how)


def torchrun(
    program: str | Path, *arguments: object, ranks: int = 2, options: Sequence[str] = (), **how: Unpack[How]
) -> Run:
    """Run a PyTorch program under torchrun; `options` go to it. Names of the processes: "rank 0" and so on.

    Raises WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; in no case is a process left.
    """
    starter = ["torchrun", "--standalone", "--no-python", "--nproc-per-node", str(ranks), *options]
    return _run_ranks(starter, [], program, arguments, ranks, how)


def _run_ranks(
    starter: list[str],
    python_options: list[str],
    program: str | Path,
    arguments: Sequence[object],
    ranks: int,
    how: How,
    ranks_may_fail: bool = False,
) -> Run:
    """Run a job whose ranks are started by one command, each through `rank_process`."""
    _check_count("ranks", ranks, 1)
    name = starter[0]
    beside = shutil.which(name, path=Path(how["python"]).parent) if "python" in how else None
    path = beside or shutil.which(name)
    if not path:
        raise LaunchError(f"There is no {name} in this environment; `make doctor` says what is missing and the mend.")
    variables = _threads(ranks) | dict(how.get("environment", {}))
    reporting = [sys.executable, "-I", "-S", rank_process.__file__, SOCKET]

    def job(arguments: list[str], as_typed: list[str]) -> Job:
        command = [path, *starter[1:], *reporting, _python(how), *python_options, *arguments]
        shown = by_hand.shell([*starter, "python", *python_options, *as_typed], variables)
        names = [f"rank {rank}" for rank in range(ranks)]
        return Job([Command(name, command, variables)], names, [name], shown, ranks_may_fail=ranks_may_fail)

    return _run(job, program, arguments, how)


def _cluster(
    counts: Mapping[str, int], arguments: list[str], as_typed: list[str], environment: Mapping[str, str]
) -> Job:
    """A job of one process for each task of a TF_CONFIG cluster, at addresses that are free now."""
    tasks = [(kind, index) for kind, count in counts.items() for index in range(count)]
    addresses = dict(zip(tasks, ports.free_addresses(len(tasks)), strict=True))
    cluster = {kind: [addresses[kind, index] for index in range(count)] for kind, count in counts.items()}
    computing = [task for task in tasks if task[0] != "ps"]
    gpus = dict(zip(computing, _gpus(len(computing)), strict=True))
    commands, shown = [], []
    for kind, index in tasks:
        variables = {"TF_CONFIG": tf_config(cluster, kind, index)} | _threads(len(computing))
        if any(gpus.values()):
            variables["CUDA_VISIBLE_DEVICES"] = gpus.get((kind, index), _NO_GPU)
        variables |= dict(environment)
        commands.append(Command(_task_name(kind, index), arguments, variables))
        shown.append(by_hand.shell(as_typed, variables))
    names = {task: _task_name(*task) for task in tasks}
    decisive = ["chief"] if "chief" in counts else list(names.values())
    by_name = {names[task]: address for task, address in addresses.items()}
    return Job(commands, list(names.values()), decisive, by_hand.side_by_side(shown[::-1]), by_name)


def _with_other_ports(
    make_job: Callable[[list[str], list[str]], Job], program: str | Path, arguments: Sequence[object], how: How
) -> Run:
    """Run the job, again with the other ports of a new one when a port was taken meanwhile."""
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return _run(make_job, program, arguments, how)
        except PortTaken:
            if attempt == _ATTEMPTS:
                raise
            if how.get("echo", True):
                _print("Another program took one of the ports meanwhile; starting again with other ports.")
    raise AssertionError("every attempt returns or raises")


def _run(
    make_job: Callable[[list[str], list[str]], Job], program: str | Path, arguments: Sequence[object], how: How
) -> Run:
    """Run the job that `make_job` makes of the program's arguments, as they are and as one would type them."""
    program = Path(program)
    if not program.is_file():
        raise LaunchError(f"There is no program {program}; give the path of a Python file.")
    if not shutil.which(_python(how)):
        raise LaunchError(f"There is no interpreter {_python(how)}; make that environment first, or leave python= out.")
    texts = [str(argument) for argument in arguments]
    wants_result, echoes = how.get("result", False), how.get("echo", True)
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        file = Path(folder) / "result.json"
        command = [str(program.resolve()), *texts, *(["--result", str(file)] if wants_result else [])]
        as_typed = [by_hand.short_path(program), *texts, *(["--result", file.name] if wants_result else [])]
        job = make_job(command, as_typed)
        if echoes:
            print(job.by_hand, flush=True)
        limits = Limits(how.get("seconds", SECONDS), how.get("start_seconds", START_SECONDS))
        run = Supervisor(job, limits, _print if echoes else lambda line: None).run()
        if wants_result:
            if not file.exists():
                raise LaunchError(f"{program} ended well but wrote no file --result, as it should.", run)
            run.result = json.loads(file.read_text())
        return run


def _python(how: How) -> str:
    return str(how.get("python", sys.executable))


def _print(line: str) -> None:
    print(line, flush=True)


def _names(kind: str, count: int) -> list[str]:
    return [f"{kind} {index}" for index in range(count)]


def _task_name(kind: str, index: int) -> str:
    return kind if kind == "chief" else f"{kind} {index}"


def _threads(count: int) -> dict[str, str]:
    """Variables that let each of `count` processes use its share of the cores, so that they do not fight for them."""
    share = str(max(1, devices.cores() // count))
    return {name: share for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS") if name not in os.environ}


def _gpus(count: int) -> list[str | None]:
    """A GPU for each of `count` processes, `_NO_GPU` for each if there are too few to go round, None without any."""
    found = [str(index) for index in range(len(devices.gpu_names()))]
    if found and "CUDA_VISIBLE_DEVICES" in os.environ:
        found = [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name not in ("", _NO_GPU)]
    if not found:
        return [None] * count
    return found[:count] if len(found) >= count else [_NO_GPU] * count


def _check_count(name: str, value: int, least: int) -> None:
    if value < least:
        raise LaunchError(f"{name}={value} makes no sense: it must be {least} or more.")
