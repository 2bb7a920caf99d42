"""Grading a folder of submissions, and checking one's own lab, from the terminal."""

import os
import secrets
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import NonNegativeInt, PositiveInt
from cyclopts.validators import Number

from course_tools import lab_sources, user_folders, working_copy
from course_tools.grading import deadline, material, run
from course_tools.grading.submissions import find, left_out
from course_tools.sandbox import protections
from distlab import devices
from distlab.runtime import processes

LABS = Path("labs")
GRADES = Path("build/grades")


def check(lab: str, /) -> None:
    """Print what the checks of a lab say of the working copy, or where there is none, of the course's own file.

    Args:
        lab: The number of its chapter: "06".
    """
    processes.end_on_signals()
    copy = user_folders.user_folder(working_copy.NAME) / LABS
    for line in run.check(lab, copy if copy.is_dir() else LABS):
        print(line, flush=True)
    if not copy.is_dir():
        print("This was the course's own file; `make lab` makes your copy of the labs.")


def grade(
    submissions: Path,
    /,
    *,
    only: str | None = None,
    due: str | None = None,
    late_share: Annotated[float | None, Parameter(validator=Number(gte=0, lte=1))] = None,
    seed: NonNegativeInt | None = None,
    at_once: PositiveInt | None = None,
    weak: bool = False,
) -> int:
    """Grade a class; 1 if the instructor has to look at something, 130 after an interrupt.

    Args:
        submissions: The folder with a folder of each student.
        only: Some labs by number: "06" or "02,06".
        due: The deadline, such as '2026-11-20 18:00'; a later notebook gets a note.
        late_share: The share of the points that late work gets, from 0 to 1, with --due; by default 1.
        seed: The seed of an earlier run, from its report.json, to repeat its grades.
        at_once: Notebooks at a time; by default one per core.
        weak: Grade although students' code cannot be isolated completely.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn without a screen
    processes.end_on_signals()
    until = None if due is None else deadline.due_time(due)
    if late_share is not None and due is None:
        raise deadline.NotATime("A share for late work needs the deadline: --due '2026-11-20 18:00'.")
    folder = _results_folder()
    sources = lab_sources.chosen(LABS, only)
    handed_in = find(submissions, [source.parent.name for source in sources], until, bool(only))
    protected, is_weak = protections.strongest(weak)
    print(protected)
    if until is not None:
        print(f"Deadline: {until.isoformat(' ')}")
    labs = {submission.lab for submission in handed_in}
    late_files = [(each.late_file, each.student) for each in handed_in if each.late_file is not None]
    plan = run.GradingPlan(
        handed_in,
        {source.parent.name: material.load(source) for source in sources if source.parent.name in labs},
        folder,
        secrets.randbits(62) if seed is None else seed,
        protected,
        1.0 if late_share is None else late_share,
        at_once or max(1, devices.cores()),
        is_weak,
        left_out(submissions) + deadline.copied(late_files),
        until,
    )
    run.limit_own_memory()
    try:
        result = run.run(plan, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("\nInterrupted; no student's process is running, and no grade was written.")
        return 130
    count = len(result.grades)
    print(f"{count} notebook{'' if count == 1 else 's'} in {result.seconds:.0f} s: {plan.folder / 'grades.csv'}")
    for fault in result.faults:
        print(f"LOOK AT {fault}")
    return 1 if result.faults else 0


def _results_folder() -> Path:
    """`build/grades`, or where the course's folder cannot be written to, one of the user's, which is said.

    A link to a folder that the user may write to, such as a shared drive, counts in any case. Raises NotAFolder.
    """
    if GRADES.is_symlink() and os.access(GRADES, os.W_OK):
        return user_folders.require_folder(GRADES)
    build = user_folders.announced(GRADES.parent.name, "the grades go")
    return user_folders.require_folder(build / GRADES.name)
