"""Grading one notebook: run, judge, count."""

import threading
from dataclasses import dataclass, field

from distlab.grading.notebook import Fitted
from distlab.grading.script import ANSWER, GIVEN, JUDGE, Step
from distlab.grading.taken import taken
from distlab.labs.answer_errors import AnswerError, Changed, Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Picture, Verdict
from distlab.sandbox import SandboxedWork

_DRAWING = threading.Lock()  # matplotlib draws for one thread at a time


@dataclass
class Graded:
    """An exercise: the verdict, the points, the answer's text, what it printed at last, and how its cell failed."""

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
    """A notebook, graded; `remarks` are sentences on what is remarkable, in the grader's own words."""

    exercises: list[Graded] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The sum of the points."""
        return round(sum(graded.points for graded in self.exercises), 2)

    @property
    def faults(self) -> list[str]:
        """Where a judge could not cope with an answer: for the instructor to look at."""
        return [f"{graded.exercise.name}: {graded.verdict.fault}" for graded in self.exercises if graded.verdict.fault]


def grade(lab: Lab, fitted: Fitted, work: SandboxedWork, seed: int) -> Report:
    """Run the steps in the sandbox and judge each exercise as soon as its cell has run, with inputs from `seed`.

    Whatever a cell does, the points of the exercises before it stay, and those after it are judged in a fresh process.
    """
    report = Report(remarks=list(fitted.notes))
    work.seconds_left = lab.seconds
    answers: dict[str, Graded] = {}
    given = [step.text for step in fitted.steps if step.kind == GIVEN]
    for step in fitted.steps:
        start, before = work.clock(), len(work.changes)
        if step.kind == JUDGE:
            answer = answers.setdefault(step.name, Graded(lab[step.name], Verdict(NOT_DONE)))
            _judge(answer, work, lab.seconds_per_cell, seed)
            report.exercises.append(answer)
        elif step.kind != GIVEN and (names := taken(step.text, given, lab.solved_in)):
            _refuse(step, names, lab, answers, report)
        else:
            _run(step, lab, work, answers, report)
        work.seconds_left -= work.clock() - start
        if len(work.changes) > before:
            what = "the answer to" if step.kind == JUDGE else "the cell of" if step.kind == ANSWER else "the"
            report.remarks.append(f"{what} {step.name} changes the checker's own functions")
    if work.seconds_left <= 0:
        report.remarks.append(f"stopped after {lab.seconds:g} s in all")
    return report


def _refuse(step: Step, names: list[str], lab: Lab, answers: dict[str, Graded], report: Report) -> None:
    """Leave out a cell that takes its answer from where the course has it."""
    said = f"It is not run, since it takes from the course what is asked for ({', '.join(names[:3])})."
    if step.kind == ANSWER:
        answers[step.name] = Graded(lab[step.name], Verdict(WRONG, said), step.text, error=said)
    report.remarks.append(f"{step.name} uses {names[0]} and was not run")


def _run(step: Step, lab: Lab, work: SandboxedWork, answers: dict[str, Graded], report: Report) -> None:
    if step.kind == ANSWER:
        state = NOT_DONE if step.untouched else WRONG
        answers[step.name] = Graded(lab[step.name], Verdict(state), step.text)
    failed, printed, ended = "", "", False
    try:
        run = work.run_cell(step.text, step.name, lab.seconds_per_cell)
        printed = run.printed
        if run.error is not None:
            failed = _sentence(run.error)
            if run.error.kind == "PrintedTooMuch":
                report.remarks.append(f"the cell of {step.name} printed without end")
    except AnswerError as error:  # it hung, or its process has ended
        failed, ended = f"The cell was given up: {error}.", not isinstance(error, Changed)
    if step.kind == ANSWER:
        answers[step.name].printed, answers[step.name].error = printed, failed
        if ended:
            report.remarks.append(f"the cell of {step.name} hung or ended its process")
    elif failed and step.kind == GIVEN:
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
    graded.verdict = verdict
    if verdict.picture is not None and verdict.state != RIGHT:
        try:
            with _DRAWING:
                graded.picture = verdict.picture()
        except Exception as error:
            graded.verdict = Verdict(verdict.state, verdict.text, verdict.share, fault=f"no picture: {error}")


def _sentence(error: Raised) -> str:
    if error.kind == "PrintedTooMuch":
        return f"The cell was stopped: {error.message}."
    place = "" if error.line is None else f" in line {error.line}"
    message = f": {error.message}" if error.message else ""
    return f"The cell stopped{place} with {error.kind}{message}{_what_it_means(error)}"


def _what_it_means(error: Raised) -> str:
    """A word on the limits that show as an error of the system."""
    known = {
        "MemoryError": "it asked for more memory than there is in grading",
        "Network is unreachable": "there is no network in grading",
        "File too large": "files may not be that large in grading",
        "No space left on device": "so many or such large files are not allowed in grading",
        "Resource temporarily unavailable": "so many processes are not allowed in grading",
    }
    for sign, meaning in known.items():
        if sign in (error.kind, error.message) or sign in error.message:
            return f" ({meaning})"
    return ""
