"""The judge of `job_script`: what sbatch and srun would make of the text, by their own rules."""

import re
import shlex
from dataclasses import dataclass, field

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab_16.hints import Lab16JobHint as Hints
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong

SHORT = {"-N": "nodes", "-n": "ntasks", "-c": "cpus-per-task", "-t": "time", "-J": "job-name", "-o": "output"}
PROGRAM = "train.py"
SHAPE, CORES, TIME, START = "nodes and tasks", "cores", "time", "start"


@dataclass(frozen=True)
class Request:
    """What is asked for: `tasks` on each of `nodes`, `cores` for each task, so many minutes."""

    nodes: int
    tasks: int
    cores: int
    minutes: int


@dataclass
class JobScript:
    """The options of sbatch by long name, those that come too late, and the commands as words."""

    options: dict[str, str] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    commands: list[list[str]] = field(default_factory=list)
    exported: dict[str, str] = field(default_factory=dict)


def read(text: str) -> JobScript:
    """The script as sbatch reads it: options only before the first command."""
    script = JobScript()
    for line in re.sub(r"\\\n", " ", text).splitlines():
        stripped = line.strip()
        if line.startswith("#SBATCH"):
            options = _options(_words(line.removeprefix("#SBATCH")))[0]
            if script.commands or script.exported:
                script.late += options
            else:
                script.options |= options
        elif stripped and not stripped.startswith("#"):
            words = _words(stripped)
            if words[:1] == ["export"]:
                script.exported |= {name: value for name, _, value in (word.partition("=") for word in words[1:])}
            elif words:
                script.commands.append(words)
    return script


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """Options by long name, and the words after the last of them."""
    options: dict[str, str] = {}
    words = list(words)
    while words and words[0].startswith("-"):
        word = words.pop(0)
        name, has_value, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2:
            name, has_value, value = word[:2], "=", word[2:].lstrip("=")
        name = SHORT.get(name, name.lstrip("-"))
        if not has_value and words and not words[0].startswith("-") and name in (*SHORT.values(), "ntasks-per-node"):
            value = words.pop(0)
        options[name] = value
    return options, words


def minutes(text: str) -> float | None:
    """Slurm's time in minutes: M, M:S, H:M:S, D-H, D-H:M or D-H:M:S; None for another text."""
    match = re.fullmatch(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?", text)
    if not match:
        return None
    days, first, second, third = (int(part) if part else 0 for part in match.groups())
    if match[1]:
        return days * 1440 + first * 60 + second + third / 60
    if match[4]:
        return first * 60 + second + third / 60
    return first + second / 60


def judge_job_script(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each part, of the first request that is not met."""
    hours = 60 * generator.integers(2, 20, 2)  # a whole number of hours, and a minute less
    for limit in (
        int(generator.integers(31, 59)),
        int(hours[0]),
        int(hours[1]) - 1,
        int(generator.integers(1500, 2800)),
    ):
        request = Request(
            int(generator.integers(2, 9)),
            int(generator.integers(2, 5)),
            int(generator.integers(5, 9)),
            limit,
        )
        text = answer.call("job_script", request.nodes, request.tasks, request.cores, request.minutes)
        if not isinstance(text, str):
            return wrong(Hints.NO_TEXT)
        if not text.startswith("#!"):
            return wrong(Hints.NO_SHELL)
        script = read(text)
        if not script.options:
            return wrong(Hints.OPTIONS_LATE if script.late else Hints.NO_OPTIONS)
        judged = {
            SHAPE: _shape(script, request),
            CORES: _cores(script, request),
            TIME: _time(script, request),
            START: _start(script, request),
        }
        if any(judged.values()):
            return parts({name: right() if hint is None else wrong(hint) for name, hint in judged.items()})
    return right()


def _number(options: dict[str, str], name: str) -> int | None:
    value = options.get(name, "")
    return int(value) if value.isdecimal() else None


def _srun(script: JobScript) -> tuple[dict[str, str], list[str]] | None:
    """The options of the one srun, and what it starts."""
    lines = [words for words in script.commands if "srun" in words]
    if len(lines) != 1:
        return None
    return _options(lines[0][lines[0].index("srun") + 1 :])


def _shape(script: JobScript, request: Request) -> AnyHint | None:
    nodes, per_node = _number(script.options, "nodes"), _number(script.options, "ntasks-per-node")
    tasks = _number(script.options, "ntasks")
    if "nodes" in script.late or "ntasks-per-node" in script.late:
        return Hints.OPTIONS_LATE
    if nodes is None:
        return Hints.NO_NODES
    if nodes != request.nodes:
        return Hints.NODES.says(nodes=nodes, expected=request.nodes)
    if per_node is None and tasks is None:
        return Hints.NO_TASKS
    if per_node is not None and per_node != request.tasks:
        total = per_node == request.nodes * request.tasks
        return Hints.TASKS_OF_ALL if total else Hints.TASKS.says(tasks=per_node, expected=request.tasks)
    if tasks is not None and tasks != request.nodes * request.tasks:
        return Hints.ALL_TASKS.says(tasks=tasks, expected=request.nodes * request.tasks)
    return None


def _cores(script: JobScript, request: Request) -> AnyHint | None:
    asked = _number(script.options, "cpus-per-task")
    if asked is None:
        return Hints.NO_CORES
    if asked != request.cores:
        return Hints.CORES.says(cores=asked, expected=request.cores)
    options = (_srun(script) or ({}, []))[0]
    said = options.get("cpus-per-task") or script.exported.get("SRUN_CPUS_PER_TASK")
    usual = {"$SLURM_CPUS_PER_TASK", "${SLURM_CPUS_PER_TASK}", str(request.cores)}
    if said is None:
        return Hints.SRUN_FORGETS
    return None if said in usual or "SLURM_CPUS_PER_TASK:-" in said else Hints.SRUN_CORES.says(said=said)


def _time(script: JobScript, request: Request) -> AnyHint | None:
    text = script.options.get("time")
    if text is None:
        return Hints.NO_TIME
    limit = minutes(text)
    if limit is None:
        return Hints.TIME_UNREADABLE.says(text=text)
    if limit == request.minutes:
        return None
    if limit * 60 == request.minutes:
        return Hints.MINUTES_AS_SECONDS.says(text=text)
    if limit == request.minutes * 60:
        return Hints.MINUTES_AS_HOURS.says(text=text)
    return Hints.TIME.says(text=text, minutes=limit, expected=request.minutes)


def _start(script: JobScript, request: Request) -> AnyHint | None:
    started = _srun(script)
    if started is None:
        count = sum("srun" in words for words in script.commands)
        return Hints.SEVERAL_SRUN if count else Hints.NO_SRUN
    options, program = started
    tasks = options.get("ntasks")
    if tasks is not None and tasks not in (str(request.nodes * request.tasks), "$SLURM_NTASKS"):
        return Hints.SRUN_TASKS.says(tasks=tasks)
    if not any(word.endswith(PROGRAM) for word in program):
        return Hints.ANOTHER_PROGRAM
    if program[0].rpartition("/")[2] not in ("python", "python3", "bash"):
        return Hints.NO_PYTHON
    return None
