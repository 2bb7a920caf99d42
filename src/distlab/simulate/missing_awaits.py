"""Coroutines that a program calls and never awaits: they do nothing, and Python only warns of them."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from distlab.simulate.errors import ProgramError, SimulationError

_NEVER_AWAITED = r"coroutine '(.+)' was never awaited"


@contextmanager
def named() -> Iterator[None]:
    """Raise ProgramError at the end of the block if a coroutine in it was never awaited.

    It takes the place of the SimulationError to which this led, such as a deadlock. Other warnings pass.
    """
    failure: SimulationError | None = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.filterwarnings("always", _NEVER_AWAITED, RuntimeWarning)
        try:
            yield
        except SimulationError as error:
            failure = error
    for warning in caught:
        if match := re.fullmatch(_NEVER_AWAITED, str(warning.message).partition("\n")[0]):
            name = match[1].rpartition(".")[2]
            raise ProgramError(f"{name}(…) is called without awaiting it: write `await {name}(…)`") from failure
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    if failure:
        raise failure
