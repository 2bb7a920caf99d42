"""Ways to forge what is seen next to the student's code, in labs that are graded for marks: each earns nothing.

Every cell here holds a wrong answer and a forgery that would hide it. The exercises before and after keep their points.
"""

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from course_tools.grading import material, notebook
from course_tools.grading.grade import Graded, Report, grade
from course_tools.grading.material import Material
from course_tools.grading.notebook import SubmittedCell
from course_tools.sandbox import SandboxedWork, Server
from distlab.labs import OwnAnswer
from distlab.labs.verdict import RIGHT
from tests.course_tools.grading.forgeries import (
    HABITS,
    HABITS_WITH_TENSORFLOW,
    HUGE_MESSAGES,
    KNOWS_THE_TAGS,
    LEAVES_ITS_COPY,
    LOCKS,
    MANY_STEPS,
    MIRRORED,
    MODEL,
    RING,
    RING_TAKEN,
    SAVE,
    SAVES_EVERYWHERE,
    SECONDS,
    START,
    TAKEN,
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="sandboxes with namespaces are Linux's"),
]


@cache
def lab(number: str) -> Material:
    """A lab of the course."""
    (source,) = (Path(__file__).parents[3] / "labs").glob(f"{number}_*/lab.py")
    return material.load(source)


@pytest.fixture(scope="module")
def plain_server() -> Iterator[Server]:
    with Server(sorted(lab("06").modules | lab("07").modules), hidden=lab("06").hidden + lab("07").hidden) as server:
        yield server


@pytest.fixture(scope="module")
def tensorflow_server() -> Iterator[Server]:
    with Server(sorted(lab("02").modules | lab("03").modules | lab("09").modules)) as server:
        yield server


def graded(server: Server, number: str, exercise: str = "", answer: str = "") -> Report:
    """The lab with its solutions, graded; one of them replaced."""
    solved = {step.name: step.text for step in lab(number).steps if step.kind == "answer"}
    cells = [
        SubmittedCell(text, name, is_answer=True)
        for name, text in (solved | ({exercise: answer} if exercise else {})).items()
    ]
    fitted = notebook.fit(cells, lab(number).steps, lab(number).stubs)
    with SandboxedWork(server, lab(number).limits, lab(number).files) as work:
        return grade(lab(number).lab, fitted, work, seed=3)


def forged(server: Server, number: str, exercise: str, answer: str, most: float = 0.0) -> Graded:
    """The judgement on a forgery, which may earn the share `most`; the others' solutions keep their points."""
    report = graded(server, number, exercise, answer)
    assert not report.faults
    for graded_exercise in report.exercises:
        if graded_exercise.exercise.name != exercise:
            assert graded_exercise.points == graded_exercise.exercise.points, graded_exercise
    (judged,) = [graded for graded in report.exercises if graded.exercise.name == exercise]
    assert judged.verdict.state != RIGHT
    assert judged.verdict.share <= most, judged.verdict
    return judged


@pytest.mark.parametrize("answer", SAVE.values(), ids=SAVE)
def test_what_save_does_cannot_be_hidden(plain_server: Server, answer: str) -> None:
    forged(plain_server, "07", "save", answer)


@pytest.mark.parametrize("answer", [SAVES_EVERYWHERE, LEAVES_ITS_COPY])
def test_without_a_forgery_the_same_answers_get_their_hint(plain_server: Server, answer: str) -> None:
    said = forged(plain_server, "07", "save", answer).verdict.text
    assert "write model.keras at the same path" in said or "folder for temporary files" in said


@pytest.mark.parametrize("answer", RING.values(), ids=RING)
def test_that_an_input_was_changed_cannot_be_hidden(plain_server: Server, answer: str) -> None:
    forged(plain_server, "06", "ring_all_reduce", answer, most=0.75)


@pytest.mark.parametrize("answer", LOCKS.values(), ids=LOCKS)
def test_ranks_cannot_talk_by_locks_of_files(plain_server: Server, answer: str) -> None:
    assert "Function not implemented" in forged(plain_server, "06", "ring_all_reduce", answer).verdict.text


def test_ranks_that_know_what_nobody_has_sent_get_nothing() -> None:
    namespace: dict[str, object] = {"np": np}
    exec(f"{LOCKS['and sends nothing']}\nask = lambda *anything: None", namespace)  # in one process they need no locks
    verdict = lab("06").lab["ring_all_reduce"].verdict(OwnAnswer(namespace), 3)
    assert "what a rank needs from others must come in messages" in verdict.text and verdict.share == 0


def test_sums_that_are_known_without_messages_earn_nothing(plain_server: Server) -> None:
    forged(plain_server, "06", "ring_all_reduce", KNOWS_THE_TAGS)


def test_messages_of_any_size_cost_the_judge_and_the_drawing_little(plain_server: Server) -> None:
    judged = forged(plain_server, "06", "ring_all_reduce", HUGE_MESSAGES)
    assert "A round is missing" in judged.verdict.text
    assert judged.picture is not None


def test_a_picture_of_many_steps_shows_the_first_twenty(plain_server: Server) -> None:
    picture = forged(plain_server, "06", "ring_all_reduce", MANY_STEPS).picture
    assert picture is not None
    assert len(picture.svg) < 500_000 and len(picture.description) <= 4000
    assert "Step 20:" in picture.description


def test_code_that_changes_the_checker_is_told_what_it_changed(plain_server: Server) -> None:
    report = graded(plain_server, "07", "save", SAVE["replaces it under a name that is put together"])
    said = report.exercises[-1].verdict.text
    assert "the checker's own functions" in said
    assert "lab_07.observe" in said
    assert "the cell of save changes the checker's own functions" in report.remarks


def test_a_collective_of_the_course_is_no_answer_of_one_s_own(plain_server: Server) -> None:
    said = forged(plain_server, "06", "ring_all_reduce", RING_TAKEN).verdict.text
    assert "distlab.collectives" in said


@pytest.mark.long
@pytest.mark.parametrize("answer", TAKEN.values(), ids=TAKEN)
def test_an_answer_taken_from_the_judges_is_none(tensorflow_server: Server, answer: str) -> None:
    forged(tensorflow_server, "03", "numbers", answer)


@pytest.mark.parametrize("answer", SECONDS.values(), ids=SECONDS)
def test_time_is_taken_outside(tensorflow_server: Server, answer: str) -> None:
    forged(tensorflow_server, "02", "elapsed_seconds", answer)


@pytest.mark.parametrize("answer", MODEL.values(), ids=MODEL)
def test_keras_cannot_be_made_to_say_what_is_expected(tensorflow_server: Server, answer: str) -> None:
    forged(tensorflow_server, "02", "make_model", answer)


@pytest.mark.parametrize("answer", MIRRORED.values(), ids=MIRRORED)
def test_one_device_cannot_pass_for_two(tensorflow_server: Server, answer: str) -> None:
    forged(tensorflow_server, "03", "mirrored", answer)


@pytest.mark.parametrize("answer", START.values(), ids=START)
def test_what_start_does_cannot_be_hidden(tensorflow_server: Server, answer: str) -> None:
    forged(tensorflow_server, "09", "start", answer)


def test_what_students_usually_do_changes_nothing_of_the_checker(tensorflow_server: Server) -> None:
    with SandboxedWork(tensorflow_server, lab("03").limits) as work:
        for text in (HABITS, HABITS_WITH_TENSORFLOW):
            assert work.run_cell(text, "habits", 60).error is None
        assert work.changes == []


@pytest.mark.parametrize("number", ["06", "07"])
def test_solutions_keep_full_marks(plain_server: Server, number: str) -> None:
    report = graded(plain_server, number)
    assert (report.score, report.remarks) == (lab(number).lab.points, [])


@pytest.mark.parametrize("number", ["02", "03", "09"])
def test_solutions_with_tensorflow_keep_full_marks(tensorflow_server: Server, number: str) -> None:
    report = graded(tensorflow_server, number)
    assert (report.score, report.remarks) == (lab(number).lab.points, [])
