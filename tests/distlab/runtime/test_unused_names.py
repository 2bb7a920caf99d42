"""Names that do not exist yet."""

from pathlib import Path

from distlab.runtime.unused_names import unused


def test_a_name_that_is_taken_gets_a_number_behind_its_stem(tmp_path: Path) -> None:
    file = tmp_path / "lab.2026-11-20.ipynb"
    assert unused(file) == file
    file.touch()
    (tmp_path / "lab.2026-11-20-2.ipynb").symlink_to("nowhere")
    assert unused(file).name == "lab.2026-11-20-3.ipynb"
