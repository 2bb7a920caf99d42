"""All decks: read the notebooks, write a page for each, reveal.js next to them, and an index."""

import html
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from pygments.formatters import HtmlFormatter

from course_tools import notebooks, user_folders
from course_tools.chapters import chapter_notebooks, is_chapter
from course_tools.html_pages import from_template, title_of
from course_tools.site.sources import newest_runs
from course_tools.slides import markup, storyboard

STATIC = Path(__file__).with_name("static")
# What a deck needs of reveal.js, which the package sphinx-revealjs brings.
REVEAL = "reveal"
NEEDED = ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js")


def write_slides(*, only: str | None = None, executed: bool = False) -> None:
    """Write the decks to `build/slides`, and print where they are.

    Args:
        only: Some chapters by number or name: "03" or "02,04".
        executed: With the outputs of the last `make execute`.
    """
    chapters = chapter_notebooks(Path("notebooks"), only)
    folder = user_folders.announced("build", "the slides go")
    runs = newest_runs(chapters, folder / "executed") if executed else {}
    print(build(chapters, folder / "slides", runs))


def build(chapters: Sequence[Path], folder: Path, runs: Mapping[Path, Path] | None = None) -> Path:
    """Write a deck for each chapter to `folder`, which other decks may be in; returns the index of all decks there.

    runs: executed notebooks that take the place of committed ones.

    Raises PlainError for a wrong tag, and for a file that is no notebook.
    """
    values: dict[str, Any] = {"line": markup.of_line, "markdown": markup.of_markdown}
    values["style"] = f"{HtmlFormatter().get_style_defs('.highlight')}\n{(STATIC / 'deck.css').read_text()}"
    values["script"] = (STATIC / "deck.js").read_text()
    for file in chapters:
        notebook = notebooks.read((runs or {}).get(file, file))
        values |= {"slides": storyboard.slides(notebook, file.parent), "title": title_of(notebook)}
        from_template(STATIC / "deck.html.j2", folder / f"{file.stem}.html", **values)
    for name in NEEDED:
        (folder / REVEAL / name).parent.mkdir(parents=True, exist_ok=True)
        source = files("sphinx_revealjs") / "_static" / "revealjs" / name
        (folder / REVEAL / name).write_bytes(source.read_bytes())
    return _write_index(folder)


def _write_index(folder: Path) -> Path:
    """The index of all decks in the folder."""
    decks = []
    for page in sorted(filter(is_chapter, folder.glob("*.html"))):
        text = page.read_text()
        [title] = re.findall(r"<title>(.*?)</title>", text, re.DOTALL)
        decks.append((page.name, html.unescape(title), text.count("<section class=")))
    return from_template(STATIC / "index.html.j2", folder / "index.html", decks=decks)
