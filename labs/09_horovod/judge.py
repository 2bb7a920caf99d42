"""The judge of lab 09: the eight Horovod steps as a puzzle, then as functions that run on the fake Horovod.

The puzzle is judged by known-wrong layouts; what the functions do on the ranks is observed, and compared with NumPy.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from lab_09 import observe
from lab_09.given import CARDS, LINES
from lab_09.observe import (
    HOSTS,
    MOMENTUM,
    PER_HOST,
    SIZE,
    Begun,
    Fed,
    Optimized,
    Saved,
    Started,
    Stepped,
    Weights,
    flat,
)

from distlab.labs import Answer, Exercise, Lab, Verdict, not_done, parts, puzzles, right, wrong
from distlab.labs.fake_job import Observation
from distlab.labs.observed_ranks import GaveNothing
from distlab.labs.plain_data import Array, Plain, as_record
from distlab.labs.reference_mlp import cross_entropy, logits, softmax, trained

# The puzzle ----------------------------------------------------------------------------------------------------------

STEPS = (
    "1 initialise",
    "2 pin the device",
    "3 scale the learning rate",
    "4 wrap the tape",
    "5 broadcast the variables",
    "6 checkpoint on rank 0",
    "7 shard the data",
    "8 steps per epoch",
)
INITIALISE, PIN, SCALE, WRAP, BROADCAST, CHECKPOINT, SHARD, STEPS_PER_EPOCH = STEPS
GUARD = "only rank 0"  # the one card that may be there twice: rank 0 alone reads the checkpoint too
PROGRAM = [
    *("read options", "init", "pin by local rank", "load", "model", "rate by size", "optimizer", "slots", "restore"),
    *("broadcast", "shuffle", "shard", "batch", "steps by size", "steps", "loss"),
    *("wrap the tape", "gradients", "apply", "only rank 0", "save"),
]


def places(answer: Answer) -> dict[str, list[str]]:
    """By step: the card that does not belong to it, or which lines come after its card, as far as they matter."""
    layout = puzzles.placed(answer, LINES, CARDS, [GUARD])

    def after(card: str, *names: str, instead: str = "") -> list[str]:
        if instead in layout or card not in layout:
            return [instead] if instead in layout else ["missing"]
        return [name for name in names if name in layout[layout.index(card) :]]

    guarded = [line for name, line in pairwise([*layout, "nothing"]) if name == GUARD]
    others = [line for line in guarded if line not in ("save", "restore")]
    wrong_guard = "only local rank 0" if "only local rank 0" in layout else "nobody" if not guarded else ""
    before_init = (
        [name for name in layout[: layout.index("init")] if name in CARDS] if "init" in layout else ["missing"]
    )
    return {
        INITIALISE: before_init[:1],
        PIN: after("pin by local rank", "init", "model", instead="pin by rank"),
        SCALE: after("rate by size", "read options", "optimizer", instead="rate by local size"),
        WRAP: after("wrap the tape", "loss", "gradients"),
        BROADCAST: after("broadcast", "model", "slots", "restore", "steps", "apply"),
        CHECKPOINT: [wrong_guard] if wrong_guard else others[:1] or ([] if "save" in guarded else guarded[:1]),
        SHARD: after("shard", "shuffle", "batch", instead="batch by size"),
        STEPS_PER_EPOCH: after("steps by size", "read options", "steps", instead="steps by local size"),
    }


def of_init(case: Any, seen: list[str]) -> str:
    """Of a card that comes too early."""
    return f"{seen[0]!r} already asks for what is known only when the processes have met."


def of_guard(case: Any, seen: list[str]) -> str:
    """Of a guard in front of another line than `save`."""
    waits = " The other ranks never reach it." * (seen[0] in ("broadcast", "gradients", "wrap the tape"))
    return f"it guards {seen[0]!r}. Which line must not be run by all?{waits}"


without, put, instead = (partial(change, PROGRAM) for change in (puzzles.without, puzzles.put, puzzles.instead))
EARLY_PIN = "at this point the process does not know its local rank yet."
LATE_PIN = "TensorFlow has taken its devices by then, and refuses: what in the program uses them first?"
PIN_BY_RANK = "rank 4 is the first process of the second host of four GPUs. Is there a gpus[4]?"
LOCAL_RATE = "two hosts of four GPUs make one global batch of eight parts. How many ranks does this card count?"
RATE_AS_BEFORE = "the global batch has grown with the ranks, and each step is as long as before."
LATE_RATE = "the optimizer was made with the old value, and does not look at this name again."
BEFORE_SLOTS = "the weights are there, the optimizer's variables are not: it knows no model yet."
BEFORE_RESTORE = "what is read from the checkpoint afterwards is read by each rank for itself, or by only one."
IN_LOOP = "it is inside the loop. How often is it needed, if all ranks add the same averages?"
ONE_PER_HOST = "every host has a process with this number, and all of them write to one folder."
GLOBAL_BATCHES = "each rank would get batches of global size. Whose batch is the 32, and who makes the global one?"
LATE_SHARD = "`batches` was made from all samples; a change of `samples` no longer reaches it."
LOCAL_STEPS = "so the ranks of one host share an epoch, and each host goes through all of it."
STEPS_AS_BEFORE = "together the ranks go through the data several times, and call it one epoch."
FIRST = ("init", "pin by local rank", "steps by size")
LAYOUTS: list[tuple[dict[str, Any], list[str]]] = [
    ({INITIALISE: "no rank knows its number: every other call of hvd ends in an error."}, without("init")),
    ({INITIALISE: of_init, PIN: EARLY_PIN}, put("init", "load")),
    ({INITIALISE: of_init}, put("rate by size", "init")),
    ({PIN: PIN_BY_RANK}, instead("pin by local rank", "pin by rank")),
    ({PIN: "every process takes memory on every GPU of its host."}, without("pin by local rank")),
    ({PIN: LATE_PIN}, put("pin by local rank", "optimizer")),
    ({SCALE: LOCAL_RATE}, instead("rate by size", "rate by local size")),
    ({SCALE: RATE_AS_BEFORE}, without("rate by size")),
    (
        {INITIALISE: of_init, SCALE: "there is no `rate` here yet: which line reads it?"},
        put("rate by size", "read options"),
    ),
    ({SCALE: LATE_RATE}, put("rate by size", "slots")),
    ({WRAP: "each rank applies its own gradients, and the models drift apart."}, without("wrap the tape")),
    ({WRAP: "the gradients have been computed by then, and nobody has averaged them."}, put("wrap the tape", "apply")),
    ({WRAP: "there is no tape here yet: which line makes a new one in each step?"}, put("wrap the tape", "steps")),
    ({BROADCAST: "the ranks begin with different weights, and stay different."}, without("broadcast")),
    ({BROADCAST: "there is no variable yet: nothing would be sent."}, put("broadcast", "model")),
    ({BROADCAST: BEFORE_SLOTS}, put("broadcast", "optimizer")),
    ({BROADCAST: BEFORE_RESTORE}, put("broadcast", "restore")),
    ({BROADCAST: IN_LOOP}, put("broadcast", "loss")),
    (
        {BROADCAST: "the training is over. Which step is the first that needs equal weights?"},
        put("broadcast", "only rank 0"),
    ),
    ({CHECKPOINT: "all ranks write the same files at the same time."}, without("only rank 0")),
    ({CHECKPOINT: ONE_PER_HOST}, instead("only rank 0", "only local rank 0")),
    ({CHECKPOINT: of_guard}, put("only rank 0", "broadcast")),
    ({CHECKPOINT: of_guard}, put("only rank 0", "restore")),
    ({SHARD: GLOBAL_BATCHES}, [*PROGRAM[:12], "batch by size", *PROGRAM[12:]]),
    ({SHARD: "all ranks compute with the same samples."}, without("shard")),
    ({SHARD: "there is no `samples` here yet; the line below makes it from all samples."}, put("shard", "shuffle")),
    ({SHARD: LATE_SHARD}, put("shard", "steps")),
    ({STEPS_PER_EPOCH: LOCAL_STEPS}, instead("steps by size", "steps by local size")),
    ({STEPS_PER_EPOCH: STEPS_AS_BEFORE}, without("steps by size")),
    ({STEPS_PER_EPOCH: "there is no `steps` here yet: which line reads it?"}, [*FIRST, *without(*FIRST)]),
    ({STEPS_PER_EPOCH: "the loop already read `steps` when it began."}, put("steps by size", "loss")),
]
OTHER_PLACES = {
    **dict.fromkeys(STEPS, "which lines must come before this card, and which after it?"),
    INITIALISE: of_init,
    CHECKPOINT: of_guard,
}
PUZZLE = puzzles.puzzle_judge(PROGRAM, places, STEPS, OTHER_PLACES, LAYOUTS)

# What holds for every function ---------------------------------------------------------------------------------------


def observations_of(observed: Plain) -> dict[object, Observation]:
    """What `observe` has seen, by name."""
    assert isinstance(observed, dict)
    return {name: as_record(fields, Observation) for name, fields in observed.items()}


Check = Callable[[Observation], str | None]
"""The hint on what was seen, None where all is right."""


def judged(seen: Observation, check: Check) -> Verdict:
    """The verdict by a check, unless the function is not written or raised something."""
    if not seen.is_written:
        return not_done("the function is still empty")
    error = seen.cause
    if error is None:
        return hinted(check(seen))
    if error.kind in (GaveNothing.__name__, NotImplementedError.__name__):
        return not_done("the function gives nothing")
    if error.kind == "Stalled":
        return wrong(f"it hangs: {error.message}. Who makes this call, and who does not?")
    if error.kind == "SystemExit":
        return wrong(f"rank {error.rank} ends the program. Which ranks must find a checkpoint?")
    return wrong(f"rank {error.rank} raises {error}")


def hinted(hint: str | None) -> Verdict:
    """Wrong with a hint, right without."""
    return right() if hint is None else wrong(hint)


# Begin, and pin the device -------------------------------------------------------------------------------------------


def judge_start(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step: on two hosts with GPUs, with one GPU for each rank to see, and without."""
    observations = observations_of(answer.inside(observe.start))
    with_gpus = observations["with GPUs"]
    if not with_gpus.is_written:
        return not_done("`start` does nothing")
    pin = pinned(with_gpus) or pinned_elsewhere(
        *(observations[name] for name in ("by node", "one each", "without GPUs"))
    )
    return parts({INITIALISE: hinted(initialised(with_gpus)), PIN: hinted(pin)})


def initialised(seen: Observation) -> str | None:
    """Step 1."""
    if seen.cause:
        is_early = "not been initialized" in seen.cause.message
        return "something is asked of hvd before the processes have met." if is_early else None
    is_initialised = all(rank.is_initialised for rank in seen.records(Started))
    return None if is_initialised else "afterwards hvd does not know that it has begun."


def pinned(seen: Observation) -> str | None:
    """Step 2, on hosts with as many GPUs as ranks."""
    if error := seen.cause:
        if "not been initialized" in error.message:
            return "the number that chooses the GPU is not known yet."
        if error.kind == "IndexError":
            return (
                f"rank {error.rank} asks for a GPU that its host does not have: {SIZE} ranks, {PER_HOST} GPUs on each "
                f"of {HOSTS} hosts."
            )
        return f"rank {error.rank} raises {error}"
    ranks = seen.records(Started)
    gpus = [rank.gpus for rank in ranks]
    for number, started in enumerate(ranks):
        if -1 in started.gpus:
            return f"rank {number} takes a device that is no GPU. Which kind of device is the list made of?"
        if started.hides_cpu:
            return (
                f"rank {number} names its GPU without saying that it speaks of GPUs: then every other device is "
                "hidden, the CPU too."
            )
    if gpus == [[number % PER_HOST] for number in range(SIZE)]:
        return None
    if not any(gpus):
        return "every rank still sees all GPUs of its host."
    if any(len(own) > 1 for own in gpus):
        return "a rank says that it needs several GPUs. One process, one device."
    if all(own == gpus[0] for own in gpus):
        return "all ranks of a host take the same GPU."
    return f"the ranks, {PER_HOST} on each host, take the GPUs {taken(gpus)}. Which number is the host's?"


def taken(gpus: list[list[int]]) -> list[int | None]:
    """The GPU of each rank, None where it takes none."""
    return [own[0] if own else None for own in gpus]


def pinned_elsewhere(by_node: Observation, one_each: Observation, without_gpus: Observation) -> str | None:
    """Step 2, where ranks are dealt out to hosts one by one, where each sees its own GPU only, and without GPUs."""
    if not by_node.cause and (gpus := [rank.gpus for rank in by_node.records(Started)]) != [[0], [0], [1], [1]]:
        return (
            f"with 4 ranks that are dealt out to 2 hosts one by one, the ranks take the GPUs {taken(gpus)}: two ranks "
            "of a host the same one. Which number counts the ranks of a host?"
        )
    if one_each.cause or any(rank.gpus != [0] for rank in one_each.records(Started)):
        return "with --gpus-per-task=1 a rank sees one GPU, its own, and does not take it. How long is the list then?"
    return f"where there is no GPU at all, it raises {without_gpus.cause}" if without_gpus.cause else None


# Feed the ranks ------------------------------------------------------------------------------------------------------


def judge_feeding(answer: Answer, generator: np.random.Generator) -> Verdict:
    """Half of the points for each step, on all ranks; the images do not fill the last batches."""
    batch, steps = int(generator.integers(12, 18)), int(generator.integers(4, 7))
    images = SIZE * batch * steps + batch + int(generator.integers(1, batch))
    options = {"dataset": "digits", "images": images, "batch": batch, "seed": int(generator.integers(1, 1000))}
    options |= {"learning_rate": 0.02, "folder": None, "resume": False, "epochs": 2}
    observations = observations_of(answer.inside(observe.feeding, options, steps))
    counted = judged(observations["steps"], lambda seen: counts_steps(seen, images, batch))
    if counted.is_right:
        one_short = SIZE * batch * steps - 1
        counted = judged(observations["steps of one image less"], lambda seen: counts_steps(seen, one_short, batch))
    shared = judged(observations["batches"], lambda seen: sharded(seen, batch, steps, images))
    return parts({SHARD: shared, STEPS_PER_EPOCH: counted})


def sharded(seen: Observation, batch: int, steps: int, images: int) -> str | None:
    """Step 7, in two epochs of so many steps."""
    ranks = [rank.samples for rank in seen.records(Fed)]
    sizes = {len(samples) for rank in ranks for epoch in rank for samples in epoch}
    if not sizes:
        return "no rank gets a batch: its samples do not fill one. How many images does the batch of one rank have?"
    if max(sizes) < batch:
        return f"a rank gets {max(sizes)} images in a step: options.batch, {batch}, is its own and not divided."
    if sizes != {batch}:
        return f"the batches of a rank have {sorted(sizes)} images, and {batch} are needed in each."
    if short := [number for number, rank in enumerate(ranks) if any(len(epoch) < steps for epoch in rank)]:
        return f"rank {short[0]} runs out of batches before the epoch is over: the others would wait for it."
    orders = [[np.ravel(epoch).tolist() for epoch in rank] for rank in ranks]
    first = [epochs[0] for epochs in orders]
    if all(order == first[0] for order in first):
        return "all ranks get the same samples."
    if any(first[rank] == first[peer] for rank in range(SIZE) for peer in range(rank)):
        return "the ranks of one host get different samples, but each host gets the same ones as the other."
    together = [sample for order in first for sample in order]
    if repeated := len(together) - len(set(together)):
        return (
            f"{repeated} samples of an epoch go to more than one rank. From how many different orders do the "
            "ranks take?"
        )
    if any(epochs[0] == epochs[1] for epochs in orders):
        return "every epoch has the same order; the serial program shuffles each epoch."
    if (largest := max(sample for epochs in orders for epoch in epochs for sample in epoch)) >= images:
        return f"sample {largest} comes, and an epoch has only the samples 0 to {images - 1}: options.images of them."
    if misfits := sorted(name for rank in seen.records(Fed) for name in rank.misfits):
        return f"the {misfits[0]} are not those of the samples: what has been put in another order, and what not?"
    return None


def counts_steps(seen: Observation, images: int, batch: int) -> str | None:
    """Step 8."""
    job = f"{images} images, {batch} for each of {SIZE} ranks"
    steps = seen.values[0]
    if len(set(map(str, seen.values))) > 1:
        return f"the ranks do not agree: {seen.values}. A rank that makes one step more waits for the others."
    if type(steps) is not int:
        return f"{steps!r} for {job}: it counts steps, so it is a whole number."
    if steps == images // (batch * SIZE):
        return None
    usual = {
        images // batch: "so the ranks together go through the data several times.",
        images // (batch * PER_HOST): "that would be right if there were one host.",
        -(-images // (batch * SIZE)): "the last step is not filled, and the serial program leaves such a step out.",
        images // batch * SIZE: "more ranks, and more steps?",
    }
    return f"{steps} for {job}: {usual.get(steps, 'how many images does one step of all ranks take?')}"


# Train alike ---------------------------------------------------------------------------------------------------------

HIDDEN = 6  # units; the network is narrow so that the answers are small
SHAPES = [(784, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
TOLERANCE = 1e-4

Batch = tuple[Array, Array]


def judge_training(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points for each step; everything around each function is right."""

    def drawn() -> list[Array]:
        return [generator.normal(0, 0.1, shape).astype(np.float32) for shape in SHAPES]

    weights, saved = [drawn() for _ in range(SIZE)], drawn()
    first = [flat(own) for own in weights]
    batches = [(generator.random((5, 28, 28)).astype(np.float32), generator.integers(0, 10, 5)) for _ in range(SIZE)]
    rate = float(generator.integers(2, 9)) / 100
    observations = observations_of(answer.inside(observe.training, weights, saved, batches, rate))

    def by_all(checks: Mapping[str, Check]) -> Verdict:
        """Of observations that earn one share: the first that is not right."""
        verdicts = [judged(observations[name], check) for name, check in checks.items()]
        return next((verdict for verdict in verdicts if not verdict.is_right), right())

    return parts(
        {
            SCALE: by_all(
                {
                    "optimizer": lambda seen: scaled(seen, rate),
                    "optimizer of four": lambda seen: scaled_for_four(seen, rate),
                }
            ),
            WRAP: judged(observations["step"], lambda seen: stepped(seen.records(Stepped), weights[0], batches, rate)),
            BROADCAST: by_all(
                {
                    "begin": lambda seen: begun(seen.records(Begun), first),
                    "resumed": lambda seen: resumed(seen.records(Begun), first, flat(saved)),
                    "not resumed": lambda seen: not_resumed(seen.records(Begun), flat(saved)),
                }
            ),
            CHECKPOINT: judged(observations["save"], lambda seen: saves(seen.records(Saved))),
        }
    )


def scaled(seen: Observation, own: float) -> str | None:
    """Step 3, with that rate for one rank."""
    optimizers = seen.records(Optimized)
    rates = [optimizer.rate for optimizer in optimizers]
    if len(set(rates)) > 1:
        return f"the ranks have different rates, {', '.join(f'{rate:.3g}' for rate in rates)}: they drift apart."
    rate = f"the rate is {rates[0]:.3g} with {own:.3g} for one rank and {SIZE} ranks"
    usual = {
        1: "it is still that of one rank.",
        PER_HOST: f"it is scaled by what one host has, and there are {HOSTS} hosts.",
        HOSTS: f"it is scaled by the number of hosts, {HOSTS}.",
        1 / SIZE: "it is divided. An average of more samples allows a longer step, not a shorter one.",
        SIZE**0.5: "the square root is another rule; the linear one is asked for.",
    }
    for factor, hint in usual.items():
        if np.isclose(rates[0], factor * own, rtol=1e-4):
            return f"{rate}: {hint}"
    if not np.isclose(rates[0], SIZE * own, rtol=1e-4):
        return f"{rate}. By what must it grow?"
    if optimizers[0].name != "SGD" or not np.isclose(optimizers[0].momentum, MOMENTUM):
        return f"the rate is right; the serial program has SGD with momentum, this is another {optimizers[0].name}."
    return None


def scaled_for_four(seen: Observation, own: float) -> str | None:
    """Step 3, on four ranks."""
    rates = [optimizer.rate for optimizer in seen.records(Optimized)]
    if np.allclose(rates, 4 * own, rtol=1e-4):
        return None
    return f"with 4 ranks the rate is {rates[0]:.3g}, and {own:.3g} is that for one rank: is a number typed in?"


def stepped(ranks: Sequence[Stepped], weights: Weights, batches: Sequence[Batch], rate: float) -> str | None:
    """Step 4, from equal weights; compared with a step of NumPy's, and another."""

    def after(*factors: float, start: Weights = weights) -> list[Array]:
        taken = [(batch, factor / len(batch[1])) for batch, factor in zip(batches, factors, strict=True)]
        return trained(list(start), [taken], rate)

    def have(*expected: Weights) -> bool:
        return all(equal(rank.weights, flat(of_rank)) for rank, of_rank in zip(ranks, expected, strict=True))

    first = after(*[1 / SIZE] * SIZE)
    if have(*[first] * SIZE):
        second = flat(after(*[1 / SIZE] * SIZE, start=first)) + MOMENTUM * (flat(first) - flat(weights))
        return stepped_again(ranks, weights, second, batches)
    if have(*[weights] * SIZE):
        return "the weights are still the first ones: nothing was applied."
    if have(*(after(*np.eye(SIZE)[number]) for number in range(SIZE))):
        return (
            "a tape was wrapped, but the gradients do not come from the wrapped one: when is it asked?"
            if all(rank.tapes for rank in ranks)
            else "each rank has applied the gradients of its own samples. Which object is asked for them?"
        )
    if have(*[after(*[1.0] * SIZE)] * SIZE):
        return "the gradients are added up and not averaged: the step is too long, by the number of ranks."
    if have(*[after(*[1 / SIZE**2] * SIZE)] * SIZE):
        return "the average is divided once more."
    return "after one step the weights are not those of a step with the average of all ranks' gradients."


def stepped_again(ranks: Sequence[Stepped], weights: Weights, second: Array, batches: Sequence[Batch]) -> str | None:
    """The second step, which has a momentum, and the loss before the first."""
    if not all(equal(rank.second, second) for rank in ranks):
        return (
            "the first step is right, the second is not: state.optimizer has a momentum, which goes on from "
            "step to step. Who changes the weights?"
        )
    losses = [cross_entropy(softmax(logits(list(weights), images)), labels) for images, labels in batches]
    for rank, own in zip(ranks, losses, strict=True):
        if rank.loss is None:
            return "the weights are right, and `step` returns no number: the loss before the step is asked for."
        if min(abs(rank.loss - own), abs(rank.loss - float(np.mean(losses)))) > 1e-3:
            return f"the weights are right; the loss is {rank.loss:.4g}, and before the step it was {own:.4g}."
    return None


def not_resumed(ranks: Sequence[Begun], saved: Array) -> str | None:
    """Step 5, at a first start although there is a checkpoint."""
    if any(equal(rank.weights, saved) for rank in ranks):
        return "without options.resume, rank 0 has the weights of the checkpoint that lies in the folder."
    return None


def begun(ranks: Sequence[Begun], first: Sequence[Array]) -> str | None:
    """Step 5, at the first start; `first` is what each rank had before."""
    if all(equal(rank.weights, own) for rank, own in zip(ranks, first, strict=True)):
        return "each rank still has its own first weights."
    return alike(ranks, first)


def resumed(ranks: Sequence[Begun], first: Sequence[Array], saved: Array) -> str | None:
    """Step 5, at a restart; `saved` is what rank 0's checkpoint has."""
    chief, *others = ranks
    if not equal(chief.weights, saved):
        return "with options.resume, rank 0 does not have the weights of its checkpoint afterwards."
    if all(equal(rank.weights, own) for rank, own in zip(others, first[1:], strict=True)):
        return "after a restart rank 0 has the checkpoint, and nobody tells the others: they start again."
    if all(equal(rank.weights, first[0]) for rank in others):
        return "after a restart rank 0 has the checkpoint, the others its first weights. In which order was that?"
    return alike(ranks, [saved, *first[1:]])


def alike(ranks: Sequence[Begun], first: Sequence[Array]) -> str | None:
    """Whether all ranks have the state of rank 0; `first` is what each would have alone."""
    for source in range(1, SIZE):
        if all(equal(rank.weights, first[source]) for rank in ranks):
            return f"all have the weights of rank {source}. Which rank reads the checkpoint and writes it?"
    if not all(equal(rank.weights, first[0]) for rank in ranks):
        return "the ranks do not all have the weights of rank 0."
    if not all(equal(rank.slots, ranks[0].slots) for rank in ranks):
        return "the weights are equal, the momentum is not: a step needs more than the model."
    epochs = [rank.epochs_done for rank in ranks]
    if len(set(epochs)) > 1:
        return f"weights and momentum are equal, but the epochs that are done are {epochs}."
    return None


def saves(ranks: Sequence[Saved]) -> str | None:
    """Step 6, when each rank has had another folder."""
    writers = [number for number, rank in enumerate(ranks) if rank.has_written]
    if not writers:
        return "nobody has written a checkpoint."
    if len(writers) == SIZE:
        return "all ranks write. In one folder they would disturb each other."
    if writers == list(range(0, SIZE, PER_HOST)):
        return f"ranks {writers} write: one on each host."
    if writers != [0]:
        return f"the writers are {writers}. Which rank has what `begin` reads?"
    if not ranks[0].is_found:
        return "tf.train.latest_checkpoint finds nothing in the folder that rank 0 wrote to, and `begin` looks there."
    if missing := " and ".join(ranks[0].missing):
        return f"the checkpoint lacks {missing}: a run that goes on needs all of `state`."
    return None


def equal(weights: Array, expected: Array) -> bool:
    """Whether all numbers are."""
    return weights.shape == expected.shape and np.allclose(weights, expected, atol=TOLERANCE, rtol=0)


LAB = Lab(
    "09_horovod",
    [
        Exercise("program", 8, PUZZLE),
        Exercise("start", 2, judge_start),
        Exercise("feeding", 4, judge_feeding),
        Exercise("training", 8, judge_training),
    ],
    tensorflow=True,
)
