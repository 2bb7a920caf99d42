"""Grading a folder of submissions, and checking one's own lab, from the terminal."""

import json
import multiprocessing
import os
import resource
import secrets
import signal
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, cast

import psutil
from cyclopts import Parameter, Token
from cyclopts.types import NonNegativeInt, PositiveInt

from course_tools import lab_sources, user_folders, working_copy
from course_tools.grading import feedback, notebook, submissions
from course_tools.grading.grade import grade as grade_notebook
from course_tools.grading.grade import ungraded
from course_tools.grading.notebook import Material
from course_tools.grading.submissions import Submission, printable
from course_tools.sandbox import Kind, protections
from distlab import devices
from distlab.labs import registry
from distlab.runtime import processes, startup_notes
from distlab.runtime.errors import PlainError

LABS = Path("labs")
GRADES = Path("build/grades")


def check(lab: str, /) -> None:
    """Print what the checks of a lab say of the working copy, or where there is none, of the course's own file.

    The notebook is graded as a class is, with the inputs of the checks. Raises PlainError.

    Args:
        lab: The number of its chapter: "06".
    """
    processes.end_on_signals()
    with startup_notes.hidden():
        of_course = registry.lab(lab)
        of_lab = notebook.load(registry.LABS / of_course.name / lab_sources.TEXT, of_course)
    copy = user_folders.user_folder(working_copy.NAME) / LABS
    file = (copy if copy.is_dir() else LABS) / of_course.name / lab_sources.STUDENT
    try:
        cells = notebook.read(file)
    except notebook.Unreadable as error:
        fresh = f".venv/bin/distlab lab --fresh {of_course.number}"
        raise PlainError(f"{file} cannot be checked: {error}; `{fresh}` gives the lab back.") from None
    kind, _ = protections.strongest(accept_weak=True)
    print(f"{file}:", flush=True)
    own = Submission("", of_course.name, file)
    grade_notebook(own, cells, of_lab, kind, seed=0)
    if own.troubles:
        raise PlainError(f"{file} cannot be checked: {own.troubles[0]}.")
    for each in own.exercises:
        line = registry.shown(each.name, each.verdict)
        print(line if not each.error or each.error in line else f"{line}\n  {each.error}")
    for name, failure in own.failed.items():
        print(f"Another cell, {name}. {failure}")
    for note in [*own.notes, *own.look_at]:
        print(f"{note[:1].upper()}{note[1:]}.")
    print(f"{own.score:g} of {own.max_score:g} points")
    if not copy.is_dir():
        print("This was the course's own file; `make lab` makes your copy of the labs.")


def _due(_: object, tokens: Sequence[Token]) -> datetime:
    """A deadline in local time; a date alone is the end of that day."""
    text = tokens[0].value
    time = datetime.fromisoformat(text)
    return (time + timedelta(days=1, seconds=-1) if len(text) <= len("2026-11-20") else time).astimezone()


def grade(
    handed_in: Annotated[Path, Parameter(name="SUBMISSIONS")],
    /,
    *,
    only: str | None = None,
    due: Annotated[datetime | None, Parameter(converter=_due)] = None,
    seed: NonNegativeInt | None = None,
    at_once: PositiveInt | None = None,
    weak: bool = False,
) -> int:
    """Grade a class; 1 if the instructor has to look at something, 130 after an interrupt.

    Args:
        handed_in: The folder with a folder of each student.
        only: Some labs by number: "06" or "02,06".
        due: The deadline, such as '2026-11-20 18:00'; a later notebook gets a note.
        seed: The seed of an earlier run, from its report.json, to repeat its grades.
        at_once: Notebooks at a time; by default one per core.
        weak: Grade although students' code cannot be isolated completely.
    """
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are drawn without a screen
    processes.end_on_signals()
    build = user_folders.announced(GRADES.parent.name, "the grades go")
    sources = {source.parent.name: source for source in lab_sources.chosen(LABS, only)}
    found = submissions.find(handed_in, list(sources), due, bool(only))
    kind, protected = protections.strongest(weak)
    print(protected, flush=True)
    materials = {name: notebook.load(sources[name]) for name in sorted({submission.lab for submission in found})}
    results, began = build / GRADES.name, time.monotonic()
    seed = secrets.randbits(62) if seed is None else seed
    build.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="unfinished-", dir=build) as unfinished:
        new = Path(unfinished, GRADES.name)
        new.mkdir()
        grades = run(found, materials, kind, seed, new, protected, at_once or max(1, devices.cores()))
        look_at = [f"{each.student} {each.lab}: {line}" for each in grades for line in each.look_at]
        look_at = [*submissions.left_out(handed_in), *map(printable, look_at)]
        report: dict[str, object] = {"seed": seed, "due": due and due.isoformat(" ")}
        report |= {"seconds": round(time.monotonic() - began, 1), "protections": protected, "look_at": look_at}
        report["grades"] = [{name: getattr(each, name) for name in (*feedback.COLUMNS, "points")} for each in grades]
        (new / "report.json").write_text(json.dumps(report, indent=2) + "\n")
        feedback.write_table(grades, new / "grades.csv")
        if results.exists():
            kept = results.rename(f"{results}-{time.strftime('%Y-%m-%d-%H%M%S')}")
            print(f"The grades of the run before are kept in {kept}.")
        new.rename(results)
    print(f"{len(grades)} notebooks in {time.monotonic() - began:.0f} s: {results / 'grades.csv'}")
    for line in look_at:
        print(f"LOOK AT {line}")
    return 1 if look_at else 0


def run(
    found: Sequence[Submission],
    materials: dict[str, Material],
    kind: Kind,
    seed: int,
    folder: Path,
    protected: str = "",
    at_once: int = 2,
) -> list[Submission]:
    """Grade all, so many `at_once`, each in a process of its own, and write the pages, which end with `protected`.

    Where something other than the student's work went wrong, a notebook is graded again, alone; if that happens again
    it gets no score, and the note LOOK AT. When this ends no student's process is left.
    """
    for submission in found:
        submission.exercises = ungraded(materials[submission.lab])

    def graded(submission: Submission, result: Connection) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _limit_memory()
        try:
            if submission.file is not None:
                grade_notebook(submission, notebook.read(submission.file), materials[submission.lab], kind, seed)
        except notebook.Unreadable as error:
            submission.look_at.append(f"unreadable: {error}")
        except Exception as error:  # the grader's own, or of its machine
            submission.troubles.append(f"{type(error).__name__}: {str(error)[:500]}")
        feedback.write_page(submission, protected, folder / "feedback")
        result.send(submission)

    grades: dict[int, Submission] = {}
    for is_last in (False, True):
        again = [number for number in range(len(found)) if number not in grades or grades[number].troubles]
        with closing(_apart(found, again, graded, 1 if is_last else at_once)) as outcomes:
            for number, row in outcomes:
                grades[number] = row
                if is_last or not row.troubles:
                    _conclude(row)
    return [grades[number] for number in range(len(found))]


def _apart(
    found: Sequence[Submission], numbers: list[int], graded: Callable[[Submission, Connection], None], at_once: int
) -> Generator[tuple[int, Submission], None, None]:
    """What `graded` sends, as it comes, for those of `found` with these numbers, `at_once` at a time.

    Each is graded in a process of its own: however that ends, it reaches no other. When the iterator is closed, those
    that still run are killed. concurrent.futures was tried: a process that is killed breaks its pool, and with that the
    work on all others.
    """
    fork, running = multiprocessing.get_context("fork"), dict[Any, tuple[int, Any]]()
    try:
        while numbers or running:
            while numbers and len(running) < at_once:
                ours, theirs = Pipe(duplex=False)
                with theirs:  # only the process holds it: it is at its end when that has ended
                    process = fork.Process(target=graded, args=(found[numbers[0]], theirs))
                    process.start()
                running[ours] = numbers.pop(0), process
            for result in cast(list[Connection], wait([*running])):
                number, process = running[result]
                try:
                    row = result.recv()  # from our own process
                    process.join()
                except (EOFError, OSError):
                    process.join()
                    trouble = f"the process that graded it ended with status {process.exitcode}"
                    row = replace(found[number], troubles=[trouble])
                del running[result]
                yield number, row
    finally:
        for _, process in running.values():
            process.kill()
            process.join()


def _conclude(row: Submission) -> None:
    """Print the row of a submission; without a grade it says why."""
    if row.troubles:
        row.notes.append("LOOK AT")
        row.look_at.append(
            f"not graded: {'; '.join(printable(trouble)[:300] for trouble in dict.fromkeys(row.troubles))}"
        )
    score = f"{row.score:g} of {row.max_score:g}" if row.score is not None else "no grade"
    print(printable(f"{row.student}  {row.lab}: {score}{'  ' * bool(row.note)}{row.note}"), flush=True)


def _limit_memory() -> None:
    """Let this process have half of the machine's memory: an array may grow when a judge compares it with another."""
    most = psutil.Process().memory_info().vms + psutil.virtual_memory().total // 2
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
