"""A notebook as its page shows it: folded code, questions as quizzes, terms explained, films, solutions in labs."""

import copy
import json
import re
from html import escape
from pathlib import Path
from typing import Any

from course_tools.site import films, glossary, quizzes

Cell = dict[str, Any]
Notebook = dict[str, Any]
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
# What `draw.show_widget` leaves where no widget can be: a sentence in brackets.
WIDGET_IN_WORDS = re.compile(r"\[([A-Z].*\.)\]")
LINK_TO_SOLUTION = re.compile(r"(next\s+to\s+this\s+file,\s+in\s+)?\[([^\]]+)\]\(solution\.ipynb\)")
WHERE_THE_PAGE_HAS_IT = "folded below each answer, and in "
SENTENCE_ENDS = re.compile(r"(?<=[.?!])\s+(?=[A-Z`\[])")
SOLUTION_PROMPTS = "Show the solution", "Hide the solution"
OUTPUT_PROMPTS = "Show what the solution gives", "Hide what the solution gives"


def changed(notebook: Notebook, file: Path) -> Notebook:
    """The notebook of `file`, changed for its page; a lab gets the solutions that lie beside it."""
    notebook["metadata"].pop("widgets", None)
    notebook["metadata"].setdefault("language_info", {"name": "python"})["pygments_lexer"] = "ipython3"
    solution = file.with_name("solution.ipynb")
    has_solutions = file.name == "lab.ipynb" and solution.is_file()
    if has_solutions:
        notebook["cells"] = _with_solutions(notebook["cells"], json.loads(solution.read_text())["cells"])
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = quizzes.with_quizzes(_text(_joined(cell["source"])))
            cell["source"] = _with_download(text) if has_solutions else _without_link(text)
        elif cell["cell_type"] == "code":
            _change_code(cell, depth=1 if file.parent.name == "notebooks" else 2)
    return notebook


def without_solution(notebook: Notebook) -> Notebook:
    """The notebook of a lab whose solution the reader does not get: no sentence says where it is."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = _without_link(_joined(cell["source"]))
    return notebook


def films_of(notebook: Notebook) -> set[str]:
    """The programs whose films the page of the notebook shows."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return {film.program for cell in cells if (film := films.in_cell(_joined(cell["source"])))}


def _change_code(cell: Cell, depth: int) -> None:
    if cell["metadata"].get("jupyter", {}).get("source_hidden"):
        _tag(cell, "hide-input")
    film = films.in_cell(_joined(cell["source"]))
    for output in cell["outputs"]:
        data = output.get("data", {})
        is_widget = WIDGET_VIEW in data or set(data) == {"text/plain"}
        data.pop(WIDGET_VIEW, None)
        if film and is_widget:
            data["text/html"] = films.figure(film, depth)
        elif is_widget and (description := WIDGET_IN_WORDS.fullmatch(_joined(data.get("text/plain", "")))):
            data["text/html"] = f'<p class="widget-in-words">{escape(description[1])}</p>'
        if "text/markdown" in data:
            data["text/markdown"] = _text(_joined(data["text/markdown"]))


def _with_solutions(cells: list[Cell], solved: list[Cell]) -> list[Cell]:
    """The cells of a lab; after each that a student changes, the solution's cell, folded with its outputs.

    What a check or another given cell says only of the solution is folded too.
    """
    every: list[Cell] = []
    for cell, solution in zip(cells, solved, strict=True):
        every.append(cell)
        if cell["cell_type"] != "code":
            continue
        if _joined(cell["source"]) != _joined(solution["source"]):
            folded = copy.deepcopy(solution)
            folded["id"] = f"{cell['id']}-solution"
            _fold(folded, "hide-cell", SOLUTION_PROMPTS)
            every.append(folded)
        elif solution["outputs"] and not cell["outputs"]:
            cell["outputs"] = copy.deepcopy(solution["outputs"])
            _fold(cell, "hide-output", OUTPUT_PROMPTS)
    return every


def _fold(cell: Cell, tag: str, prompts: tuple[str, str]) -> None:
    _tag(cell, tag)
    cell["metadata"]["mystnb"] = dict(zip(("code_prompt_show", "code_prompt_hide"), prompts, strict=True))


def _with_download(text: str) -> str:
    def link(match: re.Match[str]) -> str:
        return f"{WHERE_THE_PAGE_HAS_IT if match[1] else ''}{{download}}`{match[2]} <solution.ipynb>`"

    return LINK_TO_SOLUTION.sub(link, text)


def _without_link(text: str) -> str:
    """The text without the sentences that link to the solution."""
    paragraphs = text.split("\n\n")
    for place, paragraph in enumerate(paragraphs):
        if LINK_TO_SOLUTION.search(paragraph):
            sentences = SENTENCE_ENDS.split(paragraph)
            paragraphs[place] = " ".join(text for text in sentences if not LINK_TO_SOLUTION.search(text))
    return "\n\n".join(paragraph for paragraph in paragraphs if paragraph)


def _text(text: str) -> str:
    text = re.sub(r"\]\(#([^)]+)\)", lambda match: f"](#{_heading_anchor(match[1])})", text)
    return glossary.with_targets(text)


def _heading_anchor(name: str) -> str:
    """Jupyter's anchor of a heading as the one that Markdown has elsewhere: `9.-Keras-3` is `9-keras-3`."""
    return re.sub(r"[^\w\- ]", "", name.lower())


def _joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def _tag(cell: Cell, tag: str) -> None:
    cell["metadata"].setdefault("tags", []).append(tag)
