"""The reference names what Python sees, and docstrings of Markdown become what autodoc reads."""

from pathlib import Path
from typing import Any

import pytest

from course_tools.site import reference


@pytest.mark.slow
def test_every_public_module_has_a_page_with_its_names(root: Path, tmp_path: Path) -> None:
    reference.write(tmp_path)
    index = (tmp_path / "index.md").read_text()
    for name in ("collectives", "costs", "data", "draw", "launch", "metrics", "simulate"):
        assert f"[distlab.{name}](distlab.{name}.md): " in index
    page = (tmp_path / "distlab.collectives.md").read_text()
    assert all(f".. autofunction:: distlab.collectives.{name}\n" in page for name in ("scatter", "ring_all_reduce"))
    assert ".. autoclass:: distlab.large_batch.FourNumbers\n" in (tmp_path / "distlab.large_batch.md").read_text()
    assert "profiling.messages.between_devices\n" in (tmp_path / "distlab.profiling.md").read_text()


def scale(array: Any, *more: int, by_two: bool = True) -> None:
    """Scale a*b*c, `x_y` of x_.

        scale(1)

    array: what to scale, which
    may be long.
    *more: others.
    note: no argument.
    """


def test_arguments_are_a_list_code_is_a_block_and_marks_stay_as_they_are() -> None:
    lines = [line.removeprefix("    ") for line in str(scale.__doc__).split("\n")]
    reference.as_markup(None, "function", "scale", scale, None, lines)  # type: ignore[arg-type]
    assert lines == [
        r"Scale a\*b\*c, ``x_y`` of x\_.",
        "",
        *("::", "", "    scale(1)", ""),
        *("- array: what to scale, which", "  may be long.", "", r"- \*more: others.", "  note: no argument.", ""),
    ]
