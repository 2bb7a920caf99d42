"""One published scaling result: what was run where, how it scaled, and what a prediction of it needs."""

from dataclasses import dataclass

from distlab.costs.prediction.networks import BYTES_PER_PARAMETER, Measurement


@dataclass(frozen=True)
class PublishedResult:
    """A published scaling efficiency, relative to `baseline_ranks` GPUs.

    A new row is described by rules that leave no choice: links as on the data sheets; the all-reduce that the authors
    ran where `ALGORITHMS` has it, else "fastest"; everything else by the assumptions.

    speed: of one GPU in this very experiment, where it is not the one that `MODELS` has for the machine. Where the
        smallest published run has several GPUs, its speed divided by them.
    overlap: "fusion", unless the authors say that the all-reduce begins after the backward pass ("none").
    bytes_per_parameter: 2 where the authors say that gradients travel in half precision, else 4.
    blind_test: 0 where the row was in view when the assumptions were chosen; 1 or 2 where the model computed it for the
        first time after all of them had been fixed, in the first blind test or in the second.
    program: what was run, where one machine has rows of several.
    reason: why the row may come out wrong, from what its authors say and the model leaves out.
    """

    model: str
    hardware: str
    ranks: int
    efficiency: float
    source: str
    baseline_ranks: int = 1
    speed: Measurement | None = None
    overlap: str = "fusion"
    bytes_per_parameter: int = BYTES_PER_PARAMETER
    blind_test: int = 0
    program: str = ""
    reason: str = ""


def one_to_many(
    model: str,
    cluster: str,
    few: tuple[int, float],
    many: tuple[int, float],
    batch: int,
    source: str,
    bytes_per_parameter: int = BYTES_PER_PARAMETER,
    second_hand: bool = False,
    reason: str = "",
    program: str = "",
    blind_test: int = 1,
) -> PublishedResult:
    """A blind result from (GPUs, images per second of all of them), for few GPUs and for many."""
    one_gpu = few[1] / few[0]
    return PublishedResult(
        *(model, cluster, many[0], many[1] / many[0] / one_gpu, source),
        baseline_ranks=few[0],
        speed=Measurement(one_gpu, batch, source, second_hand),
        bytes_per_parameter=bytes_per_parameter,
        blind_test=blind_test,
        program=program,
        reason=reason,
    )
