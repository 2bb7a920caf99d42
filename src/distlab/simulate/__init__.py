"""A virtual cluster: ranks are coroutines that send, receive and compute in virtual time; every event is recorded.

    async def program(rank, array):
        right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
        received = await rank.exchange(right, array, left)
        return await rank.reduce(array, received)

    run = World(size=4, network=Network(latency=5e-6, seconds_per_byte=1e-9)).run(program, inputs)
    run.results, run.events, run.elapsed, run.bytes_sent, run.messages

What an operation costs, with α, β of the link and γ of the network (`Network`), for a message or array of n bytes:

- A rank has one sending and one receiving port. Each handles one message at a time, for α + nβ seconds; the two work
  independently of each other and of the rank.
- A message sent at time t occupies the sender's sending port from t to t + α + nβ, which is when `send` ends. It
  occupies the receiver's receiving port for α + nβ as well, from t or, if later, from when that port is free; then it
  has arrived. Messages take a receiving port in the order in which they are sent, at the same instant in order of rank.
  So a message that meets no other arrives at t + α + nβ, and of k messages sent to one rank at the same time the last
  arrives at t + k(α + nβ).
- `receive` ends when the message has arrived: at once if it has already. Sending never waits for the receiver, since a
  message waits in the receiver's memory. What is sent is what the array held at t.
- `exchange`, begun at t, is both at once: it ends at t + α + nβ or, if later, when the other message has arrived.
- `reduce` of an array of n bytes takes nγ, `compute(s)` takes s; on a rank of compute speed v both take 1/v of that.
- All else, the program's own Python too, takes no time.

A rank cannot send to itself: that is an error, as it is in most cases a wrong neighbour.

A run is deterministic: the same program and inputs give the same results, events and times.
"""

from distlab.simulate.contributions import Contributions, contributions
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
from distlab.simulate.interface import Rank
from distlab.simulate.network import Link, Network
from distlab.simulate.world import Run, World

__all__ = [
    "KINDS",
    "Contributions",
    "DeadlockError",
    "Event",
    "Events",
    "InputsError",
    "Link",
    "MismatchError",
    "Network",
    "NoSuchRankError",
    "NotAnArrayError",
    "ProgramError",
    "Rank",
    "RankFailedError",
    "Run",
    "SelfMessageError",
    "SimulationError",
    "UnreceivedMessageError",
    "Waiting",
    "World",
    "contributions",
]
