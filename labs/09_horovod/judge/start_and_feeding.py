"""Exercises `start` and `feeding` of lab 09: devices, data and steps (the Horovod steps 1, 2, 7 and 8)."""

import numpy as np
from lab_09 import observe
from lab_09.hints import Lab09Hint
from lab_09.observations import HOSTS, PER_HOST, SIZE, Fed, Observation, Started
from lab_09.puzzle import STEPS
from lab_09.rank_verdicts import judged, observations_of

from distlab.labs.answer import Answer
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

INITIALISE, PIN, *_, SHARD, STEPS_PER_EPOCH = STEPS


def judge_start(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step: on two hosts with GPUs, then on two without."""
    observations = observations_of(answer.inside(observe.start))
    with_gpus, by_node = observations["with GPUs"], observations["by node"]
    without = observations["without GPUs"]
    if not with_gpus.is_written:
        return not_done("`start` does nothing")
    by_step = {INITIALISE: _initialised(with_gpus), PIN: _pinned(with_gpus)}
    if by_step[PIN].is_right and not by_node.cause:
        gpus = [rank.gpus for rank in by_node.records(Started)]
        if gpus != [[0], [0], [1], [1]]:
            by_step[PIN] = wrong(Lab09Hint.GPUS_BY_NODE.says(gpus=[own[0] if own else None for own in gpus]))
    if by_step[PIN].is_right and without.cause:
        by_step[PIN] = wrong(Lab09Hint.FAILS_WITHOUT_GPUS.says(error=without.cause))
    return parts(by_step)


def judge_feeding(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step, on all ranks; the images do not fill the last batches."""
    batch, steps = int(generator.integers(12, 18)), int(generator.integers(4, 7))
    images = SIZE * batch * steps + batch + int(generator.integers(1, batch))
    options = {"dataset": "digits", "images": images, "batch": batch, "seed": int(generator.integers(1, 1000))}
    options |= {"learning_rate": 0.02, "folder": None, "resume": False, "epochs": 2}
    observations = observations_of(answer.inside(observe.feeding, options, steps))
    counted = judged(observations["steps"], lambda seen: _counted(seen, images, batch))
    if counted.is_right:
        one_short = SIZE * batch * steps - 1
        counted = judged(observations["steps of one image less"], lambda seen: _counted(seen, one_short, batch))
    return parts(
        {
            SHARD: judged(observations["batches"], lambda seen: _sharded(seen, batch, steps, images)),
            STEPS_PER_EPOCH: counted,
        }
    )


def _initialised(seen: Observation) -> Verdict:
    """Step 1."""
    if seen.cause:
        return wrong(Lab09Hint.USED_BEFORE_INIT) if "not been initialized" in seen.cause.message else right()
    is_initialised = all(rank.is_initialised for rank in seen.records(Started))
    return right() if is_initialised else wrong(Lab09Hint.NO_INIT)


def _pinned(seen: Observation) -> Verdict:
    """Step 2, on hosts with as many GPUs as ranks."""
    if error := seen.cause:
        if "not been initialized" in error.message:
            return wrong(Lab09Hint.PINNED_BEFORE_INIT)
        if error.kind == "IndexError":
            rank = seen.errors[0].rank
            return wrong(Lab09Hint.NO_SUCH_GPU.says(rank=rank, size=SIZE, per_host=PER_HOST, hosts=HOSTS))
        return wrong(Lab09Hint.RAISES.says(rank=error.rank, error=error))
    ranks = seen.records(Started)
    gpus = [rank.gpus for rank in ranks]
    for number, started in enumerate(ranks):
        if -1 in started.gpus:
            return wrong(Lab09Hint.NOT_A_GPU.says(rank=number))
        if started.hides_cpu:
            return wrong(Lab09Hint.CPU_HIDDEN.says(rank=number))
    if gpus == [[number % PER_HOST] for number in range(SIZE)]:
        return right()
    undecided = [number for number, rank in enumerate(ranks) if not rank.has_chosen]
    if len(undecided) == SIZE:
        return wrong(Lab09Hint.NOT_PINNED)
    if undecided:
        return wrong(Lab09Hint.ONE_NOT_PINNED.says(rank=undecided[0]))
    if any(len(own) > 1 for own in gpus):
        return wrong(Lab09Hint.SEVERAL_GPUS)
    if [] in gpus:
        return wrong(Lab09Hint.NO_GPU.says(rank=gpus.index([])))
    if all(own == gpus[0] for own in gpus):
        return wrong(Lab09Hint.SAME_GPU)
    return wrong(Lab09Hint.WRONG_GPUS.says(per_host=PER_HOST, gpus=[own[0] for own in gpus]))


def _sharded(seen: Observation, batch: int, steps: int, images: int) -> Verdict:
    """Step 7, in two epochs of so many steps."""
    ranks = [rank.samples for rank in seen.records(Fed)]
    sizes = {len(samples) for rank in ranks for epoch in rank for samples in epoch}
    if not sizes:
        return wrong(Lab09Hint.NO_BATCHES)
    if sizes == {batch * SIZE}:
        return wrong(Lab09Hint.GLOBAL_BATCHES.says(count=batch * SIZE))
    if sizes and max(sizes) < batch:
        return wrong(Lab09Hint.BATCH_DIVIDED.says(count=max(sizes), batch=batch))
    if sizes != {batch}:
        return wrong(Lab09Hint.WRONG_BATCHES.says(counts=sorted(sizes), batch=batch))
    if short := [number for number, rank in enumerate(ranks) if any(len(epoch) < steps for epoch in rank)]:
        return wrong(Lab09Hint.OUT_OF_BATCHES.says(rank=short[0]))
    orders = [[np.ravel(epoch).tolist() for epoch in rank] for rank in ranks]
    first = [epochs[0] for epochs in orders]
    if all(order == first[0] for order in first):
        return wrong(Lab09Hint.NOT_SHARDED)
    if any(first[rank] == first[peer] for rank in range(SIZE) for peer in range(rank)):
        return wrong(Lab09Hint.HOSTS_ALIKE)
    together = [sample for order in first for sample in order]
    if repeated := len(together) - len(set(together)):
        return wrong(Lab09Hint.SAMPLES_TWICE.says(count=repeated))
    if any(epochs[0] == epochs[1] for epochs in orders):
        return wrong(Lab09Hint.EPOCHS_ALIKE)
    numbers = [sample for epochs in orders for epoch in epochs for sample in epoch]
    if max(numbers) >= images:
        return wrong(Lab09Hint.TOO_MANY_SAMPLES.says(sample=max(numbers), last=images - 1))
    if not all(rank.images_fit for rank in seen.records(Fed)):
        return wrong(Lab09Hint.IMAGES_OF_OTHERS)
    if not all(rank.labels_fit for rank in seen.records(Fed)):
        return wrong(Lab09Hint.LABELS_OF_OTHERS)
    return right()


def _counted(seen: Observation, images: int, batch: int) -> Verdict:
    """Step 8."""
    job = f"{images} images, {batch} for each of {SIZE} ranks"
    steps = seen.values[0]
    if len(set(map(str, seen.values))) > 1:
        return wrong(Lab09Hint.STEPS_DIFFER.says(steps=seen.values))
    if not isinstance(steps, int):
        return wrong(Lab09Hint.NOT_A_COUNT.says(steps=steps, job=job))
    if steps == images // (batch * SIZE) and type(steps) is int:
        return right()
    usual = {
        images // batch: Lab09Hint.STEPS_NOT_DIVIDED,
        images // (batch * PER_HOST): Lab09Hint.STEPS_BY_LOCAL_SIZE,
        -(-images // (batch * SIZE)): Lab09Hint.STEPS_ROUNDED_UP,
        images // batch * SIZE: Lab09Hint.STEPS_MULTIPLIED,
        images // SIZE: Lab09Hint.IMAGES_OF_A_RANK,
    }
    return wrong(usual.get(steps, Lab09Hint.WRONG_STEPS).says(steps=steps, job=job))
