"""The judge of `job_script`: what sbatch and srun would make of the text, by their own rules."""

import re
from dataclasses import dataclass

import numpy as np
from lab_16.hints import Lab16JobHint as Hints
from lab_16.slurm_script import JobScript, ShellCommand, read, whole_number

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict, parts, right, wrong

PROGRAM = "train.py"
SHAPE, CORES, TIME, START = "nodes and tasks", "cores", "time", "start"
PARTS_OF = {"time": TIME, "cpus-per-task": CORES}


@dataclass(frozen=True)
class Request:
    """What is asked for: `tasks` on each of `nodes`, `cores` for each task, so many minutes."""

    nodes: int
    tasks: int
    cores: int
    minutes: int


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
        if left := re.search(r"(?<!\$)\{(nodes|tasks|cores|minutes)\b[^}\n]*\}", text):
            return wrong(Hints.NOT_FILLED_IN.says(text=left[0]))
        script = read(text)
        if not script.options:
            return wrong(Hints.OPTIONS_LATE if script.late else Hints.NO_OPTIONS)
        judged: dict[str, AnyHint | None] = {
            SHAPE: _shape(script, request),
            CORES: _cores(script, request),
            TIME: _time(script, request),
            START: _start(script, request),
        }
        for option, word in script.refused.items():
            judged[PARTS_OF.get(option, SHAPE)] = Hints.REFUSED.says(word=word)
        if any(judged.values()):
            return parts({name: right() if hint is None else wrong(hint) for name, hint in judged.items()})
    return right()


def _number(options: dict[str, str], name: str) -> int | None:
    return whole_number(options.get(name, ""))


def _shape(script: JobScript, request: Request) -> AnyHint | None:
    nodes, per_node = _number(script.options, "nodes"), _number(script.options, "ntasks-per-node")
    tasks = _number(script.options, "ntasks")
    if "nodes" in script.late or "ntasks-per-node" in script.late:
        return Hints.OPTIONS_LATE
    if "array" in script.options:
        return Hints.AN_ARRAY.says(tasks=script.options["array"])
    if "nodes" not in script.options:
        return Hints.NO_NODES
    if nodes != request.nodes:
        return Hints.NODES.says(nodes=script.options["nodes"], expected=request.nodes)
    if per_node is None and tasks is None:
        return Hints.NO_TASKS
    if per_node is not None and per_node != request.tasks:
        total = per_node == request.nodes * request.tasks
        return Hints.TASKS_OF_ALL if total else Hints.TASKS.says(tasks=per_node, expected=request.tasks)
    if tasks is not None and tasks != request.nodes * request.tasks:
        return Hints.ALL_TASKS.says(tasks=tasks, expected=request.nodes * request.tasks)
    return Hints.TASKS_UNEVEN.says(tasks=tasks, nodes=nodes) if per_node is None else None


def _cores(script: JobScript, request: Request) -> AnyHint | None:
    asked = _number(script.options, "cpus-per-task")
    if asked is None:
        return Hints.NO_CORES
    if asked != request.cores:
        return Hints.CORES.says(cores=asked, expected=request.cores)
    for command in _starts(script) or script.steps():  # without srun the matter is `start`
        options = (command.step() or ({}, []))[0]
        said = options.get("cpus-per-task") or script.exported.get("SRUN_CPUS_PER_TASK")
        if said is None:
            return Hints.SRUN_FORGETS
        if script.expanded(said) != str(request.cores):
            return Hints.SRUN_CORES.says(said=said)
    return None


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
        return (Hints.SECONDS_AS_MINUTES if text.isdecimal() else Hints.MINUTES_AS_HOURS).says(text=text)
    return Hints.TIME.says(text=text, minutes=limit, expected=request.minutes)


def _start(script: JobScript, request: Request) -> AnyHint | None:
    steps = script.steps()
    if not steps:
        by_mpi = any(word in ("mpirun", "mpiexec", "horovodrun") for line in script.commands for word in line.words)
        return Hints.NOT_SRUN if by_mpi else Hints.NO_SRUN
    starts = _starts(script)
    if len(starts) > 1:
        return Hints.SEVERAL_SRUN
    if starts and script.repeats(starts[0]):
        return Hints.SRUN_IN_LOOP
    step = (starts or steps)[0]
    options, program = step.step() or ({}, [])
    tasks = script.expanded(options.get("ntasks", ""))
    if tasks and tasks != str(request.nodes * request.tasks):
        return Hints.SRUN_TASKS.says(tasks=tasks)
    if not starts:
        return Hints.ANOTHER_PROGRAM
    if program[0].rpartition("/")[2] not in ("python", "python3", "bash"):
        return Hints.NO_PYTHON
    if not script.waits_for(step):
        return Hints.NOT_WAITED
    if script.loses_status(step):
        return Hints.STATUS_PIPED if step.end == "|" else Hints.STATUS_LOST
    return None


def _starts(script: JobScript) -> list[ShellCommand]:
    """The commands in which srun starts the program, not another one such as `hostname`."""
    starts = []
    for command in script.steps():
        _, program = command.step() or ({}, [])
        words = [word for argument in program for word in argument.split()]  # bash -c has one argument
        if any(word.rpartition("/")[2] == PROGRAM for word in words):
            starts.append(command)
    return starts
