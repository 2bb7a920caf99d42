"""What a student's `elapsed` does to its list of faults; works in the process of the student's code."""

from collections.abc import Mapping
from typing import Any

from distlab.labs.plain_data import Plain


def faults_left(
    namespace: Mapping[str, Any], work: float, interval: float, save: float, restart: float, faults: list[float]
) -> Plain:
    """The list of faults after a call of `elapsed`."""
    namespace["elapsed"](work, interval, save, restart, faults)
    return [*faults]
