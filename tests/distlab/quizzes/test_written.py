"""`distlab quiz`: what it prints, and its sentences about mistakes."""

import json

import pytest

from course_tools.__main__ import main
from distlab.quizzes import CHAPTERS, page, paper, quiz


def test_the_questions_are_printed_without_answers_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    drawn = quiz.draw(["06"], 1, 3)
    assert main(["quiz", "06", "--seed", "1", "--count", "3"]) == 0
    title = "3 questions on chapter 06, seed 1"
    assert capsys.readouterr().out == paper.markdown(drawn.items, title, with_answers=False) + "\n"
    assert main(["quiz", "06", "--seed", "1", "--count", "3", "--answers"]) == 0
    assert capsys.readouterr().out == paper.markdown(drawn.items, title, with_answers=True) + "\n"


def test_an_exam_of_all_chapters_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quiz", "all", "--count", "40", "--seed", "7", "--answers", "--form", "json"]) == 0
    questions = json.loads(capsys.readouterr().out)["questions"]
    assert len(questions) == 40
    assert {question["chapter"] for question in questions} == set(CHAPTERS)
    assert all(any(answer["right"] for answer in question["answers"]) for question in questions)


def test_a_page_of_two_chapters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quiz", "07", "10", "--count", "4", "--form", "html"]) == 0
    items = quiz.draw(["07", "10"], 1, 4).items
    expected = page.document(items, "4 questions on chapters 07, 10, seed 1", "quiz-1", with_answers=False)
    assert capsys.readouterr().out == expected + "\n"


def test_chapters_may_be_written_as_elsewhere_in_the_course(capsys: pytest.CaptureFixture[str]) -> None:
    said = [(main(["quiz", *chapters]), capsys.readouterr().out) for chapters in (["06", "07"], ["6,07"], ["06, 7"])]
    assert said == [said[0]] * 3 and said[0][0] == 0


def test_the_title_tells_quizzes_of_one_seed_apart(capsys: pytest.CaptureFixture[str]) -> None:
    titles = []
    for count in ("1", "2"):
        assert main(["quiz", "06", "--seed", "3", "--count", count]) == 0
        titles.append(capsys.readouterr().out.splitlines()[0])
    assert titles == ["# 1 question on chapter 06, seed 3", "# 2 questions on chapter 06, seed 3"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["99"], "There is no quiz on chapter '99'; there are"),
        (["06", "--count", "11"], "There are 10 questions on chapter 06; ask for 1 to that many."),
    ],
)
def test_a_mistake_ends_in_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["quiz", *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(sentence)
    assert error.count("\n") == 1
