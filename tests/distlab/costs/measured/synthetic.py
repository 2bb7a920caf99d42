"""Measurements whose numbers are known: what a cluster with these parameters would give, without noise."""

from dataclasses import replace

from distlab.costs.measured.measurement import ClusterMeasurement, Spread

ALPHA, BETA, OVERHEAD = 40e-6, 8e-9, 1.5e-3
COMPUTE = 0.02
GRADIENTS = (1_200_000, 800_000)
SIZES = (1024, 4096, 16384, 65536, 262144, 1048576, 4194304)


def exactly(seconds: float) -> Spread:
    return Spread(seconds, seconds, seconds)


def ring(ranks: int, array_bytes: float, overhead: float = 0.0) -> float:
    """By hand: 2(p−1) messages of n/p bytes."""
    return overhead + 2 * (ranks - 1) * (ALPHA + array_bytes / ranks * BETA)


def measurement(
    ranks: int = 2, *, overhead: float = 0.0, hidden: float = 0.25, **changes: object
) -> ClusterMeasurement:
    """One rank per host, each on a machine of its own with two cores."""
    communication = ring(ranks, sum(GRADIENTS), overhead)
    step = COMPUTE + communication - hidden * min(COMPUTE, communication)
    made = ClusterMeasurement(
        date="2026-11-22",
        versions={"python": "3.11.7", "tensorflow": "2.21.0", "horovod": "0.28.1"},
        communication="Horovod over Gloo",
        processor="x86_64",
        model="cnn",
        batch=16,
        gradient_bytes=GRADIENTS,
        fusion_bytes=128 * 2**20,
        ranks_per_host=(1,) * ranks,
        machines=ranks,
        cores=2 * ranks,
        gpus=0,
        threads=1,
        repeats=20,
        sizes=SIZES,
        all_reduces=tuple(exactly(ring(ranks, size, overhead)) for size in SIZES),
        step_alone=exactly(COMPUTE),
        gradients_alone=exactly(communication),
        step=exactly(step),
    )
    return replace(made, **changes)
