"""What a student's `elapsed` gives and does to its list of faults; works in the process of the student's code."""

from collections.abc import Mapping
from typing import Any

from distlab.labs.plain_data import Plain


def seconds_and_faults(
    namespace: Mapping[str, Any], work: float, interval: float, save: float, restart: float, faults: list[float]
) -> Plain:
    """What `elapsed` gives, and its list of faults after the call; None if there is no such function."""
    if "elapsed" not in namespace:
        return None
    seconds = namespace["elapsed"](work, interval, save, restart, faults)
    return [seconds, [*faults]]
