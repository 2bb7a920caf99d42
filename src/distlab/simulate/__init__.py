"""A virtual cluster: ranks are coroutines that send, receive and compute in virtual time; every event is recorded.

    async def program(rank, array):
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        received = await rank.exchange(right, array, left)
        return await rank.reduce(array, received)
    run = World(size=4, network=Network(latency=5e-6, seconds_per_byte=1e-9)).run(program, inputs)
    run.results, run.events, run.elapsed, run.bytes_sent, run.messages

The same program runs over real MPI by `run_over_mpi`. What operations cost is in `world`. Imports only `runtime`.
"""

from distlab.simulate.contributions import Contributions
from distlab.simulate.errors import (
    DeadlockError,
    InputsError,
    MismatchError,
    NoSuchRankError,
    NotAnArrayError,
    ProgramError,
    RankFailedError,
    SelfMessageError,
    SimulationError,
    UnreceivedMessageError,
    Waiting,
)
from distlab.simulate.events import KINDS, Event, Events
from distlab.simulate.mpi_rank import MpiRank, MpiRun, run_over_mpi
from distlab.simulate.network import Link, Network
from distlab.simulate.rank import Rank
from distlab.simulate.world import Program, Run, World

__all__ = [
    "KINDS",
    "Contributions",
    "DeadlockError",
    "Event",
    "Events",
    "InputsError",
    "Link",
    "MismatchError",
    "MpiRank",
    "MpiRun",
    "Network",
    "NoSuchRankError",
    "NotAnArrayError",
    "Program",
    "ProgramError",
    "Rank",
    "RankFailedError",
    "Run",
    "SelfMessageError",
    "SimulationError",
    "UnreceivedMessageError",
    "Waiting",
    "World",
    "run_over_mpi",
]
