"""`distlab quiz`: questions of chapters with fresh numbers, for self-tests and exams."""

import argparse
from typing import TYPE_CHECKING

from distlab import valid
from distlab.quizzes import page, paper
from distlab.quizzes.quiz import CHAPTERS, Quiz, draw

if TYPE_CHECKING:
    from argparse import _SubParsersAction

ALL = "all"
FORMS = ("markdown", "json", "html")


def add_commands(commands: "_SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `quiz` to the parser of `distlab`."""
    parser = commands.add_parser(
        "quiz",
        help="questions on chapters, with fresh numbers and computed answers",
        description="Print questions on chapters. The numbers depend on the seed; the answers are computed.",
    )
    parser.add_argument("chapters", nargs="+", metavar="CHAPTER", help=f"00 to {CHAPTERS[-1]}, or {ALL}")
    parser.add_argument("--seed", type=valid.seed, default=1, help="another seed, other numbers; by default 1")
    how_many = "how many questions; by default 10; a quiz and its answers need the same seed and the same count"
    parser.add_argument("--count", type=valid.count, default=10, help=how_many)
    parser.add_argument("--answers", action="store_true", help="with the answers and the mistakes behind wrong ones")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0], help=f"by default {FORMS[0]}")
    parser.set_defaults(run=_print_quiz)


def _print_quiz(options: argparse.Namespace) -> int:
    names = [name.strip().zfill(2) for text in options.chapters for name in text.split(",") if name.strip()]
    chapters = CHAPTERS if ALL in names else names
    print(written(draw(chapters, options.seed, options.count), options.form, options.answers))
    return 0


def written(quiz: Quiz, form: str, with_answers: bool) -> str:
    """The quiz in one of FORMS."""
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
