"""The login node of the cluster as a notebook uses it: what commands print there now, or what they printed once.

Where the cluster of this machine runs (`make cluster`), commands run on it. Elsewhere the notebook gets what the same
calls gave when it was recorded, so that every cell runs on every machine.
"""

import atexit
import re
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import Any

from distlab import recorded_results
from distlab.cluster.cluster import Cluster
from distlab.cluster.namespaces import ClusterError, missing
from distlab.recorded_results import BadRecord
from distlab.runtime.startup_notes import NOTES
from distlab.runtime.tables import as_typed

RECORD = "notebook"
"""Name of the file with all that a notebook was told, in the folder `recorded` of its programs."""

COMMAND = "make record-cluster"
SECONDS_FOR_A_COMMAND = 300.0
SECONDS_FOR_A_JOB = 800.0
SECONDS_BETWEEN_LOOKS = 0.2
HOW_TO_MEASURE = "Run `make cluster` in a terminal, then this notebook again, and it measures."


class LoginNode:
    """Runs commands on a cluster's login node, or reads what they gave from the record.

    Each call keeps what it gives, by its kind and its words, for `record`. Jobs that still wait or run when Python
    ends are cancelled, and the limits of the links are taken away.
    """

    def __init__(self, cluster: Cluster | None, folder: Path, programs: Path, without: str | None = None) -> None:
        """`cluster`: None reads the record, which `programs` has. `folder`: where commands run, which all nodes see.

        `without` says in one sentence why the record is read.
        """
        self._cluster, self._folder, self._programs = cluster, Path(folder), Path(programs)
        self._kept: dict[str, list[Any]] = {}
        self._jobs: list[int] = []
        if self._cluster:
            self._slurm = self._said("srun --version").split()[-1]
            self._free_links()
            atexit.register(self.close)
        else:
            self._recorded = recorded_results.read(RECORD, self._programs / "recorded")
            self._why = without or missing() or HOW_TO_MEASURE

    def source(self) -> str:
        """One sentence: whether this notebook measures, and if not, what it shows and how to measure."""
        if self._cluster:
            count = len(self._cluster.nodes())
            return f"Measured here: the cluster of this machine runs, with {count} nodes and Slurm {self._slurm}."
        return f"Recorded results: {self._recorded.source()}. {self._why}"

    def recorded_only(self, reason: str | None) -> "LoginNode":
        """The same, but from the record if something is missing here, which `reason` says; None changes nothing."""
        return self if reason is None else LoginNode(None, self._folder, self._programs, reason)

    def parameter(self, name: str, value: Any) -> Any:
        """The value of a notebook's parameter, or the one with which it was recorded."""
        return self._result(f"parameter {name}", lambda: value)

    def write(self, name: str, text: str) -> None:
        """Write a file into the folder on the cluster."""
        (self._folder / name).write_text(text)

    def run(self, command: str) -> None:
        """Run a shell command there; print it, and what it prints."""
        self._print(command)

    def submit(self, command: str) -> int:
        """The same with a command that submits a job; returns the job's id."""
        output = self._print(command)
        match = re.search(r"Submitted batch job (\d+)", output)
        if not match:
            raise ClusterError(f"Slurm did not take the job: {output.strip()}")
        self._jobs.append(int(match[1]))
        return int(match[1])

    def wait(self, job: int, until: str | None = None) -> str:
        """Wait until a job has ended, or is in the state `until`; its state, or several of a job array's tasks."""

        def look(state: str) -> str | None:
            if state:
                return state if state == until else None
            states = re.findall(r"\bJobState=(\w+)", self._said(f"scontrol show job {job}"))
            return ", ".join(sorted(set(states)))

        return str(self._result(f"wait {job} {until or 'end'}", lambda: self._look(job, look)))

    def wait_for(self, job: int, file: str, pattern: str) -> str:
        """Wait until a line of a job's file matches a regular expression; the last match, or its group."""
        path = self._folder / file

        def look(state: str) -> str | None:
            matches = re.findall(pattern, path.read_text(errors="replace"), re.MULTILINE) if path.exists() else []
            if not matches and not state:
                raise ClusterError(f"Job {job} ended before {pattern!r} was in {file}.")
            return self._neutral(str(matches[-1])) if matches else None

        return str(self._result(f"wait for {pattern} in {file}", lambda: self._look(job, look)))

    def read(self, file: str) -> str:
        """The text of a file that a job wrote."""
        return str(self._result(f"read {file}", lambda: self._neutral((self._folder / file).read_text())))

    def measure(self, name: str, function: Callable[[], Any]) -> Any:
        """What a function gives that needs the files of the jobs, as plain data (what JSON can hold)."""
        return self._result(f"measure {name}", function)

    def link(self, rate: str | None = None, latency: str | None = None) -> None:
        """Limit every node's link in each direction, to a rate such as "100mbit" and by a latency such as "5ms"."""
        words = [f"--rate {rate}" if rate else "", f"--latency {latency}" if latency else ""]
        print(f"$ {' '.join(filter(None, ['distlab cluster link all', *words]))}")
        if self._cluster:
            for name in self._cluster.nodes():
                self._cluster.link(name, rate, latency)

    def record(self) -> Path:
        """Write all that the calls gave on the cluster as the record; returns its file."""
        versions = {"slurm": self._slurm, "python": python_version()}
        versions |= {package: version(package) for package in ("tensorflow", "horovod")}
        folder = self._programs / "recorded"
        recorded_results.write(RECORD, "Slurm", versions, COMMAND, "notebook", [], self._kept, folder)
        return folder / f"{RECORD}.json"

    def close(self) -> None:
        """Cancel the jobs that still wait or run, and take the limits of the links away."""
        if self._cluster:
            atexit.unregister(self.close)
            if self._jobs:
                self._said(f"scancel --quiet {' '.join(map(str, self._jobs))}")
            self._free_links()

    def _print(self, command: str) -> str:
        output = str(self._result(command, lambda: self._said(command)))
        print(f"$ {as_typed(command)}\n{output}".rstrip())
        return output

    def _result(self, key: str, act: Callable[[], Any]) -> Any:
        key = self._neutral(key)
        if self._cluster:
            value = act()
            self._kept.setdefault(key, []).append(value)
            return value
        values = self._recorded.result.get(key)
        if not values:
            raise BadRecord(f"The record does not have {key!r}. {HOW_TO_MEASURE}")
        return values.pop(0) if len(values) > 1 else values[0]  # a cell that is run again gets the last one again

    def _said(self, command: str) -> str:
        assert self._cluster
        variables = [f"--chdir={self._folder}", "TF_CPP_MIN_LOG_LEVEL=3"]
        finished = self._cluster.run(["env", *variables, "bash", "-c", command], SECONDS_FOR_A_COMMAND)
        if finished.status is None:
            raise ClusterError(f"'{command}' did not end within {SECONDS_FOR_A_COMMAND:g} s: {finished.output}")
        return self._neutral(finished.output)

    def _look(self, job: int, look: Callable[[str], str | None]) -> str:
        """Look until there is something; `look` is told the job's state, nothing of a job that has ended."""
        deadline = time.monotonic() + SECONDS_FOR_A_JOB
        while (found := look(self._said(f"squeue --noheader --jobs={job} --format=%T").strip())) is None:
            if time.monotonic() > deadline:
                raise ClusterError(f"Job {job} did not end within {SECONDS_FOR_A_JOB:g} s; look at it with squeue.")
            time.sleep(SECONDS_BETWEEN_LOOKS)
        return found

    def _free_links(self) -> None:
        assert self._cluster
        for name, link in self._cluster.links().items():
            if link.rate or link.latency:
                self._cluster.link(name)

    def _neutral(self, text: str) -> str:
        """Without paths of this machine, and without TensorFlow's notes about its start."""
        text = "".join(line for line in text.splitlines(keepends=True) if not NOTES.match(line))
        return text.replace(str(self._folder), "~/jobs").replace(sys.prefix, ".venv")
