"""A job script for a training that is longer than a job may be: an exercise of lab 15 and its judge."""

from collections.abc import Mapping

import numpy as np
from lab_15.fake_slurm import SIGNALS, BatchJob
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
    resources,
    separated,
)
from lab_15.scripts import arguments as arguments_in_words

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict

NODES, SECONDS, BEFORE, START_AGAIN = 2, 12 * 3600, 600, 85
# How many seconds apart the ranks may end, as the text says.
APART = 5 * 60
OPTIONS = ["--checkpoints", "saved"]


def judge_long(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for what is asked for, the signal, a second attempt, and train.py's status."""
    return judged(lambda: _hints(answer, generator))


def _hints(answer: Answer, generator: np.random.Generator) -> ScriptHints:
    script = Script.of(answer, "long")
    job, number = script.job, int(generator.integers(1000, 90_000))
    arguments = ["--data", f"set {generator.integers(10, 99)}", "--steps", str(generator.integers(1000, 9999))]
    statuses = [0, START_AGAIN, START_AGAIN, int(generator.integers(2, 60)), 137, 1]
    environments = [job.environment(number, attempt) for attempt in (0, 0, 1, 0, 1, 1)]
    circumstances = [
        Circumstances(arguments, environment, {"train.py": status})
        for environment, status in zip(environments, statuses, strict=True)
    ]
    attempts = dict(enumerate(script.attempts(answer, circumstances)))
    of_options = {
        "resources": resources(job, NODES, NODES, SECONDS),
        "signal": _signal(job),
        "attempts": _again(job, number),
    }
    status = _training(attempts[0], arguments) or _status(attempts, statuses, number, script.text)
    return ScriptHints(job, [*attempts.values()], of_options, {"status": status})


def _signal(job: BatchJob) -> AnyHint | None:
    notice = job.notice
    if notice is None:
        return Lab15Hint.NO_NOTICE
    if notice.to_script:
        return Lab15Hint.NOTICE_TO_SCRIPT
    if notice.number != SIGNALS["USR1"]:
        return Lab15Hint.NOTICE_SIGNAL.says(number=notice.number)
    if notice.seconds != BEFORE:
        hint = Lab15Hint.NOTICE_SECONDS if notice.seconds * 60 == BEFORE else Lab15Hint.NOTICE_OTHERWISE
        return hint.says(count=notice.seconds, expected=BEFORE)
    return None


def _again(job: BatchJob, number: int) -> AnyHint | None:
    if not job.requeues:
        return Lab15Hint.NO_REQUEUE
    if not job.appends:
        return Lab15Hint.LOG_OVERWRITTEN
    return log(job, "long", number)


def _training(attempt: ScriptAttempt, arguments: list[str]) -> AnyHint | None:
    if attempt.names != ["train.py"]:
        return Lab15Hint.PROGRAMS.says(said=listed(attempt.names), expected="train.py")
    training = attempt.programs[0]
    if not training.by_srun:
        return Lab15Hint.SRUN_MISSING
    if (training.tasks, training.nodes) != (NODES, NODES):
        expected = f"{counted(NODES, 'task')} on {counted(NODES, 'node')}"
        return Lab15Hint.RANKS.says(said=training.layout, expected=expected)
    if training.kills:
        return Lab15Hint.KILLS_SAVERS
    if training.waits is not None and training.waits < APART:
        return Lab15Hint.WAITS_TOO_SHORT.says(count=counted(training.waits, "second"))
    said = separated(training.arguments, OPTIONS[0])
    if said not in ([*OPTIONS, *arguments], [*arguments, *OPTIONS]):
        split = " ".join(arguments).split()
        if said in ([*OPTIONS, *split], [*split, *OPTIONS]):
            return Lab15Hint.ARGUMENTS_SPLIT
        expected = arguments_in_words([*OPTIONS, *arguments])
        return Lab15Hint.ARGUMENTS.says(program="train.py", said=arguments_in_words(said), expected=expected)
    return None


def _status(attempts: Mapping[int, ScriptAttempt], statuses: list[int], number: int, text: str) -> AnyHint | None:
    for place, attempt in attempts.items():
        status = statuses[place]
        requeues = [words for words in attempt.commands if words[:2] == ["scontrol", "requeue"]]
        if any(words[0] == "sbatch" for words in attempt.commands):
            return Lab15Hint.NEW_JOB
        if requeues and status != START_AGAIN:
            return Lab15Hint.QUEUED_ALWAYS.says(status=status)
        if status == START_AGAIN and not requeues:
            return _not_queued(attempt, text)
        if requeues and requeues[0][2:] != [str(number)]:
            return Lab15Hint.WRONG_JOB.says(call=listed(requeues[0]), job=number)
        if status != START_AGAIN and attempt.status != status:
            return Lab15Hint.STATUS_LOST.says(status=status, said=attempt.status)
    return None


def _not_queued(attempt: ScriptAttempt, text: str) -> AnyHint:
    """For a job that should be queued again."""
    holds = [words for words in attempt.commands if words[:2] in (["scontrol", "requeuehold"], ["scontrol", "hold"])]
    if holds:
        return Lab15Hint.HELD.says(call=listed(holds[0]))
    if str(START_AGAIN) not in text:
        return Lab15Hint.NOT_QUEUED_OTHER
    if attempt.status != START_AGAIN:
        return Lab15Hint.NOT_QUEUED_LOST.says(said=attempt.status)
    return Lab15Hint.NOT_QUEUED
