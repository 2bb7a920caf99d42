"""The check in the cell after an exercise."""

import secrets
import sys
from collections.abc import Mapping
from typing import Any

from distlab.labs.answer import SECONDS, OwnAnswer
from distlab.labs.lab import Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, Verdict

_SIGNS = {RIGHT: "✔ right", NOT_DONE: "… not done yet"}


class Checker:
    """`check("name")` says whether the exercise's answer is right, and else what is wrong."""

    def __init__(self, lab: Lab, namespace: Mapping[str, Any]) -> None:
        """The answers are in `namespace`, as `globals()` gives it."""
        self._lab, self._namespace = lab, namespace

    def __call__(self, name: str) -> None:
        """Print the verdict in one line or a few, and show its picture if there is one; no traceback ever."""
        verdict = self.verdict(name)
        print(shown(name, verdict))
        if verdict.picture is not None:
            from IPython.display import display

            try:
                drawn = verdict.picture()
            except Exception as error:
                print(f"(The run could not be drawn: {type(error).__name__}: {error})")
                return
            display({"image/svg+xml": drawn.svg, "text/plain": drawn.description}, raw=True)

    def points(self, name: str) -> float:
        """The points for the exercise on inputs that the check has not used; for nbgrader's hidden tests."""
        return self._lab[name].points * self.verdict(name, secrets.randbits(60)).share

    def verdict(self, name: str, seed: int = 0) -> Verdict:
        """What the judge says."""
        return self._lab[name].verdict(OwnAnswer(self._namespace, SECONDS), seed)


def shown(name: str, verdict: Verdict) -> str:
    """The verdict as a student reads it."""
    sign = _SIGNS.get(verdict.state, "✘ not right yet")
    return f"{name}: {sign}{'. ' if verdict.text else ''}{verdict.text}"


def checker(number: str) -> Checker:
    """The check of a lab for the notebook that calls this; `number` is the chapter's, as in "06"."""
    from distlab.labs import catalogue

    return Checker(catalogue.lab(number), sys._getframe(1).f_globals)
