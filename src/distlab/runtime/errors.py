"""Errors whose message is all that a user needs."""

import sys
from types import TracebackType


class PlainError(Exception):
    """The message says what is wrong and how to fix it; Jupyter and programs show it alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class WrongArgument(PlainError, TypeError, ValueError):
    """What was handed to a function of the course cannot be meant; the message says what it is and what is needed."""


def show_alone() -> None:
    """From now on, when a PlainError ends this program, its name and message are all that is written.

    Called by the start-up file of the environment, not on import: only whoever starts a program may change its hooks.
    """
    usual = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, PlainError):
            print(*error._render_traceback_(), file=sys.stderr)
        else:
            usual(kind, error, traceback)

    sys.excepthook = show
