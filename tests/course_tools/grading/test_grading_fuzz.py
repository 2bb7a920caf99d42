"""A fuzzer over all that comes from students: the grader never crashes, gives no points, leaves nobody out.

300 cases in every run; `FUZZ=20000 pytest -n 0` of this file tries so many, drawn afresh.
"""

import csv
import os
import tempfile
import unicodedata
from datetime import UTC, datetime
from multiprocessing import Pipe
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from course_tools.grading import feedback, grade_class, notebook, submissions
from course_tools.grading.grade import ungraded
from course_tools.grading.material import Material, StepKind
from course_tools.grading.submission import Submission
from course_tools.sandbox import Kind, wire
from distlab.runtime.errors import PlainError
from tests.course_tools.grading import fuzzed
from tests.course_tools.grading.submitted import LAB

pytestmark = pytest.mark.slow
CASES = int(os.environ.get("FUZZ", "300"))
MESSAGES, NOTEBOOKS = 0.5, 0.4
CLASSES = 0.1 / fuzzed.MOST_STUDENTS


def cases(share: float) -> settings:
    """So many of all cases; the same ones each time, unless their number was asked for."""
    return settings(
        max_examples=max(1, round(share * CASES)),
        deadline=None,
        derandomize="FUZZ" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@cases(MESSAGES)
@given(fuzzed.messages)
def test_any_bytes_are_a_plain_message_or_refused(content: bytes) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        os.write(theirs.fileno(), content)
        theirs.close()
        try:
            value = wire.receive(ours)
        except (wire.BrokenMessage, OSError, EOFError):
            return
    ours, theirs = Pipe()
    with ours, theirs:
        wire.send(ours, value)  # plain data only
        assert repr(wire.receive(theirs)) == repr(value)


@cases(NOTEBOOKS)
@given(fuzzed.damaged(fuzzed.notebooks))
def test_any_file_is_read_as_a_notebook_or_refused_and_the_lab_stays_the_lab(sample: Material, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".ipynb") as file:
        Path(file.name).write_bytes(content)
        try:
            cells, _ = notebook.read(Path(file.name))
        except notebook.Unreadable:
            return
    submission = Submission("", LAB, exercises=ungraded(sample))
    steps = notebook.fit(cells, sample, submission)
    kinds = (StepKind.GIVEN, StepKind.JUDGE)
    assert [step for step in steps if step.kind in kinds] == [s for s in sample.steps if s.kind in kinds]
    assert {step.name for step in steps if step.kind is StepKind.ANSWER} <= set(sample.stubs)
    assert all(isinstance(step.text, str) for step in steps)
    assert all(note.isprintable() for note in submission.notes)


@cases(CLASSES)
@given(fuzzed.submissions)
def test_whatever_lies_in_the_folder_every_student_has_a_line_and_no_points(
    sample: Material, kind: Kind, entries: list[tuple[str, tuple[bytes, ...], bytes, int]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "in"), Path(place, "out")
        folder.mkdir()
        out.mkdir()
        fuzzed.hand_in(folder, entries)
        try:
            handed_in = submissions.find(folder, [LAB], datetime(2026, 11, 20, tzinfo=UTC))
        except PlainError as problem:
            assert str(problem).isprintable()
            return
        outcomes = grade_class.run(handed_in, {LAB: sample}, kind, 1, out)
        feedback.write_table(outcomes, out / "grades.csv")
        with (out / "grades.csv").open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        folders = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
        students = {unicodedata.normalize("NFC", entry.name) for entry in folders if entry.name[0] not in "._"}
        assert students <= {outcome.student for outcome in outcomes} and len(rows) == len(outcomes)
        assert {row["score"] for row in rows} <= {"0", ""}
        for text in (cell for row in rows for cell in row.values()):
            assert text.isprintable() and not text.startswith(("=", "+", "-", "@"))
        assert all(line.isprintable() for outcome in outcomes for line in outcome.look_at)
        assert {path.name for path in Path(place).iterdir()} == {"in", "out"}
