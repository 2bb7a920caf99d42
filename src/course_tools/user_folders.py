"""Where the results and the working copy of a user go: into the course's folder, or where it belongs to somebody else,
as in a classroom, into a folder of the user's.
"""

import errno
import os
import pwd
import tempfile
from contextlib import suppress
from pathlib import Path

from distlab.runtime.errors import PlainError


class NotAFolder(PlainError, ValueError):
    """A file has the name of a folder that is needed."""


class NotTheUsers(PlainError):
    """The course is the user's, but not all of a folder in it, as after sudo; the message says what gives it back."""


class HomeFull(PlainError):
    """The disk of the user's home is full."""


BYTES_FOR_KERNELS = 100_000


def require_home() -> None:
    """Raise HomeFull where a notebook's kernel would die: as it starts, it writes its history into the user's home."""
    try:
        with tempfile.NamedTemporaryFile(prefix=".distlab-", dir=Path.home()) as file:
            file.write(bytes(BYTES_FOR_KERNELS))
            file.flush()
    except OSError as fault:
        if fault.errno in (errno.ENOSPC, errno.EDQUOT):
            raise HomeFull(
                f"The disk of HOME={Path.home()} is full, and the notebooks' kernels keep files there; free some "
                "space, or set HOME to another folder."
            ) from fault
        # A kernel does without a home that cannot be written to.


def folders_of_jupyter() -> dict[str, str]:
    """Variables with which JupyterLab runs where the user's home, or its own folder there, cannot be written to.

    They are none where it can. The latter happens after sudo.

    Their folders, under the one for temporary files, are not made here; where the user has set such a variable, it is
    left out.
    """
    from jupyter_core import paths

    try:
        with tempfile.TemporaryFile(dir=Path.home()):
            pass
        Path(paths.jupyter_runtime_dir()).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=paths.jupyter_runtime_dir()):
            return {}
    except OSError:
        place = Path(tempfile.gettempdir()) / f"distlab-jupyter-{os.getuid()}"
    names = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime"}
    names |= {"IPYTHONDIR": "ipython"}
    return {name: str(place / folder) for name, folder in names.items() if name not in os.environ}


def require_folder(folder: Path) -> Path:
    """The folder, which may not exist yet.

    Raises NotAFolder when a file has its name, or a link to the course's own files.
    """
    course, place = Path.cwd().resolve(), folder.resolve()
    if folder.is_symlink() and (course.is_relative_to(place) or place.is_relative_to(course)):
        raise NotAFolder(f"{folder} is a link to {place}, where the course's own files are; remove the link.")
    if folder.exists() and not folder.is_dir():
        raise NotAFolder(f"{folder} is a file, and a folder of that name is needed; move or remove it.")
    return folder


def user_folder(name: str) -> Path:
    """The folder `name` of the course, which is the working folder, or `distlab-NAME` in the user's home.

    Where the home does not exist or cannot be written to, the folder is in that for temporary files. It is not made
    here. Raises NotAFolder when a file has its name, and NotTheUsers.
    """
    folder = Path(name)
    require_folder(folder)
    _require_own(folder)
    if os.access(folder if folder.exists() else Path.cwd(), os.W_OK):
        return folder
    home = Path.home()
    return (home if os.access(home, os.W_OK) else Path(tempfile.gettempdir())) / f"distlab-{name}"


def _require_own(folder: Path) -> None:
    """Raise NotTheUsers where something in the folder is another user's, and the course's folder is this user's."""
    user, course = os.getuid(), Path()
    if course.stat().st_uid != user or not os.access(course, os.W_OK):
        return
    for place in (folder, *folder.rglob("*")):
        with suppress(OSError):  # what is gone meanwhile
            owner = place.lstat().st_uid
            if owner != user and not place.is_symlink() and not os.access(place, os.W_OK):
                raise NotTheUsers(
                    f"{place} belongs to {_name(owner)}, as after sudo: run `sudo chown -R {_name(user)} {folder}`."
                )


def _name(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return str(user)


def announced(name: str, purpose: str) -> Path:
    """The same; where it is not the course's folder, a line says so, with a purpose such as "results go"."""
    folder = user_folder(name)
    if folder != Path(name):
        print(f"This folder cannot be written to: {purpose} to {folder}.", flush=True)
    return folder
