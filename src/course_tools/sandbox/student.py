"""Inside the jail: runs a student's cells and answers questions about what they made.

Whatever a student's code does to this process, it can only change its own answers; where it replaces what the judges'
functions work with beside it (`watch`), it has none.
"""

import importlib
import json
import os
import resource
import sys
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import coroutine
from typing import Any, cast

from course_tools.sandbox import wire
from course_tools.sandbox.cells import Cells
from distlab.labs.answer import OwnAnswer
from distlab.labs.answer_errors import Raised
from distlab.labs.plain_data import Plain, PlainKey, plain
from distlab.simulate import ProgramError
from distlab.simulate.errors import copy_message, is_of_asyncio, no_operation, not_awaited
from distlab.simulate.rank import NumberedRank

_NO_LIMIT = 10.0**6
OPERATIONS = ("send", "receive", "receive_any", "exchange", "reduce", "compute")
"""What a rank program may ask of its rank."""


def main(options: dict[str, Any]) -> None:
    """Import what cells will need, take the limits, answer questions until there are no more."""
    connection: wire.Wire = Connection(os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.chdir(options["folder"])
    sys.path.insert(0, "")  # as in a notebook: modules next to it
    for module in options["modules"]:
        with suppress(Exception):  # code that needs it will see why it cannot be imported
            importlib.import_module(module)
    for name, most in options["limits"].items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    _answer(connection)


def _answer(connection: wire.Wire) -> None:
    # Everything is looked up before a cell runs, so that replacing it later has no effect.
    send, receive, process, end, own, token = wire.send, wire.receive, os.getpid, os._exit, os.getpid(), ""

    def ask(value: Plain) -> Plain:
        send(connection, {"token": token, "ask": plain(value)})
        return cast(dict[str, Plain], receive(connection))["response"]

    reply_to, changed = Student(ask).reply, watch()
    while True:
        try:
            question = cast(dict[str, Any], receive(connection))  # the grader sends nothing else
        except EOFError:
            end(0)
        token, is_rank = question.pop("token"), question["do"].endswith("_rank")
        reply = reply_to(question)
        if process() != own:  # a copy that the student's code has forked and let run on
            end(0)
        if not is_rank and (names := changed()):  # what a rank does, the grader's virtual cluster sees by itself
            reply = {"error": ["Changed", ", ".join(names), None]}
        send(connection, {"token": token, **reply})


def watch() -> Callable[[], list[str]]:
    """A function that names what has been replaced since this call of what judges' functions work with in here.

    Python cannot keep code from changing its own process. So judges take raw data from here; this finds the easy ways.
    """
    python = ("builtins", "json", "os", "pathlib", "tempfile", "time", "numpy")
    modules = {name: module for name, module in sys.modules.items() if _is_ours(name) or name in python}
    kinds = [value for module in modules.values() for value in vars(module).values() if isinstance(value, type)]
    if keras := getattr(sys.modules.get("tensorflow"), "keras", None):
        kinds += [keras.Sequential, keras.layers.Dense, keras.optimizers.SGD]
    owners: dict[str, Any] = dict(modules)
    for kind in kinds:
        if _is_ours(kind.__module__) or kind.__module__ == "pathlib" or "keras" in kind.__module__:
            owners |= {f"{each.__module__}.{each.__qualname__}": each for each in kind.__mro__[:-1]}
    loaded = sys.modules

    def functions() -> dict[tuple[str, str], tuple[object, object]]:
        return {
            (name, key): (value, getattr(value, "__code__", None))
            for name, owner in owners.items()
            for key, value in vars(owner).items()
            if callable(value) or isinstance(value, (property, staticmethod, classmethod))
        }

    before = functions()

    def changed() -> list[str]:
        found, now = [name for name, module in modules.items() if loaded.get(name) is not module], functions()
        for place, (function, code) in before.items():
            if place not in now or now[place][0] is not function or now[place][1] is not code:
                found.append(".".join(place))
        # A new name may hide a builtin one.
        new = [(name, key) for name, key in now.keys() - before.keys() if _is_ours(name) or name not in modules]
        return [*found, *map(".".join, new)][:3]

    return changed


def _is_ours(module: str) -> bool:
    return module.startswith(("distlab", "course_tools", "lab_"))


class Student(OwnAnswer):
    """The student's namespace and the rank programs that run in it; a question names one of the methods."""

    def __init__(self, ask: Callable[[Plain], Plain]) -> None:
        """Nothing has run; `ask` asks the judge."""
        self._cells = Cells()
        super().__init__(self._cells.namespace, _NO_LIMIT)
        self.run_cell, self._ask = self._cells.run, ask
        self._programs: dict[int, tuple[RemoteRank, Coroutine[Any, Plain, Any]]] = {}

    def reply(self, question: dict[str, Any]) -> dict[PlainKey, Plain]:
        """The answer to one question: {"value": …}, or {"error": [class, text, line of the cell or None]}."""
        ask = getattr(self, question["do"])
        try:
            return {"value": ask(*question["arguments"], **question["keywords"])}
        except Raised as error:
            return {"error": [error.kind, error.message, error.line]}
        except BaseException as error:  # SystemExit and whatever else a student's code may raise
            return {"error": self._cells.described(error)}

    def write(self, files: dict[str, bytes]) -> None:
        """Make the files that lie in the lab's folder."""
        for name, content in files.items():
            Path(name).write_bytes(content)

    def observe(self, module: str, function: str, arguments: list[Plain], asks: bool) -> Plain:
        """See `Answer.inside`; the function by its names, and whether it asks."""
        looks = getattr(importlib.import_module(module), function)
        return self.inside(looks, *arguments, respond=self._ask if asks else None)

    def start_rank(self, name: str, rank: int, size: int, *inputs: Plain) -> Plain:
        """The first operation that the program `name` asks of its rank."""
        remote = RemoteRank(rank, size)
        self._programs[rank] = remote, self.started(name, remote, *inputs)
        return self.resume_rank(rank, None, 0.0)

    def resume_rank(self, rank: int, result: Plain, now: float) -> Plain:
        """The next operation, after the last one returned `result`; ["return", value] at the end."""
        remote, program = self._programs[rank]
        remote.now, remote.pending = now, None
        try:
            operation = program.send(result)
        except StopIteration as end:
            remote.check_nothing_pending()
            return ["return", None if end.value is ... else plain(end.value, f"what the program gives on rank {rank}")]
        except RuntimeError as error:
            if is_of_asyncio(error):
                raise ProgramError(no_operation(rank)) from error
            raise
        if not isinstance(operation, list) or remote.pending is None:
            raise ProgramError(no_operation(rank))
        return operation


@coroutine
def _asked(operation: list[Plain], array: Any) -> Generator[list[Plain], Plain, Any]:
    """What the grader's rank gives for an operation; a sum is written into the `array` to which it adds."""
    result = yield operation
    if operation[0] != "reduce":
        return result
    array[...] = result
    return array


class RemoteRank(NumberedRank):
    """The rank of a program in the jail, a `distlab.simulate.Rank` that asks the grader's for every operation."""

    def __init__(self, index: int, size: int) -> None:
        """Rank `index` of `size`."""
        self.index, self.size, self.now = index, size, 0.0
        self.pending: str | None = None

    def check_nothing_pending(self) -> None:
        """Raise ProgramError for an operation whose `await` was forgotten."""
        if self.pending is not None:
            raise ProgramError(not_awaited(self.index, self.pending))

    def __getattr__(self, operation: str) -> Any:
        if operation not in OPERATIONS:
            raise AttributeError(f"a rank has no {operation!r}", name=operation, obj=self)

        def ask(*arguments: Any) -> Any:
            self.check_nothing_pending()
            sent = list(arguments)
            if operation in ("send", "exchange"):
                sent[1:2] = [copy_message(self.index, array) for array in sent[1:2]]
            self.pending = operation
            sent = [plain(each, f"what rank {self.index} sends") for each in sent]
            return _asked([operation, *sent], arguments[0] if arguments else None)

        return ask

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
