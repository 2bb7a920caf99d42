"""The table of grades and the pages of feedback."""

from pathlib import Path

import pytest

from course_tools.grading import feedback
from course_tools.grading.failures import Failure
from course_tools.grading.feedback import Grade
from course_tools.grading.grade import Graded, Report
from distlab.labs import NOT_DONE, RIGHT, WRONG, Picture, State, Verdict
from tests.course_tools.grading.submitted import LAB
from tests.distlab.labs import sample_lab

EXERCISE = sample_lab.lab().exercises[0]


def test_a_text_that_looks_like_a_formula_stays_a_text_in_the_table(tmp_path: Path) -> None:
    file = feedback.write_table([Grade("@x", LAB, 1.5, 6, "-1\n+2")], tmp_path / "grades.csv")
    assert file.read_text().splitlines()[1] == f"'@x,{LAB},1.5,6,'-1 +2"


def page_of(graded: Graded, folder: Path, note: str = "") -> str:
    grade = Grade("<b>alice", LAB, graded.points, 2.0, note)
    return feedback.write_page(grade, Report([graded]), "No access to 'the network'.", folder).read_text()


def test_a_page_shows_everything_of_a_student_s_as_text(tmp_path: Path) -> None:
    hostile = "<script>alert('x')</script> {{ 7 * 7 }}"
    picture = Picture("<svg><script/></svg>", "a <ring>")
    graded = Graded(EXERCISE, Verdict(WRONG, hostile, 0.25), hostile, hostile, Failure(f"{hostile}!"), picture)
    page = page_of(graded, tmp_path, hostile)
    assert "<script" not in page and "<b>" not in page and "<ring>" not in page
    assert page.count("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; {{ 7 * 7 }}") == 5
    assert "0.5 of 2 points" in page
    assert 'alt="a &lt;ring&gt;" src="data:image/svg+xml;base64,PHN2Zz4' in page
    assert "No access to &#39;the network&#39;." in page


@pytest.mark.parametrize(
    ("state", "sign", "has_answer"),
    [(RIGHT, "✔ right", True), (WRONG, "✘ not right. count", True), (NOT_DONE, "… not done. count", False)],
)
def test_a_page_shows_the_verdict_and_the_answer(tmp_path: Path, state: State, sign: str, has_answer: bool) -> None:
    page = page_of(Graded(EXERCISE, Verdict(state, "" if state == RIGHT else "count"), "steps = 1"), tmp_path)
    assert f">{sign}</p>" in page
    assert ("steps = 1" in page) == has_answer
    assert "its output" not in page and "<img" not in page


def test_a_text_that_cannot_be_written_is_shown_with_its_codes(tmp_path: Path) -> None:
    assert "\\ud800" in page_of(Graded(EXERCISE, Verdict(WRONG, "\ud800")), tmp_path)
