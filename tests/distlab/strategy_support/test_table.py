"""The support table's file and its table in markdown; the measured table itself is in tests/programs."""

import copy
from pathlib import Path

import nbconvert.filters

from distlab.strategy_support import table as support_table

CELL = {"state": "works", "detail": "", "notes": []}
NASTY = "ValueError: `a|b` <b>*x*</b> _y_ $z$ \\ [link](#) & ~c~\nsecond line"


def whole_table(**cells: dict) -> dict:
    """A whole table with some strategies; every cell works but `cells`, those of `mirrored`, `fit`."""
    names = ["mirrored", "tpu", "multi-worker-2", "central-storage", "parameter-server", "default"]
    works = {"fit": {"legacy": CELL, "keras-3": CELL}, "custom": {"legacy": CELL, "keras-3": CELL}}
    table = {
        "measured": "2026-01-02",
        "versions": {"python": "3.11.7", "tensorflow": "2.21.0", "horovod": None},
        "machine": {"system": "Linux x86_64", "cores": 2, "gpus": 0},
        "tolerance": 1e-5,
        "strategies": {name: {"name": f"{name} strategy", "set_up": "1 process"} for name in names},
        "apis": {"fit": "Model.fit", "custom": "custom loop"},
        "kerases": {"legacy": "legacy Keras", "keras-3": "Keras 3"},
        "cells": {name: copy.deepcopy(works) for name in names},
    }
    table["cells"]["mirrored"]["fit"] |= {keras.replace("_", "-"): CELL | cell for keras, cell in cells.items()}
    return table


def columns(markdown: str) -> list[list[str]]:
    """The cells of the table's lines, split as markdown does: at each bar without a backslash before it."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.replace("\\|", "\0").strip("|").split("|")] for line in lines]


def test_a_written_table_is_read_back_and_is_next_to_the_same_in_markdown(tmp_path: Path) -> None:
    file = tmp_path / "table.json"
    support_table.write(whole_table(), file)
    assert support_table.read(file) == whole_table()
    assert support_table.markdown(whole_table()) in (tmp_path / "table.md").read_text()


def test_every_strategy_has_a_line_and_every_line_the_same_columns() -> None:
    grid = columns(support_table.markdown(whole_table()))
    assert len(grid) == 6 + 2
    assert {len(line) for line in grid} == {6}


def test_an_error_with_every_special_character_stays_literal() -> None:
    text = support_table.markdown(whole_table(legacy={"state": "fails", "detail": NASTY}))
    assert {len(line) for line in columns(text)} == {6}
    assert "**fails** (1)" in text
    html = nbconvert.filters.markdown2html(text)
    assert "ValueError: `a|b` &lt;b&gt;*x*&lt;/b&gt; _y_ $z$ \\ [link](#) &amp; ~c~ second line" in html


def test_the_same_footnote_has_one_number() -> None:
    error = {"state": "fails", "detail": "E: x", "notes": ["Why."]}
    text = support_table.markdown(whole_table(legacy=error, keras_3=error))
    assert (text.count("(1)"), text.count("(2)")) == (2, 0)
    assert text.count("`E: x`. Why.") == 1


def test_a_working_cell_with_a_note_has_a_footnote_and_one_without_has_none() -> None:
    text = support_table.markdown(whole_table(legacy={"notes": ["Judged otherwise."]}))
    assert text.count("works (1)") == 1
    assert "1. Judged otherwise." in text
    assert "(1)" not in support_table.markdown(whole_table())
