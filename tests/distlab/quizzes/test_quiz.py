"""Which questions a quiz has: the same for a seed, others for another one, spread over the chapters."""

import json
from collections import Counter

import pytest

from course_tools.__main__ import main
from distlab import quizzes
from distlab.quizzes import CHAPTERS, draw, page, paper
from distlab.quizzes.quiz import templates


def test_a_seed_gives_the_quiz_and_another_seed_other_numbers() -> None:
    assert draw(["06", "10"], 3, 12) == draw(["06", "10"], 3, 12)
    first, second = (quizzes.ask(6, seed=seed).items for seed in (1, 2))
    assert [item.name for item in first] == [item.name for item in second]
    assert sum(mine != theirs for mine, theirs in zip(first, second, strict=True)) >= 8
    # A question does not depend on how many are asked.
    assert set(map(repr, draw(["06"], 1, 3).items)) <= set(map(repr, first))


def test_an_exam_of_40_takes_equally_many_of_each_chapter_in_order_and_none_twice() -> None:
    items = draw(CHAPTERS, 7, 40).items
    counts = Counter(item.chapter for item in items)
    assert sum(counts.values()) == 40
    assert max(counts.values()) - min(counts.values()) <= 1
    places = [(each.chapter, [one.__name__ for one in templates(each.chapter)].index(each.name)) for each in items]
    assert places == sorted(set(places))


def test_in_a_notebook_a_quiz_is_html_and_elsewhere_text_without_answers() -> None:
    quiz = quizzes.ask("06")
    assert quiz._repr_html_().startswith("<section")
    assert quiz.items[0].text in repr(quiz)
    assert not any(option.explanation in repr(quiz) for item in quiz.items for option in item.options)


def test_the_command_prints_sheets_pages_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    items = draw(["06", "07"], 1, 3).items
    title = "3 questions on chapters 06, 07, seed 1"
    expected = {
        "": paper.markdown(items, title, with_answers=False),
        "--answers": paper.markdown(items, title, with_answers=True),
        "--form=html": page.document(items, title, "quiz-1", with_answers=False),
        "--form=json": paper.as_json(items, 1, with_answers=False),
    }
    for option, text in expected.items():
        assert main(["quiz", "6,07", "--count", "3", *([option] if option else [])]) == 0
        assert capsys.readouterr().out == text + "\n"
    assert main(["quiz", "all", "--count", "40", "--seed", "7", "--form", "json"]) == 0
    assert {question["chapter"] for question in json.loads(capsys.readouterr().out)["questions"]} == set(CHAPTERS)


def test_a_mistake_ends_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quiz", "99"]) == main(["quiz", "06", "--count", "11"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("There is no quiz on chapter '99'; there are")
    assert second == "There are 10 questions on chapter 06; ask for 1 to that many."
