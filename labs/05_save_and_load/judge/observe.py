"""What a student's `run` does in processes that are interrupted; works in the process of the student's code.

A process is a new `SmallTraining` in the same folder: nothing but the folder's files goes from one to the next. And
what `numbers_of` gives after a restart.
"""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lab_05.new_process import CannotRunAgain, defined_again

from distlab.labs.answer import is_untouched, with_lists
from distlab.labs.plain_data import Array, Plain, plain

if TYPE_CHECKING:
    from lab_05.small_training import SmallTraining

MOST_CALLS = 30


class Interrupted(BaseException):
    """The process is killed; not an Exception, so that a program which catches every Exception is killed too."""


@dataclass(frozen=True)
class TrainingState:
    """All that the next step of a training depends on."""

    step: int
    weights: Array
    averages: list[Array]
    step_count: int
    learning_rate: float
    generator: Array
    lowest_loss: float


@dataclass(frozen=True)
class ProcessRecord:
    """What a process did.

    numbers: of the images of each step.  steps: `training.step` before each.
    first, last: its state at the first step, or the end, and at the end.
    saves: after how many of its steps a checkpoint appeared, once for each.  checkpoints: how many were in the folder
    after each.  saved_when_killed: whether one appeared after the process was killed.
    """

    numbers: list[list[int]]
    steps: list[int]
    first: Plain
    last: Plain
    saves: list[int]
    checkpoints: list[int]
    saved_when_killed: bool
    too_many_steps: bool


def numbers_after_restart(namespace: Mapping[str, Any], arguments: Sequence[Sequence[int]]) -> Plain:
    """What `numbers_of` gives for each of these arguments, in this order, if its cell has just run in a new process.

    None if this is not known.
    """
    try:
        with defined_again(namespace, "numbers_of") as function:
            return [plain(with_lists(function)(*each)) for each in arguments]
    except CannotRunAgain:
        return None


def state_of(training: "SmallTraining") -> Plain:
    """The fields of its TrainingState."""
    averages = [variable.numpy() for variable in training.optimizer.variables if variable.shape.rank]
    state = TrainingState(
        int(training.step),
        training.weights.numpy(),
        averages,
        int(training.optimizer.iterations),
        float(training.optimizer.learning_rate),
        training.generator.state.numpy(),
        float(training.lowest_loss),
    )
    return plain(asdict(state))


def runs(
    namespace: Mapping[str, Any],
    data: Mapping[str, Any],
    every: int,
    last_step: int,
    plans: Sequence[Sequence[tuple[int, int | None]]],
) -> Plain:
    """The states of an undisturbed run before each step and at its end; for each plan its processes.

    data: images, labels, rows and first weights.  plans: for each process the last step, and after how many steps it
    is killed, if it is.  After a process that does not end there are no more.  None if `run` is not written.
    """
    function = namespace.get("run")
    if function is None or function is ... or is_untouched(function):
        return None
    undisturbed = _undisturbed(data, last_step)
    by_plan = []
    for plan in plans:
        with tempfile.TemporaryDirectory() as folder:
            by_plan.append(_processes(function, Path(folder), data, every, plan))
        if by_plan[-1][-1]["too_many_steps"]:
            break
    return plain({"undisturbed": undisturbed, "processes": by_plan})


def _processes(
    function: Any, folder: Path, data: Mapping[str, Any], every: int, plan: Sequence[tuple[int, int | None]]
) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    for last_step, killed_after in plan:
        records.append(_process(function, folder, data, every, last_step, killed_after))
        if records[-1]["too_many_steps"]:
            break
    return records


def _undisturbed(data: Mapping[str, Any], last_step: int) -> list[Plain]:
    training = _training(data)
    states = [state_of(training)]
    for step in range(last_step):
        training.train_step(training.numbers(step))
        states.append(state_of(training))
    return states


def _training(data: Mapping[str, Any]) -> "SmallTraining":
    from lab_05.small_training import SmallTraining

    training = SmallTraining(data["images"], data["labels"], data["rows"])
    training.weights.assign(data["weights"])
    return training


def _process(
    function: Any, folder: Path, data: Mapping[str, Any], every: int, last_step: int, killed_after: int | None
) -> dict[str, Any]:
    """Call `run` on a new training that is killed when it begins a step after this many; a ProcessRecord's fields."""
    training = _training(data)
    train_step = training.train_step
    numbers: list[list[int]] = []
    steps: list[int] = []
    first: list[Plain] = []
    saves: list[int] = []
    checkpoints: list[int] = []
    names = _checkpoints(folder)

    def look() -> None:
        nonlocal names
        now = _checkpoints(folder)
        for _ in now - names:
            saves.append(len(numbers))
            checkpoints.append(len(now))
        names = now

    def observed(of_step: Any) -> None:
        look()
        if not first:
            first.append(state_of(training))
        if len(numbers) in (killed_after, MOST_CALLS):
            raise Interrupted
        steps.append(int(training.step))
        train_step(of_step)
        numbers.append([int(number) for number in np.ravel(of_step)])

    training.train_step = observed  # type: ignore[method-assign, assignment]
    with suppress(Interrupted):
        function(training, folder, last_step, every)
    before = len(saves)
    look()
    is_killed = len(numbers) == killed_after
    last = state_of(training)
    return asdict(
        ProcessRecord(
            numbers,
            steps,
            first[0] if first else last,
            last,
            saves,
            checkpoints,
            saved_when_killed=is_killed and len(saves) > before,
            too_many_steps=len(numbers) == MOST_CALLS,
        )
    )


def _checkpoints(folder: Path) -> set[str]:
    return {f"{file.stem} {file.stat().st_mtime_ns}" for file in folder.rglob("*.index")}
