"""The command line: `distlab setup`, `doctor`, `execute`, `notebooks`."""

import argparse
import sys
from pathlib import Path

from distlab import environment, horovod_wheel


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

    options = parser.parse_args(arguments)
    return options.run(options)


def _setup(options: argparse.Namespace) -> int:
    environment.install()
    try:
        horovod_wheel.install(retry=options.retry)
    except horovod_wheel.BuildFailed as failure:
        print(failure)
    return 0


def _notebooks(options: argparse.Namespace) -> int:
    from distlab import notebooks

    for source in options.sources or notebooks.sources(Path("notebooks")):
        print(notebooks.regenerate(source.resolve()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
