"""The wrong answers on the pages of the labs: each gets a hint of the lab's judge."""

import nbformat
import pytest

from course_tools.site import wrong_answers
from distlab.labs import registry


@pytest.mark.slow
@pytest.mark.parametrize("number", sorted(registry.JUDGES.keys() - {"06"}))  # whose text has a picture of one
def test_each_lab_shows_what_its_check_says_of_a_wrong_line(number: str) -> None:
    lab = nbformat.read(registry.JUDGES[number] / "lab.ipynb", as_version=4)
    _, _, wrong = wrong_answers.PIECES[number]
    wrong_answers.show(lab, number)
    line, said = lab.cells[0].source.split("has this line:")[1].split("</strong>")
    assert wrong in line and line.endswith("is not right yet")
    assert "could not cope" not in said
