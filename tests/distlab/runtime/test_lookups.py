"""Names in a table, and the sentence when there is no such name."""

import pytest

from distlab.runtime.lookups import NoSuchName, look_up, require_name

SCHEDULES = {"constant": 1, "gradual": 2}


class NoSuchSchedule(NoSuchName):
    """An error of a package's own."""


def test_the_entry_of_that_name_is_returned() -> None:
    assert look_up(SCHEDULES, "gradual", "schedule") == 2


@pytest.mark.parametrize("kind", [NoSuchSchedule, ValueError, LookupError])
def test_a_missing_name_ends_in_a_sentence_that_lists_the_names_in_order(kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"^There is no schedule 'linear'; there are constant, gradual\.$"):
        look_up(SCHEDULES, "linear", "schedule", NoSuchSchedule)


def test_without_any_name_the_sentence_says_so() -> None:
    with pytest.raises(NoSuchName, match=r"^There is no lab '02'; there are none\.$"):
        require_name((), "02", "lab")
