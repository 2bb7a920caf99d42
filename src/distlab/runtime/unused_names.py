"""Names of files and folders that do not exist yet."""

from pathlib import Path


def unused(name: Path) -> Path:
    """That name, with a number behind its stem if it exists, even as a link to nowhere."""
    free, number = name, 1
    while free.exists() or free.is_symlink():
        number += 1
        free = name.with_stem(f"{name.stem}-{number}")
    return free
