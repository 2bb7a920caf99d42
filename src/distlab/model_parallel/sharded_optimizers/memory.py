"""Bytes that a device holds and sends when the states of a model are sharded among its data-parallel ranks (ZeRO).

Ψ parameters, N ranks. Stage 0 is plain data parallelism; stage 1 shards the optimizer's states (P_os in the paper),
stage 2 the gradients besides (P_os+g), stage 3 the parameters as well (P_os+g+p).
Source: Rajbhandari et al., arXiv:1910.02054, sections 3.1, 5 and 7, and figure 1.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

STAGES = {
    0: "every device holds all states",
    1: "optimizer states sharded",
    2: "optimizer states and gradients sharded",
    3: "optimizer states, gradients and parameters sharded",
}

Numbers = np.ndarray | np.float64


@dataclass(frozen=True)
class BytesPerParameter:
    """What each state takes for one parameter: its value, its gradient, and what the optimizer keeps (K)."""

    parameters: float
    gradients: float
    optimizer: float


MIXED_PRECISION_ADAM = BytesPerParameter(2, 2, 12)
"""fp16 values and gradients; fp32 copy of the values, momentum and variance: K = 12 (section 3.1), 16 together."""

SINGLE_PRECISION_ADAM = BytesPerParameter(4, 4, 8)
"""fp32 values and gradients, momentum and variance; no copy is needed."""


def model_state_bytes(
    parameters: ArrayLike, ranks: ArrayLike, stage: int, each: BytesPerParameter = MIXED_PRECISION_ADAM
) -> Numbers:
    """The bytes of parameters, gradients and optimizer states on one device; float64, shape of the arguments together.

    Stage 0: (2 + 2 + K)Ψ. Stage 1: (2 + 2)Ψ + KΨ/N. Stage 2: 2Ψ + (2 + K)Ψ/N. Stage 3: (2 + 2 + K)Ψ/N.
    Activations and buffers come on top. Raises ValueError for impossible numbers.
    """
    check_stage(stage)
    psi, n = np.broadcast_arrays(np.asarray(parameters, np.float64), np.asarray(ranks, np.float64))
    if not (np.all(psi >= 0) and np.all(np.isfinite(psi))):
        raise ValueError("a number of parameters is finite and at least 0")
    if not np.all((n >= 1) & (n == np.floor(n))):
        raise ValueError("a number of ranks is a whole number of at least 1")
    whole = sharded = 0.0
    for sharded_from, size in ((3, each.parameters), (2, each.gradients), (1, each.optimizer)):
        if stage >= sharded_from:
            sharded += size
        else:
            whole += size
    return (whole * psi + sharded * psi / n)[()]


def bytes_sent(parameter_bytes: ArrayLike, ranks: ArrayLike, stage: int) -> Numbers:
    """The bytes that each rank sends in one step; n = `parameter_bytes`, those of all values (and all gradients).

    Stages 0 to 2: 2((N−1)/N)n, a reduce-scatter of the gradients and an all-gather of the parameters, which together
    are the all-reduce of stage 0. Stage 3: 3((N−1)/N)n, since the parameters are gathered twice, for the forward and
    for the backward pass (section 7: at most 1.5 times plain data parallelism).
    """
    check_stage(stage)
    n, ranks = np.asarray(parameter_bytes, np.float64), np.asarray(ranks, np.float64)
    return ((3 if stage == 3 else 2) * (ranks - 1) / ranks * n)[()]


def check_stage(stage: int) -> None:
    """Raise ValueError unless `stage` is 0, 1, 2 or 3."""
    if stage not in STAGES:
        raise ValueError(f"ZeRO has the stages 1, 2 and 3, and 0 for none, not {stage}")
