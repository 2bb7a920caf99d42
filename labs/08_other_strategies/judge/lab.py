"""The exercises of lab 08: staleness and its bound, the right way for a cluster, shares for slow workers."""

from distlab.labs.lab import Exercise, Lab
from lab_08 import bound, choice, clusters, shares, staleness


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {
        "staleness": _staleness,
        "may_begin": _may_begin,
        "limits": _limits,
        "choose": _choose,
        "next_shares": _next_shares,
    }[name]()


def _staleness() -> str:
    events = staleness.EXAMPLE.events
    lines = [f"    {event}" for event in events]
    return "\n".join(["staleness([", *(f"{line}," for line in lines), f"])\n    {staleness.staleness(events)}"])


def _may_begin() -> str:
    return "\n".join(
        f"may_begin(finished={finished}, worker={worker}, lead={lead})\n    {bound.may_begin(finished, worker, lead)}"
        for finished, worker, lead in bound.RULE_EXAMPLES
    )


def _limits() -> str:
    numbers = bound.limits(*bound.EXAMPLE)
    call = "limits(seconds={}, lead={})".format(*bound.EXAMPLE)
    return "\n".join([call, *(f"    {name:20}{value:>6g}" for name, value in numbers.items())])


def _choose() -> str:
    example = clusters.EXAMPLE
    call = (
        f"choose(np.array({example.seconds.tolist()}), all_reduce={example.all_reduce}, server={example.server},\n"
        f"       backups={example.backups}, allowed={example.allowed:g})"
    )
    lines = [f"    {way:16}{rate:>9.4f}" for way, rate in clusters.rates(example).items()]
    return "\n".join([call, *lines, f"    {'choice':19}{clusters.choice(example)}"])


def _next_shares() -> str:
    _, before, seconds = shares.EXAMPLE
    return f"next_shares(shares={before}, seconds={seconds})\n    {shares.next_shares(before, seconds)}"


LAB = Lab(
    "08_other_strategies",
    [
        Exercise("staleness", 3, staleness.judge_staleness),
        Exercise("may_begin", 1, bound.judge_may_begin),
        Exercise("limits", 3, bound.judge_limits),
        Exercise("choose", 5, choice.judge_choose),
        Exercise("next_shares", 3, shares.judge_next_shares),
    ],
    target=target,
)
