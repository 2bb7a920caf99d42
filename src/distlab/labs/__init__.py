"""What all labs share: exercise and lab, the answer that a judge asks, the verdict, fakes, and `labs.open("06")`.

The exercises, judges and hints of one lab are in its folder, `labs/06_topic`, which is imported as `lab_06`; it
never imports another lab's. Begin with `lab`, `answer` and `verdict`; `docs/labs.md` says how to write a lab.
"""

from distlab.labs.answer import Answer, OwnAnswer
from distlab.labs.answer_errors import AnswerError, NotDone, NotPlain, Raised
from distlab.labs.lab import Exercise, Lab
from distlab.labs.registry import OpenLab
from distlab.labs.registry import open_lab as open
from distlab.labs.verdict import (
    NOT_DONE,
    RIGHT,
    WRONG,
    Picture,
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
    "Answer",
    "AnswerError",
    "Exercise",
    "Lab",
    "NotDone",
    "NotPlain",
    "OpenLab",
    "OwnAnswer",
    "Picture",
    "Raised",
    "Verdict",
    "not_done",
    "open",
    "parts",
    "right",
    "wrong",
]
