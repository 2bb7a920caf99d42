"""The folder of a run's results: it takes its place when the run is over, and an earlier one is kept."""

import errno
import fcntl
import glob
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from distlab.runtime.unused_names import unused

TABLE, FEEDBACK, REPORT = "grades.csv", "feedback", "report.json"
_UNFINISHED = "-unfinished-"


@contextmanager
def replacing(folder: Path, say: Callable[[str], None]) -> Iterator[Path]:
    """A new folder to write to, whose content is in `folder` at the end of the block.

    What is there already is kept: it gets the time of its last change added to its name, and `say` is told. When the
    block fails or is interrupted, the new folder goes, and the earlier one is as before; that of a process that was
    killed goes with the next run. Runs at the same time do not mix; of two, the first to end is kept as an earlier one.

    The new folder is beside `folder` and gets its name. Where `folder` is a link, to a shared drive for example, the
    folder that it leads to stays, with its permissions and all else that it holds: the results of both runs are in it.

    An OSError that says that this disk, or one's share of it, is full names the folder.
    """
    with _named_when_full(folder.resolve() if folder.is_symlink() else folder):
        yield from _replacing(folder, say)


def _replacing(folder: Path, say: Callable[[str], None]) -> Iterator[Path]:
    linked = folder.is_symlink()
    with _unfinished(folder if linked else folder.parent, folder.name) as new:
        try:
            yield new
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        if linked:
            _move_into(new, folder, say)
        else:
            _rename(new, folder, say)


@contextmanager
def _unfinished(parent: Path, name: str) -> Iterator[Path]:
    """A new folder, locked during the block; those that killed runs have left, which nobody has locked, go first."""
    parent.mkdir(parents=True, exist_ok=True)
    with ExitStack() as during_block:
        with _one_at_a_time(parent):  # or another run would remove the new folder before it is locked
            for left in parent.glob(f"{glob.escape(name)}{_UNFINISHED}*"):
                _remove_if_unlocked(left)
            new = parent / f"{name}{_UNFINISHED}{secrets.token_hex(4)}"
            new.mkdir()
            during_block.enter_context(_one_at_a_time(new))
        yield new


def _remove_if_unlocked(folder: Path) -> None:
    with suppress(OSError), _opened(folder) as descriptor:  # it is locked, or the drive knows no locks
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder)


@contextmanager
def _named_when_full(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        if error.filename and not Path(error.filename).resolve().is_relative_to(folder.parent.resolve()):
            raise  # another disk
        raise OSError(error.errno, os.strerror(error.errno), str(folder)) from error


def _rename(new: Path, folder: Path, say: Callable[[str], None]) -> None:
    kept: list[Path] = []
    while True:
        if folder.exists():
            kept.append(folder.rename(_unused(folder, folder)))
        try:
            new.rename(folder)
            break
        except OSError:  # another run has ended in between
            if not folder.exists():
                raise
    for earlier in kept:  # last, since nobody may read it any more
        say(_where_kept(earlier))


def _move_into(new: Path, folder: Path, say: Callable[[str], None]) -> None:
    with _one_at_a_time(folder):
        earlier = [folder / name for name in (TABLE, REPORT, FEEDBACK) if (folder / name).exists()]
        if earlier:
            kept = _unused(folder / folder.name, earlier[0])
            kept.mkdir()
            for entry in earlier:
                entry.rename(kept / entry.name)
        for entry in new.iterdir():
            entry.rename(folder / entry.name)
        new.rmdir()
    if earlier:
        say(_where_kept(kept))


@contextmanager
def _one_at_a_time(folder: Path) -> Iterator[None]:
    """Another process or thread that does the same waits; some network drives know no such lock."""
    with _opened(folder) as descriptor:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _unused(name: Path, results: Path) -> Path:
    """That name with the time at which the results last changed, and with a number if it exists."""
    changed = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(results.stat().st_mtime))
    return unused(name.with_name(f"{name.name}-{changed}"))


def _where_kept(kept: Path) -> str:
    return f"The grades of the run before are kept in {kept}."
