"""Where the results and the working copy of a user go: into the course's folder, or where it belongs to somebody else,
as in a classroom, into a folder of the user's.
"""

import os
import tempfile
from pathlib import Path


def user_folder(name: str) -> Path:
    """The folder `name` of the course, which is the working folder, or `distlab-NAME` in the user's home.

    Where the home does not exist or cannot be written to, the folder is in that for temporary files. It is not made
    here.
    """
    folder = Path(name)
    if os.access(folder if folder.exists() else Path.cwd(), os.W_OK):
        return folder
    return (Path.home() if home_is_writable() else Path(tempfile.gettempdir())) / f"distlab-{name}"


def announced(name: str, purpose: str) -> Path:
    """The same; where it is not the course's folder, a line says so, with a purpose such as "results go"."""
    folder = user_folder(name)
    if folder != Path(name):
        print(f"This folder cannot be written to: {purpose} to {folder}.", flush=True)
    return folder


def home_is_writable() -> bool:
    """Whether programs may keep files in the user's home."""
    return os.access(Path.home(), os.W_OK)
