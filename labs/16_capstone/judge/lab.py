"""The exercises of the capstone: a program for ranks, what was measured, a prediction, a job script, a report."""

from dataclasses import astuple, fields

from distlab.labs.lab import Exercise, Lab
from lab_16 import given, job_script, measured, prediction, report, training


def target(name: str) -> str:
    """One call of an exercise's function and what it must give, by the course's own functions."""
    return {"throughput": _throughput, "profile": _profile, "predict": _predict}[name]()


def _throughput() -> str:
    lines = ["throughput(lab.given.MEASURED, warm_up=1)"]
    for ranks, numbers in measured.throughput(given.MEASURED, 1).items():
        lines.append(f"    {ranks}: " + ", ".join(f"{name} {value:.6g}" for name, value in numbers.items()))
    return "\n".join(lines)


def _profile() -> str:
    events = [measured.TimelineEvent(*event.values()) for event in given.TIMELINE]
    shares = measured.profile(events)
    values = ", ".join(f"{name} {share:.6g}" for name, share in shares.items())
    return f"profile(lab.given.TIMELINE)\n    {values}, bottleneck {max(shares, key=lambda name: shares[name])}"


def _predict() -> str:
    case = prediction.EXAMPLE
    names = [field.name for field in fields(case)]
    call = ", ".join(f"{name}={value:g}" for name, value in zip(names, astuple(case), strict=True))
    lines = [f"    {name:12}{value:>12.6g}" for name, value in case.predicted().items()]
    return "\n".join([f"predict({call})", *lines])


LAB = Lab(
    "16_capstone",
    [
        Exercise("train", 12, training.judge_train),
        Exercise("throughput", 6, measured.judge_throughput),
        Exercise("profile", 4, measured.judge_profile),
        Exercise("predict", 4, prediction.judge_predict),
        Exercise("job_script", 4, job_script.judge_job_script),
        Exercise("report", 6, report.judge_report),
    ],
    tensorflow=True,
    seconds=300.0,
    target=target,
    given_module=given,
)
