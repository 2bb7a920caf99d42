"""The judges of lab 15's job scripts: what each asks for and does on the fake Slurm, part by part."""

import re
import signal
from collections.abc import Callable

import numpy as np

from distlab.labs import Answer, Verdict, wrong
from distlab.labs.fake_slurm import (
    BatchJob,
    Circumstances,
    Script,
    ScriptAttempt,
    Started,
    WrongScript,
    duration,
    listed,
    quoted,
)
from distlab.labs.number_judge import counted
from distlab.labs.verdict import first, hinted

Generator = np.random.Generator
Judge = Callable[[Answer, Generator], Verdict]
Hints = dict[str, str | None]
Judged = tuple[Hints, Hints, list[ScriptAttempt]]
PROGRAMS, SIZES = ["prepare.py", "train.py", "evaluate.py"], [1, 2, 4, 8]
START_AGAIN, BEFORE, APART = 85, 600, 300
PROGRAMS_FIRST, NO_ARRAY = "this needs the right programs first.", "this is one job, not an array."
PER_NODE = "Which option says how many per node?"
RANKS_PER_NODE, MEMORY, GIGABYTES = 8, 400, {"K": 2**-20, "M": 2**-10, "G": 1, "T": 1024}


def script_judge(name: str, judged: Callable[[Answer, Generator, Script], Judged]) -> Judge:
    """The judge of a script, by the hints on what its options decide and on what bash decides, and its attempts.

    A line that is no option, or what bash says, comes before what follows from it.
    """

    def judge(answer: Answer, generator: Generator) -> Verdict:
        try:
            script = Script(answer.value(name), name)
            of_options, of_runs, attempts = judged(answer, generator, script)
        except WrongScript as mistake:
            return wrong(str(mistake))
        for line in script.ignored[:1]:
            said = f"`{quoted(line)}` is a comment for sbatch. How must a line of options begin?"
            of_options = {part: hint and said for part, hint in of_options.items()}
        for complaint in [attempt.complaint for attempt in attempts if attempt.complaint][:1]:
            of_runs = {part: hint and f"bash says: {complaint}; {hint}" for part, hint in of_runs.items()}
        hints = of_options | of_runs
        return hinted(hints)

    return judge


def resources(job: BatchJob, nodes: int, ranks: int, seconds: int) -> str | None:
    """The hint on nodes, ranks and time."""
    said = (f"{job.least_nodes} to " if job.least_nodes < job.nodes else "") + counted(job.nodes, "node")
    uneven = f"{ranks} ranks on {nodes} nodes may be {ranks - nodes + 1} on the first one and 1 on each other."
    text = job.options.get("time", "")
    asks = (
        "" if text.count(":") == 2 or "-" in text else " What is a number without a colon, and what one with one colon?"
    )
    return first(
        (not job.least_nodes == job.nodes == nodes, f"the job gets {said}, and should get {nodes}."),
        (
            job.ranks != ranks,
            f"a plain srun would start {counted(job.ranks, 'rank')}, and {ranks} are asked for. {PER_NODE}",
        ),
        (ranks > nodes and not job.tasks_per_node, f"{uneven} {PER_NODE}"),
        (job.seconds is None, "there is no time limit: the default of the site decides."),
        (job.seconds != seconds, f"the limit is {duration(job.seconds or 0)}, not {duration(seconds)}.{asks}"),
    )


def one_job(job: BatchJob, nodes: int, ranks: int, seconds: int) -> str | None:
    """The hint if it is an array, or has other resources."""
    return first((job.array, "this is an array, not one job. Which option makes it one?")) or resources(
        job, nodes, ranks, seconds
    )


def log(job: BatchJob, name: str, number: int) -> str | None:
    """The hint if the log of job `number` is not name-number.out."""
    said, expected, pattern = quoted(job.log(number)), f"{name}-{number}.out", job.options.get("output", "")
    other = f"the log of job {number} is {said}, and should be {expected}"
    if said == expected:
        return None
    if not ("%x" in pattern and re.search(r"%[jJA]", pattern)):
        return f"{other}. Which two patterns begin with %?"
    if job.name != name:
        return f"{other}: %x is {job.name} here. Which option names the job?"
    return f"{other}."


def other_ranks(training: Started, tasks: int, nodes: int) -> str | None:
    """The hint if srun does not start train.py on all ranks."""
    expected = f"{counted(tasks, 'task')} on {counted(nodes, 'node')}"
    return first(
        (not training.by_srun, "`train.py` runs once, on the first node. What starts it on every node?"),
        (training.layout != expected, f"`train.py` runs as {training.layout}, and should run as {expected}."),
    )


def other_arguments(program: Started, who: str, *right_ones: list[str]) -> str | None:
    """The hint if a program gets other arguments than one of the right ones."""
    said = [part for word in program.arguments for part in (word.split("=", 1) if word[:2] == "--" else [word])]
    if said in right_ones:
        return None
    if said and any(said == " ".join(words).split() for words in right_ones):
        return "an argument with a space in it becomes two. What do quotation marks around $@ change?"
    in_words = [f"the arguments {listed(words)}" if words else "no arguments" for words in (said, right_ones[0])]
    return f"{who} gets {in_words[0]}, and should get {in_words[1]}."


def others_wait(training: Started) -> str | None:
    """The hint if one rank that fails does not end the others at once."""
    if training.kills:
        return None
    if training.waits:
        go_on = f"one rank fails, and the others go on for {counted(training.waits, 'second')}."
        return f"{go_on} Which option of srun ends them at once?"
    return "one rank fails, and the others wait for it until the time is over. Which option of srun ends them?"


def judged_batch(answer: Answer, generator: Generator, script: Script) -> Judged:
    """Four nodes with two ranks each, 90 minutes, three programs in a row: all goes well, then each of them fails."""
    number, arguments = drawn_call(generator)
    codes = [{name: int(generator.integers(1, 60)) * (name == fails) for name in PROGRAMS} for fails in ("", *PROGRAMS)]
    runs = [Circumstances(arguments, script.environment(number), statuses) for statuses in codes]
    attempts = script.attempts(answer, runs)
    of_options = {"resources": one_job(script, 4, 8, 90 * 60), "log": log(script, "train", number)}
    return of_options, {"programs": programs(attempts[0], arguments), "failure": failure(attempts)}, attempts


def drawn_call(generator: Generator) -> tuple[int, list[str]]:
    """The number of a job and the arguments of its script, one with a space in it."""
    steps = str(generator.integers(100, 9999))
    return int(generator.integers(1000, 90_000)), ["--data", f"set {generator.integers(10, 99)}", "--steps", steps]


def programs(attempt: ScriptAttempt, arguments: list[str]) -> str | None:
    """The hint if other programs run, or on other ranks, or with other arguments."""
    if attempt.names != PROGRAMS:
        return f"it starts {listed(attempt.names)}, and should start {listed(PROGRAMS)}."
    hints = [other_ranks(attempt.programs[1], 8, 4)]
    for program in attempt.programs:
        name = f"`{program.name}`"
        often = f"{name} runs {program.tasks} times, and once is enough. On which node does the script itself run?"
        is_training = program.name == "train.py"
        hints.append(often if not is_training and program.tasks > 1 else None)
        hints.append(other_arguments(program, name, arguments if is_training else []))
    return next(filter(None, hints), None)


def failure(attempts: list[ScriptAttempt]) -> str | None:
    """The hint on what follows from a failure."""
    undisturbed, *failed = attempts
    if undisturbed.names != PROGRAMS or not undisturbed.programs[1].by_srun:
        return PROGRAMS_FIRST
    if undisturbed.status:
        return f"no program fails, and the script ends with status {undisturbed.status}."
    for place, (program, attempt) in enumerate(zip(PROGRAMS, failed, strict=True)):
        if after := attempt.names[place + 1 :]:
            return f"`{program}` fails, and `{after[0]}` is started all the same."
        if attempt.status == 0:
            return f"`{program}` fails, and the script ends with 0, so the state is COMPLETED. Whose status counts?"
    return others_wait(undisturbed.programs[1])


def judged_array(answer: Answer, generator: Generator, script: Script) -> Judged:
    """An array for 1, 2, 4 and 8 nodes, 20 minutes each: each of the first tasks, and one in which train.py fails."""
    job, number = script, int(generator.integers(1000, 90_000))
    tasks: list[int | None] = [*job.array[:6]] or [None]
    fails = tasks[int(generator.integers(len(tasks)))]
    runs = [(task, 0) for task in tasks] + [(fails, int(generator.integers(1, 60)))]
    attempts = script.attempts(
        answer, [Circumstances([], job.environment(number, 0, task), {"train.py": code}) for task, code in runs]
    )
    at_once = f"{job.at_once or len(job.array)} may run at the same time, and disturb one another."
    of_options = {
        "array": first(
            (not job.array, NO_ARRAY),
            (job.nodes > 8, f"each task holds {job.nodes} nodes. How many does the largest run need?"),
            (job.at_once != 1, f"{at_once} What does % do in --array?"),
        )
        or resources(job, 8, 8, 20 * 60),
        "logs": first((not job.array, NO_ARRAY)) or logs(job, number),
    }
    return of_options, {"sizes": sizes(job, attempts[:-1]), "failure": failure_of_task(attempts)}, attempts


def logs(job: BatchJob, number: int) -> str | None:
    """The hint if two tasks of two such arrays write into one log, or into a folder that nobody makes."""
    names = [quoted(job.log(array, task)) for array in (number, number + 100) for task in job.array]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), "")
    folder = names[0].rpartition("/")[0]
    is_there = folder in ("", "scaling") or folder.startswith("/")
    written = f"two of its tasks, or of two such arrays, write into one log, {twice}. Which patterns tell them apart?"
    missing = f"the log of a task is {names[0]}: without the folder {folder} the script does not begin. Who makes it?"
    return first((twice, written), (not is_there, missing))


def sizes(job: BatchJob, attempts: list[ScriptAttempt]) -> str | None:
    """The hint if the tasks do not train once on each size."""
    if not job.array:
        count = attempts[0].names.count("train.py")
        in_a_row = f"one job trains {count} sizes one after the other: if one fails, what happens to those after it?"
        return in_a_row if count > 1 else NO_ARRAY
    for task, attempt in zip(job.array, attempts, strict=False):
        if attempt.names.count("train.py") != 1:
            return f"task {task} of the array trains {attempt.names.count('train.py')} times."
    started = [next(each for each in attempt.programs if each.name == "train.py") for attempt in attempts]
    nodes = sorted(each.nodes for each in started)
    for task, each in zip(job.array, started, strict=False):
        if each.tasks != each.nodes or (nodes != SIZES and not each.by_srun):
            asks = "srun takes both its numbers from the job unless you give both."
            return f"task {task} runs train.py as {each.layout}. {asks}"
    if nodes != SIZES or len(job.array) != len(SIZES):
        said = ", ".join([*map(str, nodes), *["…"] * (len(job.array) > len(nodes))])
        return f"the array trains on {said} nodes, and should on 1, 2, 4, 8. What is the number of a task for?"
    hints = (
        other_arguments(each, f"the run on {counted(each.nodes, 'node')}", ["--result", f"scaling/{each.nodes}.json"])
        for each in started
    )
    return next(filter(None, hints), None)


def failure_of_task(attempts: list[ScriptAttempt]) -> str | None:
    """The hint on what follows from a failure; it is that of the last attempt."""
    *undisturbed, failed = attempts
    if any(attempt.names != ["train.py"] or not attempt.programs[0].by_srun for attempt in undisturbed):
        return PROGRAMS_FIRST
    bad = next((attempt.status for attempt in undisturbed if attempt.status), 0)
    call = next((listed(words) for attempt in attempts for words in attempt.commands if words[0] == "scancel"), "")
    cancelled = f"`{call}`: what is cancelled has the state CANCELLED, not FAILED. Which other runs does it end?"
    lost = "train.py fails, and the task's script ends with 0: nobody sees that its result is missing."
    said = first(
        (bad, f"no program fails, and the script ends with status {bad}."),
        (call, cancelled),
        (failed.status == 0, lost),
    )
    return said or others_wait(undisturbed[-1].programs[0])


def judged_long(answer: Answer, generator: Generator, script: Script) -> Judged:
    """Two nodes with one rank each, 12 hours an attempt, a signal, the queue again: train.py ends with any status."""
    job, (number, arguments) = script, drawn_call(generator)
    statuses = [0, START_AGAIN, START_AGAIN, int(generator.integers(2, 60)), 137, 1]
    pairs = zip((0, 0, 1, 0, 1, 1), statuses, strict=True)
    runs = [Circumstances(arguments, job.environment(number, again), {"train.py": status}) for again, status in pairs]
    attempts = script.attempts(answer, runs)
    requeues, appends = job.options.get("requeue") == "requeue", job.options.get("open-mode", "").lower()[:1] == "a"
    of_options = {
        "resources": one_job(job, 2, 2, 12 * 3600),
        "signal": notice(job),
        "attempts": first(
            (
                not requeues,
                "if a node dies, the default of the site decides what happens. Which option decides it here?",
            ),
            (not appends, "each attempt overwrites the log of the one before. Which option appends to it?"),
        )
        or log(job, "long", number),
    }
    hints = [training(attempts[0], arguments)]
    hints += [end(attempt, status, number, script.text) for attempt, status in zip(attempts, statuses, strict=True)]
    return of_options, {"status": next(filter(None, hints), None)}, attempts


def notice(job: BatchJob) -> str | None:
    """The hint on the signal before the limit."""
    number, seconds, to_script = job.notice or (0, 0, False)
    asks = " In which unit is it?" if seconds * 60 == BEFORE else ""
    return first(
        (not number, "no signal comes before the limit."),
        (to_script, "with B: only the script gets the signal. Who has to save?"),
        (number != signal.SIGUSR1, f"the signal has number {number}, and train.py waits for USR1, which has 10."),
        (seconds != BEFORE, f"the signal comes {seconds} seconds before the limit, not {BEFORE}.{asks}"),
    )


def training(attempt: ScriptAttempt, arguments: list[str]) -> str | None:
    """The hint on how train.py is started."""
    if attempt.names != ["train.py"]:
        return f"it starts {listed(attempt.names)}, and should start train.py."
    started, options = attempt.programs[0], ["--checkpoints", "saved"]
    after = f"{counted(started.waits or 0, 'second')} after the first rank has ended, srun ends the others with 137."
    kills = "the first rank that ends with 85 takes the others with it. Which option of srun does that?"
    return (
        other_ranks(started, 2, 2)
        or first((started.kills, kills), (0 < (started.waits or 0) < APART, f"{after} How much later may they end?"))
        or other_arguments(started, "`train.py`", [*options, *arguments], [*arguments, *options])
    )


def end(attempt: ScriptAttempt, status: int, number: int, text: str) -> str | None:
    """The hint on what the script makes of a status of train.py."""
    by_command = {" ".join(words[:2]): words for words in attempt.commands}
    call = by_command.get("scontrol requeue", [])
    held = by_command.get("scontrol requeuehold") or by_command.get("scontrol hold") or []
    submits = any(words[0] == "sbatch" for words in attempt.commands)
    asks_again, ends, stays = (
        status == START_AGAIN,
        f"train.py ends with {status}",
        "nothing puts the job back into the queue",
    )
    only = f"`{listed(held)}` does not start the job again by itself. Which subcommand of scontrol only puts it back?"
    another = f"`{listed(call)}` does not name this job, which is {number}. Which variable has its number?"
    is_lost = asks_again and not call
    return first(
        (submits, "sbatch submits another job, with another number and log. Which command puts this one back?"),
        (call and not asks_again, f"{ends}, and the job is queued again. Which status asks for that?"),
        (
            not asks_again and attempt.status != status,
            f"{ends}, and the script with {attempt.status}. When does a script still know it?",
        ),
        (is_lost and held, only),
        (
            is_lost and "85" not in text,
            f"{ends}, and the number 85 is not in the script. For which status does it look?",
        ),
        (
            is_lost and attempt.status != status,
            f"{ends}, and {stays}; the script ends with {attempt.status}. Whose status does it look at?",
        ),
        (is_lost, f"{ends}, and {stays}. Does the script get that far?"),
        (asks_again and call[2:] != [str(number)], another),
    )


def judged_gpus(answer: Answer, generator: Generator, script: Script) -> Judged:
    """Two nodes with a rank for each of eight GPUs, and its cores and memory: train.py with any arguments."""
    job, (number, arguments) = script, drawn_call(generator)
    (attempt,) = script.attempts(answer, [Circumstances(arguments, job.environment(number), {"train.py": 0})])
    training = attempt.programs[0] if attempt.names == ["train.py"] else Started("", [])
    of_options = {
        "resources": one_job(job, 2, 2 * RANKS_PER_NODE, 2 * 3600) or site(job),
        "GPUs": gpus(job.options | training.options),
        "memory": memory(job),
    }
    runs = other_ranks(training, 2 * RANKS_PER_NODE, 2) or other_arguments(training, "`train.py`", arguments)
    others = f"it starts {listed(attempt.names)}, and should start train.py."
    of_runs = {"cores": cores(job, training), "run": runs or others_wait(training) if training.name else others}
    return of_options, of_runs, [attempt]


def site(job: BatchJob) -> str | None:
    """The hint on who pays, and in which partition."""
    asked = {"account": "course", "partition": "lab"}
    wrong_ones = [name for name, value in asked.items() if job.options.get(name) != value]
    return f"the {wrong_ones[0]} is not {asked[wrong_ones[0]]}. Which option names it?" if wrong_ones else None


def gpus(options: dict[str, str]) -> str | None:
    """The hint on the GPUs of a node, and on how many of them a rank sees."""
    shares = {"gpus-per-node": 1, "gres": 1, "gpus": 2}
    matches = {name: re.search(r"(\d+)$", options.get(name, "")) for name in shares}
    each = next((int(match[1]) / shares[name] for name, match in matches.items() if match), 0)
    own = "each rank sees its own GPU only. Which option gives all GPUs of a node to all its ranks?"
    return first(
        ("gpus-per-task" in options or options.get("gpu-bind", "none") != "none", own),
        (not each, "no GPU is asked for."),
        (
            each != RANKS_PER_NODE,
            f"a node gives {each:g} GPUs, and should give 8. Does the option count for all nodes?",
        ),
    )


def memory(job: BatchJob) -> str | None:
    """The hint on the memory of a node."""
    shares = {"mem": 1, "mem-per-cpu": RANKS_PER_NODE * (job.cpus_per_task or 1), "mem-per-gpu": RANKS_PER_NODE}
    name = next((name for name in shares if name in job.options), None)
    match = re.fullmatch(r"(\d{1,9})([KMGT]?)B?", job.options.get(name or "", "").upper())
    each = int(match[1]) * GIGABYTES[match[2] or "M"] * shares[name] if name and match else 0
    asks = "For what does this option count, and in which unit?"
    return first(
        (not name, "no memory is asked for: the default of the site decides."),
        (each != MEMORY, f"the ranks of a node get {each:.6g} GB, and should get {MEMORY}. {asks}"),
    )


def cores(job: BatchJob, training: Started) -> str | None:
    """The hint on the cores of a rank: in the job, in the step, and whether it stays on them."""
    own = f"a rank gets {counted(job.cpus_per_task or 1, 'core')}. How many of a node's 64 are there for each rank?"
    inherits = "the job has these cores, but srun does not take --cpus-per-task over from sbatch. What tells it?"
    return first(
        (job.cpus_per_task != 8, own),
        (training.cores != 8, inherits),
        (
            not re.search(r"\bcores$", training.options.get("cpu-bind", "")),
            "nothing keeps a rank on its cores. Which option of srun binds it?",
        ),
    )


JUDGES = {
    "batch": script_judge("batch", judged_batch),
    "array": script_judge("array", judged_array),
    "long": script_judge("long", judged_long),
    "gpus": script_judge("gpus", judged_gpus),
}
