"""Films: found in a cell, one file for each number of ranks, drawn again only when the drawing changes."""

import json
import re
from pathlib import Path

import pytest

from course_tools.site import films


@pytest.mark.parametrize(
    ("source", "film"),
    [
        (
            "draw.show_widget(\n    draw.Stepper(ring_all_reduce, size=5),\n    'text',\n)",
            films.Film("ring_all_reduce", 5),
        ),
        ("Stepper(collectives.ring_all_reduce)", films.Film("ring_all_reduce", 4)),
        ("draw.Stepper(my_own_program)", None),
        ("draw.show(figure, 'text')", None),
        ("!ls", None),
    ],
)
def test_a_cell_with_a_stepper_of_the_courses_programs_has_a_film(source: str, film: films.Film | None) -> None:
    assert films.in_cell(source) == film


def test_a_film_has_a_state_and_a_sentence_for_each_step_of_the_ring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(films, "SIZES", (2, 3))
    for file, ranks in zip(films.write(["ring_all_reduce"], tmp_path), (2, 3), strict=True):
        name, content = re.fullmatch(r'courseFilm\("(\w+)", (.*)\);', file.read_text().splitlines()[1]).groups()  # type: ignore[union-attr]
        film = json.loads(content)
        steps = 2 * (ranks - 1)
        assert name == f"ring_all_reduce_{ranks}"
        assert film["svg"].count('class="state ') == steps + 1
        assert len(film["steps"]) == steps
        assert all(step.count("sends") == ranks for step in film["steps"])


def test_a_film_is_written_again_only_if_it_is_of_another_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(films, "SIZES", (2,))
    (file,) = films.write(["ring_all_reduce"], tmp_path)
    text = file.read_text()
    file.write_text(text + "// mark\n")
    films.write(["ring_all_reduce"], tmp_path)
    assert file.read_text().endswith("// mark\n")
    file.write_text("// another drawing\n")
    films.write(["ring_all_reduce"], tmp_path)
    assert file.read_text() == text
