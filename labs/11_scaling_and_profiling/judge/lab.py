"""The exercises of lab 11: a scaling table audited, Amdahl's law and α–β fitted, the time on 64 ranks predicted."""

import numpy as np

from distlab.labs.lab import Exercise, Lab, NoSuchExercise
from lab_11 import audit, fits, given, prediction
from distlab.runtime.lookups import look_up


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return look_up(
        {"audit": _audit, "amdahl": _amdahl, "alpha_beta": _alpha_beta, "predicted": _predicted},
        name,
        "target",
        NoSuchExercise,
    )()


def _audit() -> str:
    images, batch, gpus, seconds, seconds_on_one = audit.PUBLISHED_EPOCH
    numbers = audit.audited(*audit.PUBLISHED_EPOCH)
    call = f"audit({images}, {batch}, {gpus}, {seconds:.4f}, {seconds_on_one:.4f})"
    return "\n".join([call, *(f"    {name:18}{value:>12,.6g}" for name, value in numbers.items())])


def _amdahl() -> str:
    law, ranks = (2.0, 12.0), [1, 2, 4, 8]
    times = ", ".join(f"{seconds:g}" for seconds in fits.amdahl_seconds(law, ranks))
    return f"amdahl({ranks}, [{times}]) = ({law[0]:g}, {law[1]:g})"


def _alpha_beta() -> str:
    network, sizes = fits.AlphaBeta(2e-5, 1e-9), [400, 4_000_000]
    times = ", ".join(f"{seconds:.6g}" for seconds in network.ring(8, sizes))
    return f"alpha_beta(8, {sizes}, [{times}]) = ({network.latency:g}, {network.seconds_per_byte:g})"


def _predicted() -> str:
    measured = prediction.drawn_measurements(np.random.default_rng(64), 64, 8)
    rows = [f"{name:20}{np.array2string(np.asarray(value), precision=5)}" for name, value in measured._asdict().items()]
    return "\n".join([*rows, f"{'predicted(…)':20}{prediction.predicted(*measured):.4f} seconds"])


LAB = Lab(
    "11_scaling_and_profiling",
    [
        Exercise("audit", 4, audit.judge_audit),
        Exercise("corrected", 3, audit.judge_corrected),
        Exercise("amdahl", 4, fits.judge_amdahl),
        Exercise("alpha_beta", 4, fits.judge_alpha_beta),
        Exercise("predicted", 4, prediction.judge_predicted),
    ],
    solved_in=["distlab.costs"],
    target=target,
    given_module=given,
)
