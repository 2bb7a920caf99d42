"""What a student's `accumulate` does on the ranks of the fake PyTorch; runs in the process of the student's code."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lab_14.fake_torch import SGD, DistributedDataParallel, LinearNetwork, Process

from distlab.labs.answer import is_untouched, line_of
from distlab.labs.fake_job import FakeJob, run_ranks
from distlab.labs.plain_data import Array, Plain, plain

RANKS, SHAPE = 3, (5, 4)
RATE, MOMENTUM = 0.1, 0.9


@dataclass(frozen=True)
class Observed:
    """After two steps: whether the function is written, the first error if any, and by rank what it did.

    line: of the cell, where the error was raised; 0 if it is not known.  first, second: the weights after each step.
    most_kept: forward passes whose backward pass was missing, at most at a time.  passes_since_average: backward passes
    of the last step after its last all-reduce.  All other counts are of both steps together.
    """

    is_written: bool
    rank: int = -1
    kind: str = ""
    message: str = ""
    line: int = 0
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    all_reduces: list[int] = field(default_factory=list)
    backward_passes: list[int] = field(default_factory=list)
    most_kept: list[int] = field(default_factory=list)
    passes_since_average: list[int] = field(default_factory=list)
    no_syncs: list[int] = field(default_factory=list)
    no_sync_calls: list[int] = field(default_factory=list)
    backward_passes_outside: list[int] = field(default_factory=list)


def accumulate(namespace: Mapping[str, Any], weight: Array, images: Array, labels: Array) -> Plain:
    """Call the function for two steps; images [step, rank, batch, image, feature], labels alike."""
    function = namespace.get("accumulate")
    if not callable(function) or is_untouched(function):
        return plain(asdict(Observed(is_written=False)))
    job = FakeJob(RANKS, RANKS, seconds=2.0)
    lines: dict[int, int] = {}

    def step(rank: int, *arguments: object) -> None:
        try:
            function(*arguments)
        except Exception as error:
            lines[rank] = line_of(error.__traceback__, getattr(function, "__globals__", namespace)) or 0
            raise

    def program(rank: int) -> list[Any]:
        process, network = Process(job, rank, is_initialised=True), LinearNetwork(weight)
        model = DistributedDataParallel(process, network)
        optimizer = SGD(model.parameters(), RATE, MOMENTUM)
        weights = []
        for number in range(2):
            network.passes_since_average = 0
            step(rank, model, optimizer, list(zip(images[number, rank], labels[number, rank], strict=True)))
            weights.append(network.weight.data.copy())
        passes = [network.backward_passes, network.most_kept, network.passes_since_average]
        blocks = [process.no_syncs, process.no_sync_calls, process.backward_passes_outside]
        return [*weights, optimizer.steps, process.all_reduces, *passes, *blocks]

    outcomes = run_ranks(job, program)
    errors = [(rank, *outcome.error) for rank, outcome in enumerate(outcomes) if outcome.error]
    if errors:
        rank, kind, message = min(errors, key=lambda error: error[1] in ("Stalled", "Abandoned"))
        return plain(asdict(Observed(True, rank, kind, message[:300], lines.get(rank, 0))))
    by_rank = zip(*(outcome.value for outcome in outcomes), strict=True)
    return plain(asdict(Observed(True, -1, "", "", 0, *map(list, by_rank))))
