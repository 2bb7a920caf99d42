"""A fake Slurm for students' job scripts: what sbatch and srun make of their options, and what bash does with the rest.

The `#SBATCH` lines are read here, by the rules of Slurm 22.05; its test has what a real one said. The script runs by
bash next to the student's code, among fake commands that note how they were called. No job is submitted.
"""

import getopt
import os
import re
import shlex
import signal
import subprocess
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, NotPlain
from distlab.labs.number_judge import counted
from distlab.labs.plain_data import Plain, as_record

MOST_NODES, CPUS_PER_NODE, LONGEST, MOST_TASKS = 16, 256, 48 * 3600, 1001


class Refused(Exception):
    """Slurm does not take this; the message is a sentence."""


class WrongScript(AnswerError):
    """The script has a mistake for which nothing else can be judged; the message is its hint."""


class NeverEnds(WrongScript):
    """The script was stopped."""


# Options -------------------------------------------------------------------------------------------------------------

_OPTIONS = tomllib.loads(Path(__file__).with_name("slurm_options.toml").read_text())
_NUMBER = r"([1-9]\d{0,5})", 'Invalid numeric value "{text}" for --{name}.'
_NATURAL = r"(\d{0,7})", _NUMBER[1]
_FORMS = {
    "nodes": (r"(\d{1,6})(?:-(\d{1,6}))?", '"{text}" is not a valid node count'),
    "time": (r"(?:(\d{1,6})-)?(\d{1,6})(?::(\d{1,6}))?(?::(\d{1,6}))?", "Invalid --time specification"),
    "signal": (r"(?i)(?:([RB]{1,2}):)?(?:SIG)?([A-Z0-9]+) *(?:@(\d{1,5}))?", "Invalid --signal specification"),
    **dict.fromkeys(("ntasks", "ntasks-per-node", "cpus-per-task"), _NUMBER),
    **dict.fromkeys(("wait", "kill-on-bad-exit"), _NATURAL),
}
"""What the value of an option must look like, and what Slurm says of another one."""


def read_options(command: str, words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Options of sbatch or srun by long name ("" without a value; the last one counts), and the words after them.

    Raises Refused. Python's getopt knows no optional values before 3.14: with a value such an option has another name.
    """
    known = (_OPTIONS["both"] + _OPTIONS[command]).split()
    letters = f"{_OPTIONS['letters']['both']} {_OPTIONS['letters'][command]}".split()
    names_of = dict(zip(letters[::2], letters[1::2], strict=True))
    optional = [name[:-1] for name in known if name.endswith("?")]

    def named(word: str) -> str:
        is_long = word.startswith("--")
        name, _, value = word[2:].partition("=") if is_long else (names_of.get(word[1:2]), "", word[2:])
        return f"--{name}-is={value}" if word[:1] == "-" and name in optional and value else word

    names = [name.rstrip("?") for name in known] + [f"{name}-is=" for name in optional]
    short = "".join(letter + ":" * (f"{name}=" in names) for letter, name in names_of.items())
    try:
        pairs, rest = getopt.getopt([*map(named, words)], short, names)
    except getopt.GetoptError as error:
        raise Refused(f"{command}: {error.msg}") from None
    options: dict[str, str] = {}
    for option, value in pairs:
        name = names_of[option[1:]] if option[1] != "-" else option[2:].removesuffix("-is")
        if name in ("requeue", "no-requeue"):
            name, value = "requeue", name
        options["ntasks-per-node" if name == "tasks-per-node" else name] = value
    return options, list(words)[len(words) - len(rest) :]


def _match(options: Mapping[str, str], name: str, command: str = "sbatch") -> re.Match[str] | None:
    """The parts of an option's value; None without the option. Raises Refused."""
    form, message = _FORMS[name]
    match = re.fullmatch(form, options.get(name, ""))
    if name in options and match is None:
        raise Refused(f"{command}: error: {message.format(name=name, text=options[name])}")
    return match if name in options else None


def _count(options: Mapping[str, str], name: str, command: str = "sbatch") -> int | None:
    """The number in an option's value, the larger one of a range; None without the option. Raises Refused."""
    match = _match(options, name, command)
    return int(match[match.lastindex or 1] or 0) if match else None


# Jobs ----------------------------------------------------------------------------------------------------------------


class BatchJob:
    """What a script asks for.

    options: by long name.  least_nodes: fewer than `nodes` if a range is asked for.  ntasks: None if only the number of
    nodes is asked for.  seconds: the time limit, None without one.  array: the numbers of its tasks, none without an
    array; at_once: how many may run at the same time, None without a limit.  notice: a signal before the time limit, as
    its number, how many seconds before, and whether the script alone gets it.  ignored: lines that look like options,
    and are none.
    """

    def __init__(self, text: str, longest: int | None = None) -> None:
        """What sbatch makes of a text; no job may take more than `longest` seconds. Raises Refused, WrongScript."""
        self.interpreter, self.options, self.ignored = _read(text)
        options = self.options
        nodes, least = _count(options, "nodes"), _match(options, "nodes")
        per_node, ntasks, cpus = (_count(options, name) for name in ("ntasks-per-node", "ntasks", "cpus-per-task"))
        if nodes is None:
            nodes = -(-(ntasks or 1) // (per_node or CPUS_PER_NODE // (cpus or 1) or 1))
        if ntasks is not None:
            nodes = min(nodes, ntasks)
        elif per_node is not None:
            ntasks = nodes * per_node
        if nodes > MOST_NODES:
            raise Refused(f"sbatch: error: Node count specification invalid (there are {MOST_NODES} nodes)")
        self.nodes, self.least_nodes, self.ntasks = nodes, min(int(least[1]) if least else nodes, nodes), ntasks
        self.tasks_per_node, self.cpus_per_task = per_node, cpus
        self.name, self.ranks = options.get("job-name", "script"), ntasks or nodes
        self.array, self.at_once = _array(options["array"]) if "array" in options else ([], None)
        self.seconds, self.notice = _seconds(options, longest or LONGEST), _notice(options)
        self.most_per_node = -(-self.ranks // max(nodes, 1))
        self.cpus_per_node = CPUS_PER_NODE if "exclusive" in options else self.most_per_node * (cpus or 1)
        if self.cpus_per_node > CPUS_PER_NODE or (per_node and ntasks and ntasks > per_node * nodes):
            raise Refused("sbatch: error: Requested node configuration is not available")

    def _number(self, job: int, task: int | None) -> int:
        return job if task is None else job + 1 + self.array.index(task)

    def log(self, job: int, task: int | None = None) -> str:
        """The path of the log of a job, or of one task of the array `job`."""
        number, of_task = self._number(job, task), 2**32 - 2 if task is None else task
        values = {"%": "%", "x": self.name, "u": "student", "N": "node1", "t": 0, "n": 0}
        values |= {"j": number, "J": number, "A": job, "a": of_task}
        pattern = self.options.get("output") or ("slurm-%j.out" if task is None else "slurm-%A_%a.out")

        def replaced(match: re.Match[str]) -> str:
            value = values.get(match[2], match[0])
            return str(value).zfill(min(int(match[1] or 0), 10) if isinstance(value, int) else 0)

        return os.path.normpath(re.sub(r"%(\d{0,4})([A-Za-z%])", replaced, pattern))

    def environment(self, job: int, attempt: int = 0, task: int | None = None) -> dict[str, str]:
        """The variables that Slurm sets for the script."""
        nodelist, each = ("node1", "") if self.nodes == 1 else (f"node[1-{self.nodes}]", f"(x{self.nodes})")
        variables = {
            **dict.fromkeys(("JOB_ID", "JOBID"), self._number(job, task)),
            **dict.fromkeys(("JOB_NODELIST", "NODELIST"), nodelist),
            **dict.fromkeys(("JOB_NUM_NODES", "NNODES"), self.nodes),
            **dict.fromkeys(("NTASKS", "NPROCS"), self.ntasks),
            **dict.fromkeys(("PROCID", "NODEID", "LOCALID"), 0),
            "JOB_NAME": self.name,
            "JOB_PARTITION": "lab",
            "CPUS_ON_NODE": self.cpus_per_node,
            "JOB_CPUS_PER_NODE": f"{self.cpus_per_node}{each}",
            "TASKS_PER_NODE": f"{self.most_per_node}{each}",
            "CPUS_PER_TASK": self.cpus_per_task,
            "NTASKS_PER_NODE": self.tasks_per_node,
            "RESTART_COUNT": attempt or None,
        }
        if task is not None:
            variables |= {"ARRAY_JOB_ID": job, "ARRAY_TASK_ID": task, "ARRAY_TASK_COUNT": len(self.array)}
            variables |= {"ARRAY_TASK_MIN": min(self.array), "ARRAY_TASK_MAX": max(self.array)}
        return {f"SLURM_{name}": str(value) for name, value in variables.items() if value is not None}


def _read(text: str) -> tuple[list[str], dict[str, str], list[str]]:
    """The interpreter of a script, its options, and lines that are only meant for options. Raises as BatchJob does."""
    if not text.startswith("#!"):
        raise Refused("sbatch: error: This does not look like a batch script. The first line must start with #!")
    if "\r" in text:
        raise Refused("sbatch: error: Batch script contains DOS line breaks")
    lines = text.splitlines()
    first = next((place for place, line in enumerate(lines) if line.strip() and line.lstrip()[0] != "#"), len(lines))
    options: dict[str, str] = {}
    for place, line in enumerate(lines):
        if not line.startswith("#SBATCH"):
            continue
        if place >= first:
            raise WrongScript(f"`{quoted(line)}` comes after the first command. What does sbatch read there?")
        try:
            words = shlex.split(line.removeprefix("#SBATCH"), comments=True)  # a # ends it wherever it is
        except ValueError:
            raise Refused(f"sbatch: error: a quotation mark is not closed in {line}") from None
        own, rest = read_options("sbatch", words)
        if rest:
            raise Refused(f"sbatch: error: Invalid directive found in batch script: {rest[0]}")
        options |= own
    ignored = [line for line in lines[:first] if re.match(r"(?!#SBATCH)\s*#\s*(SBATCH|PBS)\b", line)]
    return lines[0][2:].split(), options, ignored


def _seconds(options: Mapping[str, str], longest: int) -> int | None:
    """Of minutes, minutes:seconds, hours:minutes:seconds, or days-hours with or without minutes and seconds."""
    text = re.sub(r"(?i)^(unlimited|infinite|-1)$", "0", options.get("time", ""))
    if (match := _match({"time": text} if "time" in options else {}, "time")) is None:
        return None
    days, first, second, third = (int(part or 0) for part in match.groups())
    in_hours = match[1] or match[4]
    seconds = (days * 24 + first) * 3600 + second * 60 + third if in_hours else first * 60 + second
    if seconds > longest:
        says, most = f"--time={quoted(text)} is {duration(seconds)}", duration(longest)
        raise WrongScript(
            f"sbatch refuses the script: {says}, and no job may take longer than {most} here. In which unit is each "
            "number?"
        )
    if not seconds:
        raise Refused("sbatch: error: Requested time limit is invalid (missing or exceeds some limit)")
    return seconds


def _notice(options: Mapping[str, str]) -> tuple[int, int, bool] | None:
    if (match := _match(options, "signal")) is None:
        return None
    numbers = {each.name.removeprefix("SIG"): each.value for each in signal.Signals}
    numbers |= {str(number): number for number in numbers.values()}
    if match[2].upper() not in numbers:
        raise Refused("sbatch: error: Invalid --signal specification")
    return numbers[match[2].upper()], int(match[3] or 60), "B" in (match[1] or "").upper()


def _array(text: str) -> tuple[list[int], int | None]:
    indices, _, at_once = text.partition("%")
    tasks: set[int] = set()
    for part in indices.removeprefix("[").removesuffix("]").split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6})(?::(\d{1,6}))?)?", part)
        numbers = range(int(match[1]), int(match[2] or match[1]) + 1, int(match[3] or 1) or 1) if match else range(0)
        if not numbers or numbers[-1] >= MOST_TASKS:
            raise Refused("sbatch: error: Batch job submission failed: Invalid job array specification")
        tasks |= set(numbers)
    return sorted(tasks), (int(at_once) if at_once.isdigit() else 0) or None


# Running a script ----------------------------------------------------------------------------------------------------

SECONDS = 15.0
MOST_PRINTED = 2000
_PYTHON, _BASH = ("python", "python3"), ("bash", "sh")
_FAKES = ("srun", *_PYTHON, "mpirun", "horovodrun", "scontrol", "sbatch", "scancel", "squeue", "module", "sleep")
_FAKE = Path(__file__).with_name("fake_slurm_command.sh").read_text()


class Circumstances(NamedTuple):
    """Of one run of a script: its arguments, Slurm's variables, and with which status each program ends."""

    arguments: list[str]
    environment: dict[str, str]
    statuses: dict[str, int]


@dataclass(frozen=True)
class ScriptRun:
    """What a script did: the fake commands that it called, its status (None if it did not end), what it printed."""

    calls: list[list[str]]
    status: int | None
    printed: str


def run_script(
    namespace: Mapping[str, object], text: str, flags: list[str], runs: list[Circumstances]
) -> list[ScriptRun]:
    """Run a script once under each of `runs`.

    flags: bash's own, such as -e.  The runs after one that does not end are left out.
    """
    done: list[ScriptRun] = []
    for under in runs:
        with tempfile.TemporaryDirectory(prefix="distlab-", ignore_cleanup_errors=True) as folder:
            done.append(_run(Path(folder), text, flags, Circumstances(*under)))
        if done[-1].status is None:
            break
    return done


def _run(folder: Path, text: str, flags: list[str], under: Circumstances) -> ScriptRun:
    work, programs, record, printed = (folder / name for name in ("work", "programs", "record", "printed"))
    for place in (programs, work / "scaling", work / "saved"):
        place.mkdir(parents=True)
    for name in (*_FAKES, "nvidia-smi"):
        (programs / name).write_text(_FAKE)
        (programs / name).chmod(0o755)
    record.touch()
    (work / "script").write_text(text)
    for program, code in under.statuses.items():
        (work / program).write_text(f"{code}\n")
    environment = under.environment | {
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(work),
        "FAKE_FOLDER": str(folder),
        "FAKE_NODES": " ".join(map(str, range(1, int(under.environment["SLURM_NNODES"]) + 1))),
        "SLURM_SUBMIT_DIR": str(work),
    }
    # Of output 4 MiB, of computing one second: a loop without end fills neither disk nor time.
    command = ["bash", "-c", 'ulimit -f 4096 -t 1; exec bash "$@"', "bash", *flags, "script", *under.arguments]
    with printed.open("w") as output:
        process = subprocess.Popen(
            command,
            env=environment,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        finally:
            with suppress(ProcessLookupError):  # what the script has left in the background ends with it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    calls = [call.split("\0") for call in record.read_text(errors="replace").split("\0END\0")[:-1]]
    status = None if code < 0 else code  # below 0: one of the limits has ended it
    return ScriptRun(calls, status, printed.read_text(errors="replace")[:MOST_PRINTED])


# What a script did, as a judge sees it -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Started:
    """A program that a script has started, by srun or by itself: how many tasks on how many nodes.

    cores: what srun was told of each task's, None if nothing.  kills: whether a task that fails ends the others.
    waits: the seconds that they have when the first one has ended, None without a limit.  options: all that srun was
    told, by long name.
    """

    name: str
    arguments: list[str]
    tasks: int = 1
    nodes: int = 1
    cores: int | None = None
    kills: bool = False
    waits: int | None = None
    by_srun: bool = False
    options: dict[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> str:
        """Such as "8 tasks on 4 nodes"."""
        return f"{counted(self.tasks, 'task')} on {counted(self.nodes, 'node')}"


def step(words: Sequence[str], job: BatchJob) -> Started:
    """What `srun words…` starts in the script of a job, with the whole command as its arguments. Raises Refused."""
    options, program = read_options("srun", words)
    if not program:
        raise Refused("srun: fatal: No command given to execute.")
    names = ("ntasks", "nodes", "ntasks-per-node", "cpus-per-task", "wait", "kill-on-bad-exit")
    asked, nodes, per_node, cores, waits, kills = (_count(options, name, "srun") for name in names)
    tasks = asked or job.ntasks or (nodes or job.nodes) * (per_node or 1)
    nodes = min(nodes or job.nodes, tasks)
    if nodes > job.nodes or tasks > nodes * job.cpus_per_node:
        what = f"{tasks} tasks on {counted(nodes, 'node')}"
        raise Refused(f"srun: error: Unable to create step: {what} are more than the job has there")
    ends_others = bool(kills) or options.get("kill-on-bad-exit") == ""
    return Started(program[0], program, tasks, nodes, cores, ends_others, waits or None, True, options)


@dataclass(frozen=True)
class ScriptAttempt:
    """One run of a script: its programs, its status, the commands of Slurm that it called, bash's first complaint."""

    programs: list[Started]
    status: int
    commands: list[list[str]]
    complaint: str

    @property
    def names(self) -> list[str]:
        """The programs in order."""
        return [program.name for program in self.programs]


class Script(BatchJob):
    """A student's text, as the job that sbatch makes of it, and what it does when it runs."""

    def __init__(self, text: Plain, name: str, longest: int | None = None) -> None:
        """`name` is that of the answer. Raises WrongScript if it cannot be submitted, or bash cannot run it."""
        if not isinstance(text, str):
            raise WrongScript(f"`{name}` is a text: the lines of a job script between triple quotation marks.")
        if text.lstrip().startswith("#!") and not text.startswith("#!"):
            raise WrongScript(
                "The first line is empty, and sbatch wants #! there. What does the backslash in the example do?"
            )
        try:
            super().__init__(text, longest)
        except Refused as reason:
            raise WrongScript(f"sbatch refuses the script, and says: {quoted(str(reason))}") from None
        if not any(word.rpartition("/")[2] == "bash" for word in self.interpreter):
            said = quoted(" ".join(self.interpreter) or "nothing")
            raise WrongScript(f"The first line names {said}, and this check needs bash: #!/bin/bash.")
        self.text = text

    def attempts(self, answer: Answer, runs: Sequence[Circumstances]) -> list[ScriptAttempt]:
        """What the script does under each of these circumstances. Raises WrongScript, for example if it never ends."""
        flags = [word for word in self.interpreter[1:] if re.fullmatch(r"-[eux]+", word)]
        records = answer.inside(run_script, self.text, flags, list(runs))
        attempts = [self._attempt(as_record(record, ScriptRun)) for record in records or []]  # type: ignore[union-attr]
        if len(attempts) != len(runs):
            raise NotPlain("what the script did does not have the form that the check needs")
        return attempts

    def _attempt(self, run: ScriptRun) -> ScriptAttempt:
        if run.status is None:
            raise NeverEnds("the script does not end. What does it wait for, or repeat?")
        calls = [[str(word) for word in call] for call in run.calls if isinstance(call, list) and call]
        for name, *_ in calls:
            if name in ("mpirun", "horovodrun"):
                said = f"`{name}` starts programs by itself here."
                raise WrongScript(f"{said} Which command of Slurm starts the ranks?")
        programs = [program for call in calls if (program := self._started(call))]
        if not programs and run.printed.strip() and run.status:
            said = quoted(run.printed.strip().splitlines()[0])
            raise WrongScript(f"no program is started, and bash says: {said}")
        commands = [call for call in calls if call[0] in ("scontrol", "sbatch", "scancel")]
        complaints = [quoted(line) for line in run.printed.splitlines() if line.startswith("script: ")]
        return ScriptAttempt(programs, run.status, commands, next(iter(complaints), ""))

    def _started(self, words: list[str]) -> Started | None:
        """The Python program that a command starts, if it does."""
        called = quoted(listed(words))
        try:
            started = step(words[1:], self) if words[0] == "srun" else Started(words[0], words)
        except Refused as reason:
            says = self._cause(words) or f"{quoted(str(reason)).rstrip('.')}."
            raise WrongScript(f"`{called}` fails: {says}") from None
        program = started.arguments
        if program[0].isdigit():
            asks = "How does an option with an optional value get it?"
            raise WrongScript(f"`{called}` takes {program[0]} for the program. {asks}")
        if program[0].endswith(".py"):
            what = f"`{quoted(program[0])}` is no command by itself"
            raise WrongScript(f"`{called}`: {what}. What runs a Python file?")
        if program[0].rpartition("/")[2] in _BASH and "-c" in program[1:-1]:
            program = program[program.index("-c") + 1].split()
        place = next((place for place, word in enumerate(program) if word.endswith(".py")), None)
        if place is None or program[0].rpartition("/")[2] not in _PYTHON:
            return None
        return replace(started, name=program[place].rpartition("/")[2], arguments=program[place + 1 :])

    def _cause(self, words: list[str]) -> str:
        """Why srun gets a number that is none: a variable without a value, or ^ for a power."""
        for name, letter in (("nodes", "N"), ("ntasks", "n")):
            is_empty = any(word in (f"--{name}=", f"-{letter}") for word in words)
            match = re.search(rf"(?:--{name}[= ]|-{letter} ?)\"?\$\{{?(\w+)", self.text)
            if is_empty and match:
                return f"`${match[1]}` is empty there. Where does it get its value?"
        return "in bash ^ compares bits. Which operator is a power?" if re.search(r"\(\([^)]*\^", self.text) else ""


# Words ---------------------------------------------------------------------------------------------------------------


def listed(words: Sequence[str]) -> str:
    """Words in a row as a shell would need them, or "nothing"."""
    return shlex.join(words[:12]) if words else "nothing"


def quoted(text: str) -> str:
    """At most 150 printable characters of the student's own."""
    return "".join(character if character.isprintable() else "?" for character in text[:150])


def duration(seconds: int) -> str:
    """Hours, minutes and seconds, without those that are zero."""
    units = ((seconds // 3600, "hour"), (seconds // 60 % 60, "minute"), (seconds % 60, "second"))
    return " ".join(counted(count, unit) for count, unit in units if count) or "0 seconds"
