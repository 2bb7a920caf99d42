"""The exercises of lab 05: a run that resumes exactly, what broken checkpoints lack, which of them to use."""

from distlab.labs.lab import Exercise, Lab
from lab_05 import given, missing_parts, positions, resuming, whole_checkpoints


def target(name: str) -> str:
    """One call of an exercise's function and what it must give."""
    return {
        "numbers_of": lambda: "numbers_of(step, images, batch, seed)\n    a list or array of `batch` numbers",
        "run": lambda: (
            "run(training, folder, last_step, every)\n    nothing: it changes `training`, and writes to `folder`"
        ),
        "lacks": lambda: "lacks(straight, resumed)\n    one of lab.given.PARTS",
        "housekeeping": _housekeeping,
    }[name]()


def _housekeeping() -> str:
    checkpoints, keep = whole_checkpoints.EXAMPLE
    lines = [f"    {files}," for files in checkpoints]
    value = whole_checkpoints.housekeeping(checkpoints, keep)
    return "\n".join(
        ["housekeeping(", "    [", *(f"    {line}" for line in lines), "    ],", f"    keep={keep},", ")", str(value)]
    )


LAB = Lab(
    "05_save_and_load",
    [
        Exercise("numbers_of", 3, positions.judge_numbers_of),
        Exercise("run", 6, resuming.judge_run),
        Exercise("lacks", 6, missing_parts.judge_lacks),
        Exercise("housekeeping", 4, whole_checkpoints.judge_housekeeping),
    ],
    tensorflow=True,
    target=target,
    given_module=given,
)
