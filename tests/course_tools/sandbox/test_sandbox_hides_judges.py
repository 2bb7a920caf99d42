"""In grading nothing in a student's process says what is right: neither its disk nor what it has imported."""

from pathlib import Path

import pytest

from course_tools.grading import material
from course_tools.sandbox import PLAIN, SandboxedWork, Server
from distlab.labs import registry

SEARCH = """
import gc, importlib, sys
from distlab.labs.registry import JUDGES

def found(words, modules):
    texts = []
    for folder in JUDGES.values():
        texts += [file.read_bytes() for file in folder.parent.rglob("*") if file.is_file()]
    for module in modules:
        try:
            texts.append(repr(vars(importlib.import_module(module))).encode())
        except Exception:
            pass
    of_labs = [module for name, module in list(sys.modules.items()) if name.startswith("lab_")]
    texts += [repr(sorted(vars(module))).encode() for module in of_labs]
    return [word for word in words if any(word.encode() in text for text in texts)]
"""
KEYS = [
    "BEGIN SOLUTION",
    "DOUBTS",
    "judge_diagnosis",
    "def judge_order",
    "def samples_seen",
    "def noise_scale",
    "def planned",
]
OPENED = """
from distlab import labs
causes = list(labs.open("02").given.CAUSES)
target = labs.open("06").target("all_gather")
"""


@pytest.fixture(scope="module")
def work() -> SandboxedWork:
    modules = [name for number in ("02", "06", "10", "12") for name in registry.observers(number)]
    with Server(["numpy", *modules]) as server, SandboxedWork(server, PLAIN) as work:
        yield work


@pytest.mark.slow
def test_the_judges_are_on_no_disk_and_in_no_memory_of_a_student(work: SandboxedWork) -> None:
    if not _is_isolated(work):
        pytest.skip("without namespaces nothing is hidden; the report of grading says so")
    assert work.run_cell(SEARCH, "search", 60.0).error is None
    assert work.answer(60.0).call("found", KEYS, list(registry.MODULES.values())) == []
    # Where the course is not hidden, the same search finds each of them.
    namespace: dict = {}
    exec(SEARCH, namespace)
    assert namespace["found"](KEYS, list(registry.MODULES.values())) == KEYS


@pytest.mark.slow
def test_a_lab_opens_with_what_is_given_and_without_its_judges(work: SandboxedWork) -> None:
    if not _is_isolated(work):
        pytest.skip("without namespaces nothing is hidden; the report of grading says so")
    run = work.run_cell(OPENED, "open", 60.0)
    assert run.error is None, run.error
    assert len(work.answer(30.0).value("causes")) == 9
    assert work.answer(30.0).value("target") == ""


@pytest.mark.slow
def test_a_check_in_a_cell_of_the_student_s_does_nothing_where_judges_are_hidden(work: SandboxedWork) -> None:
    checks = "from distlab import labs\nlab = labs.open('06')\nlab.check('all_gather')\nlab.points('all_gather')\n"
    run = work.run_cell(f"{checks}assert not lab.verdict('all_gather').is_right\nbelow = 6", "checks", 60.0)
    assert run.error is None, run.error
    assert work.answer(30.0).value("below") == 6
    assert not _is_isolated(work) or run.printed == ""


TAKES = """
import importlib, sys
import distlab

def taken(name, function):
    ways = [
        lambda: getattr(importlib.import_module(name), function),
        lambda: getattr(sys.modules[name], function),
        lambda: eval(f"{name}.{function}", {"distlab": distlab}),
        lambda: exec(f"from {name} import {function}"),
        lambda: exec(f"from {name} import *\\n{function}", {}),
    ]
    return [number for number, way in enumerate(ways) if works(way)]

def works(way):
    try:
        way()
    except (ImportError, AttributeError, KeyError, NameError):
        return False
    return True

def sources(words):
    from pathlib import Path
    files = [file for file in Path(distlab.__file__).parent.rglob("*") if file.is_file() and file.suffix != ".csv"]
    return [word for word in words if any(word.encode() in file.read_bytes() for file in files)]
"""
ASKED_FOR = [
    ("06", "distlab.collectives", "ring_all_reduce", "async def ring_all_reduce"),
    ("07", "distlab.cluster_spec", "tf_config", "def tf_config"),
    ("10", "distlab.large_batch", "noise_scale", "def gradual_warm_up"),
    ("11", "distlab.costs", "all_reduce", "def all_reduce_ring("),
    ("12", "distlab.model_parallel", "pipelines", "def orders("),
]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "module", "name", "text"), ASKED_FOR)
def test_what_a_lab_asks_for_can_neither_be_imported_nor_read(
    root: Path, number: str, module: str, name: str, text: str
) -> None:
    lab = material.load(next((root / "labs").glob(f"{number}_*/lab.py")))
    with Server(sorted(lab.modules), hidden=lab.hidden) as server, SandboxedWork(server, PLAIN) as work:
        if not _is_isolated(work):
            pytest.skip("without namespaces nothing is hidden; the report of grading says so")
        assert work.run_cell(TAKES, "takes", 60.0).error is None
        assert work.answer(60.0).call("taken", module, name) == []
        assert work.answer(60.0).call("sources", [text]) == []
        for step in lab.steps:
            if step.kind == material.StepKind.GIVEN:
                assert work.run_cell(step.text, step.name, 60.0).error is None
    namespace: dict = {}
    exec(TAKES, namespace)  # where nothing is hidden, every way works
    assert namespace["taken"](module, name) == [0, 1, 2, 3, 4]
    assert namespace["sources"]([text]) == [text]


def _is_isolated(work: SandboxedWork) -> bool:
    text = f"from pathlib import Path\nsees_tests = Path({__file__!r}).exists()"
    assert work.run_cell(text, "look", 30.0).error is None
    return work.answer(30.0).value("sees_tests") is False
