"""Grading one notebook: run, judge, count."""

import builtins
from contextlib import suppress
from dataclasses import dataclass, field, replace

from course_tools.grading.material import LabStep, Material, StepKind
from course_tools.grading.notebook import Fitted
from course_tools.sandbox import Kind, SandboxedWork
from distlab.labs.answer import time_limit
from distlab.labs.answer_errors import AnswerError, Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Picture, Verdict

SECONDS_TO_DRAW = 20.0
_LONGEST_TEXT = 4000  # of a verdict, which may quote an answer
_NO_FILE = "grading has the packages of the course and the notebook, no other file of the student's"
_LIMITS = {
    "MemoryError": "it asked for more memory than grading allows",
    "EOFError": "nobody answers an input() here: write the value into the cell",
    "Network is unreachable": "there is no network in grading",
    "File too large": "files may not be this large in grading",
    "No space left on device": "this many or this large files are not allowed in grading",
    "Resource temporarily unavailable": "this many processes are not allowed in grading",
    "No module named": _NO_FILE,
    "No such file": _NO_FILE,
}
_NAMED = {
    StepKind.JUDGE: "the answer to",
    StepKind.ANSWER: "the cell of",
    StepKind.GIVEN: "the given",
    StepKind.OWN: "the student's own",
}


@dataclass
class Graded:
    """An exercise: the verdict, the answer's text, the end of what it printed, and how its cell failed.

    error: a sentence for the student.  note: how a note for the instructor goes on after the name of the cell.
    """

    exercise: Exercise
    verdict: Verdict = field(default_factory=lambda: Verdict(NOT_DONE))
    text: str = ""
    printed: str = ""
    error: str = ""
    note: str = ""
    picture: Picture | None = None

    @property
    def points(self) -> float:
        """To a hundredth of a point."""
        return round(self.exercise.points * self.verdict.share, 2)


@dataclass
class Report:
    """A notebook, graded: its exercises, notes in the grader's own words, the other cells that failed, by name.

    `look_at` is what the instructor has to decide. `troubles` say what went wrong with the grader or its machine: such
    a report is no grade.
    """

    exercises: list[Graded] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        """The sum of the points."""
        return round(sum(graded.points for graded in self.exercises), 2)


def grade(material: Material, fitted: Fitted, kind: Kind, seed: int) -> Report:
    """Run the steps in a jail and judge each exercise as soon as its cell has run, with inputs from `seed`.

    Whatever a cell does, the points of the exercises before it stay, and those after it are judged in a fresh process.
    """
    lab, setting = material.setting(kind, fitted.steps)
    report = Report([Graded(exercise) for exercise in lab], list(fitted.notes), list(fitted.look_at))
    graded = {each.exercise.name: each for each in report.exercises}
    with SandboxedWork(setting, lab.seconds) as work:
        for step in fitted.steps:
            changes = len(work.changes)
            if step.kind is StepKind.JUDGE:
                each = graded[step.name]
                _judge(each, work, lab, seed)
                if each.verdict.state != RIGHT and each.note:
                    report.notes.append(f"the cell of {step.name} {each.note}")
            elif step.kind is StepKind.ANSWER:
                graded[step.name].text = step.text
                graded[step.name].printed, graded[step.name].error, graded[step.name].note = _run(step, work, lab)
            else:
                _, error, note = _run(step, work, lab)
                if error:
                    report.failed[step.name] = error
                    report.notes.append(f"{_NAMED[step.kind]} {step.name} {note or 'was abandoned'}")
            if len(work.changes) > changes:
                report.notes.append(f"{_NAMED[step.kind]} {step.name} changes the checker's own functions")
        if work.is_out_of_time:
            report.notes.append(f"stopped after {lab.seconds:g} s in all")
    report.troubles += work.troubles
    for name, each in graded.items():
        if each.verdict.fault:
            report.troubles.append(f"{name}: {each.verdict.fault}")
        if name in fitted.copied and each.verdict.state != RIGHT:
            report.look_at.append(f"{name} is answered in several cells, and the last one is not right")
    return report


def _run(step: LabStep, work: SandboxedWork, lab: Lab) -> tuple[str, str, str]:
    """Run a cell: the end of what it printed, and how it failed, to the student and in a note."""
    changes = len(work.changes)
    try:
        run = work.run_cell(step.text, lab.seconds_per_cell)
    except AnswerError as error:  # it hung, or its process has ended
        is_explained = len(work.changes) > changes or work.is_out_of_time
        return "", f"The cell was abandoned: {error}.", "" if is_explained else "hung or ended its process"
    if run.error is None:
        return run.printed, "", ""
    kind = getattr(builtins, run.error.kind, None)  # a student may call exceptions anything
    is_known = isinstance(kind, type) and issubclass(kind, BaseException)
    return run.printed, _sentence(run.error), f"failed with {run.error.kind if is_known else 'an error'}"


def _judge(graded: Graded, work: SandboxedWork, lab: Lab, seed: int) -> None:
    """Fill in the verdict."""
    try:
        verdict = graded.exercise.verdict(work.answer(lab.seconds_per_cell), seed)
    except AnswerError as error:
        verdict = Verdict(WRONG, f"It was not judged: {error}.")
    if verdict.state == NOT_DONE and graded.error:
        verdict = Verdict(WRONG, graded.error)  # not done because its cell failed
    if len(verdict.text) > _LONGEST_TEXT:
        verdict = replace(verdict, text=f"{verdict.text[:_LONGEST_TEXT]} …")
    graded.verdict = verdict
    if verdict.picture is not None and verdict.state != RIGHT:
        with suppress(Exception), time_limit(SECONDS_TO_DRAW, "the picture"):  # a page without it says the same
            graded.picture = verdict.picture()


def _sentence(error: Raised) -> str:
    """What an error in a cell means to the student, with a few words on the limits that show as the system's errors."""
    place = "" if error.line is None else f" in line {error.line}"
    message = f": {error.message}" if error.message else ""
    meaning = next((words for sign, words in _LIMITS.items() if sign == error.kind or sign in error.message), "")
    return f"The cell stopped{place} with {error.kind}{message}{f' ({meaning})' if meaning else ''}"
