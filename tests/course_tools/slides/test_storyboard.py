"""Which slides a chapter has, what is on them, what the speaker gets; and one sentence for a wrong tag."""

from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_output

from course_tools.slides import markup, storyboard
from distlab.runtime.errors import PlainError
from tests.course_tools.slides.conftest import SVG, text


@pytest.fixture
def deck(course: Path, chapter: NotebookNode) -> list[storyboard.Slide]:
    return storyboard.slides(chapter, Path("notebooks"))


def test_the_slides_come_in_the_order_of_the_cells(deck: list[storyboard.Slide]) -> None:
    assert [(slide.kind, slide.section, slide.heading) for slide in deck] == [
        ("title", "", "03 Rings"),
        ("questions", "03 Rings", "Questions"),
        ("predict", "03 Rings", "1. The ring"),
        ("output", "03 Rings", "1. The ring"),
        ("output", "03 Rings", "1. The ring"),
        ("picture", "1. The ring", "Drawn"),
        ("quiz", "1. The ring", "Drawn"),
        ("table", "03 Rings", "2. Its cost"),
        ("recap", "03 Rings", "Recap"),
    ]


def test_every_word_of_text_is_on_a_slide_or_in_the_notes(deck: list[storyboard.Slide]) -> None:
    everything = " ".join(" ".join([slide.content, slide.takeaway, *slide.notes]) for slide in deck)
    for words in ("The next picture shows", "Arrows are messages", "5 minutes", "04."):
        assert words in everything
    assert "Only the speaker says this." in deck[-2].notes
    assert "Ranks stand in a ring." in deck[2].notes
    assert "print(steps)" in " ".join(deck[3].notes)


def test_the_whole_paragraph_before_a_formula_is_shown(course: Path, chapter: NotebookNode) -> None:
    chapter.cells[-1:-1] = [text("Each of $p$ ranks waits. It sends $n$ bytes:\n\n$$p n$$", "text", "formula")]
    assert "It sends" in storyboard.slides(chapter, Path("notebooks"))[-2].content


def test_an_answer_comes_on_a_new_slide_that_repeats_the_question(course: Path, chapter: NotebookNode) -> None:
    del chapter.cells[3]  # the output: the answer follows its prediction
    asked, answer = storyboard.slides(chapter, Path("notebooks"))[2:4]
    assert not asked.takeaway
    assert "How many steps" in answer.content and answer.takeaway.startswith("No.")


def test_the_right_choice_is_marked_one_key_later_and_explained_in_the_notes(deck: list[storyboard.Slide]) -> None:
    quiz = deck[6]
    assert quiz.content.count("<li") == 2
    assert 'class="fragment custom right" data-fragment-index="0">The second.' in quiz.content
    assert "Yes, it is" not in quiz.content and "Yes, it is." in quiz.notes[-1]


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (text("Text.", "picure"), "has the tag slide-picure; it can have slide-continued, "),
        (text("Text.", "table"), "has the tag slide-table; it can have slide-continued, slide-takeaway, slide-text."),
    ],
)
def test_a_wrong_tag_is_one_sentence_with_the_cell(
    course: Path, chapter: NotebookNode, cell: NotebookNode, sentence: str
) -> None:
    cell["id"] = "03-99"
    chapter.cells.insert(4, cell)
    with pytest.raises(PlainError, match=f"^Cell 03-99 .*{sentence}"):
        storyboard.slides(chapter, Path("notebooks"))


@pytest.mark.parametrize(
    ("printed", "on_slide"),
    [
        ("ranks   time\n    2   4 ms", "ranks   time\n    2   4 ms"),
        ("\x1b[31m<script>\x1b[0m", "&lt;script&gt;"),
        ("word " * 20, "word " * 12 + "word\n    word"),
        ("a   " * 50, "a   " * 28 + "a   a …"),
        ("$ mpirun " + "--option " * 30, "$ mpirun " + "--option " * 8 + "--option …"),
    ],
)
def test_what_was_printed_is_shown_in_short_lines_and_whole_to_the_speaker(printed: str, on_slide: str) -> None:
    html, rest = markup.of_outputs([new_output("stream", text=printed)])
    assert on_slide in html
    assert rest.strip() == (printed.strip() if "word" in printed or "…" in html else "")


def test_a_high_picture_takes_the_place_of_what_was_printed() -> None:
    data = {"image/svg+xml": SVG.replace("200 100", "120 100"), "text/plain": "figure"}
    html, rest = markup.of_outputs([new_output("stream", text="two ranks\n"), new_output("display_data", data=data)])
    assert 'class="pictures high"' in html and "two ranks" not in html and rest == "two ranks"


def test_a_long_program_has_no_empty_lines() -> None:
    assert "\n\n" in markup.of_code("one = 1\n\n" * 7) and "\n\n" not in markup.of_code("one = 1\n\n" * 11).strip()
