"""A job script for a scaling study: an exercise of lab 15 and its judge."""

import posixpath
from collections.abc import Mapping

import numpy as np
from lab_15.fake_slurm import BatchJob
from lab_15.hints import Lab15Hint
from lab_15.observe import Circumstances
from lab_15.scripts import (
    Script,
    ScriptAttempt,
    ScriptHints,
    arguments,
    counted,
    counted_nodes,
    judged,
    listed,
    others_wait,
    separated,
    time_limit,
)

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict

SIZES, SECONDS = (1, 2, 4, 8), 20 * 60
MOST_RUNS = 6
FOLDER = "scaling"


def judge_array(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for the array, its logs, the runs, and what happens if one fails."""
    return judged(lambda: _hints(answer, generator))


def _hints(answer: Answer, generator: np.random.Generator) -> ScriptHints:
    script = Script.of(answer, "array")
    job, number = script.job, int(generator.integers(1000, 90_000))
    tasks: list[int | None] = [*job.array[:MOST_RUNS]] or [None]
    fails = tasks[int(generator.integers(len(tasks)))]
    runs = [(task, 0) for task in tasks] + [(fails, int(generator.integers(1, 60)))]
    circumstances = [Circumstances([], job.environment(number, 0, task), {"train.py": code}) for task, code in runs]
    *attempts, failed = script.attempts(answer, circumstances)
    by_task = dict(zip(tasks, attempts, strict=False))
    sizes = _sizes(job, by_task)
    failure = _failure(attempts, failed)
    of_options = {"array": _array(job), "logs": _logs(job, number)}
    return ScriptHints(job, [*attempts, failed], of_options, {"sizes": sizes, "failure": failure})


def _array(job: BatchJob) -> AnyHint | None:
    if not job.array:
        return Lab15Hint.NO_ARRAY
    if job.least_nodes < max(SIZES) <= job.nodes:
        return Lab15Hint.NODES.says(count=counted_nodes(job), expected=max(SIZES))
    if job.nodes < max(SIZES):
        return Lab15Hint.ARRAY_NODES.says(count=counted_nodes(job), size=max(SIZES))
    if job.nodes > max(SIZES):
        return Lab15Hint.ARRAY_TOO_MANY_NODES.says(count=counted_nodes(job))
    if job.ranks != max(SIZES):
        return Lab15Hint.RANKS_PER_NODE.says(count=counted(job.ranks, "rank"), expected=max(SIZES))
    if job.at_once != 1:
        return Lab15Hint.AT_ONCE.says(count=len(job.array) if job.at_once is None else job.at_once)
    return time_limit(job, SECONDS)


def _logs(job: BatchJob, number: int) -> AnyHint | None:
    if not job.array:
        return Lab15Hint.NO_ARRAY
    names = [job.log(array, task) for array in (number, number + 100) for task in job.array]
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        return Lab15Hint.ONE_LOG.says(said=twice[:80])
    folder = posixpath.normpath(posixpath.dirname(names[0]))
    if folder not in (".", FOLDER) and not folder.startswith("/"):
        return Lab15Hint.NO_FOLDER.says(said=names[0][:80], folder=folder[:80])
    return None


def _sizes(job: BatchJob, attempts: Mapping[int | None, ScriptAttempt]) -> AnyHint | None:
    trained = []
    for task, attempt in attempts.items():
        trainings = [program for program in attempt.programs if program.name == "train.py"]
        if task is None and len(trainings) > 1:
            return Lab15Hint.ALL_IN_ONE.says(count=len(trainings))
        if task is None:
            return Lab15Hint.NO_ARRAY
        if len(trainings) != 1:
            return Lab15Hint.NO_TRAINING.says(task=task, count=len(trainings))
        trained.append((task, trainings[0]))
    sizes = sorted(training.nodes for _, training in trained)
    uneven = next(((task, training) for task, training in trained if training.tasks != training.nodes), None)
    if uneven or (sizes != [*SIZES] and all(not training.by_srun for _, training in trained)):
        task, training = uneven or trained[0]
        return Lab15Hint.ARRAY_RANKS.says(task=task, said=training.layout)
    if sizes != [*SIZES] or len(job.array) != len(SIZES):
        said = ", ".join([*map(str, sizes), *["…"] * (len(job.array) > len(sizes))])
        return Lab15Hint.SIZES.says(said=said, expected=", ".join(map(str, SIZES)))
    for _, training in trained:
        expected = ["--result", f"{FOLDER}/{training.nodes}.json"]
        if separated(training.arguments, "--result") != expected:
            nodes, said = counted(training.nodes, "node"), arguments(training.arguments)
            return Lab15Hint.RESULT.says(nodes=nodes, said=said, expected=arguments(expected))
    return None


def _failure(attempts: list[ScriptAttempt], failed: ScriptAttempt) -> AnyHint | None:
    if any(attempt.names.count("train.py") != 1 for attempt in attempts):
        return Lab15Hint.PROGRAMS_FIRST
    bad = next((attempt.status for attempt in attempts if attempt.status), 0)
    if bad:
        return Lab15Hint.FAILS_ALWAYS.says(status=bad)
    for attempt in (*attempts, failed):
        cancelled = [words for words in attempt.commands if words[0] == "scancel"]
        if cancelled:
            return Lab15Hint.CANCELS.says(call=listed(cancelled[0]))
    if failed.status == 0:
        return Lab15Hint.TASK_COMPLETED
    return next((hint for program in attempts[-1].programs if (hint := others_wait(program))), None)
