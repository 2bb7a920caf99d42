"""Lab 12: the judge's own numbers against calculations of another make, pictures, and hints out of the sandbox."""

import inspect
import re

import numpy as np
import pytest
from lab_12 import lab, pipeline_plan, pipeline_runs, split_layers
from lab_12.hints import Lab12Hint
from lab_12.split_layer_judges import EVEN, UNEVEN
from lab_12_tests import answers_12
from lab_12_tests.answers_12 import ANSWERS

from course_tools.sandbox import SandboxedWork, Setting
from distlab.collectives import ring_all_reduce
from distlab.labs import WRONG
from distlab.model_parallel import layered_network, pipelines
from distlab.model_parallel.pipelines import Pass
from distlab.simulate import Rank, World
from tests.distlab.labs.known_wrong import WrongAnswer, verdict_on

LAB = lab.LAB


def known_wrong(exercise: str, title: str) -> WrongAnswer:
    return next(wrong for wrong in ANSWERS.wrong_answers[exercise] if wrong.title == title)


def test_the_table_s_target_is_reached_and_no_table_can_beat_it() -> None:
    # Micro-batch 0 reaches the last stage after two slots, there are eight passes to do there, and the last gradient
    # has two stages to go.
    assert LAB.target("table").endswith(f"{2 + 2 * 4 + 2} slots")
    rows = [line.split()[2:] for line in answers_12.TABLE.split("\n")[1:-1]]
    assert [len(row) for row in rows] == [12, 12, 12]


@pytest.mark.parametrize(("stages", "micro_batches"), [(4, 8), (3, 2), (1, 4), (6, 9)])
def test_the_solution_s_order_is_the_course_s(stages: int, micro_batches: int) -> None:
    for stage, expected in enumerate(pipelines.orders("1f1b", stages, micro_batches)):
        order = answers_12.scheduled(stage, stages, micro_batches)
        assert [pipeline_runs.pass_of(text) for text in order] == expected


def test_a_run_takes_the_time_of_the_course_s_own() -> None:
    for name in ("gpipe", "1f1b"):
        done = pipeline_runs.run(pipelines.orders(name, 4, 6))
        assert done.timing == pipelines.simulate(name, 4, 6)
        assert not done.waiting


def test_a_deadlock_names_who_waits_and_is_drawn_until_there() -> None:
    done = pipeline_runs.run([[Pass("forward", 0), Pass("backward", 0)], [Pass("backward", 0), Pass("forward", 0)]])
    assert done.timing.seconds > 0 and not done.waiting  # the last stage can go back at once: `hint_of_passes` sees it
    verdict = verdict_on(LAB, answers_12.ORDER, known_wrong(answers_12.ORDER, "counts_from_the_wrong_end").namespace)
    picture = verdict.picture()
    assert "<svg" in picture.svg
    assert "stage 0: F0; stage 1: F0; stage 2: F0; stage 3: F0." in picture.description


@pytest.mark.parametrize("exercise", ["table", answers_12.ORDER])
def test_the_student_s_own_schedule_is_drawn(exercise: str) -> None:
    picture = verdict_on(LAB, exercise, {exercise: ANSWERS.solutions[exercise]}).picture()
    assert "<svg" in picture.svg and "stage 2: F0" in picture.description


@pytest.mark.parametrize("memory_decides", [True, False])
def test_the_plan_s_pipelines_are_those_promised_and_their_plan_is_the_best(memory_decides: bool) -> None:
    generator = np.random.default_rng(5)
    for _ in range(20):
        stages, batch, fits, fixed, each = job = pipeline_plan.drawn_pipeline(generator, memory_decides)
        times = {
            batch // examples: (batch // examples + stages - 1) * (fixed + examples * each)
            for examples in range(1, batch + 1)
            if batch % examples == 0
        }
        best = min(times, key=times.get)
        fitting = {count: time for count, time in times.items() if min(stages, count) * batch // count <= fits}
        plan = pipeline_plan.planned(*job)
        assert plan["micro-batches"] == min(fitting, key=fitting.get)
        assert plan["seconds"] == pytest.approx(min(fitting.values()))
        assert (plan["micro-batches"] != best) == memory_decides


def test_the_example_of_the_plan_is_what_a_calculation_by_hand_gives() -> None:
    numbers = [line.split()[-1] for line in LAB.target("plan").splitlines()[1:]]
    assert numbers == ["8", "0.088", "0.2727"]  # (8 + 3) · (2 + 6) ms, 3 / 11; with 6: 90 ms, with 12: 90 ms


@pytest.mark.parametrize("sizes", [*EVEN, *UNEVEN])
def test_the_undivided_layers_are_the_course_s(sizes: split_layers.LayerSizes) -> None:
    network = split_layers.drawn(np.random.default_rng(3), sizes)
    first = np.vstack([network.first, network.first_bias])
    second = np.vstack([network.second, network.second_bias])
    hidden = layered_network.forward(first, network.inputs, is_last=False)
    assert np.array_equal(layered_network.forward(second, hidden, is_last=True), network.outputs)
    by_hidden, _ = layered_network.backward(second, hidden, network.outputs, network.by_outputs, is_last=True)
    by_inputs, _ = layered_network.backward(first, network.inputs, hidden, by_hidden, is_last=False)
    assert np.array_equal(by_inputs, network.by_inputs)


@pytest.mark.parametrize("name", split_layers.SPLITS)
def test_the_target_s_bytes_are_those_that_the_solution_sends(name: str) -> None:
    for line in LAB.target(name).splitlines()[2:]:
        ranks, expected = map(int, line.split())
        network = split_layers.drawn(np.random.default_rng(3), split_layers.LayerSizes(ranks, 8, 24, 64, 16))
        inputs = [split_layers.SPLITS[name].own_part(network, units) for units in network.units()]
        assert World(ranks).run(ANSWERS.solutions[name], inputs).bytes_sent_by_rank.max() == expected


def test_no_rank_gets_what_others_must_send() -> None:
    network = split_layers.drawn(np.random.default_rng(3), EVEN[0])
    for split in split_layers.SPLITS.values():
        own_part = split.own_part(network, network.units()[0])
        weights = [array for array in own_part if array.ndim == 2 and array.shape != network.inputs.shape]
        assert all(array.shape not in (network.first.shape, network.second.shape) for array in weights)


@pytest.mark.filterwarnings("ignore:coroutine:RuntimeWarning")
def test_a_forgotten_await_is_named() -> None:
    async def added_to(rank: Rank, layer: tuple) -> np.ndarray:
        inputs, rows, bias = layer
        return ring_all_reduce(rank, inputs @ rows) + bias

    async def returned(rank: Rank, layer: tuple) -> object:
        return ring_all_reduce(rank, layer[0] @ layer[1])

    assert verdict_on(LAB, "by_rows", {"by_rows": added_to}).hints == (Lab12Hint.NOT_AWAITED,)
    assert "coroutine" in verdict_on(LAB, "by_rows", {"by_rows": returned}).text


def test_an_endless_order_is_judged_quickly() -> None:
    verdict = verdict_on(LAB, answers_12.ORDER, {answers_12.ORDER: lambda *arguments: ["F0"] * 50_000})
    assert "does F0 50000 times" in verdict.text


def test_the_plan_s_picture_has_the_time_of_every_number() -> None:
    picture = verdict_on(LAB, "plan", {"plan": pipeline_plan.planned}).picture()
    assert "<svg" in picture.svg and "6: 90, 8: 88, 12: 90" in picture.description


def test_the_lab_needs_no_tensorflow() -> None:
    assert not LAB.tensorflow


GIVEN = "import numpy as np\nfrom distlab.collectives import all_gather, ring_all_reduce\n"
IN_GRADING = [
    ("by_columns", "gathers_the_same_number_of_columns"),
    ("by_columns", "rank_0_computes_alone"),
    ("by_rows", "every_rank_adds_the_bias"),
    ("by_rows", "gathers_and_adds"),
]


@pytest.mark.slow
def test_in_grading_mistakes_get_the_points_and_hints_of_the_notebook() -> None:
    for exercise, title in IN_GRADING:
        text = inspect.getsource(getattr(answers_12, title))
        text = re.sub(r"^@.*?(?=^async def )", "", text, flags=re.DOTALL | re.MULTILINE)
        wrong = known_wrong(exercise, title)
        with SandboxedWork(Setting()) as work:
            for number, cell in enumerate((GIVEN, text.replace(f"def {title}(", f"def {exercise}("))):
                assert work.run_cell(cell, str(number), 30.0).error is None
            verdict = LAB[exercise].verdict(work.answer(30.0), seed=12345)
        assert (verdict.state, verdict.share, verdict.fault) == (WRONG, wrong.share, None), verdict
        assert all(words in verdict.text for words in wrong.words), verdict
        assert not wrong.hints or verdict.hints == wrong.hints, verdict
