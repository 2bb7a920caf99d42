"""The Makefile of a working copy: what is typed there, as in JupyterLab's terminal, goes to the course's own."""

import shlex
from pathlib import Path

NAME = "Makefile"

# Variables that were typed go along in MAKEFLAGS. Without a level the course's Makefile treats them as typed there.
_TEXT = """\
# `make lab` writes this file. Whatever target is typed here, the course's own Makefile makes it.
.DEFAULT_GOAL := help
.PHONY: in-course
in-course:
	@cd {course} 2> /dev/null || {{ echo The course is no longer in {course}: run make in its folder.; exit 2; }}; \\
		MAKELEVEL= exec $(MAKE) $(MAKECMDGOALS)
Makefile: ;
%: in-course ; @:
"""


def text(course: Path) -> str:
    """The Makefile that calls the one in the folder `course`."""
    return _TEXT.format(course=shlex.quote(str(course.absolute())))
