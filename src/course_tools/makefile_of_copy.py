"""The Makefile of a working copy: what is typed there, as in JupyterLab's terminal, goes to the course's own."""

import shlex
from pathlib import Path

NAME = "Makefile"

_HEAD = "# `make lab` writes this file. "
# Variables that were typed go along in MAKEFLAGS.
_TEXT = """\
{head}Whatever target is typed here, the course's own Makefile makes it.
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help
.PHONY: in-course
in-course:
	@cd {course} 2> /dev/null || {{ echo The course is no longer in {course}: run make in its folder.; exit 2; }}; \\
		exec $(MAKE) $(MAKECMDGOALS)
Makefile: ;
%: in-course ; @:
"""


def text(course: Path) -> str:
    """The Makefile that calls the one in the folder `course`."""
    return _TEXT.format(head=_HEAD, course=shlex.quote(str(course.absolute())))


def is_of_another_course(file: Path, course: Path) -> bool:
    """Whether a file is the Makefile of a copy that was made from another folder, as when `work` was copied."""
    if file.name != NAME or not file.is_file():
        return False
    written = file.read_bytes()
    return written.startswith(_HEAD.encode()) and written != text(course).encode()
