"""Grading one notebook: run, judge, count."""

from collections.abc import Sequence
from contextlib import suppress

from course_tools.grading.notebook import Cell, Material, Role, fit
from course_tools.grading.submissions import Graded, Submission
from course_tools.sandbox import Kind, SandboxedWork
from distlab.labs.answer import time_limit
from distlab.labs.answer_errors import AnswerError, Raised
from distlab.labs.lab import Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Verdict

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


def grade(submission: Submission, cells: Sequence[Cell], material: Material, kind: Kind, seed: int) -> None:
    """Run the steps in a jail and judge each exercise as soon as its cell has run, with inputs from `seed`.

    Whatever a cell does, the points of the exercises before it stay, and those after it are judged in a fresh process.
    Raises SandboxFailed.
    """
    submission.exercises = ungraded(material)
    steps = fit(cells, material, submission)
    lab, setting = material.setting(kind, steps)
    exercises = {each.name: each for each in submission.exercises}
    with SandboxedWork(setting, lab.seconds) as work:
        for step in steps:
            work.changed = False
            if step.role is Role.JUDGE:
                _judge(exercises[step.name], lab, work, seed)
            elif step.role is Role.ANSWER:
                exercise = exercises[step.name]
                exercise.text, (exercise.printed, exercise.error) = step.text, _run(step.text, work, lab)
            elif error := _run(step.text, work, lab)[1]:
                submission.failed[step.name] = error
            if work.changed:
                cell = f"the cell of {step.name}" if step.name in exercises else step.name
                submission.notes.append(f"{cell} changes the checker's own functions")
        if work.is_out_of_time:
            submission.notes.append(f"stopped after {lab.seconds:g} s in all")
    for each in submission.exercises:
        if each.verdict.fault:
            submission.troubles.append(f"{each.name}: {each.verdict.fault}")
        if each.name in submission.copied and each.verdict.state != RIGHT:
            submission.look_at.append(f"{each.name} is answered in several cells, and the last one is not right")


def ungraded(material: Material) -> list[Graded]:
    """The lab's exercises, not done yet."""
    return [Graded(exercise.name, exercise.points) for exercise in material.lab]


def _run(text: str, work: SandboxedWork, lab: Lab) -> tuple[str, str]:
    """Run a cell: the end of what it printed, and how it failed, for the student."""
    try:
        printed, error = work.run_cell(text, lab.seconds_per_cell)
    except AnswerError as reason:  # it hung, or its process has ended
        return "", f"The cell was abandoned: {reason}."
    return printed, _sentence(error) if error else ""


def _judge(graded: Graded, lab: Lab, work: SandboxedWork, seed: int) -> None:
    """Fill in the verdict, and its picture unless it is right."""
    try:
        verdict = lab[graded.name].verdict(work.answer(lab.seconds_per_cell), seed)
    except AnswerError as error:  # the time for the lab is over
        verdict = Verdict(WRONG, f"It was not judged: {error}.")
    if verdict.state == NOT_DONE and graded.error:
        verdict = Verdict(WRONG, graded.error)  # not done because its cell failed
    if verdict.picture is not None and verdict.state != RIGHT:
        with suppress(Exception), time_limit(SECONDS_TO_DRAW, "the picture"):  # a page without it says the same
            graded.picture = verdict.picture()
    cut = verdict.text if len(verdict.text) <= _LONGEST_TEXT else f"{verdict.text[:_LONGEST_TEXT]} …"
    graded.verdict = Verdict(verdict.state, cut, verdict.share, fault=verdict.fault)


def _sentence(error: Raised) -> str:
    """What an error in a cell means to the student, with a few words on the limits that show as the system's errors."""
    place = "" if error.line is None else f" in line {error.line}"
    message = f": {error.message}" if error.message else ""
    meaning = next((words for sign, words in _LIMITS.items() if sign == error.kind or sign in error.message), "")
    return f"The cell stopped{place} with {error.kind}{message}{f' ({meaning})' if meaning else ''}"
