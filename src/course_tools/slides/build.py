"""All decks: read the notebooks, write a page for each, reveal.js next to them, and an index."""

import html
import importlib.util
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import nbformat
from nbformat import NotebookNode
from nbformat.reader import NotJSONError

from course_tools import runner, user_folders
from course_tools.html_pages import title_of
from course_tools.site.chapters import how_to_repair, is_chapter
from course_tools.site.sources import ran_to_its_end
from course_tools.slides import deck, storyboard
from distlab.runtime.errors import PlainError

# What a deck needs of reveal.js, which the package sphinx-revealjs brings.
PACKAGE, PLACE = "sphinx_revealjs", Path("_static") / "revealjs"
NEEDED = ("LICENSE", "dist/reset.css", "dist/reveal.css", "dist/reveal.js", "plugin/notes/notes.js")


class NoReveal(PlainError):
    """reveal.js is not installed."""


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
    print("\n".join([*decks.problems, str(decks.index)]))
    return 0 if len(decks.pages) == len(notebooks) else 1


def build(notebooks: Sequence[Path], folder: Path, executed: Path | None = None) -> Decks:
    """Write a deck for each notebook to `folder`, which other decks may be in, and the index of all decks there.

    executed: a folder of executed notebooks; each that is in it, and not older, takes the place of the committed one.

    Raises NoReveal and what `storyboard.slides` raises.
    """
    source = _reveal()
    pages, problems = [], []
    for file in notebooks:
        notebook, problem = _read(file, executed)
        problems += [problem] if problem else []
        if notebook is not None:
            page = folder / f"{file.stem}.html"
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text(deck.html(storyboard.slides(notebook, file.parent), title_of(notebook)))
            pages.append(page)
    for name in NEEDED:
        (folder / deck.REVEAL / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, folder / deck.REVEAL / name)
    return Decks(_write_index(folder), pages, problems)


def _reveal() -> Path:
    """The folder of reveal.js in the environment."""
    package = importlib.util.find_spec(PACKAGE)
    for place in (package.submodule_search_locations or []) if package else []:
        if all((Path(place) / PLACE / name).is_file() for name in NEEDED):
            return Path(place) / PLACE
    raise NoReveal("The slides need reveal.js from the package sphinx-revealjs; run 'make setup', which installs it.")


def _read(file: Path, executed: Path | None) -> tuple[NotebookNode | None, str]:
    """The notebook, executed or committed, and a sentence if it is not what was asked for."""
    problem = ""
    run = executed / file.name if executed else None
    if run and not run.is_file():
        problem = f"{file.stem}: not executed, so the deck shows the committed outputs."
    elif run and run.stat().st_mtime < file.stat().st_mtime:
        problem = f"{file.stem}: the executed notebook is older than the committed one, whose outputs the deck shows."
    elif run and not ran_to_its_end(run):
        problem = f"{file.stem}: the last run did not come to its end, so the deck shows the committed outputs."
    elif run:
        file = run
    try:
        notebook = nbformat.read(file, as_version=4)
        if len(notebook.cells) > 1:
            return notebook, problem
    except (OSError, ValueError, AttributeError, KeyError, NotJSONError, nbformat.ValidationError):
        pass
    return None, f"{file} cannot be read as a chapter and has no deck; {how_to_repair(file)}."


def _write_index(folder: Path) -> Path:
    """The index of all decks in the folder."""
    decks = []
    for page in sorted(filter(is_chapter, folder.glob("*.html"))):
        text = page.read_text()
        title = re.search(r"<title>(.*?)</title>", text, re.DOTALL)
        decks.append(
            {
                "name": page.name,
                "title": html.unescape(title[1]) if title else page.stem,
                "slides": text.count("<section class="),
            }
        )
    template = jinja2.Environment(autoescape=True).from_string((deck.STATIC / "index.html.j2").read_text())
    index = folder / "index.html"
    index.write_text(template.render(decks=decks))
    return index
