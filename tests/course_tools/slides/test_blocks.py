"""The text of a cell in blocks, and what of a paragraph a slide shows."""

from pathlib import Path

import nbformat

from course_tools.slides import blocks


def test_no_word_of_a_chapter_is_lost(notebook: Path) -> None:
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert "\n".join(block.text for block in blocks.divided(cell.source)).split() == cell.source.split()


def test_sentences_end_where_a_reader_ends_them_and_a_slide_shows_a_conclusion_that_is_more_than_a_word() -> None:
    assert blocks.sentences("One. Two? Three!") == ["One.", "Two?", "Three!"]
    assert blocks.sentences("Chen et al. (2016) wait. `f(). G` is 0.5.") == [
        "Chen et al. (2016) wait.",
        "`f(). G` is 0.5.",
    ]
    assert blocks.sentences("**Step 1. Step 2.** They\nfollow.") == ["**Step 1. Step 2.**", "They follow."]
    for shown in ("No. The ring of ranks has no centre.", "**The scope.** Variables are created inside it."):
        assert blocks.conclusion(f"{shown} More.") == (shown, "More.")
