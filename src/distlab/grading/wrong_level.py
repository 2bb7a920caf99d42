"""A folder of submissions that is one level too high or too low."""

from collections.abc import Sequence
from pathlib import Path


def hint(folder: Path, labs: Sequence[str]) -> str:
    """Which folder was meant, to be added to a sentence; "" if nothing says so.

    It is below where an archive was unpacked into a folder of its own name, and above where one student is named.
    """
    places = [place for place in folder.glob("*/*/*") if place.name in labs and place.is_dir()]
    deeper = sorted({place.parents[1] for place in places if not place.parents[1].name.startswith((".", "_"))})
    if deeper:
        return f"; those of {deeper[0]} do: set SUBMISSIONS={deeper[0]}"
    if any((folder / lab).is_dir() for lab in labs) and not (folder / "src").is_dir():  # not the course's own labs
        return f"; {folder} looks like the folder of one student: set SUBMISSIONS={folder.absolute().parent}"
    return ""
