"""A quiz as Markdown, text and JSON."""

import json

from distlab import quizzes
from distlab.quizzes import Kind, paper

ITEMS = quizzes.ask("06", seed=4).items


def test_a_sheet_has_every_question_and_option_and_no_answer() -> None:
    sheet = paper.markdown(ITEMS, "Exam", with_answers=False)
    for item in ITEMS:
        assert item.text in sheet
        assert item.kind is Kind.NUMBER or all(f") {option.text}\n" in sheet for option in item.options)
        assert not any(option.explanation in sheet for option in item.options)
    assert "# Answers" not in sheet


def test_the_answers_follow_after_the_questions_and_name_each_mistake() -> None:
    sheet, _, answers = paper.markdown(ITEMS, "Exam", with_answers=True).partition("# Answers")
    assert sheet == paper.markdown(ITEMS, "Exam", with_answers=False) + "\n" * sheet.endswith("\n\n")
    for place, item in enumerate(ITEMS, 1):
        assert f"{place}. **{paper.answer(item)}**" in answers
        assert all(f"{option.mistake}. {option.explanation}" in answers for option in item.wrong_options)


def test_json_has_answers_only_if_they_are_asked_for() -> None:
    without, with_answers = (json.loads(paper.as_json(ITEMS, 4, asked)) for asked in (False, True))
    assert without["seed"] == 4
    assert not any("answers" in entry or "tolerance" in entry for entry in without["questions"])
    for entry, item in zip(with_answers["questions"], ITEMS, strict=True):
        assert [answer["right"] for answer in entry["answers"]] == [option.is_right for option in item.options]
        assert entry["kind"] == item.kind.value
