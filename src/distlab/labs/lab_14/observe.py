"""What a student's `accumulate` does on the ranks of the fake PyTorch; runs in the process of the student's code."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from distlab.labs.answer import is_untouched
from distlab.labs.fake_job import FakeJob, run_ranks
from distlab.labs.lab_14.fake_torch import SGD, DistributedDataParallel, LinearNetwork, Process
from distlab.labs.plain_data import Array, Plain, plain

RANKS, SHAPE = 3, (5, 4)
RATE, MOMENTUM = 0.1, 0.9


@dataclass(frozen=True)
class Observed:
    """After two steps: whether the function is written, the first error if any, and by rank what it did.

    first, second: the weights after each step.  The counts are of both steps together.
    """

    is_written: bool
    rank: int = -1
    kind: str = ""
    message: str = ""
    first: list[Array] = field(default_factory=list)
    second: list[Array] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    all_reduces: list[int] = field(default_factory=list)
    backward_passes: list[int] = field(default_factory=list)
    no_syncs: list[int] = field(default_factory=list)


def accumulate(namespace: Mapping[str, Any], weight: Array, images: Array, labels: Array) -> Plain:
    """Call the function for two steps; images [step, rank, batch, image, feature], labels alike."""
    function = namespace.get("accumulate")
    if not callable(function) or is_untouched(function):
        return plain(asdict(Observed(is_written=False)))
    job = FakeJob(RANKS, RANKS, seconds=2.0)

    def program(rank: int) -> list[Any]:
        process, network = Process(job, rank, is_initialised=True), LinearNetwork(weight)
        model = DistributedDataParallel(process, network)
        optimizer = SGD(model.parameters(), RATE, MOMENTUM)
        weights = []
        for step in range(2):
            function(model, optimizer, list(zip(images[step, rank], labels[step, rank], strict=True)))
            weights.append(network.weight.data.copy())
        counts = [optimizer.steps, process.all_reduces, network.backward_passes, process.no_syncs]
        return [*weights, *counts]

    outcomes = run_ranks(job, program)
    errors = [(rank, *outcome.error) for rank, outcome in enumerate(outcomes) if outcome.error]
    if errors:
        rank, kind, message = min(errors, key=lambda error: error[1] in ("Stalled", "Abandoned"))
        return plain(asdict(Observed(True, rank, kind, message[:300])))
    by_rank = zip(*(outcome.value for outcome in outcomes), strict=True)
    return plain(asdict(Observed(True, -1, "", "", *map(list, by_rank))))
