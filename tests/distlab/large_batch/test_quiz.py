"""Five questions about the four numbers: the hints fit the mistakes."""

import pytest

from distlab.large_batch.quiz import QUESTIONS, feedback

RIGHT = {"global_batch": 800, "steps_per_epoch": 75, "learning_rate": 0.08}
RIGHT |= {"rate_with_4_replicas": 0.08, "rate_in_warm_up": 0.045}


def test_right_answers_are_right_and_nothing_answered_is_no_mistake() -> None:
    assert [line.split(": ")[1] for line in feedback(RIGHT | {"learning_rate": 0.0801})] == ["right"] * 5
    unanswered = dict.fromkeys(RIGHT) | {"global_batch": ...}
    assert {line.split(": ")[1] for line in feedback(unanswered)} == {"not answered yet"}
    assert {question.name: question.answer for question in QUESTIONS} == pytest.approx(RIGHT)


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


def test_a_wrong_answer_gets_the_hint_that_fits_it() -> None:
    for name, answer, words in MISTAKES:
        (line,) = [line for line in feedback({name: answer}) if f" {name}: " in line]
        assert "not right" in line and words in line
