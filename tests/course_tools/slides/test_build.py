"""Decks on disk: what `distlab slides` writes, from which outputs, and what it says when something is wrong."""

import re
from pathlib import Path

import pytest

from course_tools import __main__ as cli

PAGE = Path("build/slides/03_rings.html")


def test_the_index_lists_every_deck_with_its_slides(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    (course / "notebooks" / "04_more.ipynb").write_text(file.read_text().replace("03 Rings", "04 More & more"))
    (course / "notebooks" / "03_rings-Copy1.ipynb").write_text(file.read_text())
    assert cli.main(["slides", "--only", "04"]) == 0
    assert not PAGE.exists()
    assert cli.main(["slides", "--only", "03"]) == 0
    index = (PAGE.parent / "index.html").read_text()
    rows = re.findall(r'<a href="(\S+\.html)">(.*?)</a></td><td class="number">(\d+)<', index)
    assert rows == [("03_rings.html", "03 Rings", "9"), ("04_more.html", "04 More &amp; more", "9")]
    assert capsys.readouterr().out.splitlines()[-1] == str(PAGE.parent / "index.html")


def test_executed_outputs_are_shown_if_the_run_came_to_its_end(
    course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    executed = course / "build" / "executed" / file.name
    executed.parent.mkdir(parents=True)
    executed.write_text(file.read_text().replace("6 steps", "8 steps"))
    assert cli.main(["slides", "--executed"]) == 0
    assert "8 steps" in PAGE.read_text() and len(capsys.readouterr().out.splitlines()) == 1
    executed.write_text('{"cells": [')
    assert cli.main(["slides", "--executed"]) == 0
    assert "6 steps" in PAGE.read_text() and "With the committed outputs" in capsys.readouterr().out
