"""What Slurm makes of a job script, without a cluster: the job that it asks for, the steps of its srun, its logs.

The text of a script is data here: nothing of it is run. A test compares the rules with a real Slurm's.
"""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from lab_15.slurm_options import SBATCH, SRUN, Refused, TooLong

MAGIC = "#SBATCH"
MOST_NODES, CPUS_PER_NODE, LONGEST, MOST_TASKS = 16, 8, 48 * 3600, 1001
SIGNALS = {"HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "ALRM": 14, "TERM": 15}
SIGNALS |= {"CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24}


@dataclass(frozen=True)
class Notice:
    """A signal before the time limit: its number, how many seconds before; whether the script alone gets it."""

    number: int
    seconds: int
    to_script: bool


@dataclass(frozen=True)
class BatchJob:
    """What a script asks for.

    least_nodes: fewer than `nodes` if a range is asked for.  seconds: the time limit, None without one; time: as it is
    written.  ntasks: None if only the number of nodes is asked for.  array: the
    numbers of its tasks, none without an array; at_once: how many may run at the same time, None without a limit.
    late: lines that look like options after the first command, which sbatch does not read; comments: lines before it
    that look like options, and are none.
    """

    interpreter: list[str]
    name: str
    nodes: int
    least_nodes: int
    ntasks: int | None
    tasks_per_node: int | None
    cpus_per_task: int | None
    cpus_per_node: int
    seconds: int | None
    time: str
    output: str | None
    appends: bool
    requeues: bool | None
    notice: Notice | None
    array: list[int]
    at_once: int | None
    late: list[str]
    comments: list[str]

    @property
    def ranks(self) -> int:
        """The tasks that a plain srun starts."""
        return self.ntasks or self.nodes

    def log(self, job: int, task: int | None = None) -> str:
        """The name of the log of a job, or of one task of the array `job`."""
        number = job if task is None else job + 1 + self.array.index(task)
        values = {"%": "%", "x": self.name, "u": "student", "N": "node1", "t": "0", "n": "0"}
        values |= {"j": str(number), "J": str(number), "A": str(job), "a": str(2**32 - 2 if task is None else task)}
        pattern = self.output or ("slurm-%j.out" if task is None else "slurm-%A_%a.out")

        def replaced(match: re.Match[str]) -> str:
            width, letter = match[1], match[2]
            value = values.get(letter, match[0])
            return value.zfill(min(int(width), 10)) if width and value.isdigit() else value

        return re.sub(r"%(\d{0,4})([A-Za-z%])", replaced, pattern)

    def environment(self, job: int, attempt: int = 0, task: int | None = None) -> dict[str, str]:
        """The variables that Slurm sets for the script."""
        number = str(job if task is None else job + 1 + self.array.index(task))
        nodelist = "node1" if self.nodes == 1 else f"node[1-{self.nodes}]"
        variables = {"JOB_ID": number, "JOBID": number, "JOB_NAME": self.name, "JOB_NODELIST": nodelist}
        variables |= {"NODELIST": nodelist, "JOB_NUM_NODES": str(self.nodes), "NNODES": str(self.nodes)}
        variables |= {"PROCID": "0", "NODEID": "0", "LOCALID": "0", "JOB_PARTITION": "lab", "CLUSTER_NAME": "lab"}
        variables |= {"JOB_USER": "student", "SUBMIT_HOST": "login", "CPUS_ON_NODE": str(self.cpus_per_node)}
        variables["JOB_CPUS_PER_NODE"] = _on_each(self.cpus_per_node, self.nodes)
        variables["TASKS_PER_NODE"] = _on_each(-(-self.ranks // max(self.nodes, 1)), self.nodes)
        if self.cpus_per_task:
            variables["CPUS_PER_TASK"] = str(self.cpus_per_task)
        if self.ntasks:
            variables |= {"NTASKS": str(self.ntasks), "NPROCS": str(self.ntasks)}
        if self.tasks_per_node:
            variables["NTASKS_PER_NODE"] = str(self.tasks_per_node)
        if attempt:
            variables["RESTART_COUNT"] = str(attempt)
        if task is not None:
            variables |= {"ARRAY_JOB_ID": str(job), "ARRAY_TASK_ID": str(task)}
            variables |= {"ARRAY_TASK_COUNT": str(len(self.array)), "ARRAY_TASK_MIN": str(min(self.array))}
            variables["ARRAY_TASK_MAX"] = str(max(self.array))
        return {f"SLURM_{name}": value for name, value in variables.items()}


def _on_each(count: int, nodes: int) -> str:
    """As Slurm writes the same number for each node: "2" or "2(x4)"."""
    return str(count) if nodes == 1 else f"{count}(x{nodes})"


def submitted(text: str) -> BatchJob:
    """What sbatch makes of a script. Raises Refused with what it says."""
    if not text.strip():
        raise Refused("sbatch: error: Batch script is empty!")
    if not text.startswith("#!"):
        raise Refused("sbatch: error: This does not look like a batch script. The first line must start with #!")
    if "\r" in text:
        raise Refused("sbatch: error: Batch script contains DOS line breaks")
    lines = text.splitlines()
    first = next((place for place, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#"), len(lines))
    options: dict[str, str] = {}
    for line in lines[:first]:
        if line.startswith(MAGIC):
            pairs, rest = SBATCH.parsed(_words(line[len(MAGIC) :]))
            if rest:
                raise Refused(f"sbatch: error: Invalid directive found in batch script: {rest[0]}")
            for name, value in pairs:
                if name in ("requeue", "no-requeue"):
                    name, value = "requeue", name
                options[name] = value
    late = [line for line in lines[first:] if line.startswith(MAGIC)]
    comments = [line for line in lines[:first] if re.match(rf"(?!{MAGIC})\s*#\s*{MAGIC[1:]}\b", line)]
    return _job(options, lines[0][2:].split(), late, comments)


def _words(text: str) -> list[str]:
    """The words of a line of options; a # ends it wherever it is."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        return list(lexer)
    except ValueError:
        raise Refused(f"sbatch: error: a quotation mark is not closed in {MAGIC}{text}") from None


def _job(options: dict[str, str], interpreter: list[str], late: list[str], comments: list[str]) -> BatchJob:
    least, nodes = _nodes(options["nodes"]) if "nodes" in options else (None, None)
    per_node = _count("ntasks-per-node", options)
    ntasks = _count("ntasks", options)
    per_task = _count("cpus-per-task", options) or 1
    if nodes is None:
        nodes = -(-(ntasks or 1) // (per_node or CPUS_PER_NODE // per_task or 1))
    if ntasks is not None:
        nodes = min(nodes, ntasks)
    elif per_node is not None:
        ntasks = nodes * per_node
    if nodes > MOST_NODES:
        raise Refused(f"sbatch: error: Node count specification invalid (there are {MOST_NODES} nodes)")
    slots = -(-(ntasks or nodes) // max(nodes, 1)) * per_task
    if slots > CPUS_PER_NODE or (per_node and ntasks and ntasks > per_node * nodes):
        raise Refused("sbatch: error: Requested node configuration is not available")
    seconds = _seconds(options["time"]) if "time" in options else None
    if seconds is not None and not 0 < seconds <= LONGEST:
        raise TooLong(options["time"], seconds)
    array, at_once = _array(options["array"]) if "array" in options else ([], None)
    return BatchJob(
        interpreter,
        options.get("job-name", "script"),
        nodes,
        min(least or nodes, nodes),
        ntasks,
        per_node,
        _count("cpus-per-task", options),
        CPUS_PER_NODE if "exclusive" in options else slots,
        seconds,
        options.get("time", ""),
        options.get("output") or None,
        options.get("open-mode", "").lower().startswith("a"),
        {"requeue": True, "no-requeue": False}.get(options.get("requeue", "")),
        _notice(options["signal"]) if "signal" in options else None,
        array,
        at_once,
        late,
        comments,
    )


def _nodes(text: str, command: str = "sbatch") -> tuple[int, int]:
    """The fewest and the most nodes of "4" or "2-4"."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", text)
    if not match:
        raise Refused(f'{command}: error: "{text}" is not a valid node count')
    return int(match[1]), int(match[2] or match[1])


def _count(name: str, options: dict[str, str], command: str = "sbatch") -> int | None:
    if name not in options:
        return None
    if not re.fullmatch(r"[1-9]\d{0,5}", options[name]):
        raise Refused(f'{command}: error: Invalid numeric value "{options[name]}" for --{name}.')
    return int(options[name])


def _seconds(text: str) -> int:
    """Of minutes, minutes:seconds, hours:minutes:seconds, or days-hours with or without minutes and seconds."""
    match = re.fullmatch(r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d{1,6}))?(?::(\d{1,6}))?", text)
    if text.lower() in ("unlimited", "infinite", "-1"):
        return 0
    if not match:
        raise Refused("sbatch: error: Invalid --time specification")
    days, *rest = (None if part is None else int(part) for part in match.groups())
    first, second, third = rest
    assert first is not None
    if days is not None or third is not None:
        return ((days or 0) * 24 + first) * 3600 + (second or 0) * 60 + (third or 0)
    return first * 60 + (second or 0)


def _notice(text: str) -> Notice:
    match = re.fullmatch(r"(?:([RB]{1,2}):)?([A-Za-z0-9]+) *(?:@(\d{1,5}))?", text)
    if match:
        name = match[2].upper().removeprefix("SIG")
        number = int(name) if name.isdigit() else SIGNALS.get(name, 0)
        seconds = int(match[3] or 60)
        if 0 < number < 65 and seconds <= 65535:
            return Notice(number, seconds, "B" in (match[1] or ""))
    raise Refused("sbatch: error: Invalid --signal specification")


def _array(text: str) -> tuple[list[int], int | None]:
    indices, percent, at_once = text.partition("%")
    tasks: set[int] = set()
    for part in indices.removeprefix("[").removesuffix("]").split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?", part)
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1) or 1) if match else range(0)
        if not numbers or numbers[-1] >= MOST_TASKS:
            raise Refused("sbatch: error: Batch job submission failed: Invalid job array specification")
        tasks |= set(numbers)
    limit = int(at_once) if percent and at_once.isdigit() else 0
    return sorted(tasks), limit or None


@dataclass(frozen=True)
class Step:
    """What one srun starts: so many tasks of a program on so many nodes; whether one that fails ends the others.

    waits: the seconds that the others have when the first task has ended; None without a limit.
    """

    nodes: int
    tasks: int
    kills: bool
    waits: int | None
    program: list[str]


def step(words: Sequence[str], job: BatchJob) -> Step:
    """What `srun words…` starts in the script of a job. Raises Refused."""
    pairs, program = SRUN.parsed(words)
    options = dict(pairs)
    if not program:
        raise Refused("srun: fatal: No command given to execute.")
    asked = _count("ntasks", options, "srun")
    nodes = _nodes(options["nodes"], "srun")[1] if "nodes" in options else None
    per_node = _count("ntasks-per-node", options, "srun") or 1
    tasks = asked or job.ntasks or (nodes or job.nodes) * per_node
    nodes = min(nodes or job.nodes, tasks)
    if nodes > job.nodes or tasks > nodes * job.cpus_per_node:
        what = f"{tasks} tasks on {nodes} node{'s' * (nodes > 1)}"
        raise Refused(f"srun: error: Unable to create step: {what} are more than the job has there")
    kills = options.get("kill-on-bad-exit", "0")
    if not re.fullmatch(r"\d{0,5}", kills):
        raise Refused(f'srun: error: Invalid numeric value "{kills}" for --kill-on-bad-exit.')
    waits = options.get("wait", "") or "0"
    if not re.fullmatch(r"\d{1,7}", waits):
        raise Refused(f'srun: error: Invalid numeric value "{waits}" for --wait.')
    return Step(nodes, tasks, kills != "0", int(waits) or None, program)
