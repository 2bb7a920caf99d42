"""In grading, where the answer lives in sandboxes, the known-wrong answers get the points and hints of the notebook."""

import inspect
import re
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from lab_06 import judge as lab_06
from lab_06 import test_judge as answers_06
from lab_07 import judge as lab_07

from course_tools.sandbox import PLAIN, SandboxedWork, Server
from distlab.labs import WRONG, OwnAnswer
from tests.course_tools.grading.forgeries import LEAVES_ITS_COPY, SAVES_EVERYWHERE
from tests.distlab.labs.known_wrong import WrongAnswer

pytestmark = pytest.mark.slow

SECONDS = 300.0
GIVEN = """
import contextlib, json, shutil, tempfile
from pathlib import Path

import numpy as np

from distlab import collectives

HEARD = {}
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """What sandboxes are forked from; it has loaded what the answers need."""
    with Server(["numpy", "lab_06.judge", "lab_07.judge"]) as server:
        yield server


def known_wrong(module: ModuleType) -> list:
    """The wrong answers that are functions of a module, so that they have a text of their own."""
    return [
        pytest.param(exercise, wrong, id=f"{exercise}-{wrong.title}")
        for exercise, wrong in module.ANSWERS.all_wrong()
        if hasattr(module, wrong.title)
    ]


def cell(module: ModuleType, exercise: str, wrong: WrongAnswer) -> str:
    """A cell with the answer under its exercise's name, and the functions of the module that it calls."""
    function = wrong.namespace[exercise]
    helpers = [
        getattr(module, name) for name in function.__code__.co_names if inspect.isfunction(vars(module).get(name))
    ]
    texts = [re.sub(r"rank: Rank(.*?) -> tuple\[int, int\]", r"rank\1", undecorated(helper)) for helper in helpers]
    return "\n".join([*texts, undecorated(function).replace(f"def {wrong.title}(", f"def {exercise}(")])


def undecorated(function: Callable) -> str:
    return re.sub(r"^@.*?(?=^(async )?def )", "", inspect.getsource(function), flags=re.DOTALL | re.MULTILINE)


def assert_same_verdict(server: Server, module: ModuleType, lab: object, exercise: str, wrong: WrongAnswer) -> None:
    with SandboxedWork(server, PLAIN) as work:
        for number, text in enumerate((GIVEN, cell(module, exercise, wrong))):
            assert work.run_cell(text, str(number), SECONDS).error is None
        verdict = lab[exercise].verdict(work.answer(SECONDS), seed=12345)
    assert (verdict.state, verdict.share, verdict.fault) == (WRONG, wrong.share, None), verdict
    assert not wrong.hints or verdict.hints == wrong.hints, verdict
    for words in wrong.words:
        assert words in verdict.text, verdict


COLLECTIVES = [
    answers_06.receives_from_the_right,
    answers_06.adds_another_length,
    answers_06.directly,
    answers_06.changes_its_array,
    answers_06.to_everybody,
    answers_06.on_an_open_ring,
]


def collective_cell(program: Callable) -> str:
    """A cell with an all-reduce."""
    text = re.sub(r"def (?!neighbours)\w+", "def ring_all_reduce", inspect.getsource(program))
    return f"{inspect.getsource(answers_06.neighbours)}\n{text}"


@pytest.mark.parametrize("program", COLLECTIVES)
def test_collectives(server: Server, program: Callable) -> None:
    cells = GIVEN, collective_cell(program)
    namespace: dict[str, object] = {}
    for text in cells:
        exec(text, namespace)
    with SandboxedWork(server, PLAIN) as work:
        for number, text in enumerate(cells):
            assert work.run_cell(text, str(number), SECONDS).error is None
        verdict = lab_06.LAB["ring_all_reduce"].verdict(work.answer(SECONDS), seed=12345)
    in_one_process = lab_06.LAB["ring_all_reduce"].verdict(OwnAnswer(namespace), seed=12345)
    assert (verdict.state, verdict.share, verdict.text) == (WRONG, in_one_process.share, in_one_process.text)
    assert verdict.picture is not None and "<svg" in verdict.picture().svg


def test_ranks_share_no_memory(server: Server) -> None:
    with SandboxedWork(server, PLAIN) as work:
        for number, text in enumerate((GIVEN, collective_cell(answers_06.talks_past_the_cluster))):
            assert work.run_cell(text, str(number), SECONDS).error is None
        verdict = lab_06.LAB["ring_all_reduce"].verdict(work.answer(SECONDS), seed=12345)
    assert (verdict.state, verdict.share, verdict.fault) == (WRONG, 0.0, None), verdict
    assert "KeyError: 1" in verdict.text, verdict  # what rank 1 has put there is nowhere else


WRONG_07 = {
    "tf_config": ["def tf_config(cluster, task_type, index): return {'cluster': cluster}"],
    "is_chief": ["def is_chief(cluster, task_type, index): return index == 0"],
    "save": [SAVES_EVERYWHERE, LEAVES_ITS_COPY],
}


@pytest.mark.parametrize(("exercise", "text"), [(name, text) for name, texts in WRONG_07.items() for text in texts])
def test_configurations_and_saving(server: Server, exercise: str, text: str) -> None:
    namespace: dict[str, object] = {}
    exec(GIVEN + text, namespace)
    with SandboxedWork(server, PLAIN) as work:
        assert work.run_cell(GIVEN + text, "1", SECONDS).error is None
        verdict = lab_07.LAB[exercise].verdict(work.answer(SECONDS), seed=12345)
    assert verdict == lab_07.LAB[exercise].verdict(OwnAnswer(namespace), seed=12345) and verdict.state == WRONG
