"""The ways to start a program on several hosts: TF_CONFIG, mpirun, horovodrun, torchrun and Slurm's srun."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

from distlab.cluster_spec import tf_config
from distlab.launch import rank_process, starter_options
from distlab.launch.host_connections import HostConnections
from distlab.launch.hosts import Host, travelling_environment
from distlab.launch.job import Command, Job, LaunchedRun, LaunchError, shell, side_by_side
from distlab.launch.launched_program import LaunchedProgram, Settings
from distlab.launch.rank_process import SOCKET
from distlab.launch.slurm_tasks import SRUN, SlurmTasks
from distlab.runtime.processes import MARK

# What mpirun's and horovodrun's own processes need besides what goes to the hosts.
_OF_A_SESSION = re.compile("HOME|USER|LOGNAME|SHELL|TMPDIR|SSH_AUTH_SOCK|XDG_.*")
# srun does not say by what Horovod connects; mpirun and horovodrun do.
_OF_SLURM = re.compile("(SLURM|SRUN|SBATCH)_.*|HOROVOD_(CONTROLLER|CPU_OPERATIONS)")
_NO_GPU = "-1"
_SSH = "ssh"
NO_PROXY = "no_grpc_proxy"
"""Names the hosts that gRPC, with which TensorFlow's workers talk, reaches without the proxy of a shell."""


def reporting(launched: LaunchedProgram) -> list[str]:
    """The command of a rank that another program starts."""
    return [sys.executable, "-I", "-S", rank_process.__file__, SOCKET, *launched.command]


def with_tf_config(counts: Mapping[str, int], launched: LaunchedProgram, hosts: Sequence[Host]) -> LaunchedRun:
    """One process for each task of a TF_CONFIG cluster, the hosts being filled in their order."""
    tasks = [(kind, index) for kind, count in counts.items() for index in range(count)]

    def job(connections: HostConnections) -> Job:
        places = [host.name for host in hosts for _ in range(host.count)]
        ports = {host.name: iter(connections.ready(host.name)["ports"]) for host in hosts}
        addresses = {task: f"{place}:{next(ports[place])}" for task, place in zip(tasks, places, strict=True)}
        cluster = {kind: [addresses[kind, index] for index in range(count)] for kind, count in counts.items()}
        names = {(kind, index): kind if kind == "chief" else f"{kind} {index}" for kind, index in tasks}
        gpus = {host.name: iter(_gpus(connections, host)) for host in hosts}
        has_gpus = any(connections.ready(host.name)["gpus"] for host in hosts)
        commands = []
        for task, place in zip(tasks, places, strict=True):
            variables = {"TF_CONFIG": tf_config(cluster, *task)} | _threads(connections, hosts)
            variables[NO_PROXY] = ",".join([*_unproxied(), *(host.name for host in hosts)])
            if has_gpus:
                variables["CUDA_VISIBLE_DEVICES"] = _NO_GPU if task[0] == "ps" else next(gpus[place], _NO_GPU)
            own = variables | launched.environment
            commands.append(Command(names[task], launched.command, own, place, addresses[task]))
        return Job(
            commands,
            list(names.values()),
            ["chief"] if "chief" in counts else list(names.values()),
            side_by_side([_by_hand(launched.as_typed, command) for command in reversed(commands)]),
            {names[task]: address for task, address in addresses.items()},
            hosts=dict(zip(names.values(), places, strict=True)),
        )

    return launched.with_other_ports(lambda: launched.run_on(hosts, job))


def with_torchrun(options: Sequence[str], launched: LaunchedProgram, hosts: Sequence[Host]) -> LaunchedRun:
    """One torchrun on each host, which starts the ranks there."""
    torchrun = launched.starter("torchrun")

    def job(connections: HostConnections) -> Job:
        first = hosts[0].name
        place = ["--master-addr", first, "--master-port", str(connections.ready(first)["ports"][0])]
        commands, lines = [], []
        for number, host in enumerate(hosts):
            words = ["--nnodes", str(len(hosts)), "--node-rank", str(number), "--nproc-per-node", str(host.count)]
            words += [*place, *options, "--no-python"]
            name, variables = f"torchrun {number}", _threads(connections, hosts) | launched.environment
            commands.append(Command(name, [torchrun, *words, *reporting(launched)], variables, host.name))
            lines.append(_by_hand(["torchrun", *words, *launched.as_typed], commands[-1]))
        names = [command.name for command in commands]
        return Job(commands, _ranks(hosts), names, side_by_side(lines), hosts=_places(hosts))

    return launched.run_on(hosts, job)


def with_starter(starter: Sequence[str], launched: LaunchedProgram, hosts: Sequence[Host]) -> LaunchedRun:
    """Ranks that mpirun or horovodrun starts, from this machine, over the launcher's connections."""
    name, *options = starter
    path = launched.starter(name)
    waiting = starter_options.waiting(name, options, launched.limits().seconds)

    def job(connections: HostConnections) -> Job:
        variables = _threads(connections, hosts) | launched.environment
        words = [path, *options, *waiting, *reporting(launched)]
        environment = _own_variables(_OF_A_SESSION) | variables
        if name == "horovodrun":  # it passes on all variables that it has
            words = without_mark(words)
        by_hand = shell([*starter, *launched.as_typed], variables)
        command = Command(name, words, environment, inherits=name != "horovodrun")
        return Job([command], _ranks(hosts), [name], by_hand, hosts=_places(hosts))

    return launched.run_on(hosts, job)


def hosts_option(hosts: Sequence[Host]) -> list[str]:
    """As mpirun and horovodrun name hosts."""
    return ["-H", ",".join(f"{host.name}:{host.count}" for host in hosts)]


def srun(
    program: str | Path,
    *arguments: object,
    ranks: int = 2,
    nodes: int | None = None,
    options: Sequence[str] = (),
    **settings: Unpack[Settings],
) -> LaunchedRun:
    """Run a program as tasks of Slurm, in the allocation of this shell or one of its own; `options` go to srun.

    The program gets what srun tells a task: `cluster_spec.from_slurm` makes a TF_CONFIG of it, and MPI needs the option
    --mpi=pmix where that is not the site's default. Names of the processes: "rank 0" and so on. `start_seconds`
    includes the time in the queue.
    Raises HostLost, WorkerFailed, WorkerMissing and DeadlinePassed, all LaunchErrors; nothing is left on any node.
    """
    starter_options.check(SRUN, options)
    if ranks < 1 or (nodes is not None and not 1 <= nodes <= ranks):
        raise LaunchError(
            f"ranks={ranks} on nodes={nodes} makes no sense: there must be 1 or more, on at most as many."
        )
    launched = LaunchedProgram(program, arguments, settings)
    if not (path := shutil.which(SRUN)):
        raise LaunchError(
            "There is no srun on this machine; start the launcher where Slurm's commands are, as on a login node."
        )
    size = ["--ntasks", str(ranks), *(["--nodes", str(nodes)] if nodes else [])]
    host_process = [sys.executable, "-I", "-S", str(Path(rank_process.__file__).with_name("host_process.py"))]
    command = without_mark([path, *size, "--input=all", "--kill-on-bad-exit=0", *options, *host_process])
    environment = _own_variables(_OF_A_SESSION) | _own_variables(_OF_SLURM) | launched.environment
    job = Job(
        [Command(SRUN, command, environment, inherits=False)],
        [f"rank {rank}" for rank in range(ranks)],
        [SRUN],
        shell([SRUN, *size, *options, *launched.as_typed], launched.environment),
    )
    return launched.run(job, SlurmTasks(launched.for_other_hosts(), launched.command, {}))


def without_mark(command: Sequence[str]) -> list[str]:
    """The command without this machine's mark, which must not go to other hosts; who runs it here has the mark."""
    return [sys.executable, "-I", "-S", rank_process.__file__, "-", "env", f"--unset={MARK}", *command]


def _own_variables(pattern: "re.Pattern[str]") -> dict[str, str]:
    return travelling_environment() | {name: value for name, value in os.environ.items() if pattern.fullmatch(name)}


def _ranks(hosts: Sequence[Host]) -> list[str]:
    return [f"rank {rank}" for rank in range(sum(host.count for host in hosts))]


def _places(hosts: Sequence[Host]) -> dict[str, str]:
    return dict(zip(_ranks(hosts), [host.name for host in hosts for _ in range(host.count)], strict=True))


def _by_hand(typed: Sequence[str], command: Command) -> str:
    """For a shell here: the command in this folder on its host."""
    assert command.host
    there = f"cd {shell([str(Path.cwd())], {})} && {shell(typed, command.environment)}"
    return shell([_SSH, command.host, there], {})


def _threads(connections: HostConnections, hosts: Sequence[Host]) -> dict[str, str]:
    """As on one machine: a process uses its share of the cores of its host, the least of all."""
    share = str(max(1, min(connections.ready(host.name)["cores"] // host.count for host in hosts)))
    return {name: share for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS") if name not in os.environ}


def _gpus(connections: HostConnections, host: Host) -> list[str]:
    """One for each process of a host that has enough, none otherwise."""
    gpus: list[str] = connections.ready(host.name)["gpus"]
    return gpus if len(gpus) >= host.count else []


def _unproxied() -> list[str]:
    return [name for name in os.environ.get(NO_PROXY, "").split(",") if name]
