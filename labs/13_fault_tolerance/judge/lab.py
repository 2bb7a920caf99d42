"""The exercises of lab 13: sick jobs diagnosed and cured, and how often to save."""

from distlab.labs.lab import Exercise, Lab
from lab_13 import comparison, diagnosis, elapsed_seconds, given, plan
from lab_13.disturbed_runs import elapsed


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {
        "diagnose": _diagnose,
        "cure": _cure,
        "plan": _plan,
        "elapsed": _elapsed,
        "compare": _compare,
    }[name]()


def _diagnose() -> str:
    return 'diagnose(log)\n    {"illness": one of lab.given.ILLNESSES, "worker": a number, "step": a number}'


def _cure() -> str:
    return "cure(log, illness, worker, step)\n    a number"


def _plan() -> str:
    job = plan.EXAMPLE
    call = f"plan(workers={job.workers}, days={job.days:g}, save={job.save:g}, step={job.step:g})"
    return "\n".join([call, *(f"    {name:16}{value:>12.6g}" for name, value in plan.plan(*job).items())])


def _elapsed() -> str:
    run = elapsed_seconds.EXAMPLE
    call = "elapsed(work={:g}, interval={:g}, save={:g}, restart={:g}, faults={})".format(*run)
    return f"{call}\n    {elapsed(*run):g}"


def _compare() -> str:
    example = comparison.EXAMPLE
    means = example.seconds().mean(axis=1)
    call = "compare(intervals={}, work={:g}, save={:g}, restart={:g},\n        runs={})".format(*example)
    values = ", ".join(f"{mean:.6g}" for mean in means)
    return f'{call}\n    {{"means": [{values}], "best": {example.intervals[means.argmin()]:g}}}'


LAB = Lab(
    "13_fault_tolerance",
    [
        Exercise("diagnose", 6, diagnosis.judge_diagnose),
        Exercise("cure", 6, diagnosis.judge_cure),
        Exercise("plan", 4, plan.judge_plan),
        Exercise("elapsed", 4, elapsed_seconds.judge_elapsed),
        Exercise("compare", 2, comparison.judge_compare),
    ],
    target=target,
    given_module=given,
)
