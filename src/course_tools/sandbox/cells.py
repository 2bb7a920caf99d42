"""Running the cells of a notebook without Jupyter: IPython's syntax, and the end of what they print."""

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

# Magics that run Python code, and their options.
_RUNNING = r"(?m)^((?:[ \t]*\w+ *= *)?[ \t]*)(?:%%capture.*|%%?time(?:it)?\b(?:[ \t]+-[a-z]\w*(?:[ \t]*\d+)?)*[ \t]*)"


class Cells:
    """Cells run one after the other in one namespace."""

    def __init__(self, kept: int = 4000) -> None:
        """Of what a cell prints the last `kept` characters are told."""
        self._kept = kept
        self.namespace: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
        self.namespace |= {"get_ipython": _Shell, "display": display}
        self._python: Callable[[str], str] = TransformerManager().transform_cell  # type: ignore[no-untyped-call]  # IPython has no types

    def run(self, text: str, name: str) -> Plain:
        """Run a cell; returns {"printed": the last characters, "error": None or [class, message, line]}."""
        printed, error = io.StringIO(), None
        with redirect_stdout(printed), redirect_stderr(printed):
            try:
                self._execute(self._python(re.sub(_RUNNING, r"\1", text)), name)
            except BaseException as raised:
                error = self._described(raised)
        return {"printed": printed.getvalue()[-self._kept :], "error": error}

    def _execute(self, text: str, name: str) -> None:
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
        try:
            message = error.msg if isinstance(error, SyntaxError) else message_of(error)
        except BaseException:  # a class of the student's own
            message = ""
        return [type(error).__name__, str(message)[:2000], line if isinstance(line, int) else None]


async def _awaited(code: CodeType, namespace: dict[str, Any]) -> None:
    await eval(code, namespace)


def display(*things: object, display_id: object = None, **options: object) -> SimpleNamespace | None:
    """Print each thing as the last line of a cell would show it."""
    for thing in things:
        print(thing["text/plain"] if isinstance(thing, dict) and "text/plain" in thing else repr(thing))
    return None if display_id is None else SimpleNamespace(display_id=str(display_id), display=display, update=display)


class _Shell:
    """Replaces IPython's shell: commands and all other magics do nothing."""

    def getoutput(self, command: str) -> list[str]:
        return []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **keywords: None
