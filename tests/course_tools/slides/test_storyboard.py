"""Which slides a chapter has, what is on them, what the speaker gets; and one sentence for a wrong tag."""

from pathlib import Path

import pytest
from nbformat import NotebookNode

from course_tools.slides import storyboard
from tests.course_tools.slides.conftest import code, text

FOLDER = "notebooks"


def slides(chapter: NotebookNode) -> list[storyboard.Slide]:
    return storyboard.slides(chapter, Path(FOLDER))


def test_the_slides_come_in_the_order_of_the_cells(course: Path, chapter: NotebookNode) -> None:
    deck = slides(chapter)
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


def test_an_answer_has_its_question_and_its_conclusion(course: Path, chapter: NotebookNode) -> None:
    answer = slides(chapter)[3]
    assert "6 steps" in answer.content and "How many steps" in answer.content
    assert answer.takeaway == "No. It takes $2(p-1)$ steps. Each is short."


def test_every_word_of_text_is_on_a_slide_or_in_the_notes(course: Path, chapter: NotebookNode) -> None:
    deck = slides(chapter)
    everything = " ".join([slide.html() + " ".join(slide.notes) for slide in deck])
    for words in (
        "Ranks stand",
        "The next picture shows",
        "Arrows are messages",
        "Only the speaker",
        "5 minutes",
        "04.",
    ):
        assert words in everything, words
    assert "Only the speaker says this." in deck[-2].notes
    assert "Ranks stand in a ring." in deck[2].notes
    assert "print(steps)" in " ".join(deck[3].notes)


def test_pictures_have_their_descriptions(course: Path, chapter: NotebookNode) -> None:
    deck = slides(chapter)
    assert 'alt="Two bars"' in deck[4].content
    assert 'alt="Four ranks in a ring, with arrows"' in deck[5].content


def test_the_right_choice_is_marked_one_key_later_and_explained_in_the_notes(
    course: Path, chapter: NotebookNode
) -> None:
    quiz = slides(chapter)[6]
    assert quiz.content.count("<li") == 2
    assert 'class="fragment custom right" data-fragment-index="0">The second.' in quiz.content
    assert "Yes, it is" not in quiz.content and "Yes, it is." in quiz.notes[-1]


def test_a_continued_cell_goes_on_the_slide_before(course: Path, chapter: NotebookNode) -> None:
    chapter.cells[5].metadata.tags.append("slide-continued")
    deck = slides(chapter)
    assert len(deck) == 8
    assert "6 steps" in deck[3].content and "Two bars" in deck[3].content


def test_beside_a_picture_a_long_table_is_for_the_speaker(course: Path, chapter: NotebookNode) -> None:
    rows = NotebookNode(output_type="stream", name="stdout", text="\n".join(f"row {number}" for number in range(9)))
    chapter.cells[5].outputs.append(rows)
    deck = slides(chapter)
    assert "row 7" not in deck[4].content
    assert any("row 7" in note for note in deck[4].notes)


@pytest.mark.parametrize(
    ("cell", "sentence"),
    [
        (text("Text.", "picure"), "has the tag 'slide-picure'; the tags for slides are slide-code, "),
        (text("Text.", "table"), "has the tag slide-table and no such part."),
        (text("<details>\n<summary>Why?</summary>\nSo.\n</details>", "quiz"), "and a question without choices."),
        (code("x = 1", "output"), "has the tag slide-output and shows neither text nor an SVG."),
        (text("![Something that was never drawn](../figures/none.svg)", "picture"), "`make figures` draws it."),
    ],
)
def test_a_wrong_tag_is_one_sentence_with_the_cell(
    course: Path, chapter: NotebookNode, cell: NotebookNode, sentence: str
) -> None:
    cell["id"] = "03-99"
    chapter.cells.insert(4, cell)
    with pytest.raises((storyboard.WrongSlideTag, storyboard.MissingPicture)) as error:
        slides(chapter)
    assert str(error.value).startswith("Cell 03-99 ") and sentence in str(error.value)
