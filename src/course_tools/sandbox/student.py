"""Inside the jail: runs a student's cells and answers questions about what they made.

Whatever a student's code does to this process, it can only change its own answers; where it replaces what the judges'
functions work with beside it (`watch`), it has none.
"""

import importlib
import inspect
import io
import os
import re
import resource
import sys
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from multiprocessing.connection import Connection
from pathlib import Path
from types import coroutine
from typing import Any, cast

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from course_tools.sandbox import wire
from distlab.labs.answer import OwnAnswer, line_of
from distlab.labs.answer_errors import Raised
from distlab.labs.plain_data import Plain, plain
from distlab.simulate import Rank
from distlab.simulate.errors import copy_message
from distlab.simulate.rank import NumberedRank

NO_LIMIT = 10.0**6
"""Seconds of an answer whose questions are limited elsewhere."""
OPERATIONS = ("send", "receive", "receive_any", "exchange", "reduce", "compute")
"""What a rank program may ask of its rank."""
# Magics that run Python code, and their options: the code runs, once.
_RUNNING = r"(?m)^((?:[ \t]*\w+ *= *)?[ \t]*)(?:%%capture.*|%%?time(?:it)?\b(?:[ \t]+-[a-z]\w*(?:[ \t]*\d+)?)*[ \t]*)"
_OURS = ("distlab", "course_tools", "lab_")
_WATCHED = ("builtins", "json", "os", "pathlib", "tempfile", "time", "numpy")


def main() -> None:
    """Do what the first message says (see `jail.options`), answer questions until there are no more."""
    connection: wire.Wire = Connection(os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    options = cast(dict[str, Any], wire.receive(connection))
    os.chdir(options["folder"])
    for name, content in options["files"].items():
        Path(name).write_bytes(content)
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
    send, receive, process, end, own = wire.send, wire.receive, os.getpid, os._exit, os.getpid()
    reply_to, changed = Student().reply, watch()
    send(connection, "ready")
    while True:
        try:
            question = cast(dict[str, Any], receive(connection))  # the grader sends nothing else
        except EOFError:
            end(0)
        reply = reply_to(question["do"], question["arguments"], question["named"])
        if process() != own:  # a copy that the student's code has forked and let run on
            end(0)
        # What a rank does, the grader's virtual cluster sees by itself.
        if not question["do"].endswith("_rank") and (names := changed()):
            reply = {"changed": ", ".join(names)}
        send(connection, {"token": question["token"], **reply})


def watch() -> Callable[[], list[str]]:
    """A function that names what has been replaced since this call of what judges' functions work with in here.

    Python cannot keep code from changing its own process. So judges take raw data from here; this finds the easy ways.
    """
    loaded = sys.modules
    modules = {name: module for name, module in loaded.items() if name.startswith(_OURS) or name in _WATCHED}
    kinds = [value for module in modules.values() for value in vars(module).values() if isinstance(value, type)]
    if keras := getattr(loaded.get("tensorflow"), "keras", None):
        kinds += [keras.Sequential, keras.layers.Dense, keras.optimizers.SGD]
    owners: dict[str, Any] = dict(modules)
    for kind in kinds:
        if kind.__module__.startswith((*_OURS, "pathlib")) or "keras" in kind.__module__:
            owners |= {f"{each.__module__}.{each.__qualname__}": each for each in kind.__mro__[:-1]}

    def functions() -> dict[str, list[object]]:
        return {name: [loaded.get(name)] for name in modules} | {
            f"{name}.{key}": [value, getattr(value, "__code__", None)]
            for name, owner in owners.items()
            for key, value in vars(owner).items()
            if callable(value) or isinstance(value, (property, staticmethod, classmethod))
        }

    before = functions()

    def changed() -> list[str]:
        now = functions()
        names = {**before, **now}
        differ = [name for name in names if [*map(id, before.get(name, ()))] != [*map(id, now.get(name, ()))]]
        # A new name may hide a builtin one.
        return [name for name in differ if name in before or name.rpartition(".")[0] not in _WATCHED][:3]

    return changed


class Student(OwnAnswer):
    """The student's namespace, the cells that run in it, and rank programs; a question names one of the methods."""

    def __init__(self) -> None:
        """Nothing has run."""
        own = Config(HistoryManager={"enabled": False}, InteractiveShell={"ast_node_interactivity": "none"})
        InteractiveShell.clear_instance()
        shell = self._shell = cast(Any, InteractiveShell.instance(config=own))
        # Commands, and magics that run no code, do nothing.
        shell.system = shell.run_line_magic = shell.run_cell_magic = lambda *arguments, **keywords: None
        shell.showtraceback = shell.showsyntaxerror = shell.system
        shell.getoutput = lambda command: []
        self.namespace: dict[str, Any] = shell.user_ns
        super().__init__(self.namespace, NO_LIMIT)
        self._programs: dict[int, tuple[RemoteRank, Coroutine[Any, Plain, Any]]] = {}

    def reply(self, do: str, arguments: Sequence[Any], named: dict[str, Any]) -> dict[Any, Plain]:
        """The answer to one question: {"value": …}, or {"error": [class, text, line of the cell or None]}."""
        ask = getattr(self, do)
        try:
            return {"value": ask(*arguments, **named)}
        except BaseException as error:  # SystemExit and whatever else a student's code may raise
            return {"error": self._described(error)}

    def run_cell(self, text: str) -> Plain:
        """Run a cell as IPython does; the end of what it printed, and None or [class, message, line] of its error."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            result = self._shell.run_cell(re.sub(_RUNNING, r"\1", text))
        error = result.error_in_exec if result.error_before_exec is None else result.error_before_exec
        return [printed.getvalue()[-4000:], None if error is None else self._described(error)]

    def observe(self, module: str, function: str, *arguments: Plain) -> Plain:
        """See `Answer.inside`; the function by its names."""
        return self.inside(getattr(importlib.import_module(module), function), *arguments)

    def start_rank(self, index: int, name: str, size: int, *inputs: Plain) -> Plain:
        """Begin the program `name` as rank `index` of `size`; gives what `resume_rank` does."""
        rank = RemoteRank(index, size)
        self._programs[index] = rank, self.started(name, rank, *inputs)
        return self.resume_rank(index, None, 0.0)

    def resume_rank(self, index: int, result: Plain, now: float) -> Plain:
        """Go on with the `result` of what was awaited; gives each [operation, *arguments] that the program then begins.

        It is one unless an `await` was forgotten. The last is ["return", value] at the program's end.
        """
        rank, program = self._programs[index]
        rank.now, rank.begun = now, []
        try:
            program.send(result)
        except StopIteration as end:
            returned = None if end.value is ... else plain(end.value, f"what the program gives on rank {index}")
            rank.begun.append(["return", returned])
        return rank.begun

    def _described(self, error: BaseException) -> list[Plain]:
        """The class, the message, and the line in its cell (None if it is not known) of whatever was raised."""
        if isinstance(error, Raised):
            return [error.kind, error.message, error.line]
        line = error.lineno if isinstance(error, SyntaxError) else line_of(error.__traceback__, self.namespace)
        message = ""
        with suppress(BaseException):  # a class of the student's own
            message = str(error.msg if isinstance(error, SyntaxError) else error)[:2000]
        return [type(error).__name__, message, line if isinstance(line, int) else None]


class RemoteRank(NumberedRank):
    """The rank of a program in the jail, a `distlab.simulate.Rank`: what it begins, the grader's rank does."""

    def __init__(self, index: int, size: int) -> None:
        """Rank `index` of `size`."""
        self.index, self.size, self.now = index, size, 0.0
        self.begun: list[Plain] = []

    def __getattr__(self, operation: str) -> Any:
        if operation not in OPERATIONS:
            raise AttributeError(f"a rank has no {operation!r}", name=operation, obj=self)

        def begin(*arguments: Any, **keywords: Any) -> Any:
            sent = list(inspect.signature(getattr(Rank, operation)).bind(self, *arguments, **keywords).args[1:])
            added_to = sent[0] if operation == "reduce" else None
            if operation in ("send", "exchange"):
                sent[1] = copy_message(self.index, sent[1])
            self.begun.append([operation, *(plain(each, f"what rank {self.index} sends") for each in sent)])
            return _awaited(added_to)

        return begin

    def __repr__(self) -> str:
        return f"<rank {self.index} of {self.size} at {self.now:.9g} s>"


@coroutine
def _awaited(array: Any) -> Generator[None, Plain, Any]:
    """What the grader's rank gives for an operation; a sum is written into the `array` to which it adds."""
    result = yield
    if array is None:
        return result
    array[...] = result
    return array


if __name__ == "__main__":
    main()
