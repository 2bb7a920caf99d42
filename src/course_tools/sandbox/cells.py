"""Running the cells of a notebook as IPython does, without Jupyter, and the end of what they print."""

import io
import re
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import Any, cast

from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from distlab.labs.answer import line_of
from distlab.labs.plain_data import Plain

# Magics that run Python code, and their options: the code runs, once.
_RUNNING = r"(?m)^((?:[ \t]*\w+ *= *)?[ \t]*)(?:%%capture.*|%%?time(?:it)?\b(?:[ \t]+-[a-z]\w*(?:[ \t]*\d+)?)*[ \t]*)"


class Cells:
    """Cells run one after the other in one namespace; commands and other magics do nothing."""

    def __init__(self, kept: int = 4000) -> None:
        """Of what a cell prints the last `kept` characters are told."""
        own = Config(HistoryManager={"enabled": False}, InteractiveShell={"ast_node_interactivity": "none"})
        InteractiveShell.clear_instance()
        shell = self._shell = cast(Any, InteractiveShell.instance(config=own))
        shell.system = shell.run_line_magic = shell.run_cell_magic = _do_nothing
        shell.showtraceback = shell.showsyntaxerror = _do_nothing
        shell.getoutput = lambda command: []
        self.namespace: dict[str, Any] = shell.user_ns
        self._kept = kept

    def run(self, text: str) -> Plain:
        """Run a cell; returns {"printed": the last characters, "error": None or [class, message, line]}."""
        printed = io.StringIO()
        with redirect_stdout(printed), redirect_stderr(printed):
            result = self._shell.run_cell(re.sub(_RUNNING, r"\1", text))
        error = result.error_in_exec if result.error_before_exec is None else result.error_before_exec
        return {"printed": printed.getvalue()[-self._kept :], "error": None if error is None else self.described(error)}

    def described(self, error: BaseException) -> list[Plain]:
        """The class, the message, and the line in its cell (None if it is not known) of whatever a cell has raised."""
        line = error.lineno if isinstance(error, SyntaxError) else line_of(error.__traceback__, self.namespace)
        message = ""
        with suppress(BaseException):  # a class of the student's own
            message = str(error.msg if isinstance(error, SyntaxError) else error)[:2000]
        return [type(error).__name__, message, line if isinstance(line, int) else None]


def _do_nothing(*arguments: object, **keywords: object) -> None:
    pass
