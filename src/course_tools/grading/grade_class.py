"""Grading a folder of submissions, and checking one's own lab, from the terminal."""

import json
import os
import resource
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import psutil
from cyclopts import Parameter
from cyclopts.types import NonNegativeInt, PositiveInt
from cyclopts.validators import Number

from course_tools import lab_sources, user_folders, working_copy
from course_tools.grading import feedback, material, notebook, submissions
from course_tools.grading.apart import run_apart
from course_tools.grading.grade import Graded, Report
from course_tools.grading.grade import grade as grade_notebook
from course_tools.grading.material import Material
from course_tools.grading.submissions import Submission, printable
from course_tools.sandbox import Kind, protections
from distlab import devices
from distlab.labs import registry
from distlab.runtime import processes, startup_notes
from distlab.runtime.errors import PlainError

LABS = Path("labs")
GRADES = Path("build/grades")


class CannotCheck(PlainError):
    """The notebook is missing or is not a notebook; the message says so."""


@dataclass(frozen=True)
class Plan:
    """How to grade: labs by name, the seed, the kind of jail and what holds in it, the share that late work gets.

    folder: the pages go into its `feedback`.  at_once: how many notebooks are graded at a time.
    """

    materials: Mapping[str, Material]
    seed: int
    kind: Kind
    protected: str
    folder: Path
    late_share: float = 1.0
    at_once: int = 2


def check(lab: str, /) -> None:
    """Print what the checks of a lab say of the working copy, or where there is none, of the course's own file.

    The notebook is graded as a class is, with the inputs of the checks. Raises registry.NoSuchLab and CannotCheck.

    Args:
        lab: The number of its chapter: "06".
    """
    processes.end_on_signals()
    with startup_notes.hidden():
        of_course = registry.lab(lab)
        of_lab = material.load(registry.LABS / of_course.name / lab_sources.TEXT, of_course)
    copy = user_folders.user_folder(working_copy.NAME) / LABS
    file = (copy if copy.is_dir() else LABS) / of_course.name / lab_sources.STUDENT
    try:
        fitted = notebook.fit(*notebook.read(file), of_lab)
    except notebook.Unreadable as error:
        fresh = f".venv/bin/distlab lab --fresh {of_course.number}"
        raise CannotCheck(f"{file} cannot be checked: {error}; `{fresh}` gives the lab back.") from None
    kind, _ = protections.strongest(accept_weak=True)
    print(f"{file}:", flush=True)
    report = grade_notebook(of_lab, fitted, kind, seed=0)
    if report.troubles:
        raise CannotCheck(f"{file} cannot be checked: {report.troubles[0]}.")
    for graded in report.exercises:
        line = registry.shown(graded.exercise.name, graded.verdict)
        print(line if not graded.error or graded.error in line else f"{line}\n  {graded.error}")
    for name, failure in report.failed.items():
        print(f"Another cell, {name}. {failure}")
    for note in [*fitted.notes, *report.look_at]:
        print(f"{note[:1].upper()}{note[1:]}.")
    print(f"{report.score:g} of {of_course.points:g} points")
    if not copy.is_dir():
        print("This was the course's own file; `make lab` makes your copy of the labs.")


def grade(
    handed_in: Annotated[Path, Parameter(name="SUBMISSIONS")],
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
        handed_in: The folder with a folder of each student.
        only: Some labs by number: "06" or "02,06".
        due: The deadline, such as '2026-11-20 18:00'; a later notebook gets a note.
        late_share: The share of the points that late work gets, from 0 to 1, with --due; by default 1.
        seed: The seed of an earlier run, from its report.json, to repeat its grades.
        at_once: Notebooks at a time; by default one per core.
        weak: Grade although students' code cannot be isolated completely.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn without a screen
    processes.end_on_signals()
    until = None if due is None else submissions.due_time(due)
    if late_share is not None and due is None:
        raise submissions.NotATime("A share for late work needs the deadline: --due '2026-11-20 18:00'.")
    build = user_folders.announced(GRADES.parent.name, "the grades go")
    sources = {source.parent.name: source for source in lab_sources.chosen(LABS, only)}
    results, began = build / GRADES.name, time.monotonic()
    build.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as scratch, TemporaryDirectory(prefix="unfinished-", dir=build) as unfinished:
        folder = submissions.by_student(handed_in, list(sources), Path(scratch))
        found = submissions.find(folder, list(sources), until, bool(only))
        kind, protected = protections.strongest(weak)
        print(protected, flush=True)
        materials = {name: material.load(sources[name]) for name in sorted({submission.lab for submission in found})}
        seed = secrets.randbits(62) if seed is None else seed
        new = Path(unfinished, GRADES.name)
        new.mkdir()
        share, at_once = 1.0 if late_share is None else late_share, at_once or max(1, devices.cores())
        plan = Plan(materials, seed, kind, protected, new, share, at_once)
        grades = run(plan, found)
        look_at = [f"{each.student} {each.lab}: {line}" for each in grades for line in each.look_at]
        look_at = [*submissions.left_out(folder), *map(printable, look_at)]
        report: dict[str, object] = {"seed": seed, "due": until and until.isoformat(" ")}
        report |= {"seconds": round(time.monotonic() - began, 1), "protections": protected, "look_at": look_at}
        report["grades"] = [{name: getattr(each, name) for name in (*feedback.COLUMNS, "points")} for each in grades]
        (new / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        feedback.write_table(grades, new / "grades.csv")
        if results.exists():
            changed = time.strftime("%Y-%m-%d-%H%M%S", time.localtime(results.stat().st_mtime))
            print(f"The grades of the run before are kept in {results.rename(f'{results}-{changed}-{os.getpid()}')}.")
        new.rename(results)
    print(f"{len(grades)} notebooks in {time.monotonic() - began:.0f} s: {results / 'grades.csv'}")
    for line in look_at:
        print(f"LOOK AT {line}")
    return 1 if look_at else 0


def run(plan: Plan, found: Sequence[Submission]) -> list[Submission]:
    """Grade all, each in a process of its own, and write the pages of feedback.

    Where something other than the student's work went wrong, a notebook is graded again, alone; if that happens again
    it gets no score, and the note LOOK AT. When this ends no student's process is left.
    """
    grades: dict[int, Submission] = {}
    longest = 12 * max((each.lab.seconds for each in plan.materials.values()), default=0) + 600
    for alone in (False, True):
        numbers = [number for number in range(len(found)) if number not in grades or grades[number].score is None]

        def work(number: int) -> Submission:
            return _graded(found[number], plan)

        with closing(run_apart(numbers, work, longest, 1 if alone else plan.at_once)) as graded:
            for number, grade, reason in graded:
                row = grades[number] = grade or _counted(found[number], plan, Report(troubles=[reason]))
                if alone or row.score is not None:
                    score = "no grade" if row.score is None else f"{row.score:g} of {row.max_score:g}"
                    print(printable(f"{row.student}  {row.lab}: {score}{'  ' * bool(row.note)}{row.note}"), flush=True)
    return [grades[number] for number in range(len(found))]


def _graded(submission: Submission, plan: Plan) -> Submission:
    """Grade a submission and write its page."""
    _limit_memory()
    of_lab = plan.materials[submission.lab]
    report = Report([Graded(exercise) for exercise in of_lab.lab])
    if submission.file is not None:
        try:
            fitted = notebook.fit(*notebook.read(submission.file), of_lab)
            report = grade_notebook(of_lab, fitted, plan.kind, plan.seed)
        except notebook.Unreadable as error:
            report.look_at.append(f"unreadable: {error}")
    grade = _counted(submission, plan, report)
    feedback.write_page(grade, report, plan.protected, plan.folder / "feedback")
    return grade


def _counted(submission: Submission, plan: Plan, report: Report) -> Submission:
    """The submission with its score; none where there were troubles: what there is must not be taken for a grade."""
    most = plan.materials[submission.lab].lab.points
    if report.troubles:
        without = f" ({report.score:g} of {most:g} points without it)" if report.exercises else ""
        reasons = "; ".join(printable(trouble)[:300] for trouble in dict.fromkeys(report.troubles))
        notes, look_at = [*submission.notes, "LOOK AT"], [*submission.look_at, f"not graded{without}: {reasons}"]
        return replace(submission, notes=notes, look_at=look_at, max_score=most)
    notes, look_at = [*submission.notes, *report.notes], [*submission.look_at, *report.look_at]
    score = round(report.score * (plan.late_share if submission.late else 1), 2)
    points = {each.exercise.name: each.points for each in report.exercises}
    return replace(submission, notes=notes, look_at=look_at, score=score, max_score=most, points=points)


def _limit_memory() -> None:
    """Let this process have half of the machine's memory: an array may grow when a judge compares it with another."""
    most = psutil.Process().memory_info().vms + psutil.virtual_memory().total // 2
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
