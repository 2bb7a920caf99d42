"""What lab 11 works on: a published scaling table."""

from collections.abc import Sequence
from typing import NamedTuple


class Claim(NamedTuple):
    """One line of a published table: the efficiency of an epoch on several GPUs; `batch` is that of each GPU."""

    gpu: str
    images: int
    batch: int
    gpus: int
    efficiency: float


PUBLISHED = tuple(
    Claim(gpu, 60_000, batch, gpus, efficiency)
    for gpu, batch, claims in (("V100", 2048, (0.88, 0.88, 0.86)), ("A100", 8192, (0.77, 0.60, 0.86)))
    for gpus, efficiency in zip((2, 4, 8), claims, strict=True)
)
"""openhackathons-org/gpubootcamp, Distributed Deep Learning, notebook 1; its script drops what fills no batch. With 8
A100, which would take no step, the table has an efficiency, but a dash for the images/s."""
IMAGES_PER_SECOND = {1: 71_149, 8: 489_929}
"""Of one and of 8 V100, in the same table: each is 60,000 images divided by the time of an epoch."""


def published_table(true_efficiencies: Sequence[float | None] | None = None) -> str:
    """The published lines as text; with the true efficiencies, if they are passed, as one more column."""
    header = "GPUs       batch   claimed"
    lines = [f"{claim.gpus} {claim.gpu}{claim.batch:>10}{claim.efficiency:>10.0%}" for claim in PUBLISHED]
    if true_efficiencies is None:
        return "\n".join([header, *lines])
    column = ["undefined" if true is None else f"{true:.0%}" for true in true_efficiencies]
    return "\n".join([f"{header}      true", *(f"{line}{true:>10}" for line, true in zip(lines, column, strict=True))])
