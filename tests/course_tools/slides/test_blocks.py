"""The text of a cell in blocks, and what of a paragraph a slide shows."""

from pathlib import Path

import nbformat
import pytest

from course_tools.slides import blocks

EVERY_KIND = """## Heading
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

**Question.** How many?

1. One.

<details>
<summary>Answer</summary>

1. No.
</details>

**Predict.** Which one?
- this
- that

```python
x = 1

y = 2
```
"""


def test_a_cell_is_divided_into_its_kinds() -> None:
    kinds = [block.kind for block in blocks.divided(EVERY_KIND)]
    assert kinds == ["heading", "text", "points", "table", "formula", "picture", "quiz", "predict", "code"]
    assert blocks.divided(EVERY_KIND)[7].text.endswith("- this\n- that")


def test_no_word_of_a_chapter_is_lost(notebook: Path) -> None:
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "markdown":
            assert "\n".join(block.text for block in blocks.divided(cell.source)).split() == cell.source.split()


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


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("No. The ring of ranks has no centre. More.", "No. The ring of ranks has no centre."),
        ("**The scope.** Variables are created inside it. More.", "**The scope.** Variables are created inside it."),
        ("Only this.", "Only this."),
    ],
)
def test_a_slide_shows_the_bold_lead_and_a_conclusion_that_is_more_than_a_word(text: str, shown: str) -> None:
    assert blocks.conclusion(text) == (shown, text.removeprefix(shown).strip())
