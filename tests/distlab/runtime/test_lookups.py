"""Names in a table, and the sentence when there is no such name."""

import re

import pytest

from distlab.runtime.lookups import NoSuchName, look_up, require_name

SCHEDULES = {"constant": 1, "gradual": 2}


class NoSuchSchedule(NoSuchName):
    """An error of a package's own."""


def test_the_entry_of_that_name_is_returned() -> None:
    assert look_up(SCHEDULES, "gradual", "schedule") == 2


def test_a_missing_name_ends_in_a_sentence_that_lists_the_names_in_order() -> None:
    sentence = "There is no schedule 'linear'; there are constant, gradual."
    with pytest.raises(NoSuchName, match=f"^{re.escape(sentence)}$"):
        look_up(SCHEDULES, "linear", "schedule")


def test_without_any_name_the_sentence_says_so() -> None:
    with pytest.raises(NoSuchName, match=r"^There is no lab '02'; there are none\.$"):
        require_name((), "02", "lab")


@pytest.mark.parametrize("name", ["00-01", "00..01"])
def test_a_range_of_numbers_is_told_how_to_write_several(name: str) -> None:
    with pytest.raises(NoSuchName, match=r"there are 00, 01\. Write each of several, with commas between them\.$"):
        require_name(["00", "01"], name, "notebook")


def test_names_may_be_any_iterable_and_a_known_name_is_accepted() -> None:
    require_name(iter(["a", "b"]), "b", "letter")


@pytest.mark.parametrize("kind", [NoSuchSchedule, NoSuchName, ValueError, LookupError])
def test_the_error_of_a_package_is_a_value_error_and_a_lookup_error(kind: type[Exception]) -> None:
    with pytest.raises(kind):
        look_up(SCHEDULES, "linear", "schedule", NoSuchSchedule)
