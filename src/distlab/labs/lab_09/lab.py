"""The exercises of lab 09: the eight Horovod steps as a puzzle, then as functions that run on rehearsed ranks."""

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_09 import hints as verdicts
from distlab.labs.lab_09 import inside as rehearsal
from distlab.labs.lab_09.inside import PER_HOST, SIZE
from distlab.labs.lab_09.puzzle import CARDS, STEPS, hints, problem_of_form
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

HIDDEN = 6  # units; the rehearsed network is narrow so that its answers are small
SHAPES = [(784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
INITIALISE, PIN, SCALE, WRAP, BROADCAST, CHECKPOINT, SHARD, STEPS_PER_EPOCH = STEPS


def judge_program(answer: Answer, generator: np.random.Generator) -> Verdict:
    """An eighth of the points for each step that is in its place."""
    layout = answer.value("program")
    if problem := problem_of_form(layout):
        return wrong(problem)
    if not any(name in CARDS for name in layout):
        return not_done("no card has been laid")
    return parts({step: wrong(hint) if hint else right() for step, hint in hints(layout).items()})


def judge_start(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step: on two hosts with GPUs, then on two without."""
    found = answer.inside(rehearsal.start)
    if found["problem"]:
        return not_done("`start` does nothing")
    with_gpus, without = found[str(PER_HOST)], found["0"]
    by_step = {INITIALISE: verdicts.on_initialisation(with_gpus), PIN: verdicts.on_pinning(with_gpus)}
    if by_step[PIN].is_right and (error := verdicts.first_error(without)):
        by_step[PIN] = wrong(f"where there is no GPU at all, it raises {verdicts.short(error)}")
    return parts(by_step)


def judge_feeding(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step, on all ranks; the images do not fill the last batches."""
    batch, steps = int(generator.integers(12, 18)), int(generator.integers(4, 7))
    images = SIZE * batch * steps + batch + int(generator.integers(1, batch))
    options = {"dataset": "digits", "images": images, "batch": batch, "seed": int(generator.integers(1, 1000))}
    options |= {"learning_rate": 0.02, "folder": None, "resume": False, "epochs": 2}
    found = answer.inside(rehearsal.feeding, options, steps)
    of_batches = verdicts.unasked(found["batches"]) or verdicts.on_batches(found["batches"]["ranks"], batch, steps)
    of_steps = verdicts.unasked(found["steps"]) or verdicts.on_steps(found["steps"]["ranks"], images, batch)
    return parts({SHARD: of_batches, STEPS_PER_EPOCH: of_steps})


def judge_training(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each step; each function is called among parts that are right."""

    def drawn() -> list[np.ndarray]:
        return [generator.normal(0, 0.1, shape).astype(np.float32) for shape in SHAPES]

    weights, kept = [drawn() for _ in range(SIZE)], drawn()
    batches = [(generator.random((5, 28, 28)).astype(np.float32), generator.integers(0, 10, 5)) for _ in range(SIZE)]
    rate = float(generator.integers(2, 9)) / 100
    found = answer.inside(rehearsal.training, weights, kept, batches, rate)
    step = verdicts.unasked(found["step"]) or verdicts.on_step(found["step"]["ranks"], weights[0], batches, rate)
    begin = verdicts.unasked(found["begin"]) or verdicts.on_begin(found["begin"]["ranks"], weights)
    if begin.is_right:
        begin = verdicts.unasked(found["resumed"]) or verdicts.on_begin(found["resumed"]["ranks"], weights, kept)
    return parts(
        {
            SCALE: verdicts.unasked(found["optimizer"]) or verdicts.on_optimizer(found["optimizer"]["ranks"], rate),
            WRAP: step,
            BROADCAST: begin,
            CHECKPOINT: verdicts.unasked(found["save"]) or verdicts.on_save(found["save"]["ranks"]),
        }
    )


LAB = Lab(
    "09_horovod",
    [
        Exercise("program", 8, judge_program),
        Exercise("start", 2, judge_start),
        Exercise("feeding", 4, judge_feeding),
        Exercise("training", 8, judge_training),
    ],
    tensorflow=True,
)
