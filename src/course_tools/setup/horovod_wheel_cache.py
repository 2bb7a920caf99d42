"""The user's cache of Horovod's wheels: one set-up at a time builds one, and it is checked whenever it is used."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from course_tools.setup.virtual_environment import can_write
from distlab.runtime.environment import cache_folder

UNTIL_THEN = "(until then everything that needs Horovod is skipped)"
DIGEST = "wheel.sha256"


class BuildFailed(Exception):
    """Horovod could not be built; the message is one sentence that says why and where the log is."""


def cached_wheel(name: str, build: Callable[[Path], None], again: bool = False) -> Path:
    """The wheel of that name from the cache; `build(folder)` makes it if it is missing (one process at a time).

    A wheel that is not as it was built counts as missing, and so does any with `again`.
    """
    if not again and (wheel := whole_wheel(name)):
        return wheel
    folder = _wheel_folder(name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_name(f"{name}.lock")):
        if again or not (wheel := whole_wheel(name)):
            for killed in folder.parent.glob(f"{name}-building-*"):
                shutil.rmtree(killed, ignore_errors=True)
            scratch = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{name}-building-"))
            try:
                build(scratch)
                wheel = next(scratch.glob("*.whl"), None)
                if not wheel:
                    raise BuildFailed(f"Horovod's build left no wheel; `make horovod` tries again {UNTIL_THEN}.")
                (scratch / DIGEST).write_text(_digest(wheel))
                scratch.chmod(0o755)
                # The entry that it replaces, damaged or not, may hold anything. A build that fails leaves it.
                folder.unlink() if folder.is_file() else shutil.rmtree(folder, ignore_errors=True)
                scratch.rename(folder)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
            wheel = folder / wheel.name
    return wheel


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Hold a lock that other set-ups of this machine may hold for the minutes of a build."""
    lock = FileLock(file)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print("Another set-up is building Horovod: waiting for it.", flush=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def store() -> Path:
    """The course's folder in the user's cache, or the environment where nothing can be written into that."""
    return cache_folder() if can_write(cache_folder()) else Path(sys.prefix)


def whole_wheel(name: str) -> Path | None:
    """The wheel of that name if it is as it was built, in the cache or beside the environment."""
    for folder in (cache_folder() / "wheels" / name, _wheel_folder(name)):
        try:
            wheel = next(folder.glob("*.whl"))
            if (folder / DIGEST).read_text() == _digest(wheel):
                return wheel
        except (OSError, StopIteration, UnicodeDecodeError):
            continue
    return None


def _wheel_folder(name: str) -> Path:
    return store() / "wheels" / name


def _digest(wheel: Path) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest()
