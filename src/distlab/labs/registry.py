"""Which labs there are, where each is defined, and a lab as a notebook opens it: `lab = labs.open("06")`."""

import importlib
import os
import re
import secrets
import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

from distlab.labs.answer import SECONDS, OwnAnswer
from distlab.labs.card import SIGNS, card
from distlab.labs.lab import Lab
from distlab.labs.verdict import RIGHT, Verdict, not_done
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import NoSuchName, look_up

LABS = Path(__file__).parents[3] / "labs"
JUDGES = {folder.name[:2]: folder for folder in sorted(LABS.glob("[0-9][0-9]_*"))}
"""The folder of each lab, whose modules are imported as `lab_06.judge`, by the number of its chapter."""
MODULES = {number: f"lab_{number}.judge" for number in JUDGES}
"""The module that defines each lab as LAB, by the number of its chapter. Grading hides it where students' code runs."""


for _number, _folder in JUDGES.items():
    # Let `import lab_06.judge` find the module in the folder: `labs/06_topic` is no name for a package itself.
    _package = ModuleSpec(f"lab_{_number}", None, is_package=True)
    _package.submodule_search_locations = [str(_folder)]
    sys.modules.setdefault(_package.name, module_from_spec(_package))

NEXT_TO_STUDENTS = ("given", "observe", "fake_torch", "fake_cluster", "jobs", "small_training")
"""The modules of a lab's package that may run in a student's process; grading hides all others from it."""
_PROGRAMS = ("real_ranks.py", "train_serial.py")  # of students; all other modules in a lab's folder are the judge's


def is_of_judge(file: Path) -> bool:
    """Whether a file in a lab's folder belongs to its judge, so that students do not get it."""
    is_module = file.suffix == ".py" and file.name not in _PROGRAMS
    return (file.parent / "judge.py").exists() and (is_module or file.name in ("hints.json", "known_answers.json"))


def observers(number: str) -> list[str]:
    """The modules of a lab's package that run next to a student's code, by their whole names."""
    return [f"lab_{number}.{name}" for name in NEXT_TO_STUDENTS if (JUDGES[number] / f"{name}.py").exists()]


class NoSuchLab(NoSuchName):
    """There is no lab of that number; the message lists those there are."""


class NotRightYet(PlainError):
    """An answer is not right, and nbgrader validates the notebook: it takes a cell without an error for a success."""


class CheckInterrupted(KeyboardInterrupt):
    """A check was interrupted; Jupyter shows a sentence instead of the traceback, and starts no queued cell."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def lab(number: str | int) -> Lab:
    """The lab of a chapter: "06", 6 or "06_topic". Raises NoSuchLab."""
    digits = str(number).partition("_")[0].zfill(2)
    return cast(Lab, importlib.import_module(look_up(MODULES, digits, "lab", NoSuchLab)).LAB)


class OpenLab:
    """A lab with the answers of one notebook: `lab.check("name")` says whether an answer is right, or what is wrong.

    `lab.given` is the module with what the exercises work on, None in a lab that needs nothing.
    """

    def __init__(self, lab: Lab, namespace: Mapping[str, object]) -> None:
        """The answers are in `namespace`, as `globals()` returns it."""
        self.given = _given(lab.number)
        self._lab, self._namespace = lab, namespace
        self._not_compiled: dict[str, str] = {}
        if (shell := _shell()) is not None:
            shell.events.register("post_run_cell", self._note_cell)

    def _note_cell(self, result: Any) -> None:
        """Note the exercises whose cell does not compile: what an earlier version has defined is still there."""
        for exercise in self._lab:
            if re.search(rf"^(?:async )?(?:def )?{exercise.name}\b", result.info.raw_cell or "", re.MULTILINE):
                error = result.error_before_exec
                place = f"line {error.lineno}: {error.msg}" if isinstance(error, SyntaxError) else str(error or "")
                self._not_compiled[exercise.name] = place

    def check(self, name: str) -> None:
        """Show the verdict, in a notebook as a card, and its picture if there is one; no traceback ever.

        Raises NotRightYet instead while nbgrader validates the notebook, unless the answer is right.
        """
        try:
            error = self._not_compiled.get(name)
            unreadable = not_done(f"its cell does not compile ({error}): correct it and run it again")
            verdict = unreadable if error else self.verdict(name)
            if os.environ.get("NBGRADER_EXECUTION") == "validate" and not verdict.is_right:
                raise NotRightYet(shown(name, verdict))
            self._show(name, verdict)
        except KeyboardInterrupt:
            raise CheckInterrupted(f"{name}: interrupted; run the cell again to check it.") from None

    def _show(self, name: str, verdict: Verdict) -> None:
        """The verdict as a card in a notebook, and as text elsewhere; then its picture."""
        if _shell() is None:
            print(shown(name, verdict))
        else:
            names = [exercise.name for exercise in self._lab]
            following = [*names[names.index(name) + 1 :], None][0]
            html = card(name, verdict, self._lab[name].points, following)
            _display({"text/html": html, "text/plain": shown(name, verdict)})
        if verdict.picture is not None:
            try:
                picture = verdict.picture()
            except Exception as error:
                print(f"(The run could not be drawn: {type(error).__name__}: {error})")
                return
            _display({"image/svg+xml": picture.svg, "text/plain": picture.description})

    def target(self, name: str, **options: object) -> str:
        """What the answer to an exercise has to reach, as text. Raises NoSuchExercise."""
        return self._lab.target(self._lab[name].name, **options)

    def points(self, name: str) -> float:
        """The points for the exercise on inputs that the check has not used; for nbgrader's hidden tests."""
        return self._lab[name].points * self.verdict(name, secrets.randbits(60)).share

    def verdict(self, name: str, seed: int = 0) -> Verdict:
        """What the judge says. Raises NoSuchExercise."""
        seconds = max(SECONDS, self._lab.seconds_per_cell)  # TensorFlow needs more
        return self._lab[name].verdict(OwnAnswer(self._namespace, seconds), seed)


def _shell() -> Any:
    """IPython's shell in a notebook; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell if getattr(shell, "kernel", None) is not None else None


def _display(bundle: dict[str, str]) -> None:
    from IPython.display import display

    display(bundle, raw=True)  # type: ignore[no-untyped-call]  # IPython's has no types


def shown(name: str, verdict: Verdict) -> str:
    """The verdict as a student reads it."""
    mark = "." if not verdict.text[:1].islower() else ":"
    return f"{name}: {SIGNS[verdict.state]}" + (f"{mark} {verdict.text}" if verdict.text else "")


def says_right(name: str, printed: str) -> bool:
    """Whether what a cell has printed holds the verdict, as `shown` writes it, that the answer is right."""
    return f"{name}: {SIGNS[RIGHT]}" in printed


def open_lab(number: str) -> Any:
    """The OpenLab of a chapter, such as "06", for the notebook that calls this. Raises NoSuchLab.

    In grading the judges are elsewhere: there a lab has only what is given, and a check lets the cell run on.
    """
    number = str(number).zfill(2)
    module = look_up(MODULES, number, "lab", NoSuchLab)
    try:
        return OpenLab(lab(number), sys._getframe(1).f_globals)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
    says_nothing = {"check": lambda name: None, "target": lambda name, **options: "", "points": lambda name: 0.0}
    return SimpleNamespace(given=_given(number), **says_nothing)


def _given(number: str) -> ModuleType | None:
    """What the exercises of a lab work on."""
    name = f"lab_{number}.given"
    return importlib.import_module(name) if number in JUDGES and name in observers(number) else None
