"""Decks on disk: what `distlab slides` writes, from which outputs, and what it says when something is wrong."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from course_tools import __main__ as cli
from course_tools.slides import build

PAGE = Path("build/slides/03_rings.html")
# Anything that a browser would fetch: the address of a link is not.
FETCHED = re.compile(r'(?:src|<link[^>]*href)="(?!data:)([^"]*)"')


@pytest.mark.slow
def test_a_deck_needs_nothing_but_reveal_in_its_folder(course: Path) -> None:
    assert cli.main(["slides"]) == 0
    fetched = FETCHED.findall(PAGE.read_text())
    assert {name.split("/")[0] for name in fetched} == {"reveal"}
    assert all((PAGE.parent / name).is_file() for name in fetched)
    assert (
        "MIT" in (PAGE.parent / "reveal" / "LICENSE").read_text()
        or "Permission is hereby granted" in (PAGE.parent / "reveal" / "LICENSE").read_text()
    )


@pytest.mark.slow
def test_the_index_lists_every_deck_with_its_slides(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    (course / "notebooks" / "04_more.ipynb").write_text(file.read_text().replace("03 Rings", "04 More & more"))
    assert cli.main(["slides", "--only", "04"]) == 0
    assert not PAGE.exists()
    assert cli.main(["slides", "--only", "03"]) == 0
    index = (PAGE.parent / "index.html").read_text()
    rows = re.findall(r'<a href="(\w+\.html)">(.*?)</a></td><td class="number">(\d+)<', index)
    assert rows == [("03_rings.html", "03 Rings", "9"), ("04_more.html", "04 More &amp; more", "9")]
    assert capsys.readouterr().out.splitlines()[-1] == str(PAGE.parent / "index.html")


@pytest.mark.slow
def test_a_copy_of_a_chapter_has_no_deck_and_an_older_one_is_not_listed(course: Path) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    (course / "notebooks" / "03_rings-Copy1.ipynb").write_text(file.read_text())
    assert cli.main(["slides"]) == 0
    assert not PAGE.with_name("03_rings-Copy1.html").exists()
    PAGE.with_name("03_rings-Copy1.html").write_text(PAGE.read_text())
    assert cli.main(["slides"]) == 0
    assert "Copy1" not in (PAGE.parent / "index.html").read_text()


@pytest.mark.slow
def test_a_changed_notebook_changes_its_slides(course: Path) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    cli.main(["slides"])
    before = PAGE.read_text()
    cli.main(["slides"])
    assert PAGE.read_text() == before
    notebook = nbformat.read(file, as_version=4)
    notebook.cells[3].outputs[0].text = "7 steps\n"
    notebook.cells[9].metadata["tags"] = ["slide-text"]
    nbformat.write(notebook, file)
    cli.main(["slides"])
    after = PAGE.read_text()
    assert "6 steps" not in after and "7 steps" in after
    assert after.count("<section class=") == before.count("<section class=") + 1


@pytest.mark.slow
def test_executed_outputs_are_shown_if_they_are_newer(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    assert cli.main(["slides", "--executed"]) == 0
    assert "03_rings: not executed, so the deck shows the committed outputs." in capsys.readouterr().out
    executed = course / "build" / "executed" / file.name
    executed.parent.mkdir()
    executed.write_text(file.read_text().replace("6 steps", "8 steps"))
    assert cli.main(["slides", "--executed"]) == 0
    assert "8 steps" in PAGE.read_text() and len(capsys.readouterr().out.splitlines()) == 1
    assert cli.main(["slides"]) == 0
    assert "6 steps" in PAGE.read_text()
    os.utime(executed, (0, 0))
    assert cli.main(["slides", "--executed"]) == 0
    assert "is older than the committed one" in capsys.readouterr().out
    assert "6 steps" in PAGE.read_text()


def fails(notebook: nbformat.NotebookNode) -> None:
    cell = next(cell for cell in notebook.cells if cell.cell_type == "code")
    cell.outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="", traceback=[])]


def stops(notebook: nbformat.NotebookNode) -> None:
    cell = [cell for cell in notebook.cells if cell.cell_type == "code"][-1]
    cell.execution_count, cell.outputs = None, []


@pytest.mark.slow
@pytest.mark.parametrize("damage", [fails, stops, "", "{}", '{"cells": ['])
def test_a_run_that_failed_or_is_damaged_leaves_the_committed_outputs(
    damage: Callable[[nbformat.NotebookNode], None] | str, course: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = course / "notebooks" / "03_rings.ipynb"
    executed = course / "build" / "executed" / file.name
    executed.parent.mkdir(parents=True)
    if isinstance(damage, str):
        executed.write_text(damage)
    else:
        notebook = nbformat.read(file, as_version=4)
        damage(notebook)
        nbformat.write(notebook, executed)
    assert cli.main(["slides", "--executed"]) == 0
    said = capsys.readouterr().out
    assert "03_rings: the last run did not come to its end, so the deck shows the committed outputs." in said
    assert "6 steps" in PAGE.read_text()


def test_a_damaged_notebook_costs_only_its_own_deck(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (course / "notebooks" / "04_more.ipynb").write_text("{")
    assert cli.main(["slides"]) == 1
    assert "notebooks/04_more.ipynb cannot be read as a chapter and has no deck" in capsys.readouterr().out
    assert PAGE.is_file()


def test_a_chapter_that_does_not_exist_is_one_sentence(course: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["slides", "--only", "99"]) == 2
    assert "there are 03_rings" in capsys.readouterr().err


def test_outside_the_course_it_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["slides"]) == 2
    assert "There is no notebook in" in capsys.readouterr().err


def test_without_reveal_it_says_what_to_run(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "PACKAGE", "no_such_package")
    assert cli.main(["slides"]) == 2
    assert capsys.readouterr().err.strip() == (
        "The slides need reveal.js from the package sphinx-revealjs; run 'make setup', which installs it."
    )
    assert not PAGE.exists()
