"""Images per second of the lecture's model trained in every way, as ratios to our program on one device."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from distlab import launch
from distlab.setup import horovod_wheel

PROGRAM = Path("labs") / "11_scaling_and_profiling" / "measure_throughput.py"
WAYS = (
    ("lecture", 1),
    ("ours", 1),
    ("mirrored", 1),
    ("mirrored", 2),
    ("multi_worker", 1),
    ("multi_worker", 2),
    ("horovod", 1),
    ("horovod", 2),
)
"""The ways of the program in labs/, each with the devices, workers or ranks."""
REFERENCE = ("ours", 1)
ROUNDS = 3
ARGUMENTS: tuple[object, ...] = ()
SECONDS_PER_LAUNCH = 240


def measure(say: Callable[[str], None] = print) -> dict[str, dict]:
    """Each way in a process of its own (or two), all ways in turn, ROUNDS times; by name of the way.

    images_per_second: of each round. ratios: each round's to that of our program on one device in the same round.
    median, least, most: of the ratios. Or {"skipped": the reason}.
    """
    rounds = []
    for number in range(1, ROUNDS + 1):
        rounds.append({way: _measure(*way) for way in WAYS})
        shown = [f"{_name(*way)} {rate:,.0f}" for way, rate in rounds[-1].items() if isinstance(rate, float)]
        say(f"training, round {number} of {ROUNDS}, images/s: {', '.join(shown)}")
    report = {_name(*way): _summary([one[way] for one in rounds], rounds) for way in WAYS}
    for name, found in report.items():
        if "skipped" in found:
            say(f"training, {name}: skipped, {found['skipped']}")
        else:
            say(f"training, {name}: {found['median']:.2f} times ours ({found['least']:.2f} to {found['most']:.2f})")
    return report


def _summary(rates: Sequence[float | str], rounds: Sequence[Mapping[tuple[str, int], float | str]]) -> dict:
    references = [one[REFERENCE] for one in rounds]
    reasons = [rate for rate in (*rates, *references) if isinstance(rate, str)]
    if reasons:
        return {"skipped": reasons[0]}
    ratios = [rate / reference for rate, reference in zip(rates, references, strict=True)]
    spread = {"median": statistics.median(ratios), "least": min(ratios), "most": max(ratios)}
    return {"images_per_second": list(rates), "ratios": ratios, **spread}


def _measure(way: str, devices: int) -> float | str:
    """Images per second, or the reason why there are none."""
    if way == "horovod" and (problem := horovod_wheel.problem()):
        return problem
    arguments = ["--way", way, "--devices", devices, *ARGUMENTS]
    how = {"echo": False, "result": True, "seconds": SECONDS_PER_LAUNCH, "start_seconds": SECONDS_PER_LAUNCH}
    try:
        if way == "horovod":
            run = launch.horovodrun(PROGRAM, *arguments, ranks=devices, **how)
        else:
            workers = devices if way == "multi_worker" else 1
            run = launch.tensorflow(PROGRAM, *arguments, workers=workers, **how)
    except launch.LaunchError as error:
        return str(error).splitlines()[0]
    return float(run.result["images_per_second"])


def _name(way: str, devices: int) -> str:
    units = {"multi_worker": "worker", "horovod": "rank"}
    return f"{way.replace('_', ' ')}, {devices} {units.get(way, 'device')}{'s' * (devices > 1)}"
