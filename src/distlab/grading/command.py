"""`distlab labs`, `check`, `release` and `grade`: the labs on the command line."""

import argparse
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from distlab.runtime.errors import PlainError

LABS = Path("labs")
BUILD = Path("build")


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Add the subcommands to the parser of `distlab`."""
    labs = commands.add_parser("labs", help="write the labs' notebooks from their text sources")
    labs.set_defaults(run=_plainly(_labs))
    check = commands.add_parser("check", help="check the exercises of labs/NN_topic/lab.ipynb")
    check.add_argument("lab", help='the number of its chapter: "06"')
    check.set_defaults(run=_plainly(_check))
    release = commands.add_parser("release", help="write what is handed out to build/release")
    release.set_defaults(run=_plainly(_release))
    grade = commands.add_parser("grade", help="grade SUBMISSIONS/STUDENT/NN_topic/lab.ipynb; writes build/grades")
    grade.add_argument("submissions", type=Path)
    grade.add_argument("--due", help="the deadline, such as '2026-11-20 18:00'; what is later is noted")
    grade.add_argument("--late-share", type=float, default=1.0, help="what late points count (default: %(default)g)")
    grade.add_argument("--seed", type=int, help="that of an earlier run, in its report.json, to grade the same again")
    grade.add_argument("--at-once", type=int, help="notebooks side by side; by default one for each core")
    grade.add_argument("--weak", action="store_true", help="grade although students' code cannot be shut in fully")
    grade.set_defaults(run=_plainly(_grade))
    for command in (labs, release, grade):
        command.add_argument("--only", help='some labs by number: "06" or "02,06"')


def chosen(only: str | None) -> list[Path]:
    """The sources in `labs/src`, in order; all, or those that `only` names. Raises registry.NoSuchLab."""
    from distlab.course import notebooks
    from distlab.labs import registry

    sources = notebooks.sources(LABS)
    if not only:
        return sources
    numbers = [name.strip().partition("_")[0].zfill(2) for name in only.split(",") if name.strip()]
    for number in numbers:
        if not any(source.stem.startswith(f"{number}_") for source in sources):
            present = ", ".join(source.stem[:2] for source in sources) or "none"
            raise registry.NoSuchLab(f"There is no lab {number}; there are {present}.")
    return [source for source in sources if source.stem[:2] in numbers]


def _plainly(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """Errors of the user end in their sentence, and exit status 2."""

    def guarded(options: argparse.Namespace) -> int:
        try:
            return run(options)
        except PlainError as error:
            print(error)
            return 2

    return guarded


def _labs(options: argparse.Namespace) -> int:
    from distlab.course import lab_sources

    for source in chosen(options.only):
        for file in lab_sources.regenerate(source):
            print(file, flush=True)
    return 0


def _check(options: argparse.Namespace) -> int:
    from distlab.grading import check_file

    for line in check_file.recheck(options.lab, LABS):
        print(line, flush=True)
    return 0


def _release(options: argparse.Namespace) -> int:
    from distlab.course import lab_sources

    for written in lab_sources.release(chosen(options.only), BUILD / "release"):
        print(written)
    return 0


def _grade(options: argparse.Namespace) -> int:
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn in threads, without a screen
    from distlab import devices
    from distlab.grading import material, run, submissions
    from distlab.runtime import processes
    from distlab.sandbox import protections

    processes.end_on_signals()
    due = None if options.due is None else submissions.due_time(options.due)
    sources = chosen(options.only)
    found = submissions.find(options.submissions, [source.stem for source in sources], due, bool(options.only))
    held, weak = protections.strongest(options.weak)
    print(held)
    needed = {submission.lab for submission in found}
    plan = run.Plan(
        found,
        {source.stem: material.load(source) for source in sources if source.stem in needed},
        BUILD / "grades",
        secrets.randbits(62) if options.seed is None else options.seed,
        held,
        options.late_share,
        options.at_once or max(1, devices.cores()),
        weak,
    )
    run.limit_own_memory()
    try:
        result = run.run(plan, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("\nInterrupted; no student's process is left, and no grade is written.")
        return 130
    print(f"{len(result.grades)} notebooks in {result.seconds:.0f} s: {plan.folder / 'grades.csv'}")
    for fault in result.faults:
        print(f"LOOK AT {fault}")
    return 1 if result.faults else 0
