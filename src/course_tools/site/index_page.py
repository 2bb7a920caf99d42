"""The first page of the site, which is the README with the order of all pages, and two that are made for the site.

`maintain.md` leads to what only those who change the course need; `last_run.md` says how `make execute` ended.
"""

import json
import re
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from course_tools.chapters import number_of, part_of
from distlab import collectives, draw
from distlab.runtime import tables

COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
HANDBOOKS = {
    "Help": ("troubleshooting", "glossary", "clusters", "sources", "commands"),
    "Teach": ("teaching", "mistakes"),
}


def pages(course: Path, files: Sequence[Path], report: Path | None = None) -> dict[str, str]:
    """The pages in Markdown, by the names of their files.

    files: the site's source files, relative to the course's folder.  report: `report.json` of a run, if it is there.
    """
    readme = COMMENT.sub("", (course / "README.md").read_text()).replace("](LICENSE)", "](#licence)")
    docs = {file.stem: file for file in files if file.match("docs/*.md")}
    chapters = {file.stem: file for file in files if file.match("notebooks/*.ipynb")}
    labs = {f"{file.parent.name}, lab": file for file in files if file.name == "lab.ipynb"}
    path = sorted((chapters | labs).items(), key=lambda item: (number_of(item[0]), item[1].name == "lab.ipynb"))
    contents = [
        _contents(part, [file for _, file in listed]) for part, listed in groupby(path, lambda item: part_of(item[0]))
    ]
    for caption, names in HANDBOOKS.items():
        contents.append(_contents(caption, [docs.pop(name) for name in names if name in docs]))
    contents.append(_contents("Maintain", [Path("maintain")]))
    written = {"last_run": _times(report)} if report and report.is_file() else {}
    others = [*docs.values(), Path("reference/index"), *map(Path, written)]
    maintain = "# Maintain the course\n" + _contents("Pages", others).replace(":hidden:\n", "")
    title, about, ways, rest = readme.split("\n\n", 3)
    return {**written, "maintain": maintain, "index": "\n\n".join([title, about, ways, _ring(), rest, *contents])}


def _ring() -> str:
    """What the README cannot show: a ring all-reduce that a reader plays."""
    text = "A ring all-reduce: press Play, or step through it. In lab 06 you write it, and the check draws yours."
    return f"{text}\n\n```{{raw}} html\n{draw.player.figure(collectives.ring_all_reduce)}\n```"


def _contents(caption: str, files: Sequence[Path]) -> str:
    entries = []
    for file in files:
        name = f"/{file.with_suffix('').as_posix()}"
        entries.append(f"Lab {number_of(file.parent.name)} <{name}>" if file.name == "lab.ipynb" else name)
    return "\n".join(["", "```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""])


def _times(report: Path) -> str:
    """How the notebooks of the last run ended, how long they took, and how much memory."""
    rows = []
    for row in json.loads(report.read_text())["notebooks"]:
        link = f"[{row['notebook']}](notebooks/{row['notebook']}.ipynb)"
        rows.append((link, row["status"], f"{row['seconds']:.0f}", f"{row['peak_memory_mib']:,.0f}"))
    table = tables.markdown(["Notebook", "Status", "Seconds", "Memory, MiB"], rows, right=(2, 3))
    return f"# The last run on this machine\n\n{table}"
