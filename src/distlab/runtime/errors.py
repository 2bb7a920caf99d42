"""Errors whose message is all that a user needs."""

import sys
from collections import Counter
from pathlib import Path
from types import TracebackType

_MANY_CALLS = 100


class PlainError(Exception):
    """The message says what is wrong and how to fix it; Jupyter and programs show it alone, without a traceback."""

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback."""
        return [f"{type(self).__name__}: {self}"]


class WrongArgument(PlainError, TypeError, ValueError):
    """What was handed to a function of the course cannot be meant; the message says what it is and what is needed."""


def show_alone() -> None:
    """From now on, when a PlainError ends this program, its name and message are all that is written.

    An interrupt of the command `distlab` before it can catch one, while Python loads it, is one word too. Called by the
    start-up file of the environment, not on import: only whoever starts a program may change its hooks.
    """
    usual = sys.excepthook

    def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, PlainError):
            print(*error._render_traceback_(), file=sys.stderr)
        elif isinstance(error, KeyboardInterrupt) and Path(sys.argv[0]).name == "distlab":
            print("\nInterrupted.", file=sys.stderr)
        else:
            usual(kind, error, traceback)

    sys.excepthook = show


def message_of(error: BaseException) -> str:
    """The text of an exception; that of a recursion without end also names the functions that call each other."""
    text = str(error)
    if not isinstance(error, RecursionError):
        return text
    from traceback import walk_tb  # every Python of the environment starts with this module

    calls = Counter(frame.f_code for frame, _ in walk_tb(error.__traceback__))
    names = sorted({code.co_name for code, count in calls.items() if count > _MANY_CALLS})
    if not names:
        return text
    written = " and ".join(f"`{name}`" for name in names)
    return f"{text}: {written} {'calls itself' if len(names) == 1 else 'call each other'} without end"
