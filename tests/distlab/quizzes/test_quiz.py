"""Which questions a quiz has, on paper and for programs: the same for a seed, spread over the chapters."""

import json
from collections import Counter

import pytest

from course_tools.__main__ import main
from distlab import quizzes
from distlab.quizzes import CHAPTERS, Kind, draw, page, paper
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


def test_a_sheet_has_every_question_and_option_and_the_answers_with_each_mistake_only_if_asked_for() -> None:
    quiz = quizzes.ask("06", seed=4)
    sheet, answers = (paper.markdown(quiz.items, "Exam", with_answers) for with_answers in (False, True))
    assert answers.startswith(sheet.rstrip())
    for place, item in enumerate(quiz.items, 1):
        assert item.text in sheet and item.text in repr(quiz)
        assert item.kind is Kind.NUMBER or all(f") {option.text}\n" in sheet for option in item.options)
        assert not any(option.explanation in text for option in item.options for text in (sheet, repr(quiz)))
        assert f"{place}. **{paper.answer(item)}**" in answers
        assert all(f"{option.mistake}. {option.explanation}" in answers for option in item.wrong_options)
    assert quiz._repr_html_().startswith("<section")


def test_the_command_prints_sheets_pages_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    items = draw(["06", "07"], 1, 3).items
    title = "3 questions on chapters 06, 07, seed 1"
    expected = {
        "": paper.markdown(items, title, with_answers=False),
        "--answers": paper.markdown(items, title, with_answers=True),
        "--form=html": page.document(items, title, "quiz-1", with_answers=False),
    }
    for option, text in expected.items():
        assert main(["quiz", "6,07", "--count", "3", *([option] if option else [])]) == 0
        assert capsys.readouterr().out == text + "\n"


def test_json_has_answers_only_if_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    items, printed = draw(CHAPTERS, 7, 40).items, []
    for option in ([], ["--answers"]):
        assert main(["quiz", "all", "--count", "40", "--seed", "7", "--form", "json", *option]) == 0
        printed.append(json.loads(capsys.readouterr().out))
    without, with_answers = printed
    assert without["seed"] == 7
    assert not any("answers" in entry or "tolerance" in entry for entry in without["questions"])
    for entry, item in zip(with_answers["questions"], items, strict=True):
        assert (entry["chapter"], entry["kind"]) == (item.chapter, item.kind.value)
        assert [answer["right"] for answer in entry["answers"]] == [option.is_right for option in item.options]


def test_a_mistake_ends_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quiz", "99"]) == main(["quiz", "06", "--count", "11"]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("There is no quiz on chapter '99'; there are")
    assert second == "There are 10 questions on chapter 06; ask for 1 to that many."
