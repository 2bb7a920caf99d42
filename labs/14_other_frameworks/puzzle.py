"""The puzzle of lab 14: a program of lines and cards, of which each of the eight steps is judged by its place."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from lab_14.given import CARDS, LINES

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
NEED_THE_GROUP = {
    "pin by rank": "",
    "rate by size": "read options",
    "wrap": "network",
    "broadcast": "network",
    "shard": "images",
    "only rank 0": "",
}
"""Cards that ask for the number of ranks or of this one, with the line without which they do not get that far."""
SAMPLERS = ("sampler", "shard", "shard by local rank")
PROGRAM = [
    *("init", "pin by local rank", "read options", "network", "model", "rate by size", "optimizer", "restore", "wrap"),
    *("images", "sampler", "shard", "loader", "steps", "epochs", "set epoch", "batches", "loss", "backward", "update"),
    *("only rank 0", "save"),
]


def problem_of_init(layout: puzzles.Layout) -> str:
    """The first card before `init` that needs it; or that a guard or the loop is around it, or ""."""
    if "init" not in layout:
        return "missing"
    before, (_, *after) = layout[: layout.index("init")], layout[layout.index("init") :]
    for place, name in enumerate(before):
        if name in NEED_THE_GROUP and NEED_THE_GROUP[name] in ("", *before[:place]):
            return name
    if before[-1:] == ["only local rank 0"]:
        return "guarded"
    return "twice" if "epochs" in before and any(name in LINES for name in after) else ""


def places(answer: Answer) -> dict[str, Any]:
    """By step: its cards, and which of the lines that matter to them come after them."""
    layout = puzzles.placed(answer, LINES, CARDS)

    def order(*names: str) -> list[str]:
        return [name for name in layout if name in names]

    def after(card: str, *lines: str) -> Sequence[str]:
        """Those of the lines that come after the card; "missing" without it."""
        return [name for name in layout[layout.index(card) :] if name in lines] if card in layout else "missing"

    def is_between(card: str, first: str, last: str) -> bool:
        return after(card, first, last) == [last]

    pins, rates = order("pin by local rank", "pin by rank"), order("rate by size", "rate by local size")
    is_by_hand = "broadcast" in layout
    is_equal = any(is_between(card, "network", "loss") for card in ("wrap", "broadcast"))
    made = [name for name in layout[: layout.index("loader")] if name in SAMPLERS]
    following = [layout[place + 1 :] for place, name in enumerate(layout) if name in GUARDS]
    guarded = [next((name for name in rest if name not in GUARDS), "nothing") for rest in following]
    others = [name for name in guarded if name != "save"]
    return {
        INITIALISE: problem_of_init(layout),
        PIN: pins if "pin by rank" in pins else [pins, after("pin by local rank", "network")],
        SCALE: rates if "rate by local size" in rates else after("rate by size", "read options", "optimizer"),
        AVERAGE: "again" if is_between("wrap", "epochs", "save") else after("wrap", "network", "model", "epochs"),
        BROADCAST: [is_by_hand and "wrap" in layout, is_by_hand and not is_equal, is_equal],
        CHECKPOINT: others[-1:] or [sorted(order(*GUARDS))],
        SHARD: [
            order(*SAMPLERS, "loader", "set epoch"),
            after("shard", "images"),
            "shard" in layout and after("set epoch", "epochs", "batches", "save"),
        ],
        COUNT: ["steps by size" in layout, made[-1] == "shard"],
    }


without, put, instead = (partial(change, PROGRAM) for change in (puzzles.without, puzzles.put, puzzles.instead))


def of_init(case: Any, seen: str) -> str:
    """Of a call that comes too early, or again."""
    if seen == "twice":
        return "it is called a second time, and that is an error. How often do the processes have to meet?"
    return f"{seen!r} needs the process group, which does not exist yet. What must come before it?"


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
    places,
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
