"""Grading one notebook: run, judge, count."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from course_tools.grading import failures, overwritten
from course_tools.grading.failures import Failure
from course_tools.grading.material import LabStep, StepKind
from course_tools.grading.notebook import Fitted
from course_tools.sandbox import SandboxedWork
from distlab.labs.answer import time_limit
from distlab.labs.answer_errors import AnswerError, Changed, TookTooLong
from distlab.labs.lab import Exercise, Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, WRONG, Picture, Verdict

_SECONDS_TO_DRAW = 20.0
_LONGEST_TEXT = 4000  # of a verdict, which may quote an answer
_MOST_NAMED = 3


@dataclass
class Graded:
    """An exercise: the verdict, the points, the answer's text, the end of what it printed, and how its cell failed."""

    exercise: Exercise
    verdict: Verdict
    text: str = ""
    printed: str = ""
    failure: Failure | None = None
    picture: Picture | None = None

    @property
    def points(self) -> float:
        """To a hundredth of a point."""
        return round(self.exercise.points * self.verdict.share, 2)

    @property
    def error(self) -> str:
        """How its cell failed, as a sentence; "" if it did not."""
        return self.failure.sentence if self.failure else ""


@dataclass
class Report:
    """A notebook, graded; `remarks` are sentences for the instructor, in the grader's own words.

    `look_at` are those of them for which the instructor should open the notebook. `failed` are the student's own cells
    that failed. `overwritten` has the cells that failed because another has overwritten a name of the lab, which the
    key says. `troubles` say what went wrong with the grader or its machine: such a report is no grade.
    """

    exercises: list[Graded] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    look_at: list[str] = field(default_factory=list)
    failed: list[tuple[LabStep, Failure]] = field(default_factory=list)
    overwritten: dict[str, dict[str, None]] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)

    @property
    def sentences_on_overwritten(self) -> list[str]:
        """What `overwritten` says, in words."""
        return [f"{cause}, so that {', '.join(cells)} failed" for cause, cells in self.overwritten.items()]

    @property
    def score(self) -> float:
        """The sum of the points."""
        return round(sum(graded.points for graded in self.exercises), 2)

    @property
    def faults(self) -> list[str]:
        """Where a judge failed on an answer: for the instructor to look at."""
        return [f"{graded.exercise.name}: {graded.verdict.fault}" for graded in self.exercises if graded.verdict.fault]

    def remark(self, text: str, look_at: bool) -> None:
        """Add a remark."""
        self.remarks.append(text)
        if look_at:
            self.look_at.append(text)


def grade(lab: Lab, fitted: Fitted, work: SandboxedWork, seed: int) -> Report:
    """Run the steps in the sandbox and judge each exercise as soon as its cell has run, with inputs from `seed`.

    Whatever a cell does, the points of the exercises before it stay, and those after it are judged in a fresh process.
    """
    return _Grading(lab, fitted, work, seed).report_of_all()


class _Grading:
    """What is known while the steps run: the report so far, the answers by exercise, the times of the own cells."""

    def __init__(self, lab: Lab, fitted: Fitted, work: SandboxedWork, seed: int) -> None:
        self._lab, self._fitted, self._work, self._seed = lab, fitted, work, seed
        self._report = Report(remarks=list(fitted.notes))
        self._answers: dict[str, Graded] = {}
        self._seconds: dict[str, float] = {}
        self._later: Sequence[LabStep] = []

    def report_of_all(self) -> Report:
        """Run and judge everything."""
        report, work = self._report, self._work
        work.allow_in_all(self._lab.seconds)
        for place, step in enumerate(self._fitted.steps):
            self._later = self._fitted.steps[place + 1 :]
            before = len(work.changes)
            if step.kind == StepKind.JUDGE:
                answer = self._answers.setdefault(step.name, Graded(self._lab[step.name], Verdict(NOT_DONE)))
                self._judge(answer)
                report.exercises.append(answer)
            else:
                self._run(step)
            if len(work.changes) > before:
                what = {StepKind.JUDGE: "the answer to", StepKind.ANSWER: "the cell of"}.get(step.kind, "the")
                report.remarks.append(f"{what} {step.name} changes the checker's own functions")
        report.remarks += report.sentences_on_overwritten
        report.troubles += work.troubles
        if work.is_out_of_time:
            report.remark(f"stopped after {self._lab.seconds:g} s in all{self._by_own_cells()}", self._is_by_own_cells)
        return report

    def _run(self, step: LabStep) -> None:
        if step.kind == StepKind.ANSWER:
            state = NOT_DONE if step.untouched else WRONG
            self._answers[step.name] = Graded(self._lab[step.name], Verdict(state), step.text)
        was_out_of_time, used = self._work.is_out_of_time, self._work.seconds_used
        failed: Failure | None = None
        printed, ended, overwriting = "", False, ""
        try:
            run = self._work.run_cell(step.text, step.name, self._lab.seconds_per_cell)
            printed = run.printed
            if run.error is not None:
                failed = failures.failure(run.error, self._lab, self._fitted.origin)
                if run.error.kind in overwritten.ERRORS:
                    overwriting = overwritten.where(self._fitted.steps, step)
                if run.error.kind == failures.TOO_MUCH:
                    self._report.remarks.append(f"the cell of {step.name} printed without end")
        except AnswerError as error:  # it hung, or its process has ended
            is_own = step.kind == StepKind.OWN and isinstance(error, TookTooLong)
            note = f"was abandoned: {error}" if is_own else ""
            failed, ended = Failure(f"The cell was abandoned: {error}.", note), not isinstance(error, Changed)
        if failed and overwriting:
            failed = replace(failed, sentence=f"{failed.sentence} ({overwriting})")
        if step.kind == StepKind.ANSWER:
            self._answers[step.name].printed, self._answers[step.name].failure = printed, failed
        if step.kind == StepKind.OWN:
            self._seconds[step.name] = self._work.seconds_used - used
        # What fails for want of time is no fault of its own.
        if failed and overwriting and step.kind != StepKind.ANSWER:
            cells = self._report.overwritten.setdefault(overwriting, {})
            cells["given cells" if step.kind == StepKind.GIVEN else step.name] = None
        elif failed and not was_out_of_time and not self._is_by_own_cells:
            self._note(step, failed, ended)

    def _note(self, step: LabStep, failed: Failure, ended: bool) -> None:
        """Say which cell failed; of an answer only what its judge cannot see."""
        if step.kind == StepKind.GIVEN:
            self._report.remarks.append(f"the given {step.name} failed after the student's cells")
        elif step.kind == StepKind.OWN:
            self._report.failed.append((step, failed))
            self._report.remark(f"the student's own {step.name} {failed.note or 'failed'}", failed.is_of_grading)
        elif ended:
            self._report.remarks.append(f"the cell of {step.name} hung or ended its process")

    def _judge(self, graded: Graded) -> None:
        """Fill in the verdict."""
        if graded.verdict.state == NOT_DONE or graded.verdict.text:
            return
        try:
            verdict = graded.exercise.verdict(self._work.answer(self._lab.seconds_per_cell), self._seed)
        except AnswerError as error:
            verdict = Verdict(WRONG, f"It was not judged: {error}.")
        if not verdict.share and self._is_by_own_cells:
            verdict = Verdict(WRONG, "It was not judged: cells that were added used up the time for the whole lab.")
        elif verdict.state == NOT_DONE and graded.error:
            verdict = Verdict(WRONG, graded.error)  # not done because its cell failed
        if len(verdict.text) > _LONGEST_TEXT:
            verdict = replace(verdict, text=f"{verdict.text[:_LONGEST_TEXT]} …")
        if verdict.state != RIGHT:
            said = verdict.text
            verdict = replace(
                verdict, text=f"{verdict.text}{self._cause_in_own_cell(f'{verdict.text} {graded.error}')}"
            )
            if graded.failure and graded.failure.note:
                name = f"the cell of {graded.exercise.name}"
                self._report.remark(f"{name} {graded.failure.note}", graded.failure.is_of_grading)
            elif any(kind in said for kind in failures.MISSING) and (
                cause := failures.missing(said, self._fitted.origin)
            ):  # its function misses it
                self._report.remark(f"the answer to {graded.exercise.name} failed: {cause}", look_at=True)
        graded.verdict = verdict
        if verdict.picture is not None and verdict.state != RIGHT:
            with suppress(Exception), time_limit(_SECONDS_TO_DRAW, "the picture"):  # a page without it says the same
                graded.picture = verdict.picture()

    def _cause_in_own_cell(self, text: str) -> str:
        """A sentence on an own cell that failed or comes later, if `text` misses a name that is in it; else "".

        One that comes later is also a remark: it ran before on the student's machine.
        """
        names = re.findall(r"name '(\w+)' is not defined", text)[:_MOST_NAMED]
        for step, failed in self._report.failed:
            for name in names:
                if re.search(rf"\b{name}\b", step.text):
                    return f" {step.title}, which has `{name}`, failed: {failed.sentence}"
        for step in self._later:
            for name in names:
                if step.kind == StepKind.OWN and re.search(
                    rf"^((async )?def {name}\b|{name} *=)", step.text, re.MULTILINE
                ):
                    self._report.remark(
                        f"an answer needs the student's own {step.name}, which comes later", look_at=True
                    )
                    return f" {step.title}, which defines `{name}`, comes later: cells run from the top."
        return ""

    @property
    def _is_by_own_cells(self) -> bool:
        """Whether the time for the lab is used up, most of it by cells that the student added."""
        return self._work.is_out_of_time and sum(self._seconds.values()) >= self._lab.seconds / 2

    def _by_own_cells(self) -> str:
        if not self._is_by_own_cells:
            return ""
        slowest = sorted(self._seconds, key=lambda name: -self._seconds[name])
        named = ", ".join(slowest[:_MOST_NAMED]) + (", …" if len(slowest) > _MOST_NAMED else "")
        return f": the student's own cells took {sum(self._seconds.values()):.0f} s ({named})"
