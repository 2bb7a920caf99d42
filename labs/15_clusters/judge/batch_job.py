"""A job script for one training between two small programs: an exercise of lab 15 and its judge."""

from collections.abc import Mapping

import numpy as np
from lab_15.hints import Lab15Hint
from lab_15.observe import Circumstances
from lab_15.scripts import (
    Script,
    ScriptAttempt,
    ScriptHints,
    counted,
    judged,
    listed,
    log,
    others_wait,
    resources,
)
from lab_15.scripts import arguments as arguments_in_words

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict

NODES, PER_NODE, SECONDS = 4, 2, 90 * 60
PROGRAMS = ("prepare.py", "train.py", "evaluate.py")


def judge_batch(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for what is asked for, the log, the programs, and what happens if one fails."""
    return judged(lambda: _hints(answer, generator))


def _hints(answer: Answer, generator: np.random.Generator) -> ScriptHints:
    script = Script.of(answer, "batch")
    number = int(generator.integers(1000, 90_000))
    arguments = ["--data", f"set {generator.integers(10, 99)}", "--steps", str(generator.integers(100, 999))]
    environment = script.job.environment(number)
    failures = {name: int(generator.integers(1, 60)) for name in PROGRAMS}
    runs = [dict.fromkeys(PROGRAMS, 0) | {name: failures[name]} for name in PROGRAMS]
    circumstances = [
        Circumstances(arguments, environment, statuses) for statuses in (dict.fromkeys(PROGRAMS, 0), *runs)
    ]
    attempts = script.attempts(answer, circumstances)
    programs = _programs(attempts[0], arguments)
    failed = dict(zip(PROGRAMS, attempts[1:], strict=False))
    failure = _failure(attempts[0], failed) if attempts[0].names == [*PROGRAMS] else Lab15Hint.PROGRAMS_FIRST
    of_options = {
        "resources": resources(script.job, NODES, NODES * PER_NODE, SECONDS),
        "log": log(script.job, "train", number),
    }
    return ScriptHints(script.job, attempts, of_options, {"programs": programs, "failure": failure})


def _programs(attempt: ScriptAttempt, arguments: list[str]) -> AnyHint | None:
    if attempt.names != [*PROGRAMS]:
        return Lab15Hint.PROGRAMS.says(said=listed(attempt.names), expected=listed(PROGRAMS))
    for program in attempt.programs:
        is_training = program.name == "train.py"
        if is_training and not program.by_srun:
            return Lab15Hint.SRUN_MISSING
        if not is_training and program.tasks > 1:
            return Lab15Hint.SRUN_TOO_OFTEN.says(program=program.name, count=program.tasks)
        if is_training and (program.tasks, program.nodes) != (NODES * PER_NODE, NODES):
            expected = f"{counted(NODES * PER_NODE, 'task')} on {counted(NODES, 'node')}"
            return Lab15Hint.RANKS.says(said=program.layout, expected=expected)
        expected_arguments = arguments if is_training else []
        if program.arguments != expected_arguments:
            if is_training and program.arguments == " ".join(arguments).split():
                return Lab15Hint.ARGUMENTS_SPLIT
            said, expected = arguments_in_words(program.arguments), arguments_in_words(expected_arguments)
            return Lab15Hint.ARGUMENTS.says(program=program.name, said=said, expected=expected)
    return None


def _failure(undisturbed: ScriptAttempt, failed: Mapping[str, ScriptAttempt]) -> AnyHint | None:
    if undisturbed.status != 0:
        return Lab15Hint.FAILS_ALWAYS.says(status=undisturbed.status)
    for place, (program, attempt) in enumerate(failed.items()):
        if attempt.names[place + 1 :]:
            return Lab15Hint.GOES_ON.says(program=program, after=attempt.names[place + 1])
        if attempt.status == 0:
            return Lab15Hint.STATE_COMPLETED.says(program=program)
    return others_wait(undisturbed.programs[1])
