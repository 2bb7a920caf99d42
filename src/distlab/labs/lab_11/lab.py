"""The exercises of lab 11: a scaling table audited, Amdahl's law and α–β fitted, the time on 64 ranks predicted."""

import numpy as np

from distlab import costs
from distlab.labs.lab import Exercise, Lab
from distlab.labs.lab_11 import audit, fits, prediction


def target(name: str) -> str:
    """One call of an exercise's function and what it has to give, by the course's own functions."""
    return {"audit": _audit, "amdahl": _amdahl, "alpha_beta": _alpha_beta, "predicted": _predicted}[name]()


def _audit() -> str:
    images, batch, gpus, seconds, seconds_on_one = audit.PUBLISHED_RUN
    wanted = audit.audited(*audit.PUBLISHED_RUN)
    call = f"audit({images}, {batch}, {gpus}, {seconds:.4f}, {seconds_on_one:.4f})"
    return "\n".join([call, *(f"    {name:18}{value:>12,.6g}" for name, value in wanted.items())])


def _amdahl() -> str:
    law, ranks = costs.Amdahl(2.0, 12.0), [1, 2, 4, 8]
    shown = ", ".join(f"{seconds:g}" for seconds in law.seconds(ranks))
    return f"amdahl({ranks}, [{shown}]) = ({law.serial_seconds:g}, {law.parallel_seconds:g})"


def _alpha_beta() -> str:
    network, sizes = fits.Network(2e-5, 1e-9), [400, 4_000_000]
    shown = ", ".join(f"{seconds:.6g}" for seconds in network.ring(8, np.array(sizes)))
    return f"alpha_beta(8, {sizes}, [{shown}]) = ({network.latency:g}, {network.seconds_per_byte:g})"


def _predicted() -> str:
    job = prediction.drawn_job(np.random.default_rng(64), 64, 8)
    rows = [f"{name:20}{np.array2string(np.asarray(value), precision=5)}" for name, value in job._asdict().items()]
    return "\n".join([*rows, f"{'predicted(…)':20}{prediction.predicted(*job):.4f} seconds"])


LAB = Lab(
    "11_scaling_and_profiling",
    [
        Exercise("audit", 4, audit.judge_audit),
        Exercise("corrected", 3, audit.judge_corrected),
        Exercise("amdahl", 4, fits.judge_amdahl),
        Exercise("alpha_beta", 4, fits.judge_alpha_beta),
        Exercise("predicted", 4, prediction.judge_predicted),
    ],
)
