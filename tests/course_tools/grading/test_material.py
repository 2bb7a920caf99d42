"""What a notebook imports decides with what it is graded."""

import os
from pathlib import Path

import nbformat
import pytest

from course_tools.grading.material import Material
from course_tools.sandbox import PLAIN, TENSORFLOW
from tests.course_tools.grading.submitted import put
from tests.distlab.labs.graded_sample import Handin


def of(sample: Material, handed_in: Handin, folder: Path, cell: nbformat.NotebookNode) -> Material:
    made = handed_in()
    made.cells.insert(1, cell)
    return sample.for_notebook(put(folder, "alice", made))


@pytest.mark.parametrize(
    "text", ["import math\nimport tensorflow as tf", "from keras import layers", "import tf_keras"]
)
def test_a_notebook_that_imports_tensorflow_is_graded_with_it_in_any_lab(
    text: str, sample: Material, handed_in: Handin, tmp_path: Path
) -> None:
    material = of(sample, handed_in, tmp_path, nbformat.v4.new_code_cell(text))
    assert (sample.limits, material.limits) == (PLAIN, TENSORFLOW)
    assert "tensorflow" in material.modules - sample.modules
    assert material.lab.seconds == 4 * material.lab.seconds_per_cell > sample.lab.seconds
    assert material.for_notebook(tmp_path / "alice") is material  # whatever else there is


@pytest.mark.parametrize("text", ["tensorflow = 'import'", "import numpy\n# tensorflow is not needed"])
def test_one_that_only_names_it_is_not(text: str, sample: Material, handed_in: Handin, tmp_path: Path) -> None:
    assert of(sample, handed_in, tmp_path, nbformat.v4.new_code_cell(text)) is sample


def test_what_is_no_file_is_not_read(sample: Material, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "lab.ipynb")
    for file in (None, tmp_path, tmp_path / "lab.ipynb", tmp_path / "nothing"):
        assert sample.for_notebook(file) is sample
