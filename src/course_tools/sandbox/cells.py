"""Running the cells of a notebook without Jupyter: IPython's syntax, prints that are kept within bounds."""

import ast
import asyncio
import io
import linecache
import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from inspect import CO_COROUTINE
from types import CodeType, SimpleNamespace
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

from distlab.labs.answer import line_of
from distlab.labs.plain_data import Plain
from distlab.runtime.errors import message_of

_KEPT = 4000
_OPTIONS_OF_MAGIC = re.compile(r"(\s*--?[a-z][\w-]*(\s*\d+)?(?=\s))*")


class PrintedTooMuch(BaseException):
    """Not an Exception, so that a student's `except Exception` does not catch it."""


class Cells:
    """Cells run one after the other in one namespace."""

    def __init__(self, most_printed: int) -> None:
        """A cell that prints more than `most_printed` characters is stopped."""
        self.namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
        self.namespace |= {"get_ipython": lambda: _Shell(self), "display": display}
        self._most_printed = most_printed
        self.transformed: Callable[[str], str] = TransformerManager().transform_cell  # type: ignore[no-untyped-call]  # IPython has no types

    def run(self, text: str, name: str) -> Plain:
        """Run a cell; returns {"printed": the last characters, "error": None or [class, message, line]}."""
        printed = _Printed(self._most_printed)
        error: Plain = None
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                self.execute(self.transformed(text), name)
            except BaseException as raised:
                error = self._described(raised)
        return {"printed": printed.kept, "error": error}

    def execute(self, text: str, name: str) -> None:
        """Run Python text, `await` at its top included."""
        file = f"<cell {name}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        code = compile(text, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if code.co_flags & CO_COROUTINE:
            asyncio.run(_awaited(code, self.namespace))
        else:
            exec(code, self.namespace)

    def _described(self, error: BaseException) -> list[Plain]:
        line = error.lineno if isinstance(error, SyntaxError) else line_of(error.__traceback__, self.namespace)
        if isinstance(error, PrintedTooMuch):
            return ["PrintedTooMuch", f"it printed more than {self._most_printed:,} characters and was stopped", line]
        try:
            message = error.msg if isinstance(error, SyntaxError) else message_of(error)
        except BaseException:  # a class of the student's own
            message = ""
        return [type(error).__name__, str(message)[:2000], line if isinstance(line, int) else None]


async def _awaited(code: CodeType, namespace: dict[str, Any]) -> None:
    await eval(code, namespace)


class _Printed(io.TextIOBase):
    """Keeps the last characters of what is printed; raises when it is too much."""

    encoding = "UTF-8"

    def __init__(self, most: int) -> None:
        self._left, self.kept = most, ""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._left -= len(text)
        self.kept = (self.kept + text)[-_KEPT:]
        if self._left < 0:
            raise PrintedTooMuch
        return len(text)


def display(*things: object, display_id: object = None, **options: object) -> SimpleNamespace | None:
    """Print each thing as the last line of a cell would show it."""
    for thing in things:
        print(thing["text/plain"] if isinstance(thing, dict) and "text/plain" in thing else repr(thing))
    return None if display_id is None else SimpleNamespace(display_id=str(display_id), display=display, update=display)


class _Shell:
    """Replaces IPython's shell: magics that measure time or hide output run their code, all others do nothing."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    def run_line_magic(self, name: str, line: str, *more: object) -> None:
        if name in ("time", "timeit"):
            self._cells.execute(self._cells.transformed(_OPTIONS_OF_MAGIC.sub("", line, 1).strip()), name)

    def run_cell_magic(self, name: str, line: str, body: str) -> None:
        if name == "timeit":  # in its line is what it does not measure
            self.run_line_magic(name, f"{line} ")
        if name in ("time", "timeit", "capture"):
            self._cells.execute(self._cells.transformed(body), name)

    def getoutput(self, command: str) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **keywords: None
