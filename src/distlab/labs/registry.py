"""Which labs there are: their numbers, and where each is defined."""

import importlib
from typing import cast

from distlab.labs.lab import Lab
from distlab.runtime.lookups import NoSuchName, look_up

MODULES = {number: f"distlab.labs.lab_{number}.lab" for number in ("02", "03", "06", "07", "09", "10", "11", "12")}
"""The module that defines each lab as LAB, by the number of its chapter."""


class NoSuchLab(NoSuchName):
    """There is no lab of that number; the message lists those there are."""


def lab(number: str | int) -> Lab:
    """The lab of a chapter: "06", 6 or "06_topic". Raises NoSuchLab."""
    digits = str(number).partition("_")[0].zfill(2)
    return cast(Lab, importlib.import_module(look_up(MODULES, digits, "lab", NoSuchLab)).LAB)
