"""What a student's `accumulate` does on the fake PyTorch; runs in the process of the student's code."""

from collections.abc import Mapping
from typing import Any

from lab_14.fake_torch import SGD, DistributedDataParallel

from distlab.labs.answer import is_untouched, line_of
from distlab.labs.fake_job import FakeJob, run_ranks
from distlab.labs.plain_data import Array, Plain, plain

RANKS, SHAPE = 3, (5, 4)
RATE, MOMENTUM = 0.1, 0.9


def accumulate(namespace: Mapping[str, Any], weight: Array, images: Array, labels: Array) -> Plain:
    """Call the function for two steps; images [step, rank, batch, image, feature], labels alike.

    Gives None where nothing is written; the rank, kind, message and line of the first error; or by rank the weights
    after each step, the counts of both steps together, and how often it used `no_sync`.
    """
    function = namespace.get("accumulate")
    if not callable(function) or is_untouched(function):
        return None
    job, lines = FakeJob(RANKS, RANKS, seconds=2.0), dict[int, int]()

    def program(rank: int) -> dict[str, Any]:
        model = DistributedDataParallel(job, rank, weight)
        optimizer = SGD(model.parameters(), RATE, MOMENTUM)
        weights = []
        for of_step, own_labels in zip(images[:, rank], labels[:, rank], strict=True):
            try:
                function(model, optimizer, list(zip(of_step, own_labels, strict=True)))
            except Exception as error:
                lines[rank] = line_of(error.__traceback__, getattr(function, "__globals__", namespace)) or 0
                raise
            weights.append(model.weight.data.copy())
        return {
            "weights": weights,
            "steps": optimizer.steps,
            "all-reduces": model.all_reduces,
            "backward": model.backward_passes,
            "kept": model.most_kept,
            "no_sync": model.no_syncs,
            "outside": model.backward_passes_outside,
        }

    seen = run_ranks(job, program)
    if errors := [(rank, *error) for rank, error in enumerate(seen.errors) if error]:
        rank, kind, message = min(errors, key=lambda error: error[1] in ("Stalled", "Abandoned"))
        return [rank, kind, message[:300], lines.get(rank, 0)]
    return plain({name: [value[name] for value in seen.values] for name in seen.values[0]})
