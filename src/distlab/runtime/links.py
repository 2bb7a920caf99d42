"""Links that lead nowhere, which the system's own messages call existing files."""

from pathlib import Path


def dangling(path: Path) -> str | None:
    """That `path`, or a folder above it, is a link to what does not exist, without a full stop; None if none is."""
    for place in (path, *path.parents):
        if place.is_symlink() and not place.exists():
            return f"{place} is a link to {place.readlink()}, which does not exist"
    return None
