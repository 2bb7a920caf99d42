"""What a student's `run` does in processes that are interrupted; works in the process of the student's code.

A process is a new `SmallTraining` in the same folder: nothing but the folder's files goes from one to the next. And
what `numbers_of` gives after a restart, for which its cells run again next to everything else as it is: a process of
its own would need the notebook's imports again, and TensorFlow among them.
"""

import ast
import inspect
import io
import linecache
import os
import random
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distlab.labs.answer import is_untouched, with_list
from distlab.labs.plain_data import Array, Plain, plain

if TYPE_CHECKING:
    from lab_05.small_training import SmallTraining

# A run that is interrupted --------------------------------------------------------------------------------------------

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


@dataclass
class ProcessRecord:
    """What a process did.

    numbers: of the images of each step.  steps: `training.step` before each.
    first, last: its state at the first step, or the end, and at the end.
    saves: after how many of its steps a checkpoint appeared, once for each.  checkpoints: how many were in the folder
    after each.  saved_when_killed: whether one appeared after the process was killed.
    """

    numbers: list[list[int]] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    first: Plain = None
    last: Plain = None
    saves: list[int] = field(default_factory=list)
    checkpoints: list[int] = field(default_factory=list)
    saved_when_killed: bool = False
    too_many_steps: bool = False


@dataclass(frozen=True)
class Runs:
    """The states of an undisturbed run before each step and at its end; for each plan its processes."""

    undisturbed: list[Plain]
    processes: list[list[Plain]]


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
    return plain(state)


def runs(
    namespace: Mapping[str, Any],
    data: Mapping[str, Any],
    every: int,
    last_step: int,
    plans: Sequence[Sequence[tuple[int, int | None]]],
) -> Runs | None:
    """What `run` does; None if `run` is not written.

    data: images, labels, rows and first weights.  plans: for each process the last step, and after how many steps it
    is killed, if it is.  After a process that does not end there are no more.
    """
    function = namespace.get("run")
    if function is None or function is ... or is_untouched(function):
        return None
    training = _training(data)
    undisturbed = [state_of(training)]
    for step in range(last_step):
        training.train_step(training.numbers(step))
        undisturbed.append(state_of(training))
    by_plan: list[list[ProcessRecord]] = []
    for plan in plans:
        by_plan.append([])
        with tempfile.TemporaryDirectory() as folder:
            for end, killed_after in plan:
                by_plan[-1].append(_process(function, Path(folder), data, every, end, killed_after))
                if by_plan[-1][-1].too_many_steps:
                    break
        if by_plan[-1][-1].too_many_steps:
            break
    return Runs(undisturbed, [list(map(plain, records)) for records in by_plan])


def _training(data: Mapping[str, Any]) -> "SmallTraining":
    from lab_05.small_training import SmallTraining

    training = SmallTraining(data["images"], data["labels"], data["rows"])
    training.weights.assign(data["weights"])
    return training


def _process(
    function: Any, folder: Path, data: Mapping[str, Any], every: int, last_step: int, killed_after: int | None
) -> ProcessRecord:
    """Call `run` on a new training that is killed when it begins a step after this many."""
    training, record = _training(data), ProcessRecord()
    train_step, known = training.train_step, _checkpoints(folder)

    def look() -> None:
        now = _checkpoints(folder)
        for _ in now - known:
            record.saves.append(len(record.numbers))
            record.checkpoints.append(len(now))
        known.clear()
        known.update(now)

    def observed(of_step: Any) -> None:
        look()
        record.first = record.first or state_of(training)
        if len(record.numbers) in (killed_after, MOST_CALLS):
            raise Interrupted
        record.steps.append(int(training.step))
        train_step(of_step)
        record.numbers.append([int(number) for number in np.ravel(of_step)])

    training.train_step = observed  # type: ignore[method-assign, assignment]
    with suppress(Interrupted):
        function(training, folder, last_step, every)
    before = len(record.saves)
    look()
    record.saved_when_killed = len(record.numbers) == killed_after and len(record.saves) > before
    record.too_many_steps = len(record.numbers) == MOST_CALLS
    record.last = state_of(training)
    record.first = record.first or record.last
    return record


def _checkpoints(folder: Path) -> set[str]:
    return {f"{file.stem} {file.stat().st_mtime_ns}" for file in folder.rglob("*.index")}


# What a new process defines -------------------------------------------------------------------------------------------

_SEED = 90210  # for what the student's program has not seeded


class CannotRunAgain(Exception):
    """The cells are not known, or do not run a second time."""


@contextmanager
def defined_again(namespace: Mapping[str, Any], name: str) -> Iterator[Callable[..., Any]]:
    """The function `name` out of its own cell and those of the functions that it calls, run again.

    In the block, `random` and NumPy's global generator are in another state, `hash` gives other numbers for texts, and
    `os.getpid` another process number.
    What other cells have computed is as it was. Raises CannotRunAgain before the block begins.
    """
    files: list[str] = []
    _collect(namespace, name, files, set())
    states, own_number = (random.getstate(), np.random.get_state()), os.getpid
    random.seed(_SEED)
    np.random.seed(_SEED)
    other_number = own_number() + 1
    try:
        os.getpid = lambda: other_number
        copy = {name: os.getpid if value is own_number else value for name, value in namespace.items()}
        copy["hash"] = _hash_of_another_process
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            try:
                for file in files:
                    _run(file, copy)
            except (Exception, SystemExit) as error:
                raise CannotRunAgain(f"{type(error).__name__}: {error}") from error
            yield copy[name]
    finally:
        os.getpid = own_number
        random.setstate(states[0])
        np.random.set_state(states[1])


def _collect(namespace: Mapping[str, Any], name: str, files: list[str], seen: set[str]) -> None:
    """Append the cell of a function after those of the functions that it calls."""
    function = inspect.unwrap(getattr(namespace[name], "python_function", namespace[name]))
    if name in seen or not inspect.isfunction(function) or function.__globals__ is not namespace:
        if not seen:
            raise CannotRunAgain(f"{name} is not a function of the notebook")
        return
    seen.add(name)
    for used_name in function.__code__.co_names:
        if callable(namespace.get(used_name)):
            _collect(namespace, used_name, files, seen)
    if function.__code__.co_filename not in files:
        files.append(function.__code__.co_filename)


def _run(file: str, namespace: dict[str, Any]) -> None:
    """Run a cell, except the statements that use the lab: a check in it would run the cell again."""
    text = "".join(linecache.getlines(file))
    if not text:
        raise CannotRunAgain(f"the text of {file} is not known")
    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if not _uses(statement, ("lab", "get_ipython"))]
    exec(compile(tree, file, "exec"), namespace)


def _uses(statement: ast.stmt, names: tuple[str, ...]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(statement))


def _hash_of_another_process(value: object) -> int:
    """As `hash`, which depends on the process for texts and bytes, and for tuples of them."""
    if isinstance(value, tuple):
        return hash(tuple(map(_hash_of_another_process, value)))
    return hash((_SEED, value)) if isinstance(value, (str, bytes)) else hash(value)


def numbers_after_restart(namespace: Mapping[str, Any], arguments: Sequence[Sequence[int]]) -> Plain:
    """What `numbers_of` gives for each of these arguments, in this order, if its cell has just run in a new process.

    None if this is not known.
    """
    try:
        with defined_again(namespace, "numbers_of") as function:
            return [plain(with_list(function(*each))) for each in arguments]
    except CannotRunAgain:
        return None
