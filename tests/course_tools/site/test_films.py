"""Films: found in a cell, one file for each number of ranks, with a state and a sentence for each step."""

import json
import re
from pathlib import Path

import pytest

from course_tools.site import films


@pytest.mark.parametrize(
    ("source", "film"),
    [
        ("draw.show_widget(\n    draw.Stepper(ring_all_reduce, size=5),\n)", films.Film("ring_all_reduce", 5)),
        ("Stepper(collectives.ring_all_reduce)", films.Film("ring_all_reduce", 4)),
        ("draw.Stepper(my_own_program)", None),
        ("!ls", None),
    ],
)
def test_a_cell_with_a_stepper_of_the_courses_programs_has_a_film(source: str, film: films.Film | None) -> None:
    assert films.in_cell(source) == film


@pytest.mark.slow
def test_a_film_has_a_state_and_a_sentence_for_each_step_of_the_ring(tmp_path: Path) -> None:
    films.write("ring_all_reduce", tmp_path)
    for ranks in films.SIZES:
        text = (tmp_path / f"ring_all_reduce_{ranks}.js").read_text()
        name, content = re.fullmatch(r'courseFilm\("(\w+)", (.*)\);\n', text).groups()
        film = json.loads(content)
        assert name == f"ring_all_reduce_{ranks}"
        assert film["svg"].count('class="state ') == 2 * (ranks - 1) + 1
        assert [step.count("sends") for step in film["steps"]] == [ranks] * 2 * (ranks - 1)
