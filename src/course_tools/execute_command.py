"""`distlab execute`: running the notebooks without a browser, and what it leaves: pages, report, site, exit status."""

import argparse
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from course_tools import user_folders
from distlab import valid
from distlab.runtime import environment, processes
from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from argparse import _SubParsersAction

    from course_tools.runner import ExecutionPlan, Outcomes

NOTEBOOKS = Path("notebooks")
README = Path("README.md")
PACKAGE = Path(__file__).parents[0]
_MOST_WORKERS = 8


class WrongParameter(PlainError, ValueError):
    """A notebook cannot run with this parameter; the message says why."""


def add_command(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `execute` to the parser of `distlab`."""
    execute = commands.add_parser(
        "execute",
        help="run the notebooks without a browser; write pages and a report",
        epilog="Exit status: 0 when every notebook ran or was skipped for a reason that is given, 1 when one failed, "
        "the results could not be written, or files of the course changed meanwhile, 2 for a wrong option, 130 when "
        "the run was interrupted, 143 after SIGTERM.",
    )
    execute.add_argument("--dataset", help="digits, mnist or fashion_mnist")
    execute.add_argument("--epochs", type=valid.whole)
    execute.add_argument("--workers", type=valid.whole)
    execute.add_argument("--only", help='some notebooks by number or name: "03" or "02,04"')
    execute.add_argument("--at-once", type=valid.whole, help="notebooks at a time; by default one per core, at most 4")
    execute.add_argument("--no-site", action="store_true", help="do not write the course's site at the end")
    execute.add_argument("--seconds-per-cell", type=valid.whole)
    execute.add_argument("--seconds-per-notebook", type=valid.whole)
    execute.set_defaults(run=_execute)


def _execute(options: argparse.Namespace) -> int:
    from course_tools import runner
    from course_tools.site.chapters import copies
    from distlab import devices

    plan = _plan(options)
    before = _states_of_course()
    for copy in copies(NOTEBOOKS):
        _say(f"{copy} is left out: it is no chapter of the course.")
    user_folders.require_home()
    devices.require_loopback()
    devices.require_processes()
    environment.choose_legacy_keras()
    processes.end_on_signals()
    try:
        outcomes = runner.execute(plan)
    except runner.ExecutionInterrupted as interrupt:
        finished = ", ".join(interrupt.finished) or "none"
        _say(f"\nInterrupted; everything that the notebooks had started is ended. Finished: {finished}.")
        _say(f"Not finished: {', '.join(interrupt.unfinished)}.")
        return interrupt.status
    problems = [*_changed_since(before), *_write_results(outcomes, plan)]
    if README.is_file() and not options.no_site:
        problems += _write_site(plan)
    _say("\n".join([runner.summary(outcomes), *problems]))
    return 1 if problems or any(outcome.status == runner.FAILED for outcome in outcomes.values()) else 0


def _states_of_course() -> dict[Path, tuple[int, int]]:
    """When each file that a notebook may run was written, and its size."""
    states = {}
    for file in [*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.rglob("programs/**/*.py"), *PACKAGE.rglob("*.py")]:
        with suppress(OSError):  # it has just been removed
            states[file] = file.stat().st_mtime_ns, file.stat().st_size
    return states


def _changed_since(before: dict[Path, tuple[int, int]]) -> list[str]:
    """A sentence if files of the course are others than before: earlier notebooks ran with the former ones."""
    now = _states_of_course()
    changed = sorted(file for file in before.keys() | now.keys() if before.get(file) != now.get(file))
    if not changed:
        return []
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return [
        f"Files of the course changed during the run, {changed[0]}{more}: the results may mix two editions; run again."
    ]


def _write_results(outcomes: "Outcomes", plan: "ExecutionPlan") -> list[str]:
    """Write the pages and the report, and say where they are; returns a sentence for each that was not written."""
    from course_tools import html_pages, runner

    html, problems = plan.build / "html", []
    for notebook in plan.notebooks:
        executed = plan.build / "executed" / notebook.name
        try:
            # The page of a skipped notebook shows the committed outputs.
            source = executed if executed.exists() else notebook
            for missing in html_pages.write_page(source, html / f"{notebook.stem}.html", NOTEBOOKS):
                _say(missing)
        except Exception as fault:  # a notebook that cannot be read, or was not written to its end
            if outcomes[notebook.stem].status != runner.FAILED:
                problems.append(f"The page of {notebook.stem} was not written: {str(fault).strip().splitlines()[0]}")
    try:
        html_pages.write_glossary(NOTEBOOKS, html)
        _say(f"Pages: {html_pages.write_index(html, outcomes)}\nReport: {runner.write_report(outcomes, plan)}")
    except OSError as fault:
        problems.append(f"The report was not written: {fault}")
    return problems


def _write_site(plan: "ExecutionPlan") -> list[str]:
    """Write the site with the outputs and times of this run; returns a sentence if it was not written."""
    from course_tools.site import build, sources

    try:
        site = build.build(Path.cwd(), plan.build, plan.build / "executed")
    except (PlainError, OSError) as fault:
        return [f"The site was not written: {fault}"]
    _say(f"Site: {site.index}")
    if numbers := sources.chapters_without_run(Path.cwd(), plan.build / "executed"):
        _say(f"It shows the committed outputs of the chapters without a complete run: {', '.join(numbers)}.")
    return []


def _say(text: str) -> None:
    with suppress(OSError):  # nobody reads it any more, or the disk that it goes to is full
        print(text, flush=True)


def _plan(options: argparse.Namespace) -> "ExecutionPlan":
    """The plan that the options ask for. Raises WrongParameter, NoSuchNotebook and data.DataError."""
    from course_tools import runner
    from distlab import data, devices

    parameters = {
        name: value for name in ("dataset", "epochs", "workers") if (value := getattr(options, name)) is not None
    }
    notebooks = runner.choose(NOTEBOOKS, options.only)
    if options.dataset:
        print(data.describe(options.dataset))
    for name in ("epochs", "workers", "at_once", "seconds_per_cell", "seconds_per_notebook"):
        if (value := getattr(options, name)) is not None and value < 1:
            raise WrongParameter(f"{name.upper()}={value} makes no sense: it must be 1 or more.")
    if (options.workers or 1) > _MOST_WORKERS:
        raise WrongParameter(f"WORKERS={options.workers} is too many: the chapters take 1 to {_MOST_WORKERS}.")
    require_notebooks(notebooks)
    plan = runner.ExecutionPlan(notebooks, user_folders.announced("build", "results go"), parameters)
    plan.at_once = options.at_once or runner.default_at_once(devices.cores())
    plan.seconds_per_cell = options.seconds_per_cell or plan.seconds_per_cell
    plan.seconds_per_notebook = options.seconds_per_notebook or plan.seconds_per_notebook
    return plan


def require_notebooks(notebooks: Sequence[Path]) -> None:
    """Raises WrongParameter where the working folder has no notebooks."""
    if not notebooks:
        raise WrongParameter(f"There is no notebook in {NOTEBOOKS.resolve()}; run this in the course's folder.")
