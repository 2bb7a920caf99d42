"""All decks: read the notebooks, write a page for each, reveal.js next to them, and an index."""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import nbformat
from pygments.formatters import HtmlFormatter

from course_tools import runner, user_folders
from course_tools.html_pages import from_template, title_of
from course_tools.site.chapters import how_to_repair, is_chapter
from course_tools.site.sources import chapters_without_run, newest_run
from course_tools.slides import storyboard

STATIC = Path(__file__).with_name("static")
# What a deck needs of reveal.js, which the package sphinx-revealjs brings.
REVEAL = "reveal"
NEEDED = ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js")


@dataclass(frozen=True)
class Decks:
    """The index and the pages that were written, and what was left out, a sentence each."""

    index: Path
    pages: list[Path]
    problems: list[str]


def write_slides(*, only: str | None = None, executed: bool = False) -> int:
    """Write the decks to `build/slides`, and print where they are; 1 if one could not be written.

    Args:
        only: Some chapters by number or name: "03" or "02,04".
        executed: With the outputs of the last `make execute`.
    """
    notebooks = runner.choose(Path("notebooks"), only)
    folder = user_folders.announced("build", "the slides go")
    decks = build(notebooks, folder / "slides", folder / "executed" if executed else None)
    print(*decks.problems, decks.index, sep="\n")
    return 0 if len(decks.pages) == len(notebooks) else 1


def build(notebooks: Sequence[Path], folder: Path, executed: Path | None = None) -> Decks:
    """Write a deck for each notebook to `folder`, which other decks may be in, and the index of all decks there.

    executed: a folder of executed notebooks; each that is in it, and not older, takes the place of the committed one.

    Raises what `storyboard.slides` raises.
    """
    old = executed and chapters_without_run(notebooks, executed)
    pages, problems = [], [old] if old else []
    style = f"{HtmlFormatter().get_style_defs('.highlight')}\n{(STATIC / 'deck.css').read_text()}"
    script = (STATIC / "deck.js").read_text()
    for file in notebooks:
        try:
            notebook = nbformat.read(newest_run(file, executed) or file, as_version=4)
            is_whole = len(notebook.cells) > 1
        except (AttributeError, KeyError, ValueError):  # as damaged as a file can be
            is_whole = False
        if not is_whole:
            problems.append(f"{file} cannot be read as a chapter and has no deck; {how_to_repair(file)}.")
            continue
        values = {"slides": storyboard.slides(notebook, file.parent), "title": title_of(notebook)}
        page = folder / f"{file.stem}.html"
        pages.append(from_template(STATIC / "deck.html.j2", page, style=style, script=script, **values))
    for name in NEEDED:
        (folder / REVEAL / name).parent.mkdir(parents=True, exist_ok=True)
        source = files("sphinx_revealjs") / "_static" / "revealjs" / name
        (folder / REVEAL / name).write_bytes(source.read_bytes())
    return Decks(_write_index(folder), pages, problems)


def _write_index(folder: Path) -> Path:
    """The index of all decks in the folder."""
    decks = []
    for page in sorted(filter(is_chapter, folder.glob("*.html"))):
        text = page.read_text()
        [title] = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
        decks.append((page.name, html.unescape(title), text.count("<section class=")))
    return from_template(STATIC / "index.html.j2", folder / "index.html", decks=decks)
