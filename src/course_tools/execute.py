"""Running the notebooks without a browser, and what it leaves: report, site, exit status."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.types import PositiveInt
from cyclopts.validators import Number

from course_tools import runner, user_folders
from course_tools.chapters import chapter_notebooks
from course_tools.runner import ExecutionPlan
from distlab import data, devices
from distlab.runtime import environment, processes
from distlab.runtime.errors import PlainError

NOTEBOOKS = Path("notebooks")
README = Path("README.md")
MOST_WORKERS = 8


def execute(
    *,
    dataset: str | None = None,
    epochs: PositiveInt | None = None,
    workers: Annotated[int | None, Parameter(validator=Number(gte=1, lte=MOST_WORKERS))] = None,
    only: str | None = None,
    at_once: PositiveInt | None = None,
    no_site: bool = False,
    seconds_per_cell: PositiveInt = ExecutionPlan.seconds_per_cell,
) -> int:
    """Run the notebooks and write what they give to `build`; returns the exit status.

    Args:
        dataset: digits, mnist or fashion_mnist.
        epochs: How long each training takes.
        workers: Devices or processes of each training, at most 8.
        only: Some notebooks by number or name: "03" or "02,04".
        at_once: Notebooks at a time; by default one per core, at most 4.
        no_site: Do not write the course's site at the end, which takes a minute.
        seconds_per_cell: The longest that a cell may take.
    """
    parameters = {"dataset": dataset, "epochs": epochs, "workers": workers}
    notebooks = chapter_notebooks(NOTEBOOKS, only)
    if dataset:
        print(data.describe(dataset))
    plan = ExecutionPlan(
        notebooks,
        user_folders.announced("build", "results go"),
        {name: value for name, value in parameters.items() if value is not None},
        seconds_per_cell,
        at_once or runner.default_at_once(devices.cores()),
    )
    environment.choose_legacy_keras()
    processes.end_on_signals()
    outcomes = runner.execute(plan)
    report = runner.write_report(outcomes, plan)
    print(f"Report: {report}", flush=True)
    problems = _write_site(plan) if README.is_file() and not no_site else []
    print("\n".join([runner.summary(outcomes), *problems]), flush=True)
    return 1 if problems or any(outcome.status == runner.FAILED for outcome in outcomes.values()) else 0


def _write_site(plan: ExecutionPlan) -> list[str]:
    """Write the site with the outputs and times of this run; returns a sentence if it was not written."""
    from course_tools.site import build

    try:
        index, _ = build.build(Path.cwd(), plan.build, plan.build / "executed")
    except PlainError as fault:
        return [f"The site was not written: {fault}"]
    print(f"Site: {index}", flush=True)
    return []
