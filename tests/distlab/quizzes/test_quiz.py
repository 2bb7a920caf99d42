"""Which questions a quiz has: the same for a seed, others for another one, spread over the chapters."""

import subprocess
import sys
from collections import Counter

import pytest

from distlab import quizzes
from distlab.quizzes import CHAPTERS, TooFewQuestions, draw
from distlab.quizzes.quiz import templates
from distlab.runtime.lookups import NoSuchName


def test_the_same_seed_gives_the_same_quiz() -> None:
    assert draw(["06", "10"], 3, 12) == draw(["06", "10"], 3, 12)


def test_another_seed_gives_other_numbers() -> None:
    first, second = (quizzes.ask("06", seed=seed).items for seed in (1, 2))
    assert [item.name for item in first] == [item.name for item in second]
    assert sum(mine != theirs for mine, theirs in zip(first, second, strict=True)) >= 8


def test_a_question_does_not_depend_on_how_many_are_asked() -> None:
    few = draw(["06"], 5, 3).items
    assert set(map(repr, few)) <= set(map(repr, draw(["06"], 5, 10).items))


def test_an_exam_of_40_takes_equally_many_of_each_chapter_and_none_twice() -> None:
    items = draw(CHAPTERS, 7, 40).items
    counts = Counter(item.chapter for item in items)
    assert sum(counts.values()) == 40
    assert max(counts.values()) - min(counts.values()) <= 1
    assert len({(item.chapter, item.name) for item in items}) == 40


def test_chapters_and_questions_are_in_the_order_of_the_text() -> None:
    items = draw(["06", "07"], 2, 9).items
    places = [
        (item.chapter, [template.__name__ for template in templates(item.chapter)].index(item.name)) for item in items
    ]
    assert places == sorted(places)


def test_a_chapter_that_is_missing_is_named() -> None:
    with pytest.raises(NoSuchName, match="no quiz on chapter '99'; there are "):
        quizzes.ask("99")


@pytest.mark.parametrize("count", [0, 11])
def test_more_questions_than_there_are_end_in_a_sentence(count: int) -> None:
    with pytest.raises(TooFewQuestions, match="There are 10 questions on chapter 06"):
        quizzes.ask("06", count=count)


def test_in_a_notebook_a_quiz_is_html_and_elsewhere_text_without_answers() -> None:
    quiz = quizzes.ask("06")
    assert quiz._repr_html_().startswith("<section")
    assert quiz.items[0].text in repr(quiz)
    assert not any(option.explanation in repr(quiz) for item in quiz.items for option in item.options)


@pytest.mark.slow
def test_quizzes_need_no_tensorflow() -> None:
    lines = ("import sys", "from distlab import quizzes", "quizzes.draw(quizzes.CHAPTERS, 1, 40)")
    program = "\n".join([*lines, "print('tensorflow' in sys.modules)"])
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "False\n"


@pytest.mark.parametrize("chapter", [6, "6", "06"])
def test_a_chapter_is_a_number_or_its_text(chapter: str | int) -> None:
    assert quizzes.ask(chapter).chapters == ("06",)
