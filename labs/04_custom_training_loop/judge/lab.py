"""The exercises of lab 04: what replicas divide by, in full, uneven, masked and accumulated batches."""

from collections.abc import Iterable

import numpy as np

from distlab.labs.lab import Exercise, Lab
from lab_04 import accumulation, factors, masked_losses, penalty, replica_losses


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {
        "factors": _factors,
        "replica_losses": _replica_losses,
        "with_penalty": _with_penalty,
        "accumulated": _accumulated,
        "masked_losses": _masked_losses,
    }[name]()


def _factors() -> str:
    values = factors.factors(*factors.EXAMPLE)
    call = "factors(replicas={}, images={}, micro_batches={})".format(*factors.EXAMPLE)
    return "\n".join([call, *(f"    {name:24}{value:>4g}" for name, value in values.items())])


def _replica_losses() -> str:
    losses = replica_losses.EXAMPLE.losses
    values = replica_losses.replica_losses(losses)
    return f"replica_losses({_arrays(losses)})\n    {values}, and their sum is the mean: {sum(values):g}"


def _with_penalty() -> str:
    losses, amount = replica_losses.EXAMPLE.losses, penalty.PENALTY_EXAMPLE
    values = penalty.with_penalty(losses, amount)
    return f"with_penalty({_arrays(losses)}, {amount})\n    {values}, whose sum is {sum(values):g}"


def _accumulated() -> str:
    _, gradients, counts = accumulation.EXAMPLE
    call = f"accumulated(np.array({gradients.tolist()}), np.array({counts.tolist()}))"
    return f"{call}\n    {accumulation.accumulated(gradients, counts).tolist()}"


def _masked_losses() -> str:
    _, losses, masks = masked_losses.EXAMPLE
    values = masked_losses.masked_losses(losses, masks)
    return (
        f"masked_losses({_arrays(losses)},\n              {_arrays(masks)})\n    {values}, whose sum is {sum(values):g}"
    )


def _arrays(arrays: Iterable[np.ndarray]) -> str:
    return "[" + ", ".join(f"np.array({array.tolist()})" for array in arrays) + "]"


LAB = Lab(
    "04_custom_training_loop",
    [
        Exercise("factors", 6, factors.judge_factors),
        Exercise("replica_losses", 3, replica_losses.judge_replica_losses),
        Exercise("with_penalty", 3, penalty.judge_with_penalty),
        Exercise("accumulated", 3, accumulation.judge_accumulated),
        Exercise("masked_losses", 3, masked_losses.judge_masked_losses),
    ],
    target=target,
)
