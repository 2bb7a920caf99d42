"""The command line: `distlab setup`, `doctor`, `execute`, `notebooks`, `pages`, `labs`, `grade` and others."""

import argparse
import sys
from pathlib import Path

from distlab.grading import command as labs_command
from distlab.launch import command as launch_command
from distlab.runtime import environment
from distlab.setup import horovod_wheel

NOTEBOOKS = Path("notebooks")
BUILD = Path("build")


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; returns its exit status."""
    parser = argparse.ArgumentParser(prog="distlab", description="The tools of the course.")
    commands = parser.add_subparsers(required=True)

    setup = commands.add_parser("setup", help="prepare this Python environment: start-up file, Horovod")
    setup.add_argument("--retry", action="store_true", help="build Horovod again after a build that failed")
    setup.set_defaults(run=_setup)

    notebooks = commands.add_parser("notebooks", help="write the notebooks with outputs from their text sources")
    notebooks.add_argument("sources", nargs="*", type=Path, help="notebooks/src/NN_topic.py; all by default")
    notebooks.set_defaults(run=_notebooks)

    runner = commands.add_parser("execute", help="run the notebooks without a browser; write pages and a report")
    runner.add_argument("--dataset", help="digits, mnist or fashion_mnist")
    runner.add_argument("--epochs", type=int)
    runner.add_argument("--workers", type=int)
    runner.add_argument("--only", help='some notebooks by number or name: "03" or "02,04"')
    runner.add_argument("--at-once", type=int, help="notebooks side by side; by default one for each core, at most 4")
    runner.add_argument("--seconds-per-cell", type=int)
    runner.add_argument("--seconds-per-notebook", type=int)
    runner.set_defaults(run=_execute)

    html_pages = commands.add_parser("pages", help="write HTML pages of the committed notebooks, as they are")
    html_pages.set_defaults(run=_pages)

    readme_tables = commands.add_parser("map", help="write the README's table of notebooks with the last run's seconds")
    readme_tables.set_defaults(run=_map)

    doctor = commands.add_parser("doctor", help="say what this machine has for the course and how to mend the rest")
    doctor.add_argument("--json", action="store_true", help="the same for machines")
    doctor.set_defaults(run=_doctor)

    bench = commands.add_parser("bench", help="measure simulator, all-reduce and training; writes build/bench.json")
    bench.set_defaults(run=_bench)

    predict = commands.add_parser("predict", help="step time and efficiency on a cluster, by formula", add_help=False)
    predict.set_defaults(run=_predict)

    launch = commands.add_parser("launch", help="run a program as several processes: launch PROGRAM -- ITS ARGUMENTS")
    launch_command.add_arguments(launch)
    launch.set_defaults(run=_launch)

    labs_command.add_commands(commands)

    own, program_arguments = _at_double_dash(sys.argv[1:] if arguments is None else arguments)
    options, options.rest = parser.parse_known_args(own)
    if options.rest and options.run is not _predict:
        parser.error(f"unrecognized arguments: {' '.join(options.rest)}")
    options.program_arguments = program_arguments
    if program_arguments and options.run is not _launch:
        parser.error(f"unrecognized arguments: {' '.join(program_arguments)}")
    return options.run(options)


def _at_double_dash(arguments: list[str]) -> tuple[list[str], list[str]]:
    if "--" not in arguments:
        return arguments, []
    place = arguments.index("--")
    return arguments[:place], arguments[place + 1 :]


def _setup(options: argparse.Namespace) -> int:
    from distlab.runtime import processes

    processes.end_on_signals()
    environment.install()
    try:
        horovod_wheel.install(retry=options.retry)
    except horovod_wheel.BuildFailed as failure:
        print(failure)
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from distlab.setup import doctor

    rows = doctor.examine()
    print(doctor.as_json(rows) if options.json else doctor.table(rows))
    return 0 if doctor.can_run(rows) else 1


def _execute(options: argparse.Namespace) -> int:
    from distlab import data, devices
    from distlab.course import html_pages, runner
    from distlab.runtime import processes

    named = {"dataset": options.dataset, "epochs": options.epochs, "workers": options.workers}
    parameters = {name: value for name, value in named.items() if value is not None}
    try:
        notebooks = runner.choose(NOTEBOOKS, options.only)
        if options.dataset:
            print(data.describe(options.dataset))
        for name in ("epochs", "workers"):
            if parameters.get(name, 1) < 1:
                raise ValueError(f"{name.upper()}={parameters[name]} makes no sense: it must be 1 or more.")
    except (data.DataError, ValueError) as error:
        print(error)
        return 2
    at_once = options.at_once or runner.default_at_once(devices.cores())
    limits = {"seconds_per_cell": options.seconds_per_cell, "seconds_per_notebook": options.seconds_per_notebook}
    given = {name: seconds for name, seconds in limits.items() if seconds is not None}
    plan = runner.Plan(notebooks, BUILD, parameters, **given, at_once=at_once)
    processes.end_on_signals()
    try:
        outcomes = runner.execute(plan)
    except KeyboardInterrupt:
        print("\nInterrupted; everything that the notebooks had started is ended.")
        return 130
    for notebook in notebooks:
        executed = BUILD / "executed" / notebook.name
        # Of a notebook that was skipped the page shows the committed outputs.
        shown = executed if executed.exists() else notebook
        html_pages.write_page(shown, BUILD / "html" / f"{notebook.stem}.html", NOTEBOOKS)
    index = html_pages.write_index(BUILD / "html", outcomes)
    report = runner.write_report(outcomes, plan)
    print(f"{runner.summary(outcomes)}\nPages: {index}\nReport: {report}")
    return 1 if any(outcome.status == "failed" for outcome in outcomes.values()) else 0


def _pages(options: argparse.Namespace) -> int:
    from distlab.course import html_pages, runner

    for notebook in runner.choose(NOTEBOOKS):
        html_pages.write_page(notebook, BUILD / "html" / f"{notebook.stem}.html", NOTEBOOKS)
        print(BUILD / "html" / f"{notebook.stem}.html")
    return 0


def _map(options: argparse.Namespace) -> int:
    from distlab.course import readme_tables

    try:
        print(readme_tables.write(Path("README.md"), Path("docs") / "teaching.md", BUILD / "report.json"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _bench(options: argparse.Namespace) -> int:
    from distlab.course import bench
    from distlab.runtime import processes

    processes.end_on_signals()
    bench.write(BUILD / "bench.json")
    print(BUILD / "bench.json")
    return 0


def _predict(options: argparse.Namespace) -> int:
    from distlab.costs import command

    return command.main(options.rest)


def _launch(options: argparse.Namespace) -> int:
    return launch_command.main(options, options.program_arguments)


def _notebooks(options: argparse.Namespace) -> int:
    from distlab.course import notebooks

    for source in options.sources or notebooks.sources(NOTEBOOKS):
        print(notebooks.regenerate(source.resolve()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
