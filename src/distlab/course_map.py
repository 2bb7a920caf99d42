"""The README's table of notebooks: title, goal, minutes to read (as it says itself), seconds of the last run."""

import json
import re
from pathlib import Path

import nbformat

from distlab.pages import title_of

BEGIN, END = "<!-- course map: written by `make map` -->", "<!-- end of the course map -->"


def write(readme: Path, notebooks: Path, report: Path) -> str:
    """Replace the table between the README's two marks; return the new table.

    Raises ValueError with one sentence when the marks or a notebook's line in the report are missing.
    """
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        raise ValueError(f"{readme} lacks the marks {BEGIN} and {END}.")
    table = markdown(notebooks, report)
    before, after = text[: text.index(BEGIN)], text[text.index(END) :]
    readme.write_text(f"{before}{BEGIN}\n{table}\n{after}")
    return table


def markdown(notebooks: Path, report: Path) -> str:
    """The table as markdown: one row a notebook, in order."""
    seconds = {row["notebook"]: row["seconds"] for row in json.loads(report.read_text())["notebooks"]}
    rows = ["| Notebook | What it answers | Read, minutes | Run, seconds |", "|---|---|---:|---:|"]
    for file in sorted(notebooks.glob("[0-9][0-9]_*.ipynb")):
        if file.stem not in seconds:
            raise ValueError(f"{report} has no line for {file.stem}; run `make execute` for all notebooks first.")
        notebook = nbformat.read(file, as_version=4)
        text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
        minutes = re.search(r"\*\*Time\.\*\* (\d+) minutes to read", text)
        if not minutes:
            raise ValueError(f"{file.name} does not say how many minutes it takes to read.")
        link = f"[{title_of(notebook)}](notebooks/{file.name})"
        rows.append(f"| {link} | {_goal(text)} | {minutes[1]} | {seconds[file.stem]:.0f} |")
    return "\n".join(rows)


def _goal(text: str) -> str:
    """The first sentence after **Goal.** in the opening block."""
    found = re.search(r"\*\*Goal\.?\*\*[:.]?\s*(.+?)(?:\.\s|\.$|\n\n)", text, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) + "." if found else ""
