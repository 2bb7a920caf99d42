"""The judge of `report`: its form alone. What it says is read by the instructor, with labs/16_capstone/rubric.md."""

import string

import numpy as np
from lab_16.given import REPORT
from lab_16.hints import Lab16ReportHint as Hints

from distlab.labs.answer import Answer
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

FEWEST, MOST = 25, 120
ALIKE = 12  # so many equal words in a row are copied
TO_READ = "The form is right. What it says is read by your instructor: labs/16_capstone/rubric.md says how."


def judge_report(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each part."""
    report = answer.value("report")
    if not isinstance(report, dict) or set(report) != set(REPORT):
        return wrong(Hints.PARTS.says(names=", ".join(REPORT)))
    if all(value is None or (isinstance(value, str) and not value.strip()) for value in report.values()):
        return not_done("`report` is still empty")
    hints: dict[str, AnyHint | None] = {name: _hint(report[name]) for name in REPORT}
    runs = {name: _runs(report[name]) for name in REPORT if hints[name] is None}
    for name in runs:
        if any(runs[name] & runs[peer] for peer in runs if peer != name):
            hints[name] = Hints.TWICE
    if not any(hints.values()):
        return right(TO_READ)
    return parts({name: right() if hint is None else wrong(hint) for name, hint in hints.items()})


def _hint(text: object) -> AnyHint | None:
    if text is not None and not isinstance(text, str):
        return Hints.NO_TEXT
    if not text or not text.strip():
        return Hints.EMPTY
    words = _words(text)
    if len(words) < FEWEST:
        return Hints.SHORT.says(words="1 word" if len(words) == 1 else f"{len(words)} words", fewest=FEWEST)
    if len(words) > MOST:
        return Hints.LONG.says(count=len(words), most=MOST)
    if len({word.lower() for word in words}) < FEWEST / 2:
        return Hints.REPEATS
    return None if any(character.isnumeric() for character in text) else Hints.NO_NUMBER


def _words(text: str) -> list[str]:
    """What is between spaces, without punctuation at its ends: a number is a word, a dash is none."""
    return [word for part in text.split() if (word := part.strip(string.punctuation))]


def _runs(text: object) -> set[tuple[str, ...]]:
    """All runs of ALIKE words."""
    words = _words(text.lower()) if isinstance(text, str) else []
    return {tuple(words[first : first + ALIKE]) for first in range(len(words) - ALIKE + 1)}
