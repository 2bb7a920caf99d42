"""Judging one cell of the support table: did the run compute what it had to?"""

import re
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from distlab import checks

LONGEST_ERROR = 130
# What the end of one process makes the others say.
CONSEQUENCES = ("UnavailableError", "AbortedError", "CancelledError", "HorovodInternalError")
_TRACEBACK = "Traceback (most recent call last):\n"
# Addresses, paths and numbers of objects.
_OF_THE_MACHINE = r"(?:\[[0-9a-f:]+\]|\b[\w.-]+):\d{4,5}\b|(?<![\w/])(?:/[\w.+-]+){2,}/?|\b0x[0-9a-f]+|(?<=id=)\d+"


class MeasuredRun(NamedTuple):
    """How a cell's run ended: what it wrote (None if nothing), what each process printed, and whether it ended.

    result: `replicas` that trained, `updates` counted, the loss before and after, the last `weights` as nested lists.
    """

    result: dict[str, Any] | None
    outputs: list[str]
    has_ended: bool = True


class CellVerdict(NamedTuple):
    """A state of the table's cells, and what there is to say about it."""

    state: str
    detail: str


def judge(run: MeasuredRun, replicas: int, updates: int, weights: Sequence[ArrayLike] | None) -> CellVerdict:
    """The verdict on a run that had to train `replicas`, make `updates` updates and reach `weights`.

    Without `weights` (the updates are asynchronous: no other run reaches the same) the loss must have fallen.
    """
    if not run.has_ended:
        return CellVerdict("does not end", "")
    if run.result is None:
        error = first_line_of_error(run.outputs)
        return CellVerdict("no such device" if "provide a TPU" in error else "fails", error)
    result, faults = run.result, []
    if result["replicas"] != replicas:
        faults.append(f"replicas that trained: {result['replicas']}, not {replicas}")
    if result["updates"] != updates:
        fewer = "fewer" if result["updates"] < updates else "more"
        faults.append(f"the optimizer counted {fewer} updates than were made")
    if not result["loss_after"] < result["loss_before"]:
        faults.append("the loss did not fall")
    if weights is not None:
        try:
            difference = checks.largest_difference(result["weights"], weights)
        except ValueError as error:
            faults.append(str(error))
        else:
            if difference > checks.TOLERANCE:
                faults.append(f"weights differ from the serial run's by up to {difference:.1g}")
    return CellVerdict("wrong result" if faults else "works", "; ".join(faults))


def first_line_of_error(outputs: list[str]) -> str:
    """The first line of the exception that ended a run, shortened, without addresses, paths and numbers of objects."""
    errors = list(filter(None, map(_last_exception, outputs)))
    causes = [error for error in errors if not error.startswith(CONSEQUENCES)]
    line = re.sub(_OF_THE_MACHINE, "…", (causes or errors or ["ended without an exception"])[0])
    return textwrap.shorten(line, LONGEST_ERROR, placeholder=" …")


def _last_exception(output: str) -> str | None:
    """Class and first line of the exception whose traceback stands last in the output."""
    _, mark, after = output.rpartition(_TRACEBACK)
    lines = [line.rstrip() for line in after.splitlines()]
    first = next((index for index, line in enumerate(lines) if line and not line.startswith(" ")), None)
    if not mark or first is None:
        return None
    kind, _, message = lines[first].partition(":")
    name = kind.rpartition(".")[2]  # tensorflow.python.framework.errors_impl.UnavailableError
    # Errors in a traced function hold the traceback first and what happened last.
    if message.strip() == "in user code:":
        inner = [line.strip() for line in lines[first + 1 :] if re.match(r" {4}\w[\w.]*: ", line)]
        return inner[-1] if inner else f"{name}:{message}"
    more = len(lines) > first + 1 and lines[first].endswith(("{", "(", "[", ":"))
    return f"{name}:{message}{' …' if more else ''}" if message else name
