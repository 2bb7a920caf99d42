"""What is written into README and docs by a program: `distlab map` brings all of it up to date."""

from pathlib import Path

from course_tools import __main__ as cli
from course_tools import readme_tables, source_tables

COMMANDS = Path("docs/commands.md")


def write() -> None:
    """Write the tables of README.md, docs/teaching.md and docs/sources.md, and docs/commands.md; print the tables."""
    print(readme_tables.write(Path("README.md"), Path("docs/teaching.md"), Path("build/report.json")))
    print(source_tables.write(Path("docs/sources.md")))
    COMMANDS.write_text(commands())


def commands() -> str:
    """The page with every command of `distlab` and its options."""
    _, first_group, by_group = cli.app.generate_docs().partition(f"**{next(iter(cli.COMMANDS))}**")
    return f"# The command distlab\n\nWritten by `make map` from `distlab --help`.\n\n{first_group}{by_group}"
