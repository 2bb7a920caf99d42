"""The cells of a lab's own solution, by name, as the notebook runs them."""

import functools
from typing import Any

from course_tools import lab_sources
from distlab.labs import registry


@functools.cache
def solved_cells(number: str) -> dict[str, str]:
    """The text of each answer by exercise, after the given cells, which have numbers; without checks and prints."""
    return _cells(number, solved=True)


@functools.cache
def namespace_of(number: str, solved: bool) -> dict[str, Any]:
    """The names that a lab's cells define, with its solutions or as students get it."""
    namespace: dict[str, Any] = {"__name__": "notebook"}
    for name, text in _cells(number, solved).items():
        exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace


def solution_with(number: str, exercise: str, *changes: tuple[str, str], **known: Any) -> dict[str, Any]:
    """The names that an exercise's own solution defines if these parts of its text are others; it knows some more."""
    text, names = solved_cells(number)[exercise] + "\n", {"__name__": "notebook", **known}
    for before, after in changes:
        assert before in text, before
        text = text.replace(before, after)
    exec(text, names)
    return {name: value for name, value in names.items() if name not in ("__name__", "__builtins__", *known)}


def edited(text: str, changes: str) -> str:
    """A text with other words: "before → after <> before → after", with ⏎ for the end of a line.

    "without words" leaves out the lines in which these words are.
    """
    for change in changes.replace("⏎", "\n").split(" <> "):
        if change.startswith("without "):
            text = "".join(line for line in text.splitlines(keepends=True) if change[8:] not in line)
            continue
        before, after = change.split(" →")
        assert before in text, (before, text)
        text = text.replace(before, after.removeprefix(" "))
    return text


def _cells(number: str, solved: bool) -> dict[str, str]:
    [source] = lab_sources.chosen(registry.LABS, number)
    notebook = lab_sources.convert(source)
    cells: dict[str, str] = {}
    for place, cell in enumerate((lab_sources.solved(notebook) if solved else lab_sources.student(notebook)).cells):
        settings = cell.metadata.get("nbgrader", {})
        if cell.cell_type != "code" or settings.get("grade"):
            continue
        if settings.get("solution"):
            cells[settings["grade_id"]] = cell.source
        elif not _shows(cell.source):
            cells[f"cell {place}"] = cell.source
    return cells


def _shows(text: str) -> bool:
    """Whether a cell only shows something, starts programs, or fixes TensorFlow's devices."""
    lines = text.splitlines()
    return any(
        line.startswith(("print(", "for ", "programs.", "!", "file = ", "untrained", "# !", "strategy = "))
        for line in lines
    )
