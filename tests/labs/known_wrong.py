"""Answers to exercises: solutions, right ones of another make, wrong ones with their hints, untouched ones.

`test_planted_answers` holds every lab to its answers.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from distlab.course import lab_sources, notebooks
from distlab.labs import NOT_DONE, RIGHT, WRONG, Lab, OwnAnswer, Verdict

LABS = Path(__file__).parents[2] / "labs"


class Wrong(NamedTuple):
    """A wrong answer: its names and values, words that the hint must hold, the share of the points that it earns."""

    title: str
    namespace: Mapping[str, Any]
    hint: tuple[str, ...]
    share: float


def _untouched(*arguments: object) -> object: ...


class Planted:
    """The planted answers of one lab, by exercise."""

    def __init__(self) -> None:
        self.solutions: dict[str, object] = {}
        self.untouched: dict[str, object] = {}
        self.wrong_answers: dict[str, list[Wrong]] = defaultdict(list)
        self.right_answers: dict[str, list[tuple[str, Mapping[str, Any]]]] = defaultdict(list)

    def wrong(self, exercise: str, *hint: str, share: float = 0.0) -> Callable[[Callable], Callable]:
        """The decorated function is a wrong answer, whose hint holds every text of `hint`."""

        def plant(function: Callable) -> Callable:
            self.wrong_value(exercise, function.__name__, function, *hint, share=share)
            return function

        return plant

    def wrong_value(self, exercise: str, title: str, value: object, *hint: str, share: float = 0.0) -> None:
        """The same for any value."""
        self.wrong_answers[exercise].append(Wrong(title, {exercise: value}, hint, share))

    def right(self, exercise: str) -> Callable[[Callable], Callable]:
        """The decorated function is a right answer."""

        def plant(function: Callable) -> Callable:
            self.right_answers[exercise].append((function.__name__, {exercise: function}))
            return function

        return plant

    def solved(self, exercise: str, solution: object, untouched: object = _untouched) -> None:
        """The solution of an exercise, and what stands in its place in the lab that nobody has touched."""
        self.solutions[exercise], self.untouched[exercise] = solution, untouched

    def all_wrong(self) -> list[tuple[str, Wrong]]:
        """Every wrong answer, with its exercise."""
        return [(exercise, one) for exercise, group in self.wrong_answers.items() for one in group]

    def all_right(self) -> list[tuple[str, str, Mapping[str, Any]]]:
        """Every right answer, the solutions among them: exercise, title, namespace."""
        others = [(name, title, names) for name, group in self.right_answers.items() for title, names in group]
        return [(name, "solution", {name: value}) for name, value in self.solutions.items()] + others


def written_solution(number: str, exercise: str) -> Any:
    """The value under the exercise's name in the lab's own solution; the cell must need no other cell."""
    (source,) = [file for file in notebooks.sources(LABS) if file.stem.startswith(number)]
    cells = dict(lab_sources.answer_cells(lab_sources.solved(lab_sources.convert(source))))
    namespace: dict[str, Any] = {}
    exec(cells[exercise].source, namespace)
    return namespace[exercise]


def verdict_on(lab: Lab, exercise: str, namespace: Mapping[str, Any], seed: int = 0) -> Verdict:
    """What the judge says of names and values."""
    return lab[exercise].verdict(OwnAnswer(namespace), seed)


def assert_wrong(lab: Lab, exercise: str, wrong: Wrong) -> None:
    """The answer is rejected with a hint of all its words, in the check and in grading."""
    for seed in (0, 12345):
        verdict = verdict_on(lab, exercise, wrong.namespace, seed)
        assert verdict.state == WRONG, verdict
        assert verdict.share == wrong.share, verdict
        for words in wrong.hint:
            assert words in verdict.text, verdict


def assert_right(lab: Lab, exercise: str, namespace: Mapping[str, Any]) -> None:
    """The answer gets all points, in the check and in grading."""
    for seed in (0, 12345):
        verdict = verdict_on(lab, exercise, namespace, seed)
        assert verdict.state == RIGHT and verdict.share == 1, verdict


def assert_hints_differ(lab: Lab, planted: Planted, exercise: str) -> None:
    """There are at least five wrong answers and one right one of other make, and no two wrong ones get one hint."""
    group = planted.wrong_answers[exercise]
    assert len(group) >= 5 and planted.right_answers[exercise]
    hints = {wrong.title: verdict_on(lab, exercise, wrong.namespace).text for wrong in group}
    assert len(set(hints.values())) == len(hints), hints


def assert_not_done(lab: Lab, exercise: str, namespace: Mapping[str, Any]) -> None:
    """Nothing has been done yet, and it earns nothing."""
    verdict = verdict_on(lab, exercise, namespace)
    assert verdict.state == NOT_DONE and verdict.share == 0, verdict
