"""Verdicts, and the texts of hints."""

import pytest

from distlab.labs import NOT_DONE, WRONG, Advice, Hint, not_done, parts, right, wrong


class SampleHint(Hint):
    BRACES = 'write {"cluster": {…}} as JSON'
    FILLED = '{sent} messages, {share:.0%} of {names!r}, as in {"cluster": 1}'
    TURNED = "turn it round"


def test_braces_that_are_no_placeholders_stay() -> None:
    assert SampleHint.BRACES.says().text == 'write {"cluster": {…}} as JSON'
    filled = SampleHint.FILLED.says(sent=4, share=0.25, names="{sent}")
    assert str(filled) == "4 messages, 25% of '{sent}', as in {\"cluster\": 1}"


def test_a_wrong_verdict_has_the_ids_of_its_hints_and_the_context_before_the_text() -> None:
    verdict = wrong(SampleHint.TURNED, 0.5, context="On rank 3: ")
    assert (verdict.state, verdict.text, verdict.hints) == (WRONG, "On rank 3: turn it round", (SampleHint.TURNED,))
    assert wrong("it raised ValueError").hints == ()
    assert Advice.of(SampleHint.TURNED).after("Then ").text == "Then turn it round"


def test_independent_parts_give_points_in_proportion_with_each_hint() -> None:
    verdicts = {"first": right(), "second": wrong(SampleHint.TURNED), "third": right(), "fourth": wrong("x", 0.5)}
    some = parts(verdicts)
    assert some.state == WRONG
    assert some.share == pytest.approx(2.5 / 4)
    assert "2 of 4" in some.text and "second: wrong: turn it round" in some.text
    assert some.hints == (SampleHint.TURNED,)
    assert parts({"count": right(), "seconds": wrong("x")}, weights={"count": 3, "seconds": 1}).share == 0.75
    assert parts({"first": right(), "second": right()}).share == 1
    assert parts({"first": not_done("empty"), "second": not_done()}).state == NOT_DONE


def test_a_long_hint_is_printed_once_for_parts_with_different_contexts() -> None:
    hint = "each replica divides by its own words, and the strategy adds. What is the sum of these means?"
    verdicts = {"equal": wrong(hint, context="3 words: "), "unequal": wrong(hint, context="4 and 2 words: ")}
    assert parts(verdicts).text.splitlines()[1:] == [
        f"equal: wrong: 3 words: {hint}",
        'unequal: wrong: 4 and 2 words: the same as for "equal".',
    ]
