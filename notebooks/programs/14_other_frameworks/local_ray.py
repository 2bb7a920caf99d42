"""A Ray for one program: the cluster at an address, or one on this machine that is gone after the program."""

import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distlab import runtime

# Before Ray is imported: it would send statistics of its use.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
try:
    import ray
except ModuleNotFoundError:
    raise SystemExit("Ray is not installed here; `make setup-frameworks`, then use its python.") from None

# Waits until the program that holds its standard input has ended, in whatever way, then ends Ray and removes its files.
# When the program is killed while Ray starts, Ray by itself lives on for a while.
AFTERWARDS = """
import shutil, sys
from distlab import runtime
sys.stdin.read()
runtime.processes.end(sys.argv[1])
shutil.rmtree(sys.argv[2])
"""


@contextmanager
def running_ray(workers: int, address: str | None = None) -> Iterator[Path]:
    """Ray, with a core for each worker, and a folder for what they write.

    Without an `address`, HOST:PORT, Ray is started on this machine; afterwards, whatever happens, its processes and its
    files are gone.
    """
    with _short_folder() as folder:
        how = {"address": address} if address else _own(workers, folder)
        try:
            ray.init(logging_level="ERROR", log_to_driver=False, **how)
            yield Path(folder)
        finally:
            ray.shutdown()


@contextmanager
def _short_folder() -> Iterator[str]:
    """A folder in $RAY_TMPDIR or /tmp: the path of a socket has about a hundred characters, and Ray's lie deep.

    What is started in the block is ended after it, and then the folder is removed.
    """
    folder = tempfile.mkdtemp(prefix="ray-", dir=os.environ.get("RAY_TMPDIR", "/tmp"))
    mark = runtime.processes.new_mark()
    # Without the launcher's mark: it must outlive a job that is ended.
    unmarked = {name: value for name, value in os.environ.items() if name != runtime.processes.MARK}
    command = [sys.executable, "-c", AFTERWARDS, mark, folder]
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, env=unmarked, start_new_session=True)
    os.environ[runtime.processes.MARK] = " ".join(filter(None, [os.environ.get(runtime.processes.MARK), mark]))
    try:
        yield folder
    finally:
        guard.stdin.close()
        guard.wait()


def _own(workers: int, folder: str) -> dict:
    """Arguments for a Ray of our own, which leaves nothing in the home folder."""
    # Without it nobody gets at Ray's daemons, which listen to the network; left to itself Ray keeps it in ~/.ray.
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    # Cloud machines may be announced to end soon; here that would be one process more to start.
    os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
    own = {"num_cpus": workers, "object_store_memory": 2**27, "include_dashboard": False}
    return own | {"_temp_dir": folder}
