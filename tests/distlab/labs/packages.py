"""Lets tests import the answers to lab 06, in `labs/06_topic/tests`, from the package `lab_06_tests`."""

from distlab.labs import registry


def make_answers_importable() -> None:
    """For all labs, and again without effect."""
    for number, judge in registry.JUDGES.items():
        if number not in registry.IN_ONE_FILE:
            registry.importable(f"lab_{number}_tests", judge.with_name("tests"))
