"""Quizzes: ten questions per chapter with fresh numbers, whose right answers the course's own code computes.

    quizzes.ask("06")                       # in a notebook: ten questions that mark themselves
    quizzes.draw(["06", "10"], seed=7, count=8).items

`distlab quiz 06 10 --seed 7` prints them for an exam. Begin with `item`, what a question consists of; the templates are
in `chapters`, one module per chapter. It may import all of the teaching library, and needs no TensorFlow.
"""

from distlab.quizzes.item import Item, Kind, Option
from distlab.quizzes.quiz import CHAPTERS, Quiz, TooFewQuestions, ask, draw

__all__ = ["CHAPTERS", "Item", "Kind", "Option", "Quiz", "TooFewQuestions", "ask", "draw"]
