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

import numpy as np
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
from tests.distlab.labs import sample_lab

pytestmark = pytest.mark.slow
CASES = int(os.environ.get("FUZZ", "300"))


def cases(share: float) -> settings:
    """So many of all cases; the same ones each time, unless their number was asked for."""
    checks, same = list(HealthCheck), "FUZZ" not in os.environ
    number = max(1, round(share * CASES))
    return settings(max_examples=number, deadline=None, derandomize=same, database=None, suppress_health_check=checks)


# Texts as a file, a shell, a spreadsheet, a terminal or a browser would not like them; and those that mean something.
NASTY = ["", "\x00", "\ud800", "=1+1", "a;=1+1", "\x1b[2J", "<script>", "{{ 7 * 7 }}", "a\nb", "\u202e", "x" * 300]
KNOWN = ["mean", "check_", "markdown", "steps = 6", "%time", "def f(:", "a" + ".b" * 400, "|O8", "<U9999999", *"tdcba"]
TEXTS = st.sampled_from([*NASTY, *KNOWN]) | st.text(st.characters(), max_size=20)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def damaged(draw: st.DrawFn, whole: object) -> bytes:
    """A document in JSON, of which parts are anything else, and that may be cut off or have other bytes in it."""

    def changed(value: object) -> object:
        if draw(st.integers(0, 7)) == 0:
            return draw(ANYTHING)
        if isinstance(value, list):
            return [changed(item) for item in value]
        return {key: changed(item) for key, item in value.items()} if isinstance(value, dict) else value

    content = json.dumps(changed(whole)).encode()
    place = draw(st.integers(0, len(content)))
    others = [content[:place], content[:place] + draw(st.binary(max_size=4)) + content[place:], draw(st.binary())]
    return draw(st.sampled_from([content, content, *others, b"[" * 100_000]))


MESSAGE = wire._tagged({"a": [1, (2.5, None)], 3: np.arange(3.0), (0, True): b"x", "c": 1j})


@cases(0.5)
@given(damaged(MESSAGE))
def test_any_message_is_plain_or_refused(content: bytes) -> None:
    ours, theirs = Pipe()
    with ours, theirs:
        theirs.send_bytes(content)
        with suppress(wire.BrokenMessage):
            value = wire.receive(ours)
            wire.send(ours, value)  # plain data only
            assert repr(wire.receive(theirs)) == repr(value)


def cell(text: str, **settings: object) -> dict[str, object]:
    return {"cell_type": "code", "source": text, "metadata": {"nbgrader": settings}}


ANSWERS = [cell(text, grade_id=name, solution=True) for name, text in sample_lab.ANSWERS.items()]
NOTEBOOK = {"cells": [cell("import numpy as np"), *ANSWERS, cell("lab.check('mean')", grade_id="check_mean")]}


@cases(0.4)
@given(damaged(NOTEBOOK))
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
MAKERS = {
    "folder": lambda place, content: place.mkdir(),
    # Over a pipe or a link that is there already it would wait for a reader, or write elsewhere.
    "file": lambda place, content: (place.touch(exist_ok=False), place.write_bytes(content)),
    "link": lambda place, content: place.symlink_to(os.fsdecode(content.replace(b"\x00", b"") or b"/etc")),
    "pipe": lambda place, content: os.mkfifo(place),
}
ENTRIES = st.tuples(
    st.sampled_from([*MAKERS, "file"]),
    st.tuples(names, parts, parts) | st.tuples(names, parts) | st.tuples(names),
    st.binary(max_size=30) | st.just(b"2026-01-01 12:00"),
    st.integers(-(2**33), 2**33) | st.sampled_from([10**12, 2**55]),
)
"""How it is made, the parts of a path, a content, and a time in seconds."""


@cases(0.1 / MOST_STUDENTS)
@given(st.lists(ENTRIES, min_size=1, max_size=3 * MOST_STUDENTS))
def test_whatever_lies_in_the_folder_every_student_has_a_line_and_no_points(
    sample: Material, kind: Kind, entries: list[tuple[str, tuple[bytes, ...], bytes, int]]
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder, out = Path(place, "in"), Path(place, "out")
        out.mkdir()
        for how, path, content, time in [("file", (b"zoe", LAB.encode(), b"lab.ipynb"), b"{}", 0), *entries]:
            entry = folder / os.fsdecode(b"/".join(path))
            with suppress(OSError, OverflowError, ValueError):  # what cannot be made is left out
                entry.parent.mkdir(parents=True, exist_ok=True)
                MAKERS[how](entry, content)
                os.utime(entry, (0, time), follow_symlinks=False)
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
