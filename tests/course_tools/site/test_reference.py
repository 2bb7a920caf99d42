"""The reference names what Python sees, and docstrings of Markdown become what autodoc reads."""

from pathlib import Path

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
