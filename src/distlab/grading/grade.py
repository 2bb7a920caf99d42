"""Grading one notebook: run, judge, count."""

from contextlib import suppress
from dataclasses import dataclass, field, replace

from distlab.grading.material import LabStep, StepKind
from distlab.grading.notebook import Fitted
from distlab.labs.answer import time_limit
from distlab.labs.answer_errors import AnswerError, Changed, Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Picture, Verdict
from distlab.sandbox import SandboxedWork

_SECONDS_TO_DRAW = 20.0
_LONGEST_TEXT = 4000  # of a verdict, which may quote an answer


@dataclass
class Graded:
    """An exercise: the verdict, the points, the answer's text, the end of what it printed, and how its cell failed."""

    exercise: Exercise
    verdict: Verdict
    text: str = ""
    printed: str = ""
    error: str = ""
    picture: Picture | None = None

    @property
    def points(self) -> float:
        """To a hundredth of a point."""
        return round(self.exercise.points * self.verdict.share, 2)


@dataclass
class Report:
    """A notebook, graded; `remarks` are sentences for the instructor, in the grader's own words.

    `troubles` say what went wrong with the grader or its machine: such a report is no grade.
    """

    exercises: list[Graded] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The sum of the points."""
        return round(sum(graded.points for graded in self.exercises), 2)

    @property
    def faults(self) -> list[str]:
        """Where a judge failed on an answer: for the instructor to look at."""
        return [f"{graded.exercise.name}: {graded.verdict.fault}" for graded in self.exercises if graded.verdict.fault]


def grade(lab: Lab, fitted: Fitted, work: SandboxedWork, seed: int) -> Report:
    """Run the steps in the sandbox and judge each exercise as soon as its cell has run, with inputs from `seed`.

    Whatever a cell does, the points of the exercises before it stay, and those after it are judged in a fresh process.
    """
    report = Report(remarks=list(fitted.notes))
    work.allow_in_all(lab.seconds)
    answers: dict[str, Graded] = {}
    for step in fitted.steps:
        before = len(work.changes)
        if step.kind == StepKind.JUDGE:
            answer = answers.setdefault(step.name, Graded(lab[step.name], Verdict(NOT_DONE)))
            _judge(answer, work, lab.seconds_per_cell, seed)
            report.exercises.append(answer)
        else:
            _run(step, lab, work, answers, report)
        if len(work.changes) > before:
            what = {StepKind.JUDGE: "the answer to", StepKind.ANSWER: "the cell of"}.get(step.kind, "the")
            report.remarks.append(f"{what} {step.name} changes the checker's own functions")
    report.troubles += work.troubles
    if work.is_out_of_time:
        report.remarks.append(f"stopped after {lab.seconds:g} s in all")
    return report


def _run(step: LabStep, lab: Lab, work: SandboxedWork, answers: dict[str, Graded], report: Report) -> None:
    is_answer = step.kind == StepKind.ANSWER
    if is_answer:
        state = NOT_DONE if step.untouched else WRONG
        answers[step.name] = Graded(lab[step.name], Verdict(state), step.text)
    failed, printed, ended = "", "", False
    try:
        run = work.run_cell(step.text, step.name, lab.seconds_per_cell)
        printed = run.printed
        if run.error is not None:
            failed = _sentence(run.error, lab)
            if run.error.kind == "PrintedTooMuch":
                report.remarks.append(f"the cell of {step.name} printed without end")
    except AnswerError as error:  # it hung, or its process has ended
        failed, ended = f"The cell was abandoned: {error}.", not isinstance(error, Changed)
    if is_answer:
        answers[step.name].printed, answers[step.name].error = printed, failed
        if ended:
            report.remarks.append(f"the cell of {step.name} hung or ended its process")
    elif failed and step.kind == StepKind.GIVEN:
        report.remarks.append(f"the given {step.name} failed after the student's cells")
    elif failed:
        report.remarks.append(f"the student's own {step.name} failed")


def _judge(graded: Graded, work: SandboxedWork, seconds: float, seed: int) -> None:
    """Fill in the verdict."""
    if graded.verdict.state == NOT_DONE or graded.verdict.text:
        return
    try:
        verdict = graded.exercise.verdict(work.answer(seconds), seed)
    except AnswerError as error:
        verdict = Verdict(WRONG, f"It was not judged: {error}.")
    if verdict.state == NOT_DONE and graded.error:
        verdict = Verdict(WRONG, graded.error)  # not done because its cell failed
    if len(verdict.text) > _LONGEST_TEXT:
        verdict = replace(verdict, text=f"{verdict.text[:_LONGEST_TEXT]} …")
    graded.verdict = verdict
    if verdict.picture is not None and verdict.state != RIGHT:
        with suppress(Exception), time_limit(_SECONDS_TO_DRAW, "the picture"):  # a page without it says the same
            graded.picture = verdict.picture()


def _sentence(error: Raised, lab: Lab) -> str:
    if error.kind == "PrintedTooMuch":
        return f"The cell was stopped: {error.message}."
    place = "" if error.line is None else f" in line {error.line}"
    message = f": {error.message}" if error.message else ""
    return f"The cell stopped{place} with {error.kind}{message}{_what_it_means(error, lab)}"


def _what_it_means(error: Raised, lab: Lab) -> str:
    """A few words on the limits that show as an error of the system."""
    if error.kind in ("AttributeError", "ImportError", "ModuleNotFoundError"):
        for module in lab.solved_in:
            if module in error.message:
                return f" ({module} has what this lab asks for; in grading it is not there)"
    if error.kind == "ModuleNotFoundError":
        return " (grading has the packages of the course and the notebook, no other file of the student's)"
    known = {
        "MemoryError": "it asked for more memory than grading allows",
        "Network is unreachable": "there is no network in grading",
        "File too large": "files may not be this large in grading",
        "No space left on device": "this many or this large files are not allowed in grading",
        "Resource temporarily unavailable": "this many processes are not allowed in grading",
        "Operation not permitted": "grading does not allow it",
    }
    for sign, meaning in known.items():
        if sign in (error.kind, error.message) or sign in error.message:
            return f" ({meaning})"
    return ""
