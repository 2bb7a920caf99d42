"""Five questions about the four numbers: the hints fit the mistakes."""

import pytest

from distlab.large_batch.quiz import QUESTIONS, feedback

RIGHT = {"global_batch": 800, "steps_per_epoch": 75, "learning_rate": 0.08}
RIGHT |= {"rate_with_4_replicas": 0.08, "rate_in_warm_up": 0.045}


def test_right_answers_are_right_also_when_rounded() -> None:
    assert [line.split(": ")[1] for line in feedback(RIGHT)] == ["right"] * 5
    assert "right" in feedback(RIGHT | {"learning_rate": 0.0801})[2]


def test_nothing_answered_is_no_mistake() -> None:
    unanswered = dict.fromkeys(RIGHT) | {"global_batch": ...}
    assert {line.split(": ")[1] for line in feedback(unanswered)} == {"not answered yet"}


# What students really answer, and a word that only the fitting hint has.
MISTAKES = [
    ("global_batch", 100, "what one replica sees"),
    ("global_batch", 12.5, "each replica's own"),
    ("global_batch", 900, "behind one update"),
    ("steps_per_epoch", 600, "8 epochs under one name"),
    ("steps_per_epoch", 4800, "fewer steps, not more"),
    ("steps_per_epoch", 75 / 8, "takes part in every step"),
    ("learning_rate", 0.01, "may be longer"),
    ("learning_rate", 0.00125, "turned round"),
    ("learning_rate", 0.0283, "square-root rule"),
    ("rate_with_4_replicas", 0.04, "not for the number of replicas"),
    ("rate_with_4_replicas", 0.01, "it is 800 now"),
    ("rate_with_4_replicas", 0.02, "per-replica batch doubled"),
    ("rate_in_warm_up", 0.08, "end of the warm-up"),
    ("rate_in_warm_up", 0.01, "constant warm-up"),
    ("rate_in_warm_up", 0.04, "begins at 0.01"),
    ("rate_in_warm_up", 0.06, "half of the way"),
    ("learning_rate", "0.08", "a number is asked for"),
    ("learning_rate", True, "a number is asked for"),
]


@pytest.mark.parametrize(("name", "answer", "words"), MISTAKES)
def test_a_wrong_answer_gets_the_hint_that_fits_it(name: str, answer: object, words: str) -> None:
    (line,) = [line for line in feedback({name: answer}) if f" {name}: " in line]
    assert "not right" in line and words in line


def test_no_hint_gives_the_answer_away_and_no_mistake_is_the_answer() -> None:
    for question in QUESTIONS:
        for wrong, hint in [*question.mistakes.items(), (None, question.hint)]:
            assert f"{question.answer:g}" not in hint.replace("0.01", "").replace("0, ", "").split()
            assert wrong is None or question.judge(wrong)[0] is False


def test_a_misspelt_name_is_said() -> None:
    assert feedback({"global_bach": 800})[-1] == "there is no question 'global_bach'"


def test_the_answers_follow_from_the_formulas_and_not_from_the_check() -> None:
    assert {question.name: question.answer for question in QUESTIONS} == pytest.approx(RIGHT)
