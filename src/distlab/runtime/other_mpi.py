"""Another MPI than this environment's that a shell leads programs to, as modules of a site do."""

import os
import sys
from pathlib import Path

from distlab.runtime.environment import site_mpi_folder


def other_mpi_fix() -> str | None:
    """What to do where LD_LIBRARY_PATH leads to another MPI's libraries, without a full stop; else None.

    A Horovod that was built with the site's MPI uses those on purpose.
    """
    own = Path(sys.prefix) / "lib"
    names = [file.name for name in ("libmpi", "libopen-pal", "libopen-rte") for file in own.glob(f"{name}.so.*")]
    for folder in map(Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))):
        if any((folder / name).exists() for name in names):
            if folder.resolve() == own.resolve() or site_mpi_folder().is_dir():
                return None
            return (
                f"LD_LIBRARY_PATH leads to another MPI, in {folder}: run `unset LD_LIBRARY_PATH`, or unload the module "
                "that sets it"
            )
    return None
