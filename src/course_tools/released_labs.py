"""The labs that were handed out before make room for new ones all at once, never for a part of them.

A lab that somebody has changed since is kept under another name: a record of digests tells what each release wrote.
"""

import hashlib
import json
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from distlab.runtime.unused_names import unused

RECORD = ".released.json"
_WAIT = (signal.SIGINT, signal.SIGTERM)
# What programs add when somebody only looks into a folder.
_OF_PROGRAMS = {".ipynb_checkpoints", "__pycache__", ".DS_Store"}


@contextmanager
def replacing(
    folder: Path, parts: Sequence[str], labs: Sequence[str], on_kept: Callable[[Path], object] = lambda kept: None
) -> Iterator[Path]:
    """A new folder to write `PART/LAB` to; at the end of the block they are in `folder`, instead of all of these labs.

    What else stands in the parts stays. When the block fails or is interrupted, `folder` is as it was before.

    Labs that are not as the last release wrote them are kept as `folder`/changed-TIME/PART/LAB, outside the parts;
    `on_kept` gets the folder changed-TIME.
    """
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=folder))
    try:
        new, old = unfinished / "new", unfinished / "old"
        for place in (new, old):
            for part in parts:
                (place / part).mkdir(parents=True)
        yield new
        places = [f"{part}/{lab}" for part in parts for lab in labs]
        (new / RECORD).write_text(json.dumps(_digests(new, places), indent=1) + "\n")
        released, there = _recorded(folder / RECORD), _digests(folder, places)
        changed = [place for place, digest in there.items() if released.get(place) != digest]
        kept = unused(folder / f"changed-{time.strftime('%Y-%m-%d-%H%M%S')}")
        for part in parts:
            (folder / part).mkdir(parents=True, exist_ok=True)
        with _undisturbed():
            for name in changed:
                (kept / name).parent.mkdir(parents=True, exist_ok=True)
            for part in parts:
                for lab in labs:
                    if os.path.lexists(folder / part / lab):
                        away = kept if f"{part}/{lab}" in changed else old
                        (folder / part / lab).rename(away / part / lab)
                    if (new / part / lab).exists():
                        (new / part / lab).rename(folder / part / lab)
            (new / RECORD).rename(folder / RECORD)
        if changed:
            on_kept(kept)
    finally:
        with _undisturbed():
            shutil.rmtree(unfinished, ignore_errors=True)


def _digests(folder: Path, places: Sequence[str]) -> dict[str, str]:
    """The digest of each of these places that is there, of the names and contents of its files."""
    return {place: _digest(folder / place) for place in places if os.path.lexists(folder / place)}


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for entry in sorted(folder.rglob("*")):
        name = entry.relative_to(folder)
        if _OF_PROGRAMS.isdisjoint(name.parts):
            content = entry.read_bytes() if entry.is_file() else b""
            digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _recorded(record: Path) -> dict[str, str]:
    """What the last release has recorded; where that cannot be read, no lab is known to be as it was released."""
    try:
        return dict(json.loads(record.read_text()))
    except (OSError, ValueError, TypeError):
        return {}


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
