"""A quiz in print, for self-tests and exams: what `distlab quiz` prints."""

from typing import Literal

from distlab.quizzes import page, paper
from distlab.quizzes.quiz import CHAPTERS, Quiz, draw

ALL = "all"
Form = Literal["markdown", "json", "html"]


def print_quiz(
    chapter: str, /, *more: str, seed: int = 1, count: int = 10, answers: bool = False, form: Form = "markdown"
) -> None:
    """Print questions on chapters.

    Args:
        chapter: 00 to 15, or all.
        more: Further chapters.
        seed: Another seed, other numbers.
        count: How many questions; a quiz and its answers need the same seed and the same count.
        answers: With the answers and the mistakes behind wrong ones.
        form: How it is written.
    """
    names = [name.strip().zfill(2) for text in (chapter, *more) for name in text.split(",") if name.strip()]
    chapters = CHAPTERS if ALL in names else names
    print(written(draw(chapters, seed, count), form, answers))


def written(quiz: Quiz, form: Form, with_answers: bool) -> str:
    """The quiz in one of the forms."""
    several = len(quiz.chapters) > 1
    chapters = "all chapters" if quiz.chapters == CHAPTERS else f"chapter{'s' * several} {', '.join(quiz.chapters)}"
    # The seed alone does not say which quiz it is: with another count, other questions are drawn.
    count = len(quiz.items)
    title = f"{count} question{'s' * (count != 1)} on {chapters}, seed {quiz.seed}"
    if form == "json":
        return paper.as_json(quiz.items, quiz.seed, with_answers)
    if form == "html":
        return page.document(quiz.items, title, f"quiz-{quiz.seed}", with_answers)
    return paper.markdown(quiz.items, title, with_answers)
