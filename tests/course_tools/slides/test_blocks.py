"""The text of a cell in blocks, and what of a paragraph a slide shows."""

from pathlib import Path

import nbformat
import pytest

from course_tools.slides import blocks


def test_a_cell_is_divided_into_its_kinds() -> None:
    text = """## Heading
Text below it.

- a point
  in two lines
- another

| a |
|---|
| 1 |

$$
x

y
$$

![A picture](a.svg)

<details>
<summary>Question</summary>

1. *One.* No.
</details>

**Predict.** Which one?
- this
- that

```python
x = 1

y = 2
```
"""
    kinds = [block.kind for block in blocks.divided(text)]
    assert kinds == ["heading", "text", "points", "table", "formula", "picture", "quiz", "predict", "code"]
    assert blocks.divided(text)[7].text.endswith("- this\n- that")


def test_no_word_of_a_chapter_is_lost(notebook: Path) -> None:
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            joined = "\n".join(block.text for block in blocks.divided(cell.source))
            assert joined.split() == cell.source.split()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two? Three!", ["One.", "Two?", "Three!"]),
        ("Chen et al. (2016) wait. `f(). G` is code.", ["Chen et al. (2016) wait.", "`f(). G` is code."]),
        ("**Step 1. Step 2.** They\nfollow, e.g. Two.", ["**Step 1. Step 2.**", "They follow, e.g. Two."]),
        ("A factor of 0.5 is small.", ["A factor of 0.5 is small."]),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text: str, expected: list[str]) -> None:
    assert blocks.sentences(text) == expected


def test_a_conclusion_is_never_a_single_word() -> None:
    assert blocks.conclusion("No. The ring of ranks has no centre. More.") == (
        "No. The ring of ranks has no centre.",
        "More.",
    )
    assert blocks.conclusion("Only this.") == ("Only this.", "")


def test_a_point_keeps_its_bold_lead_and_first_sentence() -> None:
    assert blocks.begun("**The scope.** Variables are created inside it. `fit` needs none.") == (
        "**The scope.** Variables are created inside it.",
        "`fit` needs none.",
    )


def test_a_link_becomes_its_words_and_a_picture_stays() -> None:
    assert blocks.without_links("a [ring](06.ipynb#x) and ![p](a.svg)") == "a ring and ![p](a.svg)"
