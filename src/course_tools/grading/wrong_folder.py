"""A folder that was given for the submissions and is not theirs."""

from collections.abc import Sequence
from pathlib import Path

from course_tools import lab_sources, working_copy


def other_kind(folder: Path) -> str:
    """What else of the course the folder is, and what to do, to be added to its name; "" for any other folder."""
    if working_copy.is_copy(folder):
        return "is your working copy of the course; `make check LAB=06` checks a lab in it"
    if (folder / "labs" / "nbgrader_config.py").exists():
        return "is the course itself; set SUBMISSIONS to the folder of what was handed in"
    if (folder / lab_sources.SOURCE).is_dir() and (folder / "nbgrader_config.py").exists():
        return f"is nbgrader's course folder; what was handed in is in {folder / 'submitted'}"
    return ""


def hint(folder: Path, labs: Sequence[str]) -> str:
    """Where the submissions are, or how they lie instead, to be added to a sentence; "" if nothing says so.

    They are below where an archive was unpacked into a folder of its own name, and above where one student is named.
    """
    places = [place for place in folder.glob("*/*/*") if place.name in labs and place.is_dir()]
    deeper = sorted({place.parents[1] for place in places if not place.parents[1].name.startswith((".", "_"))})
    if deeper:
        return f"; those of {deeper[0]} do: set SUBMISSIONS={deeper[0]}"
    is_course_s = folder.name == lab_sources.HANDED_OUT or (folder / "nbgrader_config.py").exists()
    if any((folder / lab).is_dir() for lab in labs) and not is_course_s:
        return f"; {folder} looks like the folder of one student: set SUBMISSIONS={folder.absolute().parent}"
    if notebooks := sorted([*folder.glob("[!._]*/[!._]*.ipynb"), *folder.glob("[!._]*.ipynb")]):
        return f"; {notebooks[0].relative_to(folder)!s:.80} is in no folder with a lab's name, such as {labs[0]}"
    return ""
