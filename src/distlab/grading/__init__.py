"""Grading: `SUBMISSIONS/STUDENT/NN_topic/lab.ipynb` of every student to grades and pages of feedback.

The answers are the student's cells with the grade_ids of the exercises; all else comes from the lab's own source
(`script`, `notebook`). They run in a sandbox (`distlab.sandbox`), where the lab's judges question them with inputs
that nobody has seen (`grade`), for all students and labs side by side (`run`); `grades` and `feedback` write what came
of it.
"""
