"""An exercise and a lab: what is demanded, and what it is worth."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import AnswerError, NotDone, sentence
from distlab.labs.verdict import WRONG, Verdict, not_done, wrong
from distlab.runtime.lookups import NoSuchName, look_up
from distlab.simulate import SimulationError

_SECONDS, _SECONDS_WITH_TENSORFLOW = 20.0, 60.0


class NoSuchExercise(NoSuchName):
    """The lab has no exercise of that name; the message lists those it has."""


Judge = Callable[[Answer, np.random.Generator], Verdict]


@dataclass(frozen=True)
class Exercise:
    """One exercise of a lab: `name` is the grade_id of the cell for its answer, `judge` says whether that is right."""

    name: str
    points: float
    judge: Judge

    def verdict(self, answer: Answer, seed: int = 0) -> Verdict:
        """What the judge says; a question that has no answer becomes a verdict too.

        With `seed` 0 the inputs are those of the check; grading has a secret one. Whatever else the judge raises is a
        fault of the lab: the verdict has it in `fault`, and no points.
        """
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        try:
            return self.judge(answer, generator)
        except NotDone as reason:
            return not_done(str(reason))
        except (AnswerError, SimulationError) as error:
            return wrong(sentence(error))
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            return Verdict(WRONG, f"The check could not cope with this answer ({fault}).", fault=fault)


@dataclass
class Lab:
    """The exercises of `labs/NN_topic`, in the order of its notebook; `lab["name"]` is one of them.

    tensorflow: the student's cells import TensorFlow, for which grading then prepares a process.
    seconds_per_cell: in grading no cell and no check may run longer.  seconds: nor all together longer than this.
    solved_in: modules of the course that hold what is asked for; in grading they are not there.
    target: `target(name, …)` is a text that says what the answer to an exercise has to reach.
    """

    name: str
    exercises: Sequence[Exercise]
    tensorflow: bool = False
    seconds_per_cell: float = 0.0
    seconds: float = 0.0
    solved_in: Sequence[str] = ()
    target: Callable[..., str] = lambda name, **options: ""

    def __post_init__(self) -> None:
        """The seconds, where they are not said, are those of a lab with or without TensorFlow."""
        self.seconds_per_cell = self.seconds_per_cell or (_SECONDS_WITH_TENSORFLOW if self.tensorflow else _SECONDS)
        self.seconds = self.seconds or 4 * self.seconds_per_cell

    def with_tensorflow(self) -> "Lab":
        """The same lab for a student whose cells import TensorFlow although the lab does not ask for that."""
        seconds = max(self.seconds_per_cell, _SECONDS_WITH_TENSORFLOW)
        return replace(self, tensorflow=True, seconds_per_cell=seconds, seconds=max(self.seconds, 4 * seconds))

    @property
    def number(self) -> str:
        """The two digits of its chapter."""
        return self.name[:2]

    @property
    def points(self) -> float:
        """What all exercises are worth together."""
        return sum(exercise.points for exercise in self)

    def __getitem__(self, name: str) -> Exercise:
        return look_up({exercise.name: exercise for exercise in self}, name, "exercise", NoSuchExercise)

    def __iter__(self) -> Iterator[Exercise]:
        return iter(self.exercises)
