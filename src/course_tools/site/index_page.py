"""The first page of the site: what the README says of the course, its map, and the order of all pages."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from distlab.runtime import tables
from distlab.runtime.errors import PlainError

README_SECTIONS = ("Two commands", "The course", "Labs", "When something fails", "Licence")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
# In the order in which a student needs them; others follow.
HANDBOOKS = ("glossary", "troubleshooting", "sources", "clusters", "teaching")


class NoSection(PlainError, ValueError):
    """The README lacks a section that the first page shows."""


def text(course: Path, files: Sequence[Path], report: Path | None = None) -> str:
    """The first page in Markdown: sections of the README, and the tables of contents that order the pages.

    files: the site's source files, relative to the course's folder.  report: `report.json` of a run, whose times are
    added if it is there.

    Raises NoSection.
    """
    readme = (course / "README.md").read_text()
    parts = [readme.split("\n## ", 1)[0], *(_section(readme, title) for title in README_SECTIONS)]
    if report and report.is_file():
        parts.insert(1, _times(report))
    page = COMMENT.sub("", "\n\n".join(part.strip() for part in parts)).replace("](LICENSE)", "](#licence)")
    handbooks = {file.stem: file for file in files if file.match("docs/*.md")}
    contents = {
        "Chapters": [file for file in files if file.match("notebooks/*.ipynb")],
        "Labs": [file for file in files if file.name == "lab.ipynb"],
        "Handbooks": [handbooks[name] for name in dict.fromkeys((*HANDBOOKS, *handbooks)) if name in handbooks],
        "Reference": [Path("reference/index")],
    }
    for caption, listed in contents.items():
        names = [f"/{file.with_suffix('').as_posix()}" for file in listed]
        page += "\n".join(["\n", "```{toctree}", ":hidden:", f":caption: {caption}", "", *names, "```"])
    return page + "\n"


def _section(readme: str, title: str) -> str:
    """A section with its heading, up to the next heading. Raises NoSection."""
    match = re.search(rf"^(##+ {re.escape(title)}\n.*?)(?=^##+ |\Z)", readme, re.MULTILINE | re.DOTALL)
    if match is None:
        raise NoSection(f"README.md has no section {title!r}, which the first page of the site shows.")
    return match[1]


def _times(report: Path) -> str:
    """How the notebooks of the last run ended, how long they took, and how much memory."""
    rows = []
    for row in json.loads(report.read_text())["notebooks"]:
        link = f"[{row['notebook']}](notebooks/{row['notebook']}.ipynb)"
        rows.append((link, row["status"], f"{row['seconds']:.0f}", f"{row['peak_memory_mib']:,.0f}"))
    table = tables.markdown(["Notebook", "Status", "Seconds", "Memory, MiB"], rows, right=(2, 3))
    return f"## The last run on this machine\n\n{table}"
