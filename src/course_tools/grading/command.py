"""`distlab check` and `distlab grade`."""

import argparse
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from distlab import valid

if TYPE_CHECKING:
    from argparse import _SubParsersAction

LABS = Path("labs")
GRADES = Path("build/grades")


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands to the parser of `distlab`."""
    check = commands.add_parser("check", help="check the exercises of a lab in your working copy")
    check.add_argument("lab", help='the number of its chapter: "06"')
    check.set_defaults(run=_check)
    grade = commands.add_parser("grade", help="grade SUBMISSIONS/STUDENT/NN_topic/lab.ipynb; writes build/grades")
    grade.add_argument("submissions", type=Path)
    grade.add_argument("--only", help='some labs by number: "06" or "02,06"')
    grade.add_argument("--due", help="the deadline, such as '2026-11-20 18:00'; a later notebook gets a note")
    grade.add_argument(
        "--late-share",
        type=_share,
        help="the share of the points that late work gets, from 0 to 1, with --due (default: 1)",
    )
    grade.add_argument(
        "--seed", type=_whole, help="the seed of an earlier run, from its report.json, to repeat its grades"
    )
    grade.add_argument("--at-once", type=valid.count, help="notebooks at a time; by default one per core")
    grade.add_argument(
        "--weak", action="store_true", help="grade although students' code cannot be isolated completely"
    )
    grade.set_defaults(run=_grade)


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (share := float(text)) <= 1:
            return share
    raise argparse.ArgumentTypeError(f"{text} is no share from 0 to 1, such as 0.5")


def _whole(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is no whole number from 0 on")
    return int(text)


def _check(options: argparse.Namespace) -> int:
    from course_tools import user_folders, working_copy
    from course_tools.grading import run
    from distlab.runtime import processes

    processes.end_on_signals()
    copy = user_folders.user_folder(working_copy.NAME) / LABS
    for line in run.check(options.lab, copy if copy.is_dir() else LABS):
        print(line, flush=True)
    if not copy.is_dir():
        print("This was the course's own file; `make lab` makes your copy of the labs.")
    return 0


def _results_folder() -> Path:
    """`build/grades`, or where the course's folder cannot be written to, one of the user's, which is said.

    A link to a folder that the user may write to, such as a shared drive, counts in any case. Raises NotAFolder.
    """
    from course_tools import user_folders

    if GRADES.is_symlink() and os.access(GRADES, os.W_OK):
        return user_folders.require_folder(GRADES)
    build = user_folders.announced(GRADES.parent.name, "the grades go")
    return user_folders.require_folder(build / GRADES.name)


def _grade(options: argparse.Namespace) -> int:
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn without a screen
    from course_tools import lab_sources
    from course_tools.grading import deadline, material, run, submissions
    from course_tools.sandbox import protections
    from distlab import devices
    from distlab.runtime import processes

    processes.end_on_signals()
    due = None if options.due is None else deadline.due_time(options.due)
    if options.late_share is not None and due is None:
        raise deadline.NotATime("A share for late work needs the deadline: DUE='2026-11-20 18:00'.")
    folder = _results_folder()
    sources = lab_sources.chosen(LABS, options.only)
    handed_in = submissions.find(
        options.submissions, [source.parent.name for source in sources], due, bool(options.only)
    )
    protected, weak = protections.strongest(options.weak)
    print(protected)
    if due is not None:
        print(f"Deadline: {due.isoformat(' ')}")
    labs = {submission.lab for submission in handed_in}
    late_files = [(each.late_file, each.student) for each in handed_in if each.late_file is not None]
    plan = run.GradingPlan(
        handed_in,
        {source.parent.name: material.load(source) for source in sources if source.parent.name in labs},
        folder,
        secrets.randbits(62) if options.seed is None else options.seed,
        protected,
        1.0 if options.late_share is None else options.late_share,
        options.at_once or max(1, devices.cores()),
        weak,
        submissions.left_out(options.submissions) + deadline.copied(late_files),
        due,
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
