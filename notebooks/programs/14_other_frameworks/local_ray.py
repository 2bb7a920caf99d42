"""A Ray for one program: the cluster at an address, or one of its own on this machine."""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distlab.runtime import processes

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
import ray


@contextmanager
def running_ray(workers: int, address: str | None = None) -> Iterator[Path]:
    """Ray, with a core for each worker, and a folder for what they write.

    Without an `address`, HOST:PORT, Ray is started on this machine; afterwards, whatever
    happens, its processes and its files are gone.
    """
    # The path of a socket has about a hundred characters, and Ray's lie deep.
    place, mark = os.environ.get("RAY_TMPDIR", "/tmp"), processes.new_mark()
    with (
        tempfile.TemporaryDirectory(prefix="ray-", dir=place) as folder,
        processes.guarded(mark, folder),
        processes.marked(mark),
    ):
        how = {"address": address} if address else _own(workers, folder)
        try:
            ray.init(logging_level="ERROR", log_to_driver=False, **how)
            yield Path(folder)
        finally:
            ray.shutdown()


def _own(workers: int, folder: str) -> dict:
    """Arguments for a Ray of our own, which leaves nothing in the home folder."""
    # Without it nobody gets at Ray's daemons, which listen to the network.
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    # Cloud machines may be announced to end soon: here one process more to start.
    os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
    own = {"num_cpus": workers, "object_store_memory": 2**27, "include_dashboard": False}
    return own | {"_temp_dir": folder}
