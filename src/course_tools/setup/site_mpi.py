"""Which MPI the programs of this environment use: the one of the site, where Horovod was built with it, or its own."""

import shlex
import shutil
from pathlib import Path

from course_tools.setup.site_software import Software, library_of_mpi
from distlab.runtime.environment import SITE_MPI_LIBRARY, site_mpi_folder

PROGRAMS = ("mpirun", "mpiexec", "mpicc", "mpicxx")


def prefer(mpi: Software | None) -> None:
    """Let `mpirun` and its like be those of this MPI, and mpi4py open its library; None: those of the environment.

    `distlab.runtime.environment` reads the folder that is written here. The programs are started by their own paths, by
    which some find their other files; their folder itself may hold another Python.
    """
    folder = site_mpi_folder()
    if not mpi or not mpi.folder:
        shutil.rmtree(folder, ignore_errors=True)
        return
    new = folder.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    (new / "bin").mkdir(parents=True)
    for name in PROGRAMS:
        if (program := Path(mpi.folder) / name).exists():
            script = new / "bin" / name
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(str(program))} "$@"\n')
            script.chmod(0o755)
    if library := library_of_mpi(mpi):
        (new / SITE_MPI_LIBRARY).symlink_to(library)
    shutil.rmtree(folder, ignore_errors=True)
    new.rename(folder)
