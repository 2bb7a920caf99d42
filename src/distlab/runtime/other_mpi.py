"""Another MPI than this environment's that a shell leads programs to, or has settings for, as modules of a site do."""

import os
import sys
from pathlib import Path

from distlab.runtime.environment import site_mpi_folder, variables

_LIBRARIES = ("libmpi.so.*", "libopen-pal.so.*", "libopen-rte.so.*")
_SETTING = "OMPI_MCA_"
_MOST_NAMES = 5


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


def other_settings_fix() -> str | None:
    """The same for settings of Open MPI that are not the course's, in variables of this shell."""
    names = sorted(name for name in os.environ if name.startswith(_SETTING) and name not in variables())
    if not names:
        return None
    if len(names) <= _MOST_NAMES:
        return f"this shell has settings for another MPI: run `unset {' '.join(names)}`"
    some = ", ".join(names[: _MOST_NAMES - 1])
    return (
        f"this shell has settings for another MPI, {some} and {len(names) - _MOST_NAMES + 1} more: run "
        f"`unset ${{!{_SETTING}*}}` in bash"
    )
