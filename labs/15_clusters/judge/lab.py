"""The exercises of lab 15: three job scripts, a job that is queued again, a scaling table, and what to rent."""

from distlab.labs.lab import Exercise, Lab
from lab_15 import array_job, batch_job, given, long_job, rent, requeued_job, scaling_table


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {"read_table": _read_table, "rent": _rent}[name]()


def _read_table() -> str:
    lines = ["read_table(runs)"]
    lines += [f"    {place}: {run._asdict()}" for place, run in enumerate(scaling_table.EXAMPLE)]
    for key, value in scaling_table.read_table(scaling_table.EXAMPLE).items():
        numbers = [round(number, 4) for number in value] if isinstance(value, list) else value
        lines.append(f"    {key!r:13} {numbers}")
    return "\n".join(lines)


def _rent() -> str:
    offers, images, deadline = rent.EXAMPLE
    choice = rent.rent(*rent.EXAMPLE)
    assert choice is not None
    numbers = {key: round(value, 4) if isinstance(value, float) else value for key, value in choice._asdict().items()}
    lines = [f"rent(offers, images={images:g}, deadline={deadline:g})"]
    return "\n".join([*lines, *(f"    {offer._asdict()}" for offer in offers), f"    gives {numbers}"])


LAB = Lab(
    "15_clusters",
    [
        Exercise("batch", 4, batch_job.judge_batch),
        Exercise("array", 4, array_job.judge_array),
        Exercise("long", 4, long_job.judge_long),
        Exercise("attempt", 4, requeued_job.judge_attempt),
        Exercise("read_table", 4, scaling_table.judge_read_table),
        Exercise("rent", 4, rent.judge_rent),
    ],
    target=target,
    given_module=given,
)
