"""What a student's `run` does in processes that are interrupted; works in the process of the student's code.

A process is a new `SmallTraining` in the same folder: nothing but the folder's files goes from one to the next. And
what `numbers_of` gives after a restart, in a process that is really new.
"""

import ast
import inspect
import json
import linecache
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from distlab.labs.answer import is_untouched
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
    by_plan: list[list[dict[str, Any]]] = []
    for plan in plans:
        by_plan.append([])
        with tempfile.TemporaryDirectory() as folder:
            for end, killed_after in plan:
                record = _process(function, Path(folder), data, every, end, killed_after)
                by_plan[-1].append(plain(record))
                if len(record.numbers) == MOST_CALLS:
                    return Runs(undisturbed, by_plan)
    return Runs(undisturbed, by_plan)


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
    record.last = state_of(training)
    record.first = record.first or record.last
    return record


def _checkpoints(folder: Path) -> set[str]:
    return {f"{file.stem} {file.stat().st_mtime_ns}" for file in folder.rglob("*.index")}


# What a new process defines -------------------------------------------------------------------------------------------


def numbers_after_restart(namespace: Mapping[str, Any], arguments: Sequence[Sequence[int]]) -> Plain:
    """What `numbers_of` gives for each of these arguments, in this order, in a new process that runs its cell.

    None if it does not run there.
    """
    cells: dict[str, str] = {}
    given: set[str] = set()
    _collect(namespace, "numbers_of", cells, given)
    call = f"print(json.dumps([[int(number) for number in numbers_of(*each)] for each in {list(arguments)}]))"
    program = "\n".join(["import json", *sorted(given), *cells.values(), call])
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return plain(json.loads(process.stdout.splitlines()[-1])) if process.returncode == 0 and cells else None


def _collect(namespace: Mapping[str, Any], name: str, cells: dict[str, str], given: set[str]) -> None:
    """The cell of a function of the notebook after those of what it uses, or what gives the name its value."""
    value = inspect.unwrap(getattr(namespace.get(name), "python_function", namespace.get(name)))
    if inspect.isfunction(value) and value.__globals__ is namespace:
        file = value.__code__.co_filename
        if file not in cells:
            cells[file] = ""  # it may use itself
            tree = ast.parse("".join(linecache.getlines(file)))
            tree.body = [each for each in tree.body if "lab" not in _names(each)]  # a check would run the cell again
            for used in sorted(_names(tree)):
                _collect(namespace, used, cells, given)
            del cells[file]
            cells[file] = ast.unparse(tree)
    elif inspect.ismodule(value):
        given.add(f"import {value.__name__} as {name}")
    elif inspect.isroutine(value) or inspect.isclass(value):
        given.add(f"from {value.__module__} import {value.__qualname__} as {name}")
    elif name in namespace:
        with suppress(ValueError, SyntaxError):
            given.add(f"{name} = {ast.literal_eval(repr(value))!r}")  # a number or text of another cell


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
