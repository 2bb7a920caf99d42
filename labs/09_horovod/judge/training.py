"""Exercise `training` of lab 09: optimizer, start, step and checkpoint (the Horovod steps 3 to 6)."""

from collections.abc import Sequence

import numpy as np
from lab_09 import observe
from lab_09.hints import Lab09Hint
from lab_09.observations import (
    HOSTS,
    MOMENTUM,
    PER_HOST,
    SIZE,
    Begun,
    Observation,
    Optimized,
    Saved,
    Stepped,
    Weights,
)
from lab_09.puzzle import STEPS
from lab_09.rank_verdicts import judged, observations_of

from distlab.labs.answer import Answer
from distlab.labs.plain_data import Array
from distlab.labs.reference_mlp import cross_entropy, logits, softmax, trained
from distlab.labs.verdict import Verdict, parts, right, wrong

HIDDEN = 6  # units; the network is narrow so that the answers are small
SHAPES = [(784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
TOLERANCE = 1e-4
SCALE, WRAP, BROADCAST, CHECKPOINT = STEPS[2:6]

Batch = tuple[Array, Array]


def judge_training(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each step; everything around each function is right."""

    def drawn() -> list[Array]:
        return [generator.normal(0, 0.1, shape).astype(np.float32) for shape in SHAPES]

    weights, saved = [drawn() for _ in range(SIZE)], drawn()
    batches = [(generator.random((5, 28, 28)).astype(np.float32), generator.integers(0, 10, 5)) for _ in range(SIZE)]
    rate = float(generator.integers(2, 9)) / 100
    observations = observations_of(answer.inside(observe.training, weights, saved, batches, rate))
    begin = judged(observations["begin"], lambda seen: _begun(seen, weights))
    if begin.is_right:
        begin = judged(observations["resumed"], lambda seen: _resumed(seen, weights, saved))
        if begin.is_right:
            begin = judged(observations["not resumed"], lambda seen: _not_resumed(seen, saved))
    scale = judged(observations["optimizer"], lambda seen: _scaled(seen, rate))
    if scale.is_right:
        scale = judged(observations["optimizer of four"], lambda seen: _scaled_for_four(seen, rate))
    return parts(
        {
            SCALE: scale,
            WRAP: judged(observations["step"], lambda seen: _stepped(seen, weights[0], batches, rate)),
            BROADCAST: begin,
            CHECKPOINT: judged(observations["save"], _saved),
        }
    )


def _scaled(seen: Observation, own: float) -> Verdict:
    """Step 3, with that rate for one rank."""
    optimizers = seen.records(Optimized)
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
    rates = [optimizer.rate for optimizer in seen.records(Optimized)]
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

    ranks = seen.records(Stepped)
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


def _stepped_twice(ranks: Sequence[Stepped], weights: Weights, batches: Sequence[Batch], rate: float) -> Verdict:
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
    ranks = seen.records(Saved)
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
