"""Which notebooks are chapters."""

from pathlib import Path

import pytest

from course_tools.site import chapters


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("01_why_distribute", True),
        ("01_why_distribute-Copy1", False),
        ("01_why_distribute (1)", False),
        ("01_why_distribute-2026-11-20", False),
        ("Untitled", False),
    ],
)
def test_a_chapter_has_a_number_and_a_topic(name: str, expected: bool) -> None:
    assert chapters.is_chapter(Path("notebooks") / f"{name}.ipynb") is expected


def test_chapters_come_in_order_and_copies_are_told_apart(tmp_path: Path) -> None:
    for name in ("02_more", "01_rings", "01_rings-Copy1", "notes"):
        (tmp_path / f"{name}.ipynb").touch()
    assert [file.stem for file in chapters.chapter_notebooks(tmp_path)] == ["01_rings", "02_more"]
    assert [file.stem for file in chapters.copies(tmp_path)] == ["01_rings-Copy1"]
