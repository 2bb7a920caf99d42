"""Where a notebook was written, by the file and what is next to it."""

import json
from pathlib import Path

import pytest

from course_tools.grading import origin


@pytest.mark.parametrize(
    ("metadata", "python"),
    [
        ({"language_info": {"name": "python", "version": "3.13.1"}}, (3, 13)),
        ({"language_info": {"version": "3.9"}}, (3, 9)),
        ({"language_info": {"version": "3.9999999999"}}, (0, 0)),
        ({"language_info": {"version": 3.13}}, (0, 0)),
        ({"language_info": {}}, (0, 0)),
        ({"language_info": []}, (0, 0)),
        ([], (0, 0)),
    ],
)
def test_the_version_of_python_is_read_without_trust(tmp_path: Path, metadata: object, python: tuple[int, int]) -> None:
    file = tmp_path / "lab.ipynb"
    file.write_text(json.dumps({"cells": [], "metadata": metadata}))
    assert origin.of(file).python == python


def test_files_next_to_the_notebook_are_those_with_usual_names(tmp_path: Path) -> None:
    for name in ("lab.ipynb", "helpers.py", "no module.py", "notes.txt", f"{'x' * 100}.py"):
        (tmp_path / name).write_text("{}")
    assert origin.of(tmp_path / "lab.ipynb") == origin.Origin(
        (0, 0), frozenset({"lab.ipynb", "helpers.py", "notes.txt"})
    )
