"""Whether uv takes `.venv` for what it is, and not for the Python that it was made from.

uv writes down what it finds out about an interpreter, by its path. If it looked while an environment was being removed
by hand, `pyvenv.cfg` first, it would install into the user's own Python ever after, also when there is a new
environment in that place.

This module imports the standard library only: nothing is installed yet.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping

from course_tools.setup.failed_installation import cache_of_uv
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade


def check(environment: Environment, variables: Mapping[str, str]) -> None:
    """Have uv look again where it takes the environment for another Python. Raises EnvironmentNotMade if it still does.

    `variables` are those that uv is started with.
    """
    cache = cache_of_uv()
    if not _installs_into(environment, variables) and cache:
        for notes in cache.glob("interpreter-*"):
            shutil.rmtree(notes, ignore_errors=True)
    if not _installs_into(environment, variables):
        raise EnvironmentNotMade(
            f"uv takes {environment.python} for another Python: remove {cache}, then run `make setup` again."
        )


def _installs_into(environment: Environment, variables: Mapping[str, str]) -> bool:
    """By where uv finds itself: it has been installed into the environment before."""
    command = [str(environment.folder / "bin" / "uv"), "pip", "show", "--python", str(environment.python), "uv"]
    of_uv = subprocess.run(command, capture_output=True, text=True, errors="replace", env=dict(variables))
    return f"Location: {environment.folder}{os.sep}" in of_uv.stdout
