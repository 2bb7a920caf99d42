"""A world whose times can be reckoned in the head, and the program that waits for its neighbour."""

from distlab.simulate import (
    Network,
    Rank,
    World,
)

# α = 1 s, β = 1/8 s per byte, γ = 1/16 s per byte: an array of k float64 takes 1 + k to send and k/2 to add.
SLOW = Network(latency=1.0, seconds_per_byte=1 / 8, seconds_per_byte_reduced=1 / 16)


def world(size: int, network: Network = SLOW, **options: object) -> World:
    return World(size, network, **options)


async def waits_for_left(rank: Rank) -> None:
    await rank.receive((rank.index - 1) % rank.size)
