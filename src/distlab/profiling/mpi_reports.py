"""The reports of mpiP and of mpitrace, with the rows of `mpi_profile`."""

from collections import defaultdict
from pathlib import Path

from distlab.profiling.mpi_profile import RoutineCalls


def read_mpip(file: Path) -> dict[int, list[RoutineCalls]]:
    """By rank, the calls of each routine, of all call sites together; seconds have three digits, as mpiP prints them.

    Bytes are those that a rank sent, and 0 for routines whose bytes mpiP does not count. Raises ValueError if the file
    has no statistics by call site, which `MPIP=-d` leaves out, or not of each rank, as with `MPIP=-t 10` or `-c`.
    """
    calls: dict[tuple[int, str], list[float]] = defaultdict(lambda: [0, 0, 0.0])
    section, missing = "", 0
    for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
        section = line if line.startswith("@---") else section
        words = line.split()
        if len(words) not in (8, 9) or not words[1].isdecimal():
            continue  # a heading
        is_time = section.startswith("@--- Callsite Time")
        if words[2] == "*":  # the sum over all ranks
            missing += is_time * int(words[3])
        elif is_time:
            sums = calls[int(words[2]), f"MPI_{words[0]}"]
            sums[0] += int(words[3])
            sums[2] += int(words[3]) * float(words[5]) / 1000
            missing -= int(words[3])
        elif section.startswith("@--- Callsite Message Sent"):
            calls[int(words[2]), f"MPI_{words[0]}"][1] += float(words[7])
    if missing or not calls:
        raise ValueError(f"{file} has no statistics by call site of mpiP, or not of each rank")
    by_rank: dict[int, list[RoutineCalls]] = defaultdict(list)
    for (rank, routine), (count, sent, seconds) in sorted(calls.items()):
        by_rank[rank].append(RoutineCalls(routine, "", int(count), round(sent), seconds))
    return dict(by_rank)


def read_mpitrace(file: Path) -> tuple[int, list[RoutineCalls]]:
    """The rank that a file `mpi_profile.JOB.RANK` is of, and its calls of each routine.

    Raises ValueError if it is no such file.
    """
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    try:
        rank = int(lines[0].removeprefix("Data for MPI rank ").split()[0])
        first = next(place for place, line in enumerate(lines) if line.startswith("MPI Routine")) + 2
        last = next(place for place, line in enumerate(lines) if place > first and line.startswith("---"))
        rows = [line.split() for line in lines[first:last]]
        return rank, [
            RoutineCalls(name, "", int(calls), round(int(calls) * float(mean)), float(seconds))
            for name, calls, mean, seconds in rows
        ]
    except (IndexError, StopIteration, ValueError) as error:
        raise ValueError(f"{file} is no profile of mpitrace") from error
