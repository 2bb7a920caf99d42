"""A quiz: items of one or more chapters, drawn for a seed; the same seed gives the same quiz.

`ask` shows it in a notebook, `print_quiz` is what `distlab quiz` prints for self-tests and exams.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import isfunction, signature
from typing import Literal
from zlib import crc32

import numpy as np

from distlab.quizzes import page, paper
from distlab.quizzes.item import Item, Template
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import require_name

CHAPTERS = tuple(sorted([*(f"{number:02}" for number in range(16)), "08b"]))
MOST_DRAWS = 100


class TooFewQuestions(PlainError, ValueError):
    """More questions are asked for than the chapters have."""


@dataclass(frozen=True)
class Quiz:
    """Items in the order of the chapters; shown in a notebook as questions that mark themselves.

    `page` and `paper` write it as HTML, Markdown, text and JSON.
    """

    chapters: tuple[str, ...]
    seed: int
    items: tuple[Item, ...]

    def __repr__(self) -> str:
        return paper.text(self.items)

    def _repr_html_(self) -> str:
        return page.fragment(self.items, f"quiz-{'-'.join(self.chapters)}-{self.seed}")


def ask(chapter: str | int, seed: int = 1, count: int = 10) -> Quiz:
    """Questions about a chapter ("00" to "15", "08b"), which mark themselves in a notebook; a seed draws the numbers.

    A number, such as 6, names the chapter too.
    Raises NoSuchName for another chapter, and TooFewQuestions if `count` is more than the chapter has.
    """
    return draw([str(chapter).zfill(2)], seed, count)


def draw(chapters: Sequence[str], seed: int, count: int) -> Quiz:
    """`count` questions, as equally many of each chapter as possible; raises as `ask` does."""
    chapters = tuple(dict.fromkeys(chapters))
    of_chapter = {chapter: templates(chapter) for chapter in chapters}
    available = sum(map(len, of_chapter.values()))
    if not 1 <= count <= available:
        raise TooFewQuestions(
            f"There are {available} questions on chapter {', '.join(chapters)}; ask for 1 to that many."
        )
    generator = np.random.default_rng([seed, count])
    waiting = {
        chapter: [each[place] for place in generator.permutation(len(each))] for chapter, each in of_chapter.items()
    }
    # Deal one of each chapter in turn, in an order that the seed decides, until there are enough.
    order = [chapters[place] for place in generator.permutation(len(chapters))]
    chosen: list[Template] = []
    while len(chosen) < count:
        chosen += [waiting[chapter].pop() for chapter in order if waiting[chapter]]
    del chosen[count:]
    items = [
        draw_item(chapter, template, seed)
        for chapter, of_one in of_chapter.items()
        for template in of_one
        if template in chosen
    ]
    return Quiz(chapters, seed, tuple(items))


def templates(chapter: str) -> list[Template]:
    """The templates of a chapter, in the order of its text. Raises NoSuchName."""
    require_name(CHAPTERS, chapter, "quiz on chapter")
    module = import_module(f"distlab.quizzes.chapters.chapter_{chapter}")
    functions = [value for value in vars(module).values() if isfunction(value) and value.__module__ == module.__name__]
    return [function for function in functions if not function.__name__.startswith("_")]


def draw_item(chapter: str, template: Template, seed: int) -> Item:
    """The item that a template makes for a seed, its options in random order.

    Numbers with which a mistake leads to the right answer are drawn again.
    """
    name = template.__name__
    generator = np.random.default_rng([seed, int(chapter[:2]), crc32(name.encode())])
    _, *parameters = signature(template).parameters.values()
    for _ in range(MOST_DRAWS):
        values = {each.name: each.default.draw(generator) for each in parameters}
        item = Item(name, chapter, values)
        template(item, **values)
        if not item.is_ambiguous:
            item.options = [item.options[place] for place in generator.permutation(len(item.options))]
            return item
    raise RuntimeError(f"the template {name} of chapter {chapter} draws no numbers that tell its answers apart")


def print_quiz(
    chapter: str,
    /,
    *more: str,
    seed: int = 1,
    count: int = 10,
    answers: bool = False,
    form: Literal["markdown", "json", "html"] = "markdown",
) -> None:
    """Print questions on chapters.

    Args:
        chapter: 00 to 15, 08b, or all.
        more: Further chapters.
        seed: Another seed, other numbers.
        count: How many questions; a quiz and its answers need the same seed and the same count.
        answers: With the answers and the mistakes behind wrong ones.
        form: How it is written.
    """
    names = [name.strip().zfill(2) for text in (chapter, *more) for name in text.split(",") if name.strip()]
    quiz = draw(CHAPTERS if "all" in names else names, seed, count)
    several = len(quiz.chapters) > 1
    chapters = "all chapters" if quiz.chapters == CHAPTERS else f"chapter{'s' * several} {', '.join(quiz.chapters)}"
    # The seed alone does not say which quiz it is: with another count, other questions are drawn.
    title = f"{count} question{'s' * (count != 1)} on {chapters}, seed {seed}"
    if form == "json":
        print(paper.as_json(quiz.items, seed, answers))
    elif form == "html":
        print(page.document(quiz.items, title, f"quiz-{seed}", answers))
    else:
        print(paper.markdown(quiz.items, title, answers))
