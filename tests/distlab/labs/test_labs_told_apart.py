"""Known answers that start TensorFlow: every one gets its verdict, and no two wrong ones of an exercise one text."""

import pytest

from tests.distlab.labs.judged_apart import WITH_TENSORFLOW, printed_apart


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted({number for number, _ in WITH_TENSORFLOW}))
def test_known_answers_are_told_apart(number: str) -> None:
    for by_title in printed_apart("tests.distlab.labs.judged_apart", number).values():
        assert len(by_title) == len(set(by_title.values())) >= 5, by_title
