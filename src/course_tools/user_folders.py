"""Where the results and the working copy of a user go: into the course's folder, or where it belongs to somebody else,
as in a classroom, into a folder of the user's.
"""

import os
from pathlib import Path


def user_folder(name: str) -> Path:
    """The folder `name` of the course, which is the working folder, or `distlab-NAME` in the user's home.

    It is not made here.
    """
    folder = Path(name)
    is_writable = os.access(folder if folder.exists() else Path.cwd(), os.W_OK)
    return folder if is_writable else Path.home() / f"distlab-{name}"


def announced(name: str, purpose: str) -> Path:
    """The same; where it is not the course's folder, a line says so, with a purpose such as "results go"."""
    folder = user_folder(name)
    if folder != Path(name):
        print(f"This folder cannot be written to: {purpose} to {folder}.", flush=True)
    return folder
