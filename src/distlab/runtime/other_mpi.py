"""Another MPI than this environment's that a shell leads programs to, as modules of a site do."""

import os
import sys
from pathlib import Path

from distlab.runtime.environment import site_mpi_folder

_LIBRARIES = ("libmpi.so.*", "libopen-pal.so.*", "libopen-rte.so.*")


def other_mpi() -> Path | None:
    """The folder of LD_LIBRARY_PATH whose libraries are loaded instead of those of the packaged MPI, or None.

    A Horovod that was built with the site's MPI uses those on purpose.
    """
    own = Path(sys.prefix) / "lib"
    names = [file.name for pattern in _LIBRARIES for file in own.glob(pattern)]
    if site_mpi_folder().is_dir():
        return None
    for folder in map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))):
        if any((folder / name).exists() for name in names):
            return None if folder.resolve() == own.resolve() else folder
    return None


def other_mpi_fix() -> str | None:
    """What to do about it, without a full stop; None where there is no other MPI."""
    folder = other_mpi()
    if folder is None:
        return None
    return (
        f"LD_LIBRARY_PATH leads to another MPI, in {folder}: run `unset LD_LIBRARY_PATH`, or unload the module that "
        "sets it"
    )
