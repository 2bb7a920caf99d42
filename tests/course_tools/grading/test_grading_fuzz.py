"""A fuzzer over all that comes from students: the grader never crashes, gives no points, leaves nobody out.

300 cases in every run; `FUZZ=20000 pytest -n 0` of this file tries so many, drawn afresh.
"""

import csv
import json
import os
import tempfile
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing import Pipe
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from course_tools.grading import feedback, grade_class, notebook, submissions
from course_tools.grading.grade import ungraded
from course_tools.grading.notebook import Material, Role
from course_tools.grading.submissions import Submission
from course_tools.sandbox import Kind, wire
from distlab.runtime.errors import PlainError
from tests.course_tools.grading.submitted import LAB

pytestmark = pytest.mark.slow
CASES = int(os.environ.get("FUZZ", "300"))


def cases(share: float) -> settings:
    """So many of all cases; the same ones each time, unless their number was asked for."""
    return settings(
        max_examples=max(1, round(share * CASES)),
        deadline=None,
        derandomize="FUZZ" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def json_of(leaves: st.SearchStrategy, keys: st.SearchStrategy[str]) -> st.SearchStrategy:
    """What JSON has: these values, and lists and objects of them."""
    both = lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)  # noqa: E731
    return st.recursive(leaves, both, max_leaves=12)


@st.composite
def damaged(draw: st.DrawFn, values: st.SearchStrategy) -> bytes:
    """JSON of one of the values, cut off or damaged in places, or anything."""
    content = json.dumps(draw(values)).encode()
    place = draw(st.integers(0, len(content)))
    others = [content[:place], content[:place] + draw(st.binary(max_size=4)) + content[place:], draw(st.binary())]
    return draw(st.sampled_from([content, content, *others, b"[" * 100_000]))


NUMBERS = st.integers(-(2**70), 2**70) | st.floats()
SIGNS = st.sampled_from(["<f8", "|b1", "<U3", "|O8", "<U9999999", "AAAAAAAAAAA=", "\ud800"]) | st.text(max_size=8)
ARRAYS = st.tuples(SIGNS, st.lists(st.integers(-1, 2), max_size=2), SIGNS).map(lambda parts: {"a": parts})
PLAIN = json_of(st.none() | st.booleans() | NUMBERS | SIGNS | ARRAYS, st.sampled_from("ttddccbbaax"))
MESSAGES = st.binary(max_size=40) | damaged(PLAIN).map(lambda content: len(content).to_bytes(4, "big") + content)


@cases(0.5)
@given(MESSAGES)
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


# Texts as a file, a shell, a spreadsheet, a terminal or a browser would not like them.
NASTY = ["", "\x00", "\ud800", "=1+1", "a;=1+1", "\x1b[2J", "<script>", "{{ 7 * 7 }}", "a\nb", "\u202e", "x" * 300]
TEXTS = st.sampled_from([*NASTY, "../x"]) | st.text(st.characters(), max_size=20)
ANYTHING = json_of(st.none() | st.booleans() | st.integers() | st.floats() | TEXTS, TEXTS)
GRADE_IDS = st.sampled_from(["mean", "steps", "all_gather", "check_mean", "check_", "no such"]) | ANYTHING
SOURCES = ["steps = 6", "lab.check('steps')", "import numpy as np", "%time", "def f(:", "!ls\n?x", "a" + ".b" * 400]
SETTINGS = st.fixed_dictionaries({"grade_id": GRADE_IDS, "solution": st.booleans() | ANYTHING}) | ANYTHING
CELL = {
    "cell_type": st.sampled_from(["code", "markdown", "raw"]) | ANYTHING,
    "source": st.sampled_from(SOURCES) | st.lists(TEXTS, max_size=3) | ANYTHING,
    "metadata": st.fixed_dictionaries({"nbgrader": SETTINGS}) | ANYTHING,
}
CELLS = st.lists(st.fixed_dictionaries(CELL) | ANYTHING, max_size=8)


@cases(0.4)
@given(damaged(st.fixed_dictionaries({"cells": CELLS | ANYTHING}) | ANYTHING))
def test_any_file_is_read_as_a_notebook_or_refused_and_the_lab_stays_the_lab(sample: Material, content: bytes) -> None:
    with tempfile.NamedTemporaryFile(suffix=".ipynb") as file:
        Path(file.name).write_bytes(content)
        try:
            cells = notebook.read(Path(file.name))
        except notebook.Unreadable:
            return
    submission = Submission("", LAB, exercises=ungraded(sample))
    steps = notebook.fit(cells, sample, submission)
    given = [step for step in steps if step.role in (Role.GIVEN, Role.JUDGE)]
    assert given == [step for step in sample.steps if step.role is not Role.ANSWER]
    answers = {step.name for step in steps if step.role is Role.ANSWER}
    assert answers <= {exercise.name for exercise in sample.lab}
    assert all(isinstance(step.text, str) for step in steps)
    assert all(note.isprintable() for note in submission.notes)


MOST_STUDENTS = 5
NAMES = [b"ada", b"=bob", b"a;=1+1", b"\xe9mile", b"\x1b[2J", b"_x", b".x", b"a\nb", b"-", b"x" * 255, b"students.txt"]
PARTS = [LAB.encode(), LAB.encode(), b"90", b"90 x", b"90-\xe9", b"lab.ipynb", b"timestamp.txt", b"x.ipynb", b"=1.zip"]
names = st.sampled_from(NAMES) | st.binary(min_size=1, max_size=12).map(lambda name: name.translate(None, b"/\x00."))
parts = st.sampled_from(PARTS) | names
ENTRIES = st.tuples(
    st.sampled_from(["folder", "file", "file", "link", "pipe"]),
    st.tuples(names, parts, parts) | st.tuples(names, parts) | st.tuples(names),
    st.binary(max_size=30) | st.just(b"2026-01-01 12:00"),
    st.integers(-(2**33), 2**33) | st.sampled_from([10**12, 2**55]),
)
"""A kind, the parts of a path, a content, and a time in seconds."""


def hand_in(folder: Path, entries: list[tuple[str, tuple[bytes, ...], bytes, int]]) -> None:
    """Make these entries below a folder; what cannot be made is left out."""
    for kind, path, content, time in [("file", (b"zoe", LAB.encode(), b"lab.ipynb"), b"{}", 0), *entries]:
        place = folder / os.fsdecode(b"/".join(path))
        with suppress(OSError, OverflowError, ValueError):
            place.parent.mkdir(parents=True, exist_ok=True)
            match kind:
                case "folder":
                    place.mkdir()
                case "file":
                    with place.open("xb") as stream:  # a pipe that is there already would wait for a reader
                        stream.write(content)
                case "link":
                    place.symlink_to(os.fsdecode(content.replace(b"\x00", b"") or b"/etc"))
                case "pipe":
                    os.mkfifo(place)
            os.utime(place, (0, time), follow_symlinks=False)


@cases(0.1 / MOST_STUDENTS)
@given(st.lists(ENTRIES, min_size=1, max_size=3 * MOST_STUDENTS))
def test_whatever_lies_in_the_folder_every_student_has_a_line_and_no_points(
    sample: Material, kind: Kind, entries: list[tuple[str, tuple[bytes, ...], bytes, int]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "in"), Path(place, "out")
        folder.mkdir()
        out.mkdir()
        hand_in(folder, entries)
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
