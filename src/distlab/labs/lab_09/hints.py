"""What is said of a step of lab 09 after a rehearsal; `ranks` is what `horovod_rehearsal` gives of each rank."""

from collections.abc import Mapping, Sequence

import numpy as np

from distlab.labs.lab_09.inside import MISSING, MOMENTUM, PER_HOST, SIZE, GaveNothing
from distlab.labs.reference_mlp import trained
from distlab.labs.verdict import Verdict, not_done, right, wrong

TOLERANCE = 1e-4
WAITS = "Stalled"


def on_initialisation(ranks: Sequence[Mapping]) -> Verdict:
    """Step 1, after `start`."""
    error = first_error(ranks)
    if error and "not been initialized" in error[1]:
        return wrong("something is asked of hvd before the processes have met.")
    if not error and not all(rank["value"][0] for rank in ranks):
        return wrong("afterwards hvd does not know that it has begun.")
    return right()


def on_pinning(ranks: Sequence[Mapping]) -> Verdict:
    """Step 2, after `start` on hosts with as many GPUs as ranks."""
    error = first_error(ranks)
    if error and "not been initialized" in error[1]:
        return wrong("the number that picks the GPU is not known yet.")
    if error and error[0] == "IndexError":
        failed = [number for number, rank in enumerate(ranks) if rank["error"]]
        return wrong(
            f"rank {failed[0]} asks for a GPU that its host does not have: {SIZE} ranks, {PER_HOST} GPUs on each of "
            f"{SIZE // PER_HOST} hosts."
        )
    if error:
        return wrong(f"rank {_first_failed(ranks)} raises {short(error)}")
    seen = [rank["value"][1] for rank in ranks]
    if seen == [[number % PER_HOST] for number in range(SIZE)]:
        return right()
    if all(one is None for one in seen):
        return wrong("every rank sees all GPUs of its host still.")
    if any(one is None for one in seen):
        return wrong(f"rank {seen.index(None)} has not said which GPU it wants, and sees all of them.")
    if any(len(one) > 1 for one in seen):
        return wrong("a rank says that it wants several GPUs. One process, one device.")
    if any(not one for one in seen):
        return wrong(f"rank {seen.index([])} hides every GPU, its own too.")
    if len({tuple(one) for one in seen}) == 1:
        return wrong("all ranks of a host take the same GPU.")
    return wrong(
        f"the ranks, {PER_HOST} on each host, take the GPUs {[one[0] for one in seen]}. Which number is the host's?"
    )


def on_batches(ranks: Sequence[Mapping], batch: int, steps: int) -> Verdict:
    """Step 7, of two epochs of so many steps."""
    values = [rank["value"] for rank in ranks]
    sizes = {len(numbers) for rank in values for epoch in rank for numbers in epoch}
    if sizes == {batch * SIZE}:
        return wrong(f"each rank gets {batch * SIZE} images in a step. options.batch is the batch of one rank.")
    if sizes and max(sizes) < batch:
        return wrong(f"a rank gets {max(sizes)} images in a step: options.batch, {batch}, is its own and not divided.")
    if sizes != {batch}:
        return wrong(f"the batches of a rank have {sorted(sizes)} images, and {batch} are wanted in each.")
    if short := [number for number, rank in enumerate(values) if any(len(epoch) < steps for epoch in rank)]:
        return wrong(f"rank {short[0]} runs out of batches before the epoch is over: the others would wait for it.")
    seen = [[np.ravel(epoch).tolist() for epoch in rank] for rank in values]
    first = [epochs[0] for epochs in seen]
    if all(one == first[0] for one in first):
        return wrong("all ranks get the same samples.")
    if any(first[rank] == first[other] for rank in range(SIZE) for other in range(rank)):
        return wrong("the ranks of one host get different samples, but each host gets the same ones as the other.")
    together = [number for one in first for number in one]
    if len(set(together)) < len(together):
        twice = len(together) - len(set(together))
        return wrong(
            f"{twice} samples of an epoch go to more than one rank. From how many different orders do the ranks take?"
        )
    if any(epochs[0] == epochs[1] for epochs in seen):
        return wrong("every epoch has the same order; the serial program shuffles anew.")
    return right()


def on_steps(ranks: Sequence[Mapping], images: int, batch: int) -> Verdict:
    """Step 8."""
    values = [rank["value"] for rank in ranks]
    where = f"{images} images, {batch} for each of {SIZE} ranks"
    if all(value == images // (batch * SIZE) and type(value) is int for value in values):
        return right()
    if len(set(map(str, values))) > 1:
        return wrong(f"the ranks do not agree: {values}. Who makes a step more waits for the others.")
    (value,) = set(values)
    if not isinstance(value, int):
        return wrong(f"{value!r} for {where}: it counts steps, so it is a whole number.")
    mistakes = {
        images // batch: "so the ranks together go through the data several times.",
        images // (batch * PER_HOST): "so many it would be if there were one host.",
        -(-images // (batch * SIZE)): "the last step is not filled, and the serial program leaves such a step out.",
        images // batch * SIZE: "more ranks, and more steps?",
        images // SIZE: "that is how many images a rank has, not how many steps.",
    }
    return wrong(f"{value} for {where}: {mistakes.get(value, 'how many images does one step of all ranks take?')}")


def on_optimizer(ranks: Sequence[Mapping], rate: float) -> Verdict:
    """Step 3, with that rate for one rank."""
    values = [rank["value"] for rank in ranks]
    rates = [value[1] for value in values]
    if len(set(rates)) > 1:
        return wrong(f"the ranks have different rates, {', '.join(f'{one:.3g}' for one in rates)}: they drift apart.")
    factors = {
        1: "the rate is still that of one rank.",
        PER_HOST: f"there are {SIZE} ranks on {SIZE // PER_HOST} hosts. It is scaled by what one host has.",
        1 / SIZE: "it is divided. An average of more samples allows a longer step, not a shorter one.",
        SIZE**2: "it is scaled twice.",
        SIZE**0.5: "the square root is another rule; the linear one is asked for.",
    }
    for factor, hint in factors.items():
        if np.isclose(rates[0], factor * rate, rtol=1e-4) and factor != SIZE:
            return wrong(f"the rate is {rates[0]:.3g} with {rate:.3g} for one rank and {SIZE} ranks: {hint}")
    if not np.isclose(rates[0], SIZE * rate, rtol=1e-4):
        return wrong(f"the rate is {rates[0]:.3g} with {rate:.3g} for one rank and {SIZE} ranks.")
    if values[0][0] != "SGD" or not np.isclose(values[0][2], MOMENTUM):
        return wrong(f"the rate is right; the serial program has SGD with momentum, this is another {values[0][0]}.")
    return right()


def on_step(ranks: Sequence[Mapping], weights: list, batches: Sequence[tuple], rate: float) -> Verdict:
    """Step 4, from equal weights; compared with a step of NumPy's."""

    def after(factors: Sequence[float]) -> list[np.ndarray]:
        taken = [(batch, factor / len(batch[1])) for batch, factor in zip(batches, factors, strict=True)]
        return trained(weights, [taken], rate)

    own = [after([float(rank == number) for rank in range(SIZE)]) for number in range(SIZE)]
    values, wrapped = zip(*(rank["value"] for rank in ranks), strict=True)
    if all(_equal(value, after([1 / SIZE] * SIZE)) for value in values):
        return right()
    if all(_equal(value, weights) for value in values):
        return wrong("the weights are the first ones still: nothing was applied.")
    if all(_equal(value, one) for value, one in zip(values, own, strict=True)):
        if all(wrapped):
            return wrong("a tape was wrapped, but the gradients do not come from the wrapped one: when is it asked?")
        return wrong("each rank has applied the gradients of its own samples. Which object is asked for them?")
    if all(_equal(value, after([1.0] * SIZE)) for value in values):
        return wrong("the gradients are added up and not averaged: the step is too long, by the number of ranks.")
    if all(_equal(value, after([1 / SIZE**2] * SIZE)) for value in values):
        return wrong("the average is divided once more.")
    if not all(_equal(value, values[0]) for value in values):
        return wrong("after one step the ranks' weights differ, although they were equal before.")
    return wrong("all ranks have equal weights, but not those of a step with the average of their gradients.")


def on_begin(ranks: Sequence[Mapping], first: Sequence[list], kept: list | None = None) -> Verdict:
    """Step 5; `first` is what each rank had before, `kept` what rank 0's checkpoint has, if it is to be taken."""
    values = [rank["value"] for rank in ranks]
    models, slots, epochs = zip(*values, strict=True)
    wanted = [first[0] if kept is None else kept, *first[1:]]
    if all(_equal(model, own) for model, own in zip(models, wanted, strict=True)):
        if kept is not None:
            return wrong("after a restart rank 0 has the checkpoint, and nobody tells the others: they begin anew.")
        return wrong("each rank has its own first weights still.")
    if not _equal(models[0], wanted[0]) and kept is not None:
        return wrong("with options.resume, rank 0 does not have the weights of its checkpoint afterwards.")
    if kept is not None and all(_equal(model, first[0]) for model in models[1:]):
        return wrong(
            "after a restart rank 0 has the checkpoint, the others its first weights. In which order was that?"
        )
    source = next((rank for rank in range(1, SIZE) if all(_equal(model, wanted[rank]) for model in models)), None)
    if source is not None:
        return wrong(f"all have the weights of rank {source}. Which rank reads the checkpoint and writes it?")
    if not all(_equal(model, wanted[0]) for model in models):
        return wrong("the ranks do not all have the weights of rank 0.")
    if not all(_equal(one, slots[0]) for one in slots):
        return wrong("the weights are equal, the momentum is not: a model is not all that a step needs.")
    if len(set(epochs)) > 1:
        return wrong(f"weights and momentum are equal, but the epochs that are done are {list(epochs)}.")
    return right()


def on_save(ranks: Sequence[Mapping]) -> Verdict:
    """Step 6, when each rank has had a folder of its own."""
    writers = [number for number, rank in enumerate(ranks) if rank["value"]]
    if writers == [0]:
        return right()
    if not writers:
        return wrong("nobody has written a checkpoint.")
    if writers == list(range(SIZE)):
        return wrong("all ranks write. In one folder they would disturb each other.")
    if writers == list(range(0, SIZE, PER_HOST)):
        return wrong(f"ranks {writers} write: one on each host.")
    return wrong(f"the writers are {writers}. Which rank has what `begin` reads?")


def _equal(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
    return len(one) == len(other) and all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, atol=TOLERANCE, rtol=0)
        for a, b in zip(one, other, strict=True)
    )


def unasked(found: Mapping) -> Verdict | None:
    """A verdict if there is nothing to look at, because nothing was written or something was raised."""
    if found["problem"] == MISSING:
        return not_done("the function is still empty")
    ranks = found["ranks"]
    error = first_error(ranks)
    if error is None:
        return None
    if error[0] in (GaveNothing.__name__, NotImplementedError.__name__):
        return not_done("the function gives nothing")
    if error[0] == WAITS:
        return wrong(f"it hangs: {error[1]}. Who makes this call, and who does not?")
    if error[0] == "TimeoutError":
        return wrong("it did not end in time and was left.")
    if error[0] == "SystemExit":
        return wrong(f"rank {_first_failed(ranks)} ends the program. Which ranks have to find a checkpoint?")
    return wrong(f"rank {_first_failed(ranks)} raises {short(error)}")


def first_error(ranks: Sequence[Mapping]) -> list[str] | None:
    """The error that came first in sense: of waiting ranks only if no other failed."""
    errors = [rank["error"] for rank in ranks if rank["error"]]
    order = {"Abandoned": 3, "TimeoutError": 2, WAITS: 1}
    return min(errors, key=lambda error: order.get(error[0], 0), default=None)


def _first_failed(ranks: Sequence[Mapping]) -> int:
    error = first_error(ranks)
    return next(number for number, rank in enumerate(ranks) if rank["error"] == error)


def short(error: Sequence[str]) -> str:
    """An error in a line."""
    lines = [line.strip() for line in error[1].splitlines() if line.strip()]
    return f"{error[0]}: {lines[0][:200] if lines else 'without a word'}"
