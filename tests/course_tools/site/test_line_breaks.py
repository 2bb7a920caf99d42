"""Where lines may break: between the parts of names in tables, never before a percent sign or inside an option."""

import pytest
from docutils import nodes
from docutils.core import publish_doctree

from course_tools.site import line_breaks


class NoApplication:
    """What the functions get from Sphinx and do not use."""


def code_in(document: nodes.document) -> nodes.literal:
    line_breaks.divide_code(NoApplication(), document)  # type: ignore[arg-type]
    return next(document.findall(nodes.literal))


def in_table(code: str) -> nodes.literal:
    return code_in(publish_doctree(f".. list-table::\n\n   * - ``{code}``\n"))


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("MultiWorkerMirroredStrategy", ["Multi", "Worker", "Mirrored", "Strategy"]),
        ("tf.train.CheckpointManager(…)", ["tf.", "train.", "Checkpoint", "Manager(…)"]),
        ("labs/NN_topic/lab.py", ["labs/", "NN_", "topic/", "lab.py"]),
        ("LATE_SHAPE=0.5", ["LATE_", "SHAPE=", "0.5"]),
        (".venv", [".venv"]),
        ("--seed 2", ["--seed 2"]),
    ],
)
def test_code_in_a_table_breaks_between_the_parts_of_its_names(code: str, parts: list[str]) -> None:
    literal = in_table(code)
    assert [child.astext() for child in literal if isinstance(child, nodes.Text)] == parts
    assert "has-short-parts" in literal["classes"]


def test_a_name_outside_of_a_table_stays_in_one_piece() -> None:
    literal = code_in(publish_doctree("Run ``tf.train.CheckpointManager`` here."))
    assert len(literal.children) == 1 and "has-long-parts" in literal["classes"]


def test_no_line_begins_with_the_percent_sign_of_a_number() -> None:
    document = publish_doctree("It took 50 % more, ``50 % 3`` is 2.")
    line_breaks.keep_percent_signs(NoApplication(), document)  # type: ignore[arg-type]
    assert document.astext() == "It took 50\N{NO-BREAK SPACE}% more, 50 % 3 is 2."
