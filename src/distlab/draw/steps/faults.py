"""What is wrong with a rank's chunk, in marks for the picture and in words."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from distlab.draw.collective_tasks import Holding, Task
from distlab.simulate import Contributions


@dataclass(frozen=True)
class Fault:
    """What is wrong at one position of what one rank holds after a step.

    twice: the ranks whose share was added more than once, with how often.
    strange: the (rank, position) pairs that do not belong there.
    missing: the ranks whose share is not there, although the program has ended.
    """

    twice: dict[int, int] = field(default_factory=dict)
    strange: tuple[tuple[int, int], ...] = ()
    missing: tuple[int, ...] = ()


def fault_of(task: Task, rank: int, position: int, held: Contributions | None, at_end: bool) -> Fault | None:
    """The fault of what `rank` holds at that position, None if there is none; `at_end`: nothing may be missing."""
    counts = Counter() if held is None else held.counts
    wanted = task.ends[rank][position]
    missing: tuple[int, ...] = ()
    if at_end and wanted is not None:
        missing = tuple(sorted(owner for owner, _ in wanted.counts - counts))
    if held is not None and held == task.begins[rank][position]:
        return Fault(missing=missing) if missing else None

    twice = {owner: count for (owner, _), count in sorted(counts.items()) if count > 1}
    if wanted is not None:
        strange = tuple(sorted(pair for pair in counts if pair not in wanted.counts))
    elif task.collective is not None or len({place for _, place in counts}) > 1:
        strange = tuple(sorted(pair for pair in counts if pair[1] != position))
    else:
        strange = ()
    return Fault(twice, strange, missing) if twice or strange or missing else None


def is_complete(task: Task, rank: int, position: int, held: Contributions | None) -> bool:
    """Whether `held` is what `rank` has to hold there in the end."""
    return held is not None and held == task.ends[rank][position]


def first_fault(task: Task, steps: list[list[Holding]], ended: bool) -> str | None:
    """Where the run first went wrong, in words, and how many elements are wrong in the end; None if nothing is.

    ended: whether every rank's program ended, so that something may be called missing.
    """
    found = None
    for step, by_rank in enumerate(steps):
        at_end = ended and step == len(steps) - 1
        faults = {
            (rank, position): fault
            for rank, held in enumerate(by_rank)
            for position, element in enumerate(held)
            if (fault := fault_of(task, rank, position, element, at_end))
        }
        if faults and found is None:
            (rank, position), fault = next(iter(faults.items()))
            when = "In the end" if at_end else f"After step {step}"
            found = f"{when} chunk {task.chunk_of(position)} of rank {rank} {in_words(task, fault)}."
    if found is None:
        return None
    wrong = len({(rank, task.chunk_of(position)) for rank, position in faults})
    chunks = task.size * min(task.size, task.length)
    return f"{found} {wrong} of {chunks} chunks are wrong {'in the end' if ended else 'where it stopped'}."


def in_words(task: Task, fault: Fault) -> str:
    """The fault as the rest of a sentence that begins with the chunk."""
    parts = []
    if fault.twice:
        parts.append(
            "has " + " and ".join(f"rank {owner}'s share {_times(count)}" for owner, count in fault.twice.items())
        )
    if fault.strange:
        owners: dict[int, set[int]] = {}
        for owner, position in fault.strange:
            owners.setdefault(task.chunk_of(position), set()).add(owner)
        parts += [f"has chunk {chunk} of {_ranks(ranks)} in it" for chunk, ranks in sorted(owners.items())]
    if fault.missing:
        parts.append(f"lacks the share of {_ranks(fault.missing)}")
    return ", and ".join(parts)


def _ranks(numbers: Iterable[int]) -> str:
    *others, last = map(str, sorted(numbers))
    return f"ranks {', '.join(others)} and {last}" if others else f"rank {last}"


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"
