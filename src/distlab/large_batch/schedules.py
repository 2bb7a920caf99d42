"""Learning rates for large batches: two scaling rules and three ways to begin.

The linear rule and the ways to begin: Goyal et al., arXiv:1706.02677, sections 2.1 and 2.2. The square-root rule:
Krizhevsky, arXiv:1404.5997. A schedule gives the learning rate at an epoch, counted from 0, as a float:
steps done / steps per epoch.
"""

import math
from collections.abc import Callable

from distlab.runtime.lookups import look_up

Schedule = Callable[[float], float]
NAMES = ("base", "none", "constant", "gradual", "square root")


def linear_rule(rate: float, times: float) -> float:
    """The learning rate for a batch `times` as large as the one that `rate` is right for: times · rate."""
    return times * rate


def square_root_rule(rate: float, times: float) -> float:
    """The learning rate that keeps the size of the noise in a step, not its mean: √times · rate."""
    return math.sqrt(times) * rate


def without_warm_up(scaled_rate: float) -> Schedule:
    """The scaled rate from the first step on."""
    return lambda epoch: scaled_rate


def constant_warm_up(rate: float, scaled_rate: float, epochs: float) -> Schedule:
    """The small rate for `epochs`, then the scaled one: a jump."""
    return lambda epoch: rate if epoch < epochs else scaled_rate


def gradual_warm_up(rate: float, scaled_rate: float, epochs: float) -> Schedule:
    """From `rate` by equal amounts in every step to `scaled_rate`, which it has from `epochs` on."""
    return lambda epoch: rate + (scaled_rate - rate) * min(epoch / epochs, 1.0) if epochs else scaled_rate


def by_name(name: str, rate: float, times: float, warm_up_epochs: float) -> Schedule:
    """One of NAMES for a batch `times` as large as the one that `rate` is right for.

    base: `rate` unscaled.  none, constant, gradual: the linear rule and that warm-up.  square root: that rule, without
    warm-up.  Raises NoSuchName.
    """
    scaled = linear_rule(rate, times)
    schedules = {
        "base": without_warm_up(rate),
        "none": without_warm_up(scaled),
        "constant": constant_warm_up(rate, scaled, warm_up_epochs),
        "gradual": gradual_warm_up(rate, scaled, warm_up_epochs),
        "square root": without_warm_up(square_root_rule(rate, times)),
    }
    return look_up(schedules, name, "schedule")
