"""Grading everything that was handed in, several notebooks at a time; and checking one's own notebook."""

import dataclasses
import json
import resource
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil

from course_tools import lab_sources, student_files
from course_tools.grading import feedback, notebook, origin, results_folder
from course_tools.grading.feedback import Grade
from course_tools.grading.grade import Graded, Report, grade
from course_tools.grading.material import Material, StepKind, files_in
from course_tools.grading.origin import Origin
from course_tools.grading.processes_apart import Failed, ProcessLimits, run_apart
from course_tools.grading.servers import Servers, server
from course_tools.grading.submissions import Submission, printable
from course_tools.sandbox import SandboxedWork, SandboxFailed
from course_tools.sandbox.protections import Protections
from distlab.labs import registry
from distlab.labs.verdict import NOT_DONE, Verdict
from distlab.runtime import startup_notes
from distlab.runtime.errors import PlainError


class CannotCheck(PlainError):
    """The notebook is missing or is not a notebook; the message says so."""


@dataclass(frozen=True)
class GradingPlan:
    """What to grade, with what, where to; points of work after `due` count `late_share`; `weak` uses no namespaces.

    look_at: what the instructor has to look at in the folder as a whole, such as files that are no student's.
    """

    submissions: Sequence[Submission]
    materials: Mapping[str, Material]
    folder: Path
    seed: int
    protections: Protections
    late_share: float = 1.0
    at_once: int = 2
    weak: bool = False
    look_at: Sequence[str] = ()
    due: datetime | None = None


@dataclass
class GradingResult:
    """All grades in order, what the instructor has to look at, and the seconds that it took."""

    grades: list[Grade] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def run(plan: GradingPlan, say: Callable[[str], None] = print) -> GradingResult:
    """Grade, write grades.csv, the feedback and report.json into the plan's folder.

    An earlier folder, perhaps of another class, is kept under another name. Nothing that fails stops the rest: each
    notebook is graded in a process of its own; where something other than the student's work went wrong, it is graded
    again, alone, and if that happens again it gets no score but the note LOOK AT. When this returns, or is interrupted,
    no student's process is left; interrupted, it leaves the earlier folder as it is.
    """
    with results_folder.replacing(plan.folder, say) as folder:
        return _run(dataclasses.replace(plan, folder=folder), say)


def _run(plan: GradingPlan, say: Callable[[str], None]) -> GradingResult:
    began = time.monotonic()
    result = GradingResult(faults=list(plan.look_at))
    _write_report(result, plan)  # the seed first: with it everything can be repeated
    outcomes: dict[int, _Outcome] = {}
    again: list[int] = []
    materials = [plan.materials[each.lab].for_notebook(each.file) for each in plan.submissions]
    in_order = sorted(
        range(len(plan.submissions)),
        key=lambda number: (plan.submissions[number].lab, materials[number].lab.tensorflow),
    )
    with Servers(plan.weak) as servers:
        for number in in_order:
            if plan.submissions[number].file is None:
                outcomes[number] = _grade_submission(plan.submissions[number], materials[number], plan, servers)
                say(outcomes[number].line)
        for alone in (False, True):
            numbers = again if alone else [number for number in in_order if number not in outcomes]
            at_once = 1 if alone else plan.at_once
            with closing(
                run_apart(
                    numbers,
                    lambda number: _grade_submission(plan.submissions[number], materials[number], plan, servers),
                    lambda number: _limits(materials[number]),
                    at_once,
                    lambda number, running: servers.prepare([materials[each] for each in (number, *running)]),
                )
            ) as graded:
                for number, outcome in graded:
                    if isinstance(outcome, Failed):
                        outcome = _not_graded(plan.submissions[number], plan, outcome.reason)
                    if outcome.troubles and not alone:
                        again.append(number)
                        continue
                    outcomes[number] = outcome
                    say(outcome.line)
    for number in range(len(plan.submissions)):
        result.grades.append(outcomes[number].grade)
        result.faults += outcomes[number].look_at
    result.seconds = time.monotonic() - began
    feedback.write_table(result.grades, plan.folder / results_folder.TABLE)
    _write_report(result, plan)
    return result


def check(number: str, folder: Path) -> Iterator[str]:
    """The name of `folder`/NN_topic/lab.ipynb, a line for each exercise, as its check prints it, one for each other
    cell that failed, the sum of points.

    The cells run from the top in a sandbox, as they are; the inputs are those of the checks. An exercise whose cell is
    missing is said to have none. At the end come lines on files that do not count, as `student_files` says.
    Raises registry.NoSuchLab and CannotCheck.
    """
    with startup_notes.hidden():
        lab = registry.lab(number)
    counting = student_files.lab(folder, lab.number)
    file = counting.file if counting else folder / lab.name / lab_sources.STUDENT
    fresh = f".venv/bin/distlab lab --fresh {lab.name[:2]}"
    if counting is None:
        raise CannotCheck(f"{file} is not there; `{fresh}` gives the lab back.")
    try:
        submitted = notebook.read(file)
    except notebook.Unreadable as error:
        raise CannotCheck(f"{file} cannot be checked: {error}; `{fresh}` gives the lab back.") from None
    if another := notebook.another_lab(submitted, [exercise.name for exercise in lab]):
        raise CannotCheck(f"{file} cannot be checked: {another}; `{fresh}` gives the lab back.")
    fitted = notebook.as_written(submitted, [exercise.name for exercise in lab])
    if not fitted.has_answers:
        raise CannotCheck(
            f"{file} cannot be checked: {notebook.NO_ANSWERS}; copy your answers into a fresh lab, {fresh}."
        )
    fitted.origin = Origin(origin.of(file).python)  # of the files next to it, the check has all
    yield f"{file}:"
    files = files_in(file.parent)
    if counting.name != file.parent.name:  # the course's own have moved to the folder with the new name
        files = files_in(folder / counting.name) | files
    material = Material(lab, fitted.steps, {}, files).for_notebook(file)
    report = _checked(material, fitted)
    cells = [step.name for step in fitted.steps if step.kind == StepKind.ANSWER]
    for graded in report.exercises:
        line = registry.shown(graded.exercise.name, graded.verdict)
        if graded.verdict.state == NOT_DONE and graded.exercise.name not in cells:
            line = f"{graded.exercise.name}: … its cell is missing from the notebook; `{fresh}` gives the lab back."
            if graded.exercise.name in fitted.not_code:
                line = f"{graded.exercise.name}: … its cell is no code cell any more; select it, press Esc and then Y."
        yield line if not graded.error or graded.error in line else f"{line}\n  {graded.error}"
        if (copies := cells.count(graded.exercise.name)) > 1:
            yield f"  Its cell is there {copies} times, and the last one counts."
    for step, failed in report.failed:
        yield f"{step.title}: {failed.sentence}"
    for said in report.sentences_on_overwritten:
        yield f"{said[:1].upper()}{said[1:]}; choose another name."
    yield f"{report.score:g} of {lab.points:g} points"
    yield from counting.notes


def limit_own_memory() -> None:
    """Let this process have half of the machine's memory beyond what it has reserved.

    A student's array that is small, but grows when a judge compares it with another, then ends in a MemoryError.
    """
    reserved = psutil.Process().memory_info().vms
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = reserved + psutil.virtual_memory().total // 2
    resource.setrlimit(resource.RLIMIT_AS, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


@dataclass(frozen=True)
class _Outcome:
    """A row of the table; what the instructor has to look at; what went wrong that is not the student's work."""

    grade: Grade
    look_at: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """The row for the terminal."""
        row = self.grade
        score = "no grade" if row.score is None else f"{row.score:g} of {row.max_score:g}"
        return printable(f"{row.student}  {row.lab}: {score}{'  ' + row.note if row.note else ''}")


def _limits(material: Material) -> ProcessLimits:
    """For all that the grader does with one notebook: far more than what students' code may take."""
    seconds = material.lab.seconds
    return ProcessLimits(processor=2 * seconds + 120, wall=12 * seconds + 600)


def _not_graded(submission: Submission, plan: GradingPlan, *troubles: str, points: str = "") -> _Outcome:
    """No score: what there is must not be taken for a grade."""
    name = printable(f"{submission.student} {submission.lab}")
    reasons = [printable(trouble)[:300] for trouble in dict.fromkeys(troubles)]
    note = "; ".join([*submission.notes, f"LOOK AT, not graded{points}: {'; '.join(reasons)}"])
    row = Grade(submission.student, submission.lab, None, plan.materials[submission.lab].lab.points, note)
    return _Outcome(row, [f"{name}: {reason}" for reason in reasons], reasons)


def _grade_submission(submission: Submission, material: Material, plan: GradingPlan, servers: Servers) -> _Outcome:
    """Grade a submission and write its page."""
    name = printable(f"{submission.student} {submission.lab}")
    notes, look_at = list(submission.notes), [f"{name}: {line}" for line in submission.look_at]
    report = Report([Graded(exercise, Verdict(NOT_DONE)) for exercise in material.lab])
    if submission.file is not None:
        try:
            fitted = notebook.fit(notebook.read(submission.file), material.steps, material.stubs)
        except notebook.Unreadable as error:
            notes.append(f"unreadable: {error}")
            look_at.append(f"{name}: {notes[-1]}")
        else:
            fitted.origin = origin.of(submission.file)
            look_at += [f"{name}: {line}" for line in fitted.look_at]
            if submission.others and fitted.is_untouched:
                notes.append(f"no answer in {submission.file.name}, look into {', '.join(submission.others)}")
                look_at.append(f"{name}: {notes[-1]}")
            with SandboxedWork(servers.only(material), material.limits, material.files) as work:
                report = grade(material.lab, fitted, work, plan.seed)
    notes += report.remarks
    look_at += [f"{name}: {line}" for line in report.look_at]
    score = round(report.score * (plan.late_share if submission.late else 1), 2)
    row = Grade(submission.student, submission.lab, score, material.lab.points, "; ".join(notes))
    troubles = [*report.troubles, *report.faults]
    if troubles:
        points = f" ({report.score:g} of {material.lab.points:g} points without it)"
        outcome = _not_graded(submission, plan, *troubles, points=points)
        row, look_at = outcome.grade, look_at + outcome.look_at
    try:
        feedback.write_page(row, report, str(plan.protections), plan.folder / results_folder.FEEDBACK)
    except OSError as error:
        look_at.append(f"{name}: no page of feedback: {error}")
    return _Outcome(row, look_at, troubles)


def _write_report(result: GradingResult, plan: GradingPlan) -> None:
    report = {
        "seed": plan.seed,
        "due": plan.due and plan.due.isoformat(" "),
        "seconds": round(result.seconds, 1),
        "protections": str(plan.protections),
        "look_at": result.faults,
    }
    new = plan.folder / f"{results_folder.REPORT}.new"
    new.write_text(json.dumps(report, indent=2) + "\n")
    new.rename(plan.folder / results_folder.REPORT)


def _checked(material: Material, fitted: notebook.Fitted) -> Report:
    """The report on one's own notebook, in the best sandbox that this machine allows. Raises CannotCheck."""
    problems = []
    for weak in (False, True):
        try:
            with (
                server(material, weak) as source,
                SandboxedWork(source, material.limits, material.files) as work,
            ):
                return grade(material.lab, fitted, work, seed=0)
        except SandboxFailed as error:
            problems.append(str(error))
    raise CannotCheck(
        f"A process for the check cannot be started: {'; and with limits only: '.join(dict.fromkeys(problems))}."
    )
