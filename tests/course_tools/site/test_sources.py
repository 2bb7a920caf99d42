"""The folder that Sphinx reads: nothing is written twice, nothing stays that is gone, a run takes its place."""

import json
import os
from pathlib import Path

import pytest

from course_tools.site import index_page, sources

NOTEBOOK = Path("notebooks/01_rings.ipynb")


def gather(course: Path, executed: Path | None = None, solutions: bool = True) -> Path:
    folder = course.parent / "gathered"
    sources.gather(course, folder, executed, solutions)
    return folder


def times(folder: Path) -> dict[Path, int]:
    return {file: file.stat().st_mtime_ns for file in folder.rglob("*") if file.is_file()}


def test_a_second_time_changes_no_file_and_a_changed_notebook_one(course: Path) -> None:
    first = times(gather(course))
    assert times(gather(course)) == first
    (course / NOTEBOOK).write_text((course / NOTEBOOK).read_text().replace("adds", "sums"))
    second = times(gather(course))
    assert [file.name for file in first if first[file] != second[file]] == ["01_rings.ipynb"]


def test_what_is_gone_from_the_course_is_gone_from_the_site(course: Path) -> None:
    gather(course)
    (course / "docs" / "glossary.md").unlink()
    folder = gather(course, solutions=False)
    assert not (folder / "docs").exists()
    assert not list(folder.rglob("solution.ipynb"))
    assert "docs/glossary" not in (folder / "index.md").read_text()


def test_an_executed_notebook_takes_the_place_of_the_committed_one_and_others_stay(course: Path) -> None:
    other = course / "notebooks" / "02_more.ipynb"
    other.write_text((course / NOTEBOOK).read_text())
    executed = course.parent / "executed"
    executed.mkdir()
    (executed / NOTEBOOK.name).write_text((course / NOTEBOOK).read_text().replace('"2"', '"two"'))
    folder = gather(course, executed)
    assert json.loads((folder / NOTEBOOK).read_text())["cells"][2]["outputs"][0]["data"]["text/plain"] == "two"
    assert (folder / "notebooks" / "02_more.ipynb").read_text() == other.read_text()


def test_a_run_that_cannot_be_read_leaves_the_committed_notebook(course: Path) -> None:
    executed = course.parent / "executed"
    executed.mkdir()
    (executed / NOTEBOOK.name).write_text('{"cells": [')
    assert (gather(course, executed) / NOTEBOOK).read_text() == (course / NOTEBOOK).read_text()


def test_chapters_without_a_run_that_can_be_shown_are_told(course: Path) -> None:
    executed = course.parent / "executed"
    assert sources.chapters_without_run(course, executed) == ["01"]
    executed.mkdir()
    run = executed / NOTEBOOK.name
    run.write_text('{"cells": [')
    assert sources.chapters_without_run(course, executed) == ["01"]
    run.write_text((course / NOTEBOOK).read_text())
    assert sources.chapters_without_run(course, executed) == []
    os.utime(run, (0, 0))
    assert sources.chapters_without_run(course, executed) == ["01"]


@pytest.mark.parametrize("change", ["interrupted", "failed"])
def test_a_run_that_did_not_come_to_its_end_is_not_shown(course: Path, change: str) -> None:
    executed = course.parent / "executed"
    executed.mkdir()
    notebook = json.loads((course / NOTEBOOK).read_text())
    cell = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    if change == "interrupted":
        cell |= {"execution_count": None, "outputs": []}
    else:
        cell["outputs"] = [{"output_type": "error", "ename": "E", "evalue": "", "traceback": []}]
    (executed / NOTEBOOK.name).write_text(json.dumps(notebook))
    assert sources.chapters_without_run(course, executed) == ["01"]
    assert (gather(course, executed) / NOTEBOOK).read_text() == (course / NOTEBOOK).read_text()


def test_a_folder_without_a_course_and_a_readme_without_its_map_are_one_sentence(course: Path) -> None:
    with pytest.raises(sources.NoCourse, match="There is no notebook in"):
        gather(course.parent / "nothing")
    readme = (course / "README.md").read_text()
    (course / "README.md").write_text(readme.replace("## The course", "## Something else"))
    with pytest.raises(index_page.NoSection, match="no section 'The course'"):
        gather(course)


def test_a_copy_of_a_chapter_is_no_page(course: Path) -> None:
    (course / "notebooks" / "01_rings-Copy1.ipynb").write_text((course / NOTEBOOK).read_text())
    folder = gather(course)
    assert [file.name for file in (folder / "notebooks").iterdir()] == ["01_rings.ipynb"]
    assert "Copy1" not in (folder / "index.md").read_text()
    assert sources.chapters_without_run(course, course.parent / "executed") == ["01"]
