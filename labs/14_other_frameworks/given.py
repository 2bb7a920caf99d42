"""What the student works on in lab 14: lines and cards of the puzzle, logs of samplers, and the fake PyTorch's loss."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from lab_14.fake_torch import cross_entropy

from distlab.labs.answer_errors import AnswerError
from distlab.labs.plain_data import Plain
from distlab.labs.puzzles import layout_of

__all__ = ["CARDS", "FAULTS", "LINES", "LOGS", "body", "cross_entropy", "described", "log_in_words", "problem", "write"]

LINES = {
    "read options": "options = parse(); rate = options.rate",
    "network": 'network = make_network().to("cuda" if torch.cuda.is_available() else "cpu")',
    "model": "model = network                             # what the loop below calls",
    "optimizer": "optimizer = SGD(network.parameters(), rate, momentum=0.9)   # keeps the value that rate has now",
    "restore": "first = restore(network, optimizer, options.folder)     # the newest checkpoint, if there is one",
    "images": "images = load(options.dataset)              # all of them",
    "sampler": "sampler = RandomSampler(images)             # says in which order images come",
    "loader": "loader = DataLoader(images, options.batch, sampler=sampler, drop_last=True)",
    "steps": "steps = len(loader)                         # batches in an epoch",
    "epochs": "for epoch in range(first, options.epochs):",
    "batches": "    for batch in islice(loader, steps):     # here the loader asks its sampler for an order",
    "loss": "        loss = loss_of(model, batch)        # the mean over the batch",
    "backward": "        optimizer.zero_grad(); loss.backward()",
    "update": "        optimizer.step()",
    "save": "    save(network, optimizer, epoch, options.folder)",
}
"""The serial program."""

_LOCAL_RANK, _LOCAL_SIZE = ('int(os.environ["LOCAL_RANK"])', 'int(os.environ["LOCAL_WORLD_SIZE"])')
CARDS = {
    "init": 'dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")',
    "pin by local rank": f"if torch.cuda.is_available(): torch.cuda.set_device({_LOCAL_RANK})",
    "pin by rank": "if torch.cuda.is_available(): torch.cuda.set_device(dist.get_rank())",
    "rate by size": "rate = rate * dist.get_world_size()",
    "rate by local size": f"rate = rate * {_LOCAL_SIZE}",
    "wrap": "model = DistributedDataParallel(network)",
    "broadcast": "for weight in network.parameters(): dist.broadcast(weight.data, src=0)",
    "only rank 0": "if dist.get_rank() == 0:                    # guards the next line",
    "only local rank 0": f"if {_LOCAL_RANK} == 0:   # guards the next line",
    "shard": "sampler = DistributedSampler(images)",
    "shard by local rank": f"sampler = DistributedSampler(images, {_LOCAL_SIZE}, {_LOCAL_RANK})",
    "set epoch": "sampler.set_epoch(epoch)",
    "steps by size": "steps = steps // dist.get_world_size()",
}
"""What can be laid between the lines; six are no part of a right program."""

FAULTS = ("nothing", "no sampler", "a seed per rank", "no shuffling", "no set_epoch", "set_epoch too late")

Log = Sequence[Sequence[Sequence[int]]]

IMAGES = 13
LOGS: Mapping[str, Log] = {
    "A": [
        [[0, 11, 4, 6, 5, 10, 3], [0, 11, 4, 6, 5, 10, 3], [0, 11, 4, 6, 5, 10, 3], [0, 11, 4, 6, 5, 10, 3]],
        [[2, 8, 1, 12, 7, 9, 0], [2, 8, 1, 12, 7, 9, 0], [2, 8, 1, 12, 7, 9, 0], [2, 8, 1, 12, 7, 9, 0]],
    ],
    "B": [
        [[5, 7, 0, 8, 2, 10], [11, 10, 0, 4, 6, 7], [0, 8, 12, 4, 11, 2], [8, 0, 2, 10, 7, 4]],
        [[6, 3, 9, 4, 11, 1], [5, 3, 8, 12, 2, 1], [5, 3, 1, 6, 10, 9], [9, 1, 11, 12, 6, 3]],
    ],
    "C": [
        [[6, 10, 11, 2, 1, 8], [6, 12, 9, 2, 4, 8], [10, 9, 6, 4, 5, 11], [10, 0, 1, 9, 4, 3]],
        [[1, 4, 0, 12, 11, 8], [9, 2, 6, 3, 7, 12], [5, 3, 8, 6, 12, 0], [4, 6, 0, 7, 10, 11]],
    ],
    "D": [
        [[12, 6, 2, 0, 8, 5, 1], [12, 6, 2, 0, 8, 5, 1], [10, 6, 4, 9, 2, 11, 7], [8, 10, 4, 6, 9, 5, 11]],
        [[3, 10, 9, 7, 4, 11, 12], [3, 10, 9, 7, 4, 11, 12], [12, 3, 0, 5, 1, 8, 10], [7, 3, 2, 12, 0, 1, 8]],
    ],
    "E": [
        [
            [6, 5, 1, 2, 8, 11, 9, 4, 10, 7, 3, 12, 0],
            [12, 5, 8, 1, 4, 7, 6, 0, 10, 9, 3, 11, 2],
            [12, 5, 8, 11, 2, 6, 0, 10, 1, 3, 4, 7, 9],
            [7, 10, 11, 4, 1, 2, 8, 3, 12, 5, 9, 6, 0],
        ],
        [
            [3, 10, 12, 4, 9, 2, 11, 5, 0, 8, 6, 1, 7],
            [9, 4, 12, 11, 6, 8, 5, 1, 2, 3, 0, 10, 7],
            [4, 0, 7, 5, 6, 8, 3, 9, 2, 1, 11, 12, 10],
            [1, 3, 6, 5, 10, 12, 11, 4, 8, 7, 9, 0, 2],
        ],
    ],
    "F": [
        [[0, 2, 4, 6, 8, 10, 12], [0, 2, 4, 6, 8, 10, 12], [0, 2, 4, 6, 8, 10, 12], [0, 2, 4, 6, 8, 10, 12]],
        [[1, 3, 5, 7, 9, 11, 0], [1, 3, 5, 7, 9, 11, 0], [1, 3, 5, 7, 9, 11, 0], [1, 3, 5, 7, 9, 11, 0]],
    ],
}
"""By letter: the numbers of the images that each rank saw, log[rank][epoch]; all with IMAGES images."""


def described(texts: Mapping[str, str]) -> str:
    """Lines or cards with their names, for the notebook."""
    return "\n".join(f"{name:<20} {text}" for name, text in texts.items())


def log_in_words(log: Log) -> str:
    """A line for each rank and epoch."""
    return "\n".join(
        f"rank {rank}, epoch {epoch}: {' '.join(f'{image:2}' for image in images)}"
        for rank, epochs in enumerate(log)
        for epoch, images in enumerate(epochs)
    )


def problem(program: Plain) -> str:
    """Why the program cannot run, in a sentence; an empty text if it can."""
    try:
        layout = layout_of(program, LINES, CARDS)
    except AnswerError as reason:
        return str(reason)
    return "" if any(name in CARDS for name in layout) else "No card has been placed: put cards between the lines."


def body(program: Sequence[str]) -> str:
    """The program as Python, one line per name: a card is indented as the line of the serial program below it."""
    rows: list[str] = []
    for place, name in enumerate(program):
        text = (LINES | CARDS)[name]
        below = next((LINES[line] for line in program[place:] if line in LINES), "")
        depth = len(below) - len(below.lstrip())
        guards = 0  # those right above this line
        while guards < place and program[place - 1 - guards] in ("only rank 0", "only local rank 0"):
            guards += 1
        rows.append(" " * (depth + 4 * guards) + text.lstrip())
    return "\n".join(rows) + "\n"


def write(program: Sequence[str], file: Path) -> None:
    """Write the program to a file, for `two_processes.py`."""
    file.write_text(body(program))
