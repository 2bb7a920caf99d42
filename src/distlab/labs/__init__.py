"""The labs: what all of them share, and one package per lab (`lab_06`) with its exercises, judges, hints and fakes.

It may import the teaching library (`simulate` … `draw`) and `runtime`, never `sandbox`, `grading`, `course` or `setup`;
a lab's package never imports another lab's. A notebook begins with `lab = labs.open("06")`. Begin to read with `lab`
(exercise and lab), `answer` (what a judge may ask) and `verdict` (what it says); `docs/labs.md` says how to write one.
"""

from distlab.labs.answer import Answer, OwnAnswer
from distlab.labs.answer_errors import AnswerError, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.lab import Exercise, Lab
from distlab.labs.registry import OpenLab
from distlab.labs.registry import open_lab as open
from distlab.labs.verdict import (
    NOT_DONE,
    RIGHT,
    WRONG,
    Advice,
    AnyHint,
    Hint,
    Picture,
    State,
    Verdict,
    not_done,
    parts,
    right,
    wrong,
)

__all__ = [
    "NOT_DONE",
    "RIGHT",
    "WRONG",
    "Advice",
    "Answer",
    "AnswerError",
    "AnyHint",
    "Exercise",
    "Hint",
    "Lab",
    "NotDone",
    "NotPlain",
    "OpenLab",
    "OwnAnswer",
    "Picture",
    "Raised",
    "State",
    "TookTooLong",
    "Verdict",
    "not_done",
    "open",
    "parts",
    "right",
    "wrong",
]
