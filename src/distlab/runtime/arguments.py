"""Checks of what a cell hands to a function, where a wrong argument would give a wrong result without an error."""

import math
import operator

from distlab.runtime.errors import PlainError


class WrongArgument(PlainError, TypeError, ValueError):
    """What was handed to a function of the course cannot be meant; the message says what it is and what is needed."""


def require_number(name: str, value: object, above: float = -math.inf, least: float = -math.inf) -> None:
    """Raise WrongArgument unless `value`, or each number of an array, is finite, above `above` and at least `least`."""
    for number in getattr(value, "flat", [value]):
        try:
            real = math.nan if isinstance(number, str) else float(number)
        except (TypeError, ValueError):
            real = math.nan
        if not (above < real < math.inf and real >= least):
            bound = f" above {above:g}" if above > -math.inf else f" of {least:g} or more" if least > -math.inf else ""
            raise wrong(name, number, f"a number{bound}")


def require_whole(name: str, value: object, least: int = 0) -> None:
    """Raise WrongArgument unless `value` is a whole number, `least` or more: 8 / 2 is 4.0, which is none."""
    try:
        is_enough = operator.index(value) >= least  # type: ignore[arg-type]
    except TypeError:
        is_enough = False
    if not is_enough:
        raise wrong(name, value, f"a whole number of {least} or more")


def require_kind(name: str, value: object, kind: type | tuple[type, ...], needed: str) -> None:
    """Raise WrongArgument unless `value` is of that class, or one of them; `needed` says in words what that is."""
    if not isinstance(value, kind):
        raise wrong(name, value, needed)


def wrong(name: str, value: object, needed: str) -> WrongArgument:
    """The error for an argument that is not what is needed."""
    shown = repr(value) if isinstance(value, str | int | float | None) else f"of the type {type(value).__name__}"
    return WrongArgument(f"{name} is {shown}; give {needed}.")
