"""The exercises of lab 09: the eight Horovod steps as a puzzle, then as functions that run on the fake Horovod."""

from collections.abc import Callable, Sequence

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_09 import given, observe
from distlab.labs.lab_09.hints import Lab09Hint
from distlab.labs.lab_09.observe import MOMENTUM, PER_HOST, SIZE, Begun, Observation, Started, Weights
from distlab.labs.lab_09.puzzle import STEPS, judge_program
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.reference_mlp import cross_entropy, logits, softmax, trained
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong

HIDDEN = 6  # units; the network is narrow so that the answers are small
SHAPES = [(784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
HOSTS = SIZE // PER_HOST
TOLERANCE = 1e-4
INITIALISE, PIN, SCALE, WRAP, BROADCAST, CHECKPOINT, SHARD, STEPS_PER_EPOCH = STEPS

Batch = tuple[Array, Array]
JudgeOfStep = Callable[[Observation], Verdict]


def judge_start(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step: on two hosts with GPUs, then on two without."""
    observations = _observations(answer.inside(observe.start))
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
    observations = _observations(answer.inside(observe.feeding, options, steps))
    counted = _judged(observations["steps"], lambda seen: _counted(seen, images, batch))
    if counted.is_right:
        one_short = SIZE * batch * steps - 1
        counted = _judged(observations["steps of one image less"], lambda seen: _counted(seen, one_short, batch))
    return parts(
        {
            SHARD: _judged(observations["batches"], lambda seen: _sharded(seen, batch, steps, images)),
            STEPS_PER_EPOCH: counted,
        }
    )


def judge_training(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each step; everything around each function is right."""

    def drawn() -> list[Array]:
        return [generator.normal(0, 0.1, shape).astype(np.float32) for shape in SHAPES]

    weights, saved = [drawn() for _ in range(SIZE)], drawn()
    batches = [(generator.random((5, 28, 28)).astype(np.float32), generator.integers(0, 10, 5)) for _ in range(SIZE)]
    rate = float(generator.integers(2, 9)) / 100
    observations = _observations(answer.inside(observe.training, weights, saved, batches, rate))
    begin = _judged(observations["begin"], lambda seen: _begun(seen, weights))
    if begin.is_right:
        begin = _judged(observations["resumed"], lambda seen: _resumed(seen, weights, saved))
        if begin.is_right:
            begin = _judged(observations["not resumed"], lambda seen: _not_resumed(seen, saved))
    scale = _judged(observations["optimizer"], lambda seen: _scaled(seen, rate))
    if scale.is_right:
        scale = _judged(observations["optimizer of four"], lambda seen: _scaled_for_four(seen, rate))
    return parts(
        {
            SCALE: scale,
            WRAP: _judged(observations["step"], lambda seen: _stepped(seen, weights[0], batches, rate)),
            BROADCAST: begin,
            CHECKPOINT: _judged(observations["save"], _saved),
        }
    )


def _observations(observed: Plain) -> dict[object, Observation]:
    """What `observe` has seen, by name."""
    assert isinstance(observed, dict)
    return {name: as_record(fields, Observation) for name, fields in observed.items()}


def _judged(seen: Observation, judge: JudgeOfStep) -> Verdict:
    """The verdict of `judge`, unless the function is not written or raised something."""
    if not seen.is_written:
        return not_done("the function is still empty")
    error = seen.cause
    if error is None:
        return judge(seen)
    if error.kind in (observe.GaveNothing.__name__, NotImplementedError.__name__):
        return not_done("the function gives nothing")
    if error.kind == "Stalled":
        return wrong(Lab09Hint.HANGS.says(error=error.message))
    if error.kind == "TimeoutError":
        return wrong(Lab09Hint.TOO_SLOW)
    if error.kind == "SystemExit":
        return wrong(Lab09Hint.ENDS_THE_PROGRAM.says(rank=error.rank))
    return wrong(Lab09Hint.RAISES.says(rank=error.rank, error=error))


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
    ranks = [rank.samples for rank in seen.records(observe.Fed)]
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
    if not all(rank.images_fit for rank in seen.records(observe.Fed)):
        return wrong(Lab09Hint.IMAGES_OF_OTHERS)
    if not all(rank.labels_fit for rank in seen.records(observe.Fed)):
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


def _scaled(seen: Observation, own: float) -> Verdict:
    """Step 3, with that rate for one rank."""
    optimizers = seen.records(observe.Optimized)
    rates = [optimizer.rate for optimizer in optimizers]
    if len(set(rates)) > 1:
        return wrong(Lab09Hint.RATES_DIFFER.says(rates=", ".join(f"{rate:.3g}" for rate in rates)))
    numbers = {"rate": rates[0], "own": own, "size": SIZE}
    usual = {
        1: Lab09Hint.RATE_NOT_SCALED.says(**numbers),
        PER_HOST: Lab09Hint.RATE_BY_LOCAL_SIZE.says(**numbers, hosts=HOSTS),
        HOSTS: Lab09Hint.RATE_BY_HOSTS.says(**numbers, hosts=HOSTS),
        1 / SIZE: Lab09Hint.RATE_DIVIDED.says(**numbers),
        SIZE**2: Lab09Hint.RATE_SCALED_TWICE.says(**numbers),
        SIZE**0.5: Lab09Hint.RATE_BY_SQUARE_ROOT.says(**numbers),
    }
    for factor, advice in usual.items():
        if np.isclose(rates[0], factor * own, rtol=1e-4):
            return wrong(advice)
    if not np.isclose(rates[0], SIZE * own, rtol=1e-4):
        return wrong(Lab09Hint.WRONG_RATE.says(**numbers))
    if optimizers[0].name != "SGD" or not np.isclose(optimizers[0].momentum, MOMENTUM):
        return wrong(Lab09Hint.ANOTHER_OPTIMIZER.says(optimizer=optimizers[0].name))
    return right()


def _scaled_for_four(seen: Observation, own: float) -> Verdict:
    """Step 3, on four ranks."""
    rates = [optimizer.rate for optimizer in seen.records(observe.Optimized)]
    if np.allclose(rates, 4 * own, rtol=1e-4):
        return right()
    return wrong(Lab09Hint.RATE_OF_OTHER_SIZE.says(size=4, rate=rates[0], own=own))


def _loss(weights: Weights, batch: Batch) -> float:
    return cross_entropy(softmax(logits(list(weights), batch[0])), batch[1])


def _stepped(seen: Observation, weights: Weights, batches: Sequence[Batch], rate: float) -> Verdict:
    """Step 4, from equal weights; compared with a step of NumPy's."""

    def after(factors: Sequence[float]) -> list[Array]:
        taken = [(batch, factor / len(batch[1])) for batch, factor in zip(batches, factors, strict=True)]
        return trained(list(weights), [taken], rate)

    def have(*expected: Weights) -> bool:
        return all(_equal(rank.weights, of_rank) for rank, of_rank in zip(ranks, expected, strict=True))

    ranks = seen.records(observe.Stepped)
    if have(*[after([1 / SIZE] * SIZE)] * SIZE):
        return _stepped_twice(ranks, weights, batches, rate)
    if have(*[weights] * SIZE):
        return wrong(Lab09Hint.NOT_APPLIED)
    if have(*(after([float(rank == number) for rank in range(SIZE)]) for number in range(SIZE))):
        is_wrapped = all(rank.tapes for rank in ranks)
        return wrong(Lab09Hint.WRAPPED_TAPE_NOT_USED if is_wrapped else Lab09Hint.TAPE_NOT_WRAPPED)
    if have(*[after([1.0] * SIZE)] * SIZE):
        return wrong(Lab09Hint.GRADIENTS_SUMMED)
    if have(*[after([1 / SIZE**2] * SIZE)] * SIZE):
        return wrong(Lab09Hint.GRADIENTS_DIVIDED_TWICE)
    return wrong(Lab09Hint.WRONG_STEP if have(*[ranks[0].weights] * SIZE) else Lab09Hint.WEIGHTS_DIFFER)


def _stepped_twice(
    ranks: Sequence[observe.Stepped], weights: Weights, batches: Sequence[Batch], rate: float
) -> Verdict:
    """The second step, which has a momentum, and the loss."""
    taken = [(batch, 1 / SIZE / len(batch[1])) for batch in batches]
    first = trained(list(weights), [taken], rate)
    plain_second = trained(first, [taken], rate)
    before = [np.asarray(array, np.float64) for array in weights]
    second = [
        after + MOMENTUM * (middle - start) for start, middle, after in zip(before, first, plain_second, strict=True)
    ]
    if not all(_equal(rank.second, second) for rank in ranks):
        return wrong(Lab09Hint.NOT_BY_OPTIMIZER)
    losses = [_loss(weights, batch) for batch in batches]
    for rank, own in zip(ranks, losses, strict=True):
        if rank.loss is None:
            return wrong(Lab09Hint.NO_LOSS)
        if min(abs(rank.loss - own), abs(rank.loss - float(np.mean(losses)))) > 1e-3:
            return wrong(Lab09Hint.ANOTHER_LOSS.says(loss=rank.loss, before=own))
    return right()


def _not_resumed(seen: Observation, saved: Weights) -> Verdict:
    """Step 5, at a first start although there is a checkpoint."""
    is_restored = any(_equal(rank.weights, saved) for rank in seen.records(Begun))
    return wrong(Lab09Hint.RESUMED_UNASKED) if is_restored else right()


def _begun(seen: Observation, first: Sequence[Weights]) -> Verdict:
    """Step 5, at the first start; `first` is what each rank had before."""
    ranks = seen.records(Begun)
    if all(_equal(rank.weights, own) for rank, own in zip(ranks, first, strict=True)):
        return wrong(Lab09Hint.NO_BROADCAST)
    return _alike(ranks, first)


def _resumed(seen: Observation, first: Sequence[Weights], saved: Weights) -> Verdict:
    """Step 5, at a restart; `saved` is what rank 0's checkpoint has."""
    chief, *others = seen.records(Begun)
    has_restored = _equal(chief.weights, saved)
    if has_restored and all(_equal(rank.weights, own) for rank, own in zip(others, first[1:], strict=True)):
        return wrong(Lab09Hint.CHECKPOINT_NOT_SHARED)
    if not has_restored:
        return wrong(Lab09Hint.NOT_RESTORED)
    if all(_equal(rank.weights, first[0]) for rank in others):
        return wrong(Lab09Hint.BROADCAST_BEFORE_RESTORE)
    return _alike([chief, *others], [saved, *first[1:]])


def _alike(ranks: Sequence[Begun], first: Sequence[Weights]) -> Verdict:
    """Whether all ranks have the state of rank 0; `first` is what each would have alone."""
    for source in range(1, SIZE):
        if all(_equal(rank.weights, first[source]) for rank in ranks):
            return wrong(Lab09Hint.ANOTHER_ROOT.says(rank=source))
    if not all(_equal(rank.weights, first[0]) for rank in ranks):
        return wrong(Lab09Hint.NOT_WEIGHTS_OF_RANK_0)
    if not all(_equal(rank.slots, ranks[0].slots) for rank in ranks):
        return wrong(Lab09Hint.MOMENTUM_DIFFERS)
    epochs = [rank.epochs_done for rank in ranks]
    return wrong(Lab09Hint.EPOCHS_DIFFER.says(epochs=epochs)) if len(set(epochs)) > 1 else right()


def _saved(seen: Observation) -> Verdict:
    """Step 6, when each rank has had another folder."""
    ranks = seen.records(observe.Saved)
    writers = [number for number, rank in enumerate(ranks) if rank.has_written]
    if writers == [0]:
        if not ranks[0].is_found:
            return wrong(Lab09Hint.NOT_READABLE)
        missing = " and ".join(ranks[0].missing)
        return wrong(Lab09Hint.STATE_INCOMPLETE.says(missing=missing)) if missing else right()
    if not writers:
        return wrong(Lab09Hint.NOBODY_WRITES)
    if writers == list(range(SIZE)):
        return wrong(Lab09Hint.ALL_WRITE)
    is_local = writers == list(range(0, SIZE, PER_HOST))
    return wrong((Lab09Hint.ONE_PER_HOST_WRITES if is_local else Lab09Hint.WRONG_WRITERS).says(ranks=writers))


def _equal(weights: Weights, expected: Weights) -> bool:
    return len(weights) == len(expected) and all(
        np.shape(array) == np.shape(target) and np.allclose(array, target, atol=TOLERANCE, rtol=0)
        for array, target in zip(weights, expected, strict=True)
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
    given_module=given,
)
