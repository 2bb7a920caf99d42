"""Pipeline schedules: legal, as long and as full as their formulas say."""

import itertools

import pytest

from distlab.model_parallel.pipelines import (
    BACKWARD,
    FORWARD,
    Pass,
    Work,
    activations_held,
    bubble_fraction,
    orders,
    seconds,
    simulate,
)

STAGES, MICRO_BATCHES = (1, 2, 3, 4, 5, 8), (1, 2, 3, 4, 5, 6, 8, 12, 16, 32)


def fault(works: list[list[Work]], micro_batches: int, chunks: int) -> str | None:
    """What is illegal in a schedule as it was done; None if nothing is."""
    stages = len(works)
    done = [work for of_stage in works for work in of_stage]
    at = {(work.kind, work.chunk * stages + work.stage, work.micro_batch): work for work in done}
    expected = set(itertools.product((FORWARD, BACKWARD), range(stages * chunks), range(micro_batches)))
    if len(done) != len(at) or set(at) != expected:
        return "not each pass once"
    for of_stage in works:
        if any(work.end > following.start for work, following in itertools.pairwise(of_stage)):
            return "two passes of a stage at once"
    last = stages * chunks - 1
    for kind, piece, micro_batch in expected:
        if kind == FORWARD:
            before = at.get((FORWARD, piece - 1, micro_batch))
        else:
            before = at[FORWARD, last, micro_batch] if piece == last else at[BACKWARD, piece + 1, micro_batch]
        if before is not None and before.end > at[kind, piece, micro_batch].start:
            return "a pass before its input was there"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved"])
def test_every_schedule_is_legal_and_takes_the_time_of_its_formula(name: str) -> None:
    for p, m, v in itertools.product(STAGES, MICRO_BATCHES, (1, 2, 3) if name == "interleaved" else (1,)):
        if name == "interleaved" and m % p:
            continue
        backward = 0.5 + p % 3  # the formula holds whatever a backward pass costs
        timing = simulate(name, p, m, v, forward_seconds=1.0, backward_seconds=backward)
        assert fault(timing.works, m, v) is None, (p, m, v)
        assert timing.seconds == pytest.approx(seconds(p, m, 1.0, backward, v)), (p, m, v)
        assert timing.bubble_fraction == pytest.approx(bubble_fraction(p, m, v)), (p, m, v)
        for stage in range(p):
            formula = activations_held(name, p, m, stage, v)
            assert timing.activations_held(stage) == pytest.approx(formula), (p, m, v, stage)


def test_the_order_of_one_forward_one_backward_by_hand() -> None:
    """Narayanan et al., figure 4: four devices, eight micro-batches; device 2 warms up with two forward passes."""
    stages = orders("1f1b", 4, 8)
    names = ["".join(f"{each.kind[0]}{each.micro_batch + 1} " for each in order).split() for order in stages]
    assert names[1][:8] == ["f1", "f2", "f3", "b1", "f4", "b2", "f5", "b3"]
    assert names[3][:6] == ["f1", "b1", "f2", "b2", "f3", "b3"]
    assert names[0][-4:] == ["b5", "b6", "b7", "b8"]


def test_the_order_of_the_interleaved_schedule_by_hand() -> None:
    """The same figure below: device 1 does 1 to 4 through its first chunk, then through its second, then 5, 6, 7."""
    first = orders("interleaved", 4, 8, 2)[0]
    assert first[:10] == [Pass(FORWARD, number, chunk) for chunk in (0, 1) for number in range(4)] + [
        Pass(FORWARD, 4, 0),
        Pass(FORWARD, 5, 0),
    ]
    assert first[10:12] == [Pass(FORWARD, 6, 0), Pass(BACKWARD, 0, 1)]


@pytest.mark.parametrize("arguments", [("gpipes", 2, 2, 1), ("gpipe", 0, 2, 1), ("interleaved", 4, 6, 2)])
def test_impossible_schedules_are_refused(arguments: tuple) -> None:
    with pytest.raises(ValueError, match=r"did you mean gpipe\?|at least 1 of each|a multiple of the stages"):
        orders(*arguments)
