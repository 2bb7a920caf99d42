"""Grading: `SUBMISSIONS/STUDENT/NN_topic/lab.ipynb` of every student to grades and pages of feedback.

Begin with `grade_class`, which grades a class or checks one notebook. `submissions` finds the files, `material` has a
lab's own steps, `notebook` puts a student's answers among them, `grade` runs and judges them in a jail with inputs that
nobody has seen, and `feedback` writes the grades and the pages. `submission` is what goes from one to the next.
"""
