"""The judge of `train`: the student's program runs on two ranks, then on three, which go on from a checkpoint."""

from dataclasses import replace

import numpy as np
from lab_16 import observe
from lab_16.comparison import RankComparison
from lab_16.hints import Lab16TrainHint as Hints
from lab_16.observe import ObservedRanks, TrainedRank
from lab_16.rank_job import RankJob

from distlab.data import topics
from distlab.labs.answer import Answer
from distlab.labs.plain_data import as_record
from distlab.labs.verdict import NOT_DONE, Verdict, not_done, right, wrong

UNITS = 4
SHAPES = [(len(topics.VOCABULARY), UNITS), (UNITS, len(topics.NAMES)), (len(topics.NAMES),)]
FOLLOWING = ("Stalled", "TimeoutError", "Abandoned")  # errors of ranks that wait for one that has failed

STRATEGY_ERRORS = {
    "Must not nest tf.distribute.Strategy": Hints.NO_SCOPE,
    "not 'MirroredVariable'": Hints.NO_INT,
    "no attribute 'task_id'": Hints.ANOTHER_STRATEGY,
    "Collective ops must be configured": Hints.STRATEGY_LATE,
}
"""The strategy's own errors, by words of them."""


def judge_train(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each job, a sixth of them for each part."""
    batch, rate = 6 * int(generator.integers(2, 4)), float(generator.integers(4, 9)) / 8
    seeds = [int(seed) for seed in generator.integers(1, 10**6, 2)]
    rest = 3 + 2 * int(generator.integers(0, 3))  # an odd number, which two ranks cannot halve
    verdict, way = _judged(answer, RankJob(2, 2 * batch + rest, batch, rate, seeds[0], UNITS), "")
    if not verdict.is_right:
        return replace(verdict, share=verdict.share / 2)
    weights, slots = (
        [generator.normal(0, scale, shape).astype(np.float32) for shape in SHAPES] for scale in (0.3, 0.05)
    )
    rest = int(generator.integers(1, 3))  # fewer texts than ranks
    job = RankJob(3, batch + rest, batch, rate, seeds[1], UNITS, done=1, epochs=3, weights=weights, slots=slots)
    verdict, _ = _judged(answer, job, way)
    if verdict.is_right:
        return right(f"On 2 and on 3 ranks, the weights after every step are those of one process. {verdict.text}")
    text = f"On 2 ranks all is right. On 3 ranks, which go on from a checkpoint: {verdict.text}"
    return replace(verdict, text=text, share=(1 + verdict.share) / 2)


def _judged(answer: Answer, job: RankJob, way: str) -> tuple[Verdict, str]:
    """The verdict on one job, and which way the program took."""
    saved = {"weights": list(job.weights), "slots": list(job.slots), "epochs_done": job.done} if job.done else None
    seen = as_record(answer.inside(observe.training, job.options, job.size, saved, way), ObservedRanks)
    if not seen.is_written:
        return not_done("`train` is still empty"), ""
    if problem := _problem(seen, job):
        return problem, seen.way
    if not seen.way:
        return wrong(Hints.NOT_DISTRIBUTED), ""
    comparison = RankComparison(job, [as_record(fields, TrainedRank) for fields in seen.ranks])
    verdict = comparison.verdict()
    if verdict.is_right:
        difference = comparison.largest_difference()
        verdict = right(
            f"On {job.size} ranks the last ones differ from those of one process by {difference:.1g} at most."
        )
    return verdict, seen.way


def _problem(seen: ObservedRanks, job: RankJob) -> Verdict | None:
    """What is said if `train` failed on a rank."""
    errors = [(rank, kind) for rank, kind in enumerate(seen.kinds) if kind]
    if not errors:
        return None
    rank, kind = min(errors, key=lambda error: FOLLOWING.index(error[1]) if error[1] in FOLLOWING else -1)
    message = seen.messages[rank]
    first_line = next((line.strip()[:200] for line in message.splitlines() if line.strip()), "without a message")
    if kind == "ReturnedNothing" and seen.kinds.count(kind) < job.size:
        return wrong(Hints.NOTHING_ON_RANK.says(rank=rank))
    if kind in ("ReturnedNothing", "NotImplementedError"):
        return Verdict(NOT_DONE, "`train` gives None: is a `return` missing?")
    if "not been initialized" in message:
        return wrong(Hints.NO_INIT)
    for words, hint in STRATEGY_ERRORS.items():
        if words in message:
            return wrong(hint)
    if job.done and rank and seen.way == "horovod" and "heckpoint" in message:
        return wrong(Hints.ALL_READ.says(rank=rank))
    plainly = {"TooManySteps": Hints.TOO_MANY_STEPS, "TimeoutError": Hints.TOO_SLOW}
    if kind in plainly:
        return wrong(plainly[kind])
    if kind == "WrongForm":
        return wrong(Hints.WRONG_FORM.says(problem=first_line))
    if kind == "Stalled":
        begun = seen.epochs_begun
        if None not in begun and len(set(begun)) > 1:
            return wrong(Hints.EPOCHS_DIFFER.says(counts=", ".join(map(str, begun))))
        return wrong(Hints.HANGS.says(problem=first_line[:1].upper() + first_line[1:]))
    return wrong(Hints.RAISES.says(rank=rank, error=f"{kind}: {first_line}".rstrip(".")))
