"""Looking a name up in what there is; a name that is missing ends in a sentence with the nearest, or with all."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import TypeVar

from distlab.runtime.errors import PlainError

Value = TypeVar("Value")


class NoSuchName(PlainError, ValueError, LookupError):
    """There is nothing of that name; the message lists the names there are."""


def look_up(table: Mapping[str, Value], name: str, kind: str, error: type[NoSuchName] = NoSuchName) -> Value:
    """The entry of `table` called `name`; `kind` says in the singular what the table holds.

    Raises `error` with a sentence such as "There is no schedule 'linear'; there are constant, gradual.", or for
    'gradul' "There is no schedule 'gradul'; did you mean gradual?".
    """
    require_name(table, name, kind, error)
    return table[name]


def require_name(names: Iterable[str], name: str, kind: str, error: type[NoSuchName] = NoSuchName) -> None:
    """Raise `error` unless `name` is one of `names`; the arguments are those of `look_up`."""
    known = list(names)
    if name in known:
        return
    near = [each for each in known if get_close_matches(name, [each, *each.split("_")])]
    is_clear = len(near) in (1, 2, 3)
    said = f"did you mean {' or '.join(near)}?" if is_clear else f"there are {', '.join(known) or 'none'}."
    raise error(f"There is no {kind} {name!r}; {said}")
