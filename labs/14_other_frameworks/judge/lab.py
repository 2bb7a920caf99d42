"""The exercises of lab 14: the eight steps in PyTorch's DDP, its sampler, and what its average means."""

from distlab.labs.lab import Exercise, Lab
from lab_14 import averages, diagnosis_judge, given, puzzle, sampling, sampling_judge


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    if name == "samples":
        job = sampling.EXAMPLE
        call = "samples(images={}, ranks={}, rank={{}}, epoch={}, seed={}, drop_last={})".format(*job)
        values = [(rank, sampling.samples(job.images, job.ranks, rank, *job[2:])) for rank in range(job.ranks)]
        return "\n".join(f"{call.format(rank)}  {value}" for rank, value in values)
    if name == "uneven":
        numbers = averages.uneven(*averages.EXAMPLE)
        listed = ", ".join(f'"{name}": {value:.6g}' for name, value in numbers.items())
        return "uneven(counts={}, rank={})  {{{}}}".format(*averages.EXAMPLE, listed)
    return {
        "program": "program\n    a list of names",
        "diagnose": "diagnose(log, images)\n    one of lab.given.FAULTS",
        "accumulate": "accumulate(model, optimizer, batches)\n    one step",
    }[name]


LAB = Lab(
    "14_other_frameworks",
    [
        Exercise("program", 8, puzzle.judge_program),
        Exercise("samples", 4, sampling_judge.judge_samples),
        Exercise("diagnose", 6, diagnosis_judge.judge_diagnose),
        Exercise("uneven", 2, averages.judge_uneven),
        Exercise("accumulate", 4, averages.judge_accumulate),
    ],
    target=target,
    given_module=given,
)
