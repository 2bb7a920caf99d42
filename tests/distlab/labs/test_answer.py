"""A student's answer in the same process: only plain data reaches a judge, and every mishap becomes a verdict."""

import asyncio

import numpy as np
import pytest

from distlab.labs import NOT_DONE, WRONG, Answer, Exercise, OwnAnswer, Raised, Verdict, right
from distlab.simulate import ProgramError, Rank, RankFailedError, World
from tests.distlab.labs import sample_lab

MEAN = sample_lab.lab()["mean"]


def verdict(mean: object, seconds: float = 5.0) -> Verdict:
    return MEAN.verdict(OwnAnswer({"mean": mean}, seconds))


def test_what_has_not_begun_is_not_done_yet() -> None:
    def untouched(values: np.ndarray) -> None:
        """With a docstring, as labs have it."""
        ...

    def raises_not_implemented(values: np.ndarray) -> None:
        raise NotImplementedError

    for mean in (untouched, raises_not_implemented, None, ..., lambda values: None):
        assert verdict(mean).state == NOT_DONE
    missing = MEAN.verdict(OwnAnswer({}))
    assert missing.state == NOT_DONE and "run the cell above" in missing.text


@pytest.mark.parametrize("error, way", [("SystemExit", "import sys; sys.exit('no')"), ("NameError", "return missing")])
def test_an_exception_is_named_with_its_line_in_the_cell(error: str, way: str) -> None:
    namespace = {}
    exec(compile(f"def mean(values):\n    {way}\n\n\nasync def program(rank):\n    {way}\n", "cell", "exec"), namespace)
    found = MEAN.verdict(OwnAnswer(namespace))
    assert found.state == WRONG and f"It raised {error} in line 2 of its cell: n" in found.text
    with pytest.raises((Raised, RankFailedError), match=error):
        OwnAnswer(namespace).run("program", World(2))


def test_a_forgotten_await_is_named() -> None:
    async def program(rank: Rank) -> None:
        rank.compute(1.0)

    def judge(answer: Answer, generator: np.random.Generator) -> Verdict:
        return right(str(answer.run("program", World(1)).results))

    text = Exercise("program", 1, judge).verdict(OwnAnswer({"program": program})).text
    assert "calls rank.compute(…) without awaiting it: write `await rank.compute(…)`" in text


@pytest.mark.slow
def test_a_loop_without_end_is_stopped_although_it_catches_exceptions() -> None:
    def mean(values: np.ndarray) -> float:
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass

    found = verdict(mean, seconds=0.3)
    assert found.state == WRONG
    assert "did not end within 0.3 s" in found.text


def test_the_judge_s_arrays_are_not_the_student_s() -> None:
    mine = np.zeros(3)

    def change(array: np.ndarray) -> np.ndarray:
        array += 1
        return array

    given = OwnAnswer({"change": change}).call("change", mine)
    assert mine.sum() == 0
    assert given.sum() == 3


def test_an_untouched_rank_program_is_not_done_and_a_deadlock_is_said() -> None:
    async def empty(rank: object, array: np.ndarray) -> None: ...

    async def stuck(rank: object, array: np.ndarray) -> None:
        await rank.receive((rank.index + 1) % rank.size)

    def judge(answer: Answer, generator: np.random.Generator) -> Verdict:
        answer.run("program", World(2), [np.zeros(1)] * 2)
        return right()

    exercise = Exercise("program", 1, judge)
    assert exercise.verdict(OwnAnswer({"program": empty})).state == NOT_DONE
    deadlock = exercise.verdict(OwnAnswer({"program": stuck}))
    assert deadlock.state == WRONG
    assert "waited since" in deadlock.text
    assert exercise.verdict(OwnAnswer({"program": asyncio.sleep})).state == WRONG
    with pytest.raises(ProgramError, match="write `async def program"):
        OwnAnswer({"program": lambda rank: 0}).run("program", World(2))
