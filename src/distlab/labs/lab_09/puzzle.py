"""The puzzle of lab 09: the lines of a serial program, cards to lay between them, and what is wrong with a layout.

A layout is a list of names, those of LINES in their order and cards between them. Only what Horovod demands is judged,
so that several layouts are right.
"""

from collections.abc import Callable, Sequence

LINES = {
    "read options": "options = parse()",
    "load": "images, labels = load(options.dataset)              # arrays in memory",
    "model": "model = make_model()                                # TensorFlow takes its devices here",
    "optimizer": "optimizer = SGD(rate)                               # keeps the value that rate has now",
    "slots": "optimizer.build(model.trainable_variables)          # its momentum exists from here",
    "restore": "restore(model, optimizer, options.folder)           # the newest checkpoint, if there is one",
    "shuffle": "samples = shuffled(images, labels, seed)            # the same order in every process",
    "batch": "batches = samples.batch(batch_size)                 # batch_size is 32",
    "steps": "for batch in batches.take(steps):                   # the loop, with the three lines below",
    "loss": "    with tf.GradientTape() as tape: loss = loss_of(model, batch)",
    "gradients": "    gradients = tape.gradient(loss, model.trainable_variables)",
    "apply": "    optimizer.apply_gradients(...)",
    "save": "checkpoint.save(options.folder)                     # after the loop",
}
"""The serial program."""

CARDS = {
    "init": "hvd.init()",
    "pin by rank": 'tf.config.set_visible_devices(gpus[hvd.rank()], "GPU")',
    "pin by local rank": 'tf.config.set_visible_devices(gpus[hvd.local_rank()], "GPU")',
    "rate by size": "rate = rate * hvd.size()",
    "rate by local size": "rate = rate * hvd.local_size()",
    "wrap the tape": "tape = hvd.DistributedGradientTape(tape)",
    "broadcast": "hvd.broadcast_variables([all variables of model and optimizer], root_rank=0)",
    "only rank 0": "if hvd.rank() == 0:                                 # guards the next line",
    "only local rank 0": "if hvd.local_rank() == 0:                           # guards the next line",
    "shard": "samples = samples.shard(hvd.size(), hvd.rank())",
    "batch by size": "batch_size = batch_size * hvd.size()",
    "steps by size": "steps = steps // hvd.size()",
    "steps by local size": "steps = steps // hvd.local_size()",
}
"""What can be laid between the lines; five are no step of Horovod's."""

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

Layout = Sequence[str]


def described(parts: dict[str, str]) -> str:
    """Lines or cards with their names, for the notebook."""
    return "\n".join(f"{name:<20} {text}" for name, text in parts.items())


def problem_of_form(layout: object) -> str | None:
    """What keeps a list from being a layout at all."""
    if not isinstance(layout, (list, tuple)) or not all(isinstance(name, str) for name in layout):
        return "`program` is a list of names, those of the lines and those of the cards."
    for name in layout:
        if name not in LINES and name not in CARDS:
            return f"{name!r} is neither a line nor a card."
        if list(layout).count(name) > 1:
            return f"{name!r} stands there more than once."
    if [name for name in layout if name in LINES] != list(LINES):
        return "The serial lines have to be there, all and in their order: cards go between them."
    return None


def hints(layout: Layout) -> dict[str, str | None]:
    """For each of STEPS what is wrong with it in this layout; None where it is right."""
    return dict(zip(STEPS, (judge(list(layout)) for judge in _JUDGES), strict=True))


def _initialise(layout: list[str]) -> str | None:
    if "init" not in layout:
        return "no rank knows its number: every other call of hvd ends in an error."
    before = [name for name in layout[: layout.index("init")] if name in CARDS]
    return f"{before[0]!r} already asks for what is known only when the processes have met." if before else None


def _pin(layout: list[str]) -> str | None:
    if hint := _chosen(
        layout,
        "pin by local rank",
        {"pin by rank": "rank 4 is the first process of the second host of four GPUs. Is there a gpus[4]?"},
        "every process takes memory on every GPU of its host.",
    ):
        return hint
    place = layout.index("pin by local rank")
    if place > layout.index("model"):
        return "TensorFlow has taken its devices by then, and refuses: what in the program uses them first?"
    if "init" in layout and place < layout.index("init"):
        return "at this point the process does not know its local rank yet."
    return None


def _rate(layout: list[str]) -> str | None:
    local = "two hosts of four GPUs make one global batch of eight parts. How many ranks does this card count?"
    missing = "the global batch has grown with the ranks, and each step is as long as before."
    if hint := _chosen(layout, "rate by size", {"rate by local size": local}, missing):
        return hint
    if layout.index("rate by size") > layout.index("optimizer"):
        return "the optimizer was made with the old value, and does not look at this name again."
    return None


def _tape(layout: list[str]) -> str | None:
    if "wrap the tape" not in layout:
        return "each rank applies its own gradients, and the models drift apart."
    place = layout.index("wrap the tape")
    if place > layout.index("gradients"):
        return "the gradients have been computed by then, and nobody has averaged them."
    if place < layout.index("loss"):
        return "there is no tape here yet: which line makes it, anew in each step?"
    return None


def _broadcast(layout: list[str]) -> str | None:
    if "broadcast" not in layout:
        return "the ranks begin with different weights, and keep their distance for ever."
    place = layout.index("broadcast")
    late = (
        ("model", "there is no variable yet: nothing would be sent."),
        ("slots", "the weights are there, the optimizer's variables are not: it knows no model yet."),
        ("restore", "what is read from the checkpoint afterwards is read by each rank for itself, or by one alone."),
    )
    for line, hint in late:
        if place < layout.index(line):
            return hint
    if place > layout.index("save"):
        return "the training is over. Which step is the first that needs equal weights?"
    if place > layout.index("steps"):
        return "it stands inside the loop. How often is it needed, if all ranks add the same averages?"
    return None


def _checkpoint(layout: list[str]) -> str | None:
    guarded = {name: layout[place + 1 : place + 2] for place, name in enumerate(layout)}
    local = "every host has a process with this number, and all of them write to one folder."
    if hint := _chosen(
        layout, "only rank 0", {"only local rank 0": local}, "all ranks write the same files at the same time."
    ):
        return hint
    if guarded["only rank 0"] != ["save"]:
        (line,) = guarded["only rank 0"] or ["nothing"]
        others = " The other ranks never come to it." if line in ("broadcast", "gradients", "wrap the tape") else ""
        return f"it guards {line!r}. Which line must not be run by all?{others}"
    return None


def _shard(layout: list[str]) -> str | None:
    if "batch by size" in layout:
        return "each rank would get batches of global size. Whose batch is the 32, and who makes the global one?"
    if "shard" not in layout:
        return "all ranks compute with the same samples."
    place = layout.index("shard")
    if place < layout.index("shuffle"):
        return "there is no `samples` here yet; the line below makes it anew, with all samples."
    if place > layout.index("batch"):
        return "`batches` was made from all samples; a change of `samples` does not reach it any more."
    return None


def _steps(layout: list[str]) -> str | None:
    local = "so the ranks of one host share an epoch, and each host goes through all of it."
    if hint := _chosen(
        layout,
        "steps by size",
        {"steps by local size": local},
        "together the ranks go through the data several times, and call it one epoch.",
    ):
        return hint
    if layout.index("steps by size") > layout.index("steps"):
        return "the loop has asked for `steps` already when it began."
    return None


def _chosen(layout: list[str], card: str, mistaken: dict[str, str], missing: str) -> str | None:
    """A hint if a wrong card lies there, or none."""
    for other, hint in mistaken.items():
        if other in layout:
            return hint
    return None if card in layout else missing


_JUDGES: tuple[Callable[[list[str]], str | None], ...] = (
    _initialise,
    _pin,
    _rate,
    _tape,
    _broadcast,
    _checkpoint,
    _shard,
    _steps,
)
