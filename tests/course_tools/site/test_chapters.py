"""Which notebooks are chapters."""

from pathlib import Path

from course_tools.site import chapters


def test_chapters_come_in_order_and_copies_are_told_apart(tmp_path: Path) -> None:
    copies = ("01_rings (1)", "01_rings-2026-11-20", "01_rings-Copy1")
    for name in ("02_more", "01_rings", *copies, "Untitled", "notes"):
        (tmp_path / f"{name}.ipynb").touch()
    assert [file.stem for file in chapters.chapter_notebooks(tmp_path)] == ["01_rings", "02_more"]
    assert tuple(file.stem for file in chapters.copies(tmp_path)) == copies
