"""In which order each stage of a pipeline does its passes: GPipe, 1F1B and interleaved 1F1B.

Stages are numbered from the input, p of them; a batch is cut into m micro-batches; a stage holds v chunks of the model,
one unless the schedule is interleaved. Chunk c of stage s is piece c·p + s of the model.
"""

from collections.abc import Callable
from typing import NamedTuple

from distlab.runtime.lookups import look_up

FORWARD, BACKWARD = "forward", "backward"


class Pass(NamedTuple):
    """One pass of one micro-batch through one chunk; kind is FORWARD or BACKWARD."""

    kind: str
    micro_batch: int
    chunk: int = 0


def gpipe(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """All forward passes, then all backward passes, the last first (Huang et al., arXiv:1811.06965, figure 2)."""
    forwards = [Pass(FORWARD, number) for number in range(micro_batches)]
    return forwards + [Pass(BACKWARD, number) for number in reversed(range(micro_batches))]


def one_forward_one_backward(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """As many forward passes as stages follow, then one forward and one backward in turn, then the rest backward.

    So at most p − s micro-batches are under way on stage s, not m (Narayanan et al., arXiv:2104.04473, section 2.2.1
    and figure 4; PipeDream-Flush).
    """
    forwards = [Pass(FORWARD, number) for number in range(micro_batches)]
    backwards = [Pass(BACKWARD, number) for number in range(micro_batches)]
    return _in_turn(forwards, backwards, ahead=stages - stage - 1)


def interleaved(stages: int, micro_batches: int, stage: int, chunks: int) -> list[Pass]:
    """1F1B with v chunks a stage: p micro-batches go through chunk 0, the same p through chunk 1, and so on.

    The bubble is v times shorter, and there are v times as many messages (Narayanan et al., arXiv:2104.04473, section
    2.2.2). Raises ValueError unless the micro-batches are a multiple of the stages, as the paper asks.
    """
    if micro_batches % stages:
        raise ValueError(
            f"{micro_batches} micro-batches on {stages} stages: interleaving needs a multiple of the stages, "
            f"for example {stages * (micro_batches // stages + 1)}"
        )
    groups = range(0, micro_batches, stages)
    forwards, backwards = (
        [
            Pass(kind, first + number, chunk)
            for first in groups
            for chunk in (range(chunks) if kind == FORWARD else reversed(range(chunks)))
            for number in range(stages)
        ]
        for kind in (FORWARD, BACKWARD)
    )
    # Until the first backward pass comes back to this stage its neighbours must stay fed: two passes for each stage
    # that follows, after all passes of the first group through all chunks but the last.
    ahead = 2 * (stages - stage - 1) + (chunks - 1) * stages
    return _in_turn(forwards, backwards, ahead)


Order = Callable[[int, int, int, int], list[Pass]]

SCHEDULES: dict[str, Order] = {"gpipe": gpipe, "1f1b": one_forward_one_backward, "interleaved": interleaved}
"""Every schedule by its name."""


def orders(schedule: str, stages: int, micro_batches: int, chunks: int = 1) -> list[list[Pass]]:
    """The passes of every stage, in order; raises NoSuchName for the schedule, ValueError for impossible numbers."""
    order = look_up(SCHEDULES, schedule, "schedule")
    if min(stages, micro_batches, chunks) < 1 or (chunks > 1 and schedule != "interleaved"):
        raise ValueError(
            f"{stages} stages, {micro_batches} micro-batches and {chunks} chunks a stage: at least 1 of each is "
            "needed, and only the interleaved schedule takes several chunks"
        )
    return [order(stages, micro_batches, stage, chunks) for stage in range(stages)]


def _in_turn(forwards: list[Pass], backwards: list[Pass], ahead: int) -> list[Pass]:
    """`ahead` forward passes, then forward and backward in turn, then the backward passes that are left."""
    ahead = min(ahead, len(forwards))
    order = forwards[:ahead]
    for place, each in enumerate(forwards[ahead:]):
        order += [each, backwards[place]]
    return order + backwards[len(forwards) - ahead :]
