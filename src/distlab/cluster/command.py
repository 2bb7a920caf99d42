"""`distlab cluster up`, `run`, `status`, `link` and `down`: the cluster on the command line."""

import argparse
import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from distlab import valid
from distlab.cluster.cluster import NODES, Cluster, check_place, find, not_running, up
from distlab.cluster.holder import end
from distlab.cluster.record import DEFAULT_NAME, ClusterError, ClusterRecord, RunsAlready
from distlab.cluster.running import carry_out
from distlab.cluster.status import status
from distlab.runtime import processes

if TYPE_CHECKING:
    from argparse import _SubParsersAction

ALL = "all"
# What a shell does itself; a student types these in front of sbatch as at home.
_WORDS_OF_SHELLS = {"cd", "export", "source", ".", "set", "unset", "alias", "ulimit", "umask", "module", "exit"}


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand, with subcommands of its own, to the parser of `distlab`."""
    cluster = commands.add_parser("cluster", help="a Slurm cluster on this machine: up, run, status, link, down")
    actions = cluster.add_subparsers(required=True, metavar="ACTION")

    def add(name: str, run: Callable[[argparse.Namespace], int], help_text: str) -> argparse.ArgumentParser:
        parser = actions.add_parser(name, help=help_text)
        parser.add_argument("--name", default=DEFAULT_NAME, help="which cluster, if there are several")
        parser.set_defaults(run=run)
        return parser

    start = add("up", _up, "start it")
    start.add_argument("--nodes", type=valid.whole, help=f"how many nodes (default: {NODES})")
    enter = add("run", _run, "run a command on its login node: run -- COMMAND")
    enter.set_defaults(takes_program=True)
    add("status", _status, "show its nodes, links and jobs")
    link = add("link", _link, "limit, cut or restore the link of a node")
    link.add_argument("node", help=f"the node, or {ALL}")
    link.add_argument("--rate", help="in each direction, such as 100mbit (default: unlimited)")
    link.add_argument("--latency", help="added in each direction, such as 5ms (default: none)")
    cable = link.add_mutually_exclusive_group()
    cable.add_argument("--cut", action="store_true", help="unplug the cable")
    cable.add_argument("--restore", action="store_true", help="plug it in again")
    add("down", _down, "end it with every job; nothing of it stays")


def _running(options: argparse.Namespace) -> Cluster:
    check_place()
    cluster = find(options.name)
    if cluster is None:
        raise ClusterError(not_running(options.name))
    return cluster


def _up(options: argparse.Namespace) -> int:
    processes.end_on_signals()
    start = time.monotonic()
    try:
        cluster = up(options.name, NODES if options.nodes is None else options.nodes)
        text, exit_status = _ready(cluster, time.monotonic() - start), 0
    except RunsAlready:
        text, exit_status = _runs_already(_running(options), options.nodes)
    try:
        print(text, flush=True)
    except BrokenPipeError:  # `make cluster | head -1`
        print(f"The cluster {options.name!r} runs; nobody reads any more what else there is to say.", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # Python writes what is left when it ends
    return exit_status


def _ready(cluster: Cluster, seconds: float) -> str:
    name = "" if cluster.name == DEFAULT_NAME else f"--name {cluster.name} "
    command = f"distlab cluster run {name}-- srun --nodes {len(cluster.nodes())} hostname"
    return f"The cluster is ready after {seconds:.1f} s.\n\n{status(cluster).text}\n\nTry: {command}"


def _runs_already(cluster: Cluster, nodes_asked: int | None) -> tuple[str, int]:
    nodes = len(cluster.nodes())
    state = status(cluster)
    text = f"The cluster {cluster.name!r} runs already.\n\n{state.text}"
    if nodes_asked in (None, nodes):
        return text, 0 if state.takes_jobs else 1
    return f"{text}\n\nIt has {nodes} nodes, not {nodes_asked}: end it first, or start another one with --name.", 1


def _run(options: argparse.Namespace) -> int:
    if not options.program_arguments:
        raise ClusterError("Say which command to run: distlab cluster run -- srun --nodes 3 hostname")
    first, *more = options.program_arguments
    if " " in first and not more and not Path(first).exists():
        line = shlex.quote(first)
        raise ClusterError(
            f"{line} is one word, and no command; a line for a shell: distlab cluster run -- sh -c {line}"
        )
    if first in _WORDS_OF_SHELLS and not shutil.which(first):
        line = shlex.quote(f"{first} … && sbatch …")
        raise ClusterError(
            f"{first} is a word of the shell, and no program: distlab cluster run -- sh -c {line}. A command keeps the "
            "folder and the variables that you have here."
        )
    return carry_out(_running(options), options.program_arguments)


def _status(options: argparse.Namespace) -> int:
    state = status(_running(options))
    print(state.text)
    return 0 if state.takes_jobs else 1


def _link(options: argparse.Namespace) -> int:
    if (options.cut or options.restore) and (options.rate or options.latency):
        raise ClusterError("Cut or restore a link first; then say its limits in a second command.")
    cluster = _running(options)
    for node in cluster.nodes() if options.node == ALL else [options.node]:
        if options.cut:
            cluster.cut(node)
        elif options.restore:
            cluster.restore(node)
        else:
            cluster.link(node, options.rate, options.latency)
    return _status(options)


def _down(options: argparse.Namespace) -> int:
    check_place()
    record = ClusterRecord(options.name)
    ran = record.holder() is not None
    if ran or record.folder.exists():
        with record.locked():
            end(record)
    print("The cluster has ended; nothing of it stays." if ran else f"The cluster {options.name!r} does not run.")
    return 0
