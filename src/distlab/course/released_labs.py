"""The labs that were handed out before make room for new ones all at once, never for a part of them."""

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_WAIT = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def replacing(folder: Path, parts: Sequence[str], labs: Sequence[str]) -> Iterator[Path]:
    """A new folder to write `PART/LAB` to; at the end of the block they are in `folder`, instead of all of these labs.

    What else stands in the parts stays. When the block fails or is interrupted, `folder` is as it was before.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder))
    try:
        new, old = unfinished / "new", unfinished / "old"
        for place in (new, old):
            for part in parts:
                (place / part).mkdir(parents=True)
        yield new
        for part in parts:
            (folder / part).mkdir(parents=True, exist_ok=True)
        with _undisturbed():
            for part in parts:
                for lab in labs:
                    if os.path.lexists(folder / part / lab):
                        (folder / part / lab).rename(old / part / lab)
                    if (new / part / lab).exists():
                        (new / part / lab).rename(folder / part / lab)
    finally:
        with _undisturbed():
            shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Signals that end a program come after the block, which takes milliseconds.

    They are not blocked, since then another thread, such as one of a library for linear algebra, would receive them.
    """
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, frame: came.append(number)) for number in _WAIT}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in came:
            signal.raise_signal(each)
