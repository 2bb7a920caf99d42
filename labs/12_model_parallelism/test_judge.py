"""Lab 12: other right answers, the judge's numbers against calculations of another make, what goes wrong otherwise."""

import numpy as np
import pytest
from lab_12 import judge, schedules
from lab_12.judge import LAB, drawn_layers

from distlab.collectives import ring_all_reduce
from distlab.model_parallel import pipelines
from distlab.model_parallel.pipelines import BACKWARD, FORWARD
from distlab.simulate import World
from tests.distlab.labs.known_wrong import right_answers, verdict_on, wrong_answers
from tests.distlab.labs.slopes import assert_are_slopes

TABLE, ORDER, PLAN = "table", "one_forward_one_backward", "plan"
GPIPE = """
stage 0:  F0  F1  F2  F3  ..  ..  ..  ..  B3  B2  B1  B0
stage 1:  ..  F0  F1  F2  F3  ..  ..  B3  B2  B1  B0  ..
stage 2:  ..  ..  F0  F1  F2  F3  B3  B2  B1  B0  ..  ..
"""
IN_TURN = """
stage 0 | F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3
stage 1 | .  F0 F1 .  B0 F2 B1 F3 B2 .  B3
stage 2 | .  .  F0 B0 F1 B1 F2 B2 F3 B3
"""
ALL = "F0 F1 F2 F3 B0 B1 B2 B3"
test_a_wrong_table_gets_its_hint = wrong_answers(
    LAB,
    (TABLE, "\n".join([ALL] * 3), 0, "Stage 1 and stage 0 do F0 in the same slot, 0"),
    (TABLE, GPIPE.replace("F0  F1  F2  F3  B3", "B3  F0  F1  F2  F3"), 0, "Stage 2 does B3 before F3"),
)


def by_counting(stage, stages, micro_batches):
    order, forward, backward = [], 0, 0
    while backward < micro_batches:
        if forward < micro_batches and forward - backward < stages - stage:
            order.append(f"F{forward}")
            forward += 1
        else:
            order.append(f"b {backward}")
            backward += 1
    return tuple(order)


def by_examples(stages, batch, fits, fixed, each):
    best = None
    for examples in range(1, batch + 1):
        count, rest = divmod(batch, examples)
        if rest or examples * min(stages, count) > fits:
            continue
        of_one = fixed + examples * each
        seconds = (count + stages - 1) * of_one
        if best is None or seconds < best["seconds"]:
            bubble = np.float64(1 - count * of_one / seconds)
            best = {"seconds": seconds, "bubble": bubble, "micro-batches": np.int64(count)}
    return best


async def rank_0_brings_the_bias(rank, layer):
    inputs, rows, bias = layer
    return await ring_all_reduce(rank, inputs @ rows + (bias if rank.index == 0 else 0.0))


async def in_one_message(rank, network):
    inputs, columns, first_bias, rows, second_bias, by_outputs = network
    hidden = inputs @ columns + first_bias
    part = np.where(hidden >= 0, hidden, 0) @ rows
    by_inputs = np.where(hidden >= 0, by_outputs @ rows.T, 0) @ columns.T
    both = await ring_all_reduce(rank, np.hstack([part, by_inputs]))
    return [both[:, : part.shape[1]] + second_bias, both[:, part.shape[1] :]]


test_another_right_answer_gets_full_marks = right_answers(
    LAB,
    (TABLE, IN_TURN),
    (ORDER, by_counting),
    (PLAN, by_examples),
    ("by_rows", rank_0_brings_the_bias),
    ("two_layers", in_one_message),
)


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_a_run_takes_the_time_of_the_course_s_own(name):
    for case in ((4, 6), (3, 2), (1, 4), (6, 9)):
        timing, waiting = schedules.carried_out(pipelines.orders(name, *case), {FORWARD: 1.0, BACKWARD: 2.0})
        assert timing == pipelines.simulate(name, *case) and not waiting
    for stage, expected in enumerate(pipelines.orders("1f1b", 4, 6)):
        assert [schedules.pass_of(text) for text in schedules.one_forward_one_backward(stage, 4, 6)] == expected


def test_the_gradient_is_the_slope_of_the_loss():
    [own] = drawn_layers("two_layers", np.random.default_rng(3), (1, 2, 3, 5, 2)).own
    [(_, gradient)] = World(1).run(judge.two_layers, [own]).results

    def loss(moved):
        [(outputs, _)] = World(1).run(judge.two_layers, [(*moved, *own[1:])]).results
        return np.sum(outputs * own[-1])

    assert_are_slopes([gradient], loss, own[:1])


def test_the_picture_marks_where_a_schedule_is_wrong():
    late = {TABLE: GPIPE.replace("..  B3", "..  ..  B3")}
    full = {ORDER: lambda stage, stages, count: [f"{kind}{number}" for kind in "FB" for number in range(count)]}
    assert verdict_on(LAB, TABLE, late).picture().description.endswith("Wrong: stage 1 at 7.")
    assert verdict_on(LAB, ORDER, full).picture().description.endswith("Wrong: stage 0 at 4.")
