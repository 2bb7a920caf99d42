"""Which labs there are, where each is defined, and a lab as a notebook opens it: `lab = labs.open("06")`."""

import importlib
import secrets
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import cast

from distlab.labs.answer import SECONDS, OwnAnswer
from distlab.labs.lab import Lab
from distlab.labs.verdict import NOT_DONE, RIGHT, Verdict
from distlab.runtime.lookups import NoSuchName, look_up

MODULES = {number: f"distlab.labs.lab_{number}.lab" for number in ("02", "03", "06", "07", "09", "10", "11", "12")}
"""The module that defines each lab as LAB, by the number of its chapter."""


class NoSuchLab(NoSuchName):
    """There is no lab of that number; the message lists those there are."""


def lab(number: str | int) -> Lab:
    """The lab of a chapter: "06", 6 or "06_topic". Raises NoSuchLab."""
    digits = str(number).partition("_")[0].zfill(2)
    return cast(Lab, importlib.import_module(look_up(MODULES, digits, "lab", NoSuchLab)).LAB)


_SIGNS = {RIGHT: "✔ right", NOT_DONE: "… not done yet"}


class OpenLab:
    """A lab with the answers of one notebook: `lab.check("name")` says whether an answer is right, or what is wrong.

    `lab.given` is the module with what the exercises work on.
    """

    def __init__(self, lab: Lab, namespace: Mapping[str, object]) -> None:
        """The answers are in `namespace`, as `globals()` returns it."""
        self._lab, self._namespace = lab, namespace

    @property
    def given(self) -> ModuleType | None:
        """What the exercises work on; None in a lab that needs nothing."""
        return self._lab.given

    def check(self, name: str) -> None:
        """Print the verdict in one line or a few, and show its picture if there is one; no traceback ever."""
        verdict = self.verdict(name)
        print(shown(name, verdict))
        if verdict.picture is not None:
            from IPython.display import display

            try:
                picture = verdict.picture()
            except Exception as error:
                print(f"(The run could not be drawn: {type(error).__name__}: {error})")
                return
            bundle = {"image/svg+xml": picture.svg, "text/plain": picture.description}
            display(bundle, raw=True)  # type: ignore[no-untyped-call]  # IPython's has no types

    def target(self, name: str, **options: object) -> str:
        """What the answer to an exercise has to reach, as text. Raises NoSuchExercise."""
        return self._lab.target(name, **options)

    def points(self, name: str) -> float:
        """The points for the exercise on inputs that the check has not used; for nbgrader's hidden tests."""
        return self._lab[name].points * self.verdict(name, secrets.randbits(60)).share

    def verdict(self, name: str, seed: int = 0) -> Verdict:
        """What the judge says. Raises NoSuchExercise."""
        return self._lab[name].verdict(OwnAnswer(self._namespace, SECONDS), seed)


def shown(name: str, verdict: Verdict) -> str:
    """The verdict as a student reads it."""
    sign = _SIGNS.get(verdict.state, "✘ not right yet")
    return f"{name}: {sign}{'. ' if verdict.text else ''}{verdict.text}"


def open_lab(number: str) -> OpenLab:
    """The lab of a chapter, such as "06", for the notebook that calls this. Raises NoSuchLab."""
    return OpenLab(lab(number), sys._getframe(1).f_globals)
