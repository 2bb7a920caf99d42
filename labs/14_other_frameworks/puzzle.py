"""The puzzle of lab 14: a program of lines and cards runs on the fake PyTorch, and each of its eight steps is judged.

A step is right if its cards are, raise no error, and have their effect on four ranks.
"""

from functools import cache, partial
from itertools import chain, pairwise
from typing import Any

import numpy as np
from lab_14 import observe
from lab_14.given import CARDS, LINES
from lab_14.observe import PUZZLE_RANKS, ProgramFault, ProgramJob

from distlab.labs import Answer, puzzles

STEPS = (
    "1 initialise",
    "2 pin the device",
    "3 scale the learning rate",
    "4 average the gradients",
    "5 broadcast the weights",
    "6 checkpoint on rank 0",
    "7 shard the data",
    "8 steps per epoch",
)
INITIALISE, PIN, SCALE, AVERAGE, BROADCAST, CHECKPOINT, SHARD, COUNT = STEPS
GUARDS = ("only rank 0", "only local rank 0")
OF_CARD = {
    "init": INITIALISE,
    "pin by rank": PIN,
    "rate by size": SCALE,
    "rate by local size": SCALE,
    "wrap": AVERAGE,
    "broadcast": BROADCAST,
    "shard": SHARD,
    "shard by local rank": SHARD,
    "set epoch": SHARD,
}
"""The step of each card that can raise an error."""
PROGRAM = [
    *("init", "pin by local rank", "read options", "network", "model", "rate by size", "optimizer", "restore", "wrap"),
    *("images", "sampler", "shard", "loader", "steps", "epochs", "set epoch", "batches", "loss", "backward", "update"),
    *("only rank 0", "save"),
]


def drawn_job(seed: int) -> ProgramJob:
    """Images that do not divide evenly."""
    generator = np.random.default_rng(seed)
    images = generator.normal(size=(PUZZLE_RANKS * 3 * 4 + 2, observe.FEATURES))
    return ProgramJob(images, generator.integers(0, observe.CLASSES, len(images)), 0.05, batch=3, seed=seed)


def share(images: int, ranks: int, rank: int, epoch: int) -> list[int]:
    """What PyTorch's sampler gives with its defaults: images are repeated until all ranks have as many."""
    order = np.random.default_rng(epoch).permutation(images)
    return np.resize(order, -(-images // ranks) * ranks)[rank::ranks].tolist()


def effects(answer: Answer) -> dict[str, Any]:
    """By step: its cards, the errors that they raise, and what the program does on four ranks."""
    return seen_of(tuple(puzzles.placed(answer, LINES, CARDS)))


@cache
def seen_of(placed: tuple[str, ...]) -> dict[str, Any]:
    """The same of a layout. A card that raises an error is noted and left out, and the rest runs again.

    So one mistake does not hide others.
    """
    job, errors = drawn_job(14), {step: list[Any]() for step in STEPS}
    if "init" not in placed:
        errors[INITIALISE].append("missing")
    layout = [*(["init"] if "init" not in placed else []), *placed]
    for guard in [name for name in layout if name in GUARDS]:
        line = next((name for name in layout[layout.index(guard) :] if name not in GUARDS), "nothing")
        if line != "save":  # what it keeps from the other ranks would end the program
            errors[CHECKPOINT].append(line)
            if guard == "only rank 0" and layout.index(guard) < layout.index("init"):
                errors[INITIALISE].append(guard)
            elif line == "init":
                errors[INITIALISE].append("guarded")
            layout.remove(guard)
    layout = [name for name in layout if name != "steps by size"]  # it leaves too few steps to judge the others by
    while isinstance(records := observe.run(layout, job, share), ProgramFault):
        if records.kind == "NotInitialised" or records.name == "init":
            errors[INITIALISE].append("twice" if records.name == "init" else records.name)
            layout = ["init", *(name for name in layout if name != "init")]
        else:
            if records.name != "set epoch" or "shard" in layout:
                errors[OF_CARD[records.name]].append(records.kind)
            layout.remove(records.name)

    def order(*cards: str) -> list[str]:
        return [name for name in placed if name in cards]

    orders = [[list(chain.from_iterable(steps)) for steps in record.seen] for record in records]
    together = [image for epochs in orders for image in epochs[0]]
    share_of_rank = -(-len(job.images) // PUZZLE_RANKS) // job.batch
    firsts_are_equal = all(np.array_equal(records[0].first, record.first) for record in records)
    is_by_hand = "broadcast" in placed
    pins, rates = order("pin by local rank", "pin by rank"), order("rate by size", "rate by local size")
    return {
        INITIALISE: errors[INITIALISE][:1],
        PIN: pins if "pin by rank" in pins else [pins, [record.device for record in records]],
        SCALE: rates if "rate by local size" in rates else [rates, errors[SCALE], round(records[0].rate / job.rate, 3)],
        AVERAGE: ["again"]
        if records[0].models_wrapped > 1
        else [order("wrap"), errors[AVERAGE], all(chain.from_iterable(record.averaged for record in records))]
        + ([] if errors[AVERAGE] else order("model", "wrap")[:1]),
        BROADCAST: [is_by_hand and "wrap" in placed, is_by_hand and not firsts_are_equal, firsts_are_equal],
        CHECKPOINT: errors[CHECKPOINT][-1:]
        or [[rank for rank, record in enumerate(records) if record.saves], "only local rank 0" in placed],
        SHARD: [
            order("sampler", "shard", "shard by local rank", "loader", "set epoch"),
            errors[SHARD][:1],
            len(set(together)) == len(together),
            [earlier == later for earlier, later in pairwise(orders[0])],
        ],
        COUNT: [
            "steps by size" in placed,
            {len(steps) for record in records for steps in record.seen} == {share_of_rank},
        ],
    }


without, put, instead = (partial(change, PROGRAM) for change in (puzzles.without, puzzles.put, puzzles.instead))


def of_init(case: Any, seen: list[str]) -> str:
    """Of a call that comes too early, or again."""
    if seen[0] == "twice":
        return "it is called a second time, and that is an error. How often do the processes have to meet?"
    return f"{seen[0]!r} needs the process group, which does not exist yet. What must come before it?"


def of_guard(case: Any, seen: list[Any]) -> str:
    """Of a guard in front of another line than `save`."""
    if not isinstance(seen[0], str):
        return "which ranks write the file, and who should?"
    if seen[0] == "nothing":
        return "a guard is the last line of the program, and guards nothing. Which line must not be run by all?"
    if seen[0] == "restore":
        return "a guard is in front of 'restore'. DDP sends the weights: who sends the optimizer's momentum?"
    is_collective = seen[0] in ("wrap", "broadcast", "init", "backward")
    waits = ", where rank 0 waits for all others" if is_collective else ""
    return f"a guard is in front of {seen[0]!r}{waits}. Which line must not be run by all?"


STARTS_DIFFER = "the ranks begin with different weights. Who sends those of rank 0, and before which line is it needed?"
NOT_WRAPPED = "every rank applies its own gradients, and the models drift apart. What does `backward` have to know?"
IN_LOOP = "the network is wrapped again and again, and each time all weights are sent. How often is it needed?"
NOT_SHARDED = "every rank goes through all images. Which sampler gives each rank its share?"
SHARDED_LATE = "the loader was made with the serial sampler. When did it read `sampler`?"
PER_HOST_SHARD = "the ranks of one host share the images, and each host goes through all. How many ranks share them?"
FOLLOWS = "a rank makes more steps than its share has batches: does this follow from step 7?"
DIVIDED_OF_ALL = (
    "the batches in `len(loader)` are not those of a rank's share here, and this card does not choose a share. Which "
    "number is `len(loader)` when step 7 is right?"
)
BY_LOCAL_SIZE = (
    "two hosts of two processes make one global batch of four parts. How many does 'rate by local size' count?"
)
OF_ONE_STEP: dict[str, dict[Any, list[str]]] = {
    INITIALISE: {
        "no process knows the others: every call that needs them ends in an error. Which card lets them meet?": without(
            "init"
        ),
        of_init: put("init", "optimizer"),
    },
    PIN: {
        'to every process of a host "cuda" means GPU 0. Which number differs between the processes of a host?': without(
            "pin by local rank"
        ),
        "rank 2 is the first process of the second host of two GPUs. Is there a GPU 2?": instead(
            "pin by local rank", "pin by rank"
        ),
        "all networks are on GPU 0 of their host. Which line moved them there, and when was the GPU chosen?": put(
            "pin by local rank", "model"
        ),
    },
    SCALE: {
        "the global batch has grown with the ranks, and each step is as long as before. Which rule is that?": without(
            "rate by size"
        ),
        BY_LOCAL_SIZE: instead("rate by size", "rate by local size"),
        "there is no `rate` here yet: which line reads it?": put("rate by size", "read options"),
        "the optimizer still has the serial rate. When did it read `rate`?": put("rate by size", "restore"),
    },
    AVERAGE: {
        "the loop calls the bare network, so nothing is averaged. Which line gave `model` its last value?": put(
            "wrap", "model"
        ),
        IN_LOOP: put("wrap", "loss"),
        NOT_WRAPPED: instead("wrap", "broadcast"),
    },
    BROADCAST: {
        "no line for this is needed. Which constructor sends the weights of rank 0 already?": put("broadcast", "wrap")
    },
    CHECKPOINT: {
        "all ranks write the same file at the same time. Who should?": without("only rank 0"),
        "every host has a process with this number, and they write to one folder. Who is there only once?": instead(
            "only rank 0", "only local rank 0"
        ),
        "only rank 0 writes, but one of the two guards is not needed. Which one does it alone?": put(
            "only local rank 0", "save"
        ),
    },
    SHARD: {
        "the loader gets the right share, and 'shard by local rank' makes one more sampler. What is that one for?": put(
            "shard by local rank", "shard"
        ),
        "the shares are right, and every epoch has the same order. What does the sampler not know?": without(
            "set epoch"
        ),
        "there is no `epoch` or no `sampler` here yet: which lines make them?": put("set epoch", "epochs"),
        "epoch 1 has the order of epoch 0. When does the loader ask the sampler for an order?": put(
            "set epoch", "loss"
        ),
        "the sampler hears of the epoch when all epochs are over. When does it need to know?": put("set epoch"),
    },
    COUNT: {
        (
            "a rank leaves out all but 1/N of its share. Whose batches does `len(loader)` count, if the sampler is "
            "sharded?"
        ): put("steps by size", "epochs")
    },
}
"""Programs that are wrong in one step, by their hints."""
OF_SEVERAL_STEPS: list[tuple[dict[str, Any], list[str]]] = [
    ({INITIALISE: of_init, CHECKPOINT: of_guard}, put("only rank 0", "init")),
    (
        {
            INITIALISE: "a guard lets some processes only make this call, which wait for the others. Who must make it?",
            CHECKPOINT: of_guard,
        },
        puzzles.put(without("only rank 0"), "only local rank 0", "init"),
    ),
    ({AVERAGE: NOT_WRAPPED, BROADCAST: STARTS_DIFFER}, without("wrap")),
    (
        {AVERAGE: "there is no `network` here yet: which line makes it?", BROADCAST: STARTS_DIFFER},
        put("wrap", "network"),
    ),
    (
        {
            AVERAGE: "steps were made without an average. Before which line must `model` be the wrapper?",
            BROADCAST: STARTS_DIFFER,
        },
        put("wrap"),
    ),
    ({AVERAGE: IN_LOOP, BROADCAST: STARTS_DIFFER}, put("wrap", "backward")),
    (
        {
            AVERAGE: NOT_WRAPPED,
            BROADCAST: "the card that step 4 lacks sends rank 0's weights too, so this one is needless. Which is it?",
        },
        puzzles.put(without("wrap"), "broadcast"),
    ),
    *(({CHECKPOINT: of_guard}, put("only rank 0", line)) for line in ("restore", "wrap", "images", "")),
    ({SHARD: NOT_SHARDED, COUNT: FOLLOWS}, without("shard")),
    ({SHARD: NOT_SHARDED, COUNT: FOLLOWS}, without("shard", "set epoch")),
    ({SHARD: PER_HOST_SHARD, COUNT: FOLLOWS}, instead("shard", "shard by local rank")),
    ({SHARD: PER_HOST_SHARD, COUNT: FOLLOWS}, put("shard by local rank", "loader")),
    ({SHARD: "there is no `images` here yet: which line loads them?", COUNT: FOLLOWS}, put("shard", "images")),
    (
        {SHARD: "`sampler` is the serial one here, which has no `set_epoch`. Which line made it last?", COUNT: FOLLOWS},
        put("shard", "sampler"),
    ),
    (
        {SHARD: "the loader got the serial sampler. Which line gave `sampler` its last value?", COUNT: FOLLOWS},
        puzzles.put(without("set epoch"), "shard", "sampler"),
    ),
    ({SHARD: SHARDED_LATE, COUNT: FOLLOWS}, put("shard", "steps")),
    (
        {SHARD: NOT_SHARDED, COUNT: DIVIDED_OF_ALL},
        puzzles.put(without("shard", "set epoch"), "steps by size", "epochs"),
    ),
    ({SHARD: SHARDED_LATE, COUNT: DIVIDED_OF_ALL}, puzzles.put(put("shard", "steps"), "steps by size", "epochs")),
]
PUZZLE = puzzles.puzzle_judge(
    PROGRAM,
    effects,
    STEPS,
    otherwise={
        INITIALISE: of_init,
        PIN: "which GPU has each process of a host, and when is it chosen?",
        SCALE: "by how many ranks is the rate multiplied, and before which line?",
        AVERAGE: "when is the network wrapped, and what does the loop call?",
        BROADCAST: STARTS_DIFFER,
        CHECKPOINT: of_guard,
        SHARD: "which sampler has the loader, and when does it hear of the epoch?",
        COUNT: "how many batches has a rank's share?",
    },
    mistakes=[
        *(({step: hint}, layout) for step, table in OF_ONE_STEP.items() for hint, layout in table.items()),
        *OF_SEVERAL_STEPS,
    ],
)
