"""Grading: `SUBMISSIONS/STUDENT/NN_topic/lab.ipynb` of every student to grades and pages of feedback.

Begin with `grade_class`, which grades a class or checks one notebook. `submissions` finds the files and has what goes
from one to the next; `notebook` puts a student's answers among a lab's own steps, `grade` runs and judges them in a
jail with inputs that nobody has seen, and `feedback` writes the grades and the pages.
"""
