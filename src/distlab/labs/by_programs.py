"""Judge an answer by programs: the right one, and known-wrong ones, each with its hint.

A mistake is recognised by what it gives: its hint is said where the answer gives what that wrong program gives. The
same programs are the tests: `tests/distlab/labs/test_labs_mistakes.py` hands in each of them, and expects its own hint.
"""

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

from distlab.labs.answer import Answer, OwnAnswer
from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, TookTooLong
from distlab.labs.number_judge import (
    FOLLOWS,
    NOT_A_NUMBER,
    ROUNDED,
    TOLERANCE,
    is_near,
    is_rounded,
    number,
    problem_of_names,
)
from distlab.labs.verdict import WRONG, Picture, Verdict, not_done, parts, right, waiting_for, wrong
from distlab.simulate import SimulationError

Case: TypeAlias = Any
"""The arguments of one call, a tuple; with names if it is a NamedTuple."""
Program: TypeAlias = Callable[..., Any]
ByName: TypeAlias = Mapping[str, Any]
"""What is given or seen, by the part of the exercise or the name of the number."""
Text: TypeAlias = str | Callable[[Any, Any], str]
"""A hint, or a function of the case and of what the answer gives in it."""
Hint: TypeAlias = Text | Mapping[str, Text]
"""One for each part of the exercise, or for all."""

Drawn = TypeVar("Drawn")
_MOST_SHOWN = 80  # characters of a list before its hint
_NEAR_A_MISTAKE = 0.01  # the most that a number may be off to be taken for a mistake's, however wide the tolerance


class Mistake(NamedTuple):
    """A known-wrong program and its hint; hints by part are for these parts only."""

    hint: Hint
    program: Program

    def text(self, part: str) -> Text | None:
        """The hint for a part of the exercise; None if it has none."""
        return self.hint.get(part) if isinstance(self.hint, Mapping) else self.hint


class Follows(NamedTuple):
    """A part whose number follows from that of another: `formula(case, numbers)` gives it from the answer's own."""

    part: str
    source: str
    formula: Callable[[Any, ByName], Any]


class OfPart(tuple[Any, ...]):
    """A case of one part of an exercise: `OfPart("a slow worker", log)` is a call with the log."""

    part: str

    def __new__(cls, part: str, *arguments: Any) -> "OfPart":
        """The arguments of the call, which remember the part."""
        case = super().__new__(cls, arguments)
        case.part = part
        return case

    def split(self, value: Any) -> ByName:
        """The value for this part; `split=OfPart.split` does so for all cases."""
        return {self.part: value}


class Advice(str):
    """A text that `split` gives instead of a value: it is said as it is."""


def formulas(
    right_program: Program,
    tables: Mapping[str, Mapping[str, Hint]],
    more: Callable[..., ByName] = lambda *case: {},
) -> list[Mistake]:
    """Mistakes in what a program gives: formulas with their hints, by the name of the number, "" for the whole value.

    A formula knows the arguments of the program, what is right ("global batch" is `global_batch`, a whole value is
    `right`), and the names that `more(*arguments)` gives. A hint may have formulas too: "that is {2 * batch} images".
    """
    signature = inspect.signature(right_program)

    def evaluated(formula: str, case: Case) -> Any:
        value = right_program(*case)
        numbers = value if isinstance(value, dict) else {"right": value}
        names = {re.sub(r"\W", "_", name): number for name, number in numbers.items()}
        return eval(formula, {"math": math, "np": np, **names, **signature.bind(*case).arguments, **more(*case)})

    def program(name: str, formula: str, *case: Any) -> Any:
        value = evaluated(formula, case)
        return {**right_program(*case), name: value} if name else value

    def filled(hint: Hint) -> Any:
        if isinstance(hint, Mapping):
            return {part: filled(text) for part, text in hint.items()}
        if not isinstance(hint, str) or "{" not in hint:
            return hint
        return lambda case, said: re.sub(r"{(.*?)}", lambda match: str(evaluated(match[1], case)), hint)

    return [
        Mistake(filled(hint), partial(program, name, formula))
        for name, table in tables.items()
        for formula, hint in table.items()
    ]


def changed(text: str, *changes: tuple[str, str], **names: Any) -> Program:
    """The function that a text defines, with other lines; it knows `math`, `np` and these names."""
    for before, after in changes:
        if before not in text:
            raise ValueError(f"there is no {before!r} in the program")
        text = text.replace(before, after)
    namespace: dict[str, Any] = {"math": math, "np": np, **names}
    exec(text, namespace)
    program: Program = namespace[re.findall(r"^(?:async )?def (\w+)", text, re.MULTILINE)[0]]
    return program


def by_changes(
    text: str, table: Mapping[Text, Sequence[Sequence[tuple[str, str]]]], parts: Sequence[str] = (), **names: Any
) -> list[Mistake]:
    """Mistakes as changes of the right program's text: by hint the programs that it is for, each as its changes.

    They are for these parts of an exercise, or for all; the programs know `math`, `np` and the names.
    """
    return [
        Mistake(dict.fromkeys(parts, hint) if parts else hint, changed(text, *changes, **names))
        for hint, programs in table.items()
        for changes in programs
    ]


def drawn_until(is_clear: Callable[[Drawn], bool], draw: Callable[[], Drawn]) -> Drawn:
    """The first draw in which the mistakes can be told from what is right; the last one if there is none."""
    for _ in range(500):
        drawn = draw()
        if is_clear(drawn):
            break
    return drawn


@dataclass(frozen=True)
class ByPrograms:
    """The judge of an exercise whose answer is a function; its name is that of the program `right`.

    cases: what the function is called with, drawn from a generator.
    mistakes: the first that fits is said.  otherwise: the hint where none fits.
    said: a case in words, such as "for 8 ranks"; "" where the hints say it.
    parts: what earns an equal share each, or one by `weights`: names in the dictionary that the function gives, or what
        `split(case, value)` gives by name: a part of the value, or the part of the exercise to which the case belongs.
        Advice instead of a value is said as it is. Without parts it is all or nothing.
    together: what earns one share, with its parts by the names that are said; the first that is wrong in the first
        wrong case is said.
    after: by part, those that must be right before it counts, or a function that gives the part that must be right for
        a case of it to count.
    form: what is wrong with the form of a value, or None.
    follows: numbers that only follow from a wrong one.  tolerance: the relative error that numbers may have.
    praise: said of a right answer, a function of the cases.
    variable: the name of an answer that is a value, no function; `right` and the mistakes are values then too, and
        `observe` asks for them.
    observe: how a program runs in a case, the answer's or one of the lab, and what is seen of it; it asks an Answer.
        Without it the function is called, and its value is seen.
    draw: what was seen of the first wrong case, or of the first one, as a picture; None where there is nothing to draw.
        It also gets all cases with what was seen of them.
    below: what is said of the first wrong case below the verdict.
    """

    right: Program
    cases: Callable[[np.random.Generator], Sequence[Case]]
    mistakes: Sequence[Mistake]
    otherwise: Hint
    said: Callable[[Case], str]
    parts: Sequence[str] = ("",)
    split: Callable[[Case, Any], ByName] | None = None
    together: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    after: Mapping[str, Sequence[str] | Callable[[Case], str]] = field(default_factory=dict)
    form: Callable[[Case, Any], str | None] = lambda case, value: None
    follows: Sequence[Follows] = ()
    tolerance: float | Mapping[str, float] = TOLERANCE
    weights: Mapping[str, float] | None = None
    praise: Callable[[Sequence[Case]], str] = lambda cases: ""
    observe: Callable[[Answer, Case], Any] | None = None
    draw: Callable[..., Callable[[], Picture] | None] = lambda case, seen, every: None
    variable: str = ""
    below: Callable[[Case], str] = lambda case: ""

    def __call__(self, answer: Answer, generator: np.random.Generator) -> Verdict:
        """The verdict on an answer; raises AnswerError as the answer does if nothing else is to be said."""
        cases = self.cases(generator)
        values = self._values(answer, cases)
        expected = [self.outcome(self.right, case) for case in cases]
        if problem := self._problem(cases, values, expected):
            return problem
        asked = _Asked(self, cases, values, expected)
        verdicts = {part: asked.verdict(part) for part in self.parts}
        for part, sources in self.after.items():
            if not callable(sources) and not all(verdicts[source].is_right for source in sources):
                verdicts[part] = waiting_for(" and ".join(sources))
        for whole, names in self.together.items():
            verdicts[whole] = asked.first_wrong({name: verdicts.pop(part) for name, part in names.items()}, names)
        if all(verdict.is_right for verdict in verdicts.values()):
            return right(self.praise(cases), asked.picture())
        said = verdicts[""] if "" in verdicts else parts(verdicts, weights=self.weights)
        below = self.below(cases[asked.wrong[0][0]]) if said.state == WRONG and asked.wrong else ""
        return replace(said, below=below, picture=asked.picture())

    @property
    def name(self) -> str:
        """Of the function that the student writes, or of the variable."""
        return self.variable or self.right.__name__

    @property
    def is_by_name(self) -> bool:
        """Whether the function gives a dictionary of the parts."""
        return self.split is None and tuple(self.parts) != ("",)

    def by_part(self, case: Case, value: Any) -> ByName:
        """What a value says about each part of the exercise."""
        if isinstance(value, Exception):
            return dict.fromkeys(self.outcome(self.right, case), value)
        if self.split:
            return self.split(case, value)
        return {name: value[name] for name in self.parts} if self.is_by_name else {"": value}

    def outcome(self, program: Program, case: Case) -> ByName:
        """What a program of the lab gives, by part; it may fail as an answer may."""
        try:
            seen = program(*case) if self.observe is None else self.observe(OwnAnswer({self.name: program}), case)
        except Exception as error:
            seen = error
        return self.by_part(case, seen)

    def _values(self, answer: Answer, cases: Sequence[Case]) -> list[Any]:
        """What the answer gives in each case, or its error; after one that was stopped no further one is tried."""
        values: list[Any] = []
        for case in cases:
            try:
                values.append(
                    answer.call(self.name, *case, none_is_an_answer=True)
                    if self.observe is None
                    else self.observe(answer, case)
                )
            except (NotDone, Changed):
                raise
            except (AnswerError, SimulationError) as error:
                values.append(error)
                if isinstance(error, (TookTooLong, Gone)):
                    break
        return values

    def _problem(self, cases: Sequence[Case], values: Sequence[Any], expected: Sequence[ByName]) -> Verdict | None:
        """The verdict on an answer that is not begun, or has no such form; raises an error that all cases have."""
        errors = [value for value in values if isinstance(value, Exception)]
        if len(errors) == len(values) and len(set(map(str, errors))) == 1:
            raise errors[0]
        are_none = [value is None for value in values]
        if any(are_none) if self.is_by_name else all(are_none) and not may_be_none(expected):
            raise NotDone(f"`{self.name}` gives None: is a `return` missing?")
        for case, value in zip(cases, values, strict=False):
            if not isinstance(value, Exception):
                by_name = problem_of_names(self.name, self.parts, value) if self.is_by_name else None
                if problem := by_name or self.form(case, value):
                    return wrong(problem)
        if all(isinstance(value, dict) and all(item is None for item in value.values()) for value in values):
            return not_done(f"`{self.name}` gives a dictionary in which all values are None")
        return None


def may_be_none(expected: Sequence[ByName]) -> bool:
    """Whether None is the right value of a part in one of the cases."""
    return any(value is None for by_part in expected for value in by_part.values())


class _Asked:
    """What an answer gives in each part of each case that was tried, a cell, next to what the lab's programs give."""

    def __init__(
        self, judge: ByPrograms, cases: Sequence[Case], values: Sequence[Any], expected: Sequence[ByName]
    ) -> None:
        """`values`: what was seen, by case.  `expected`: what is right, by case and part.

        `wrong` are the cells in which the answer gives something else.
        """
        self.judge, self.cases, self.values, self.expected = judge, cases, values, expected
        self.mistaken = cache(lambda which, place: judge.outcome(judge.mistakes[which].program, cases[place]))
        self.given = [self._by_part(place, value) for place, value in enumerate(values)]
        self.cells = [(place, part) for place, given in enumerate(self.given) for part in given]
        self.wrong = [(place, part) for place, part in self.cells if not self._gives(place, part, expected[place])]

    def _by_part(self, place: int, value: Any) -> ByName:
        """What a value says by part; raises an error by which all numbers of a case are missing."""
        by_part = self.judge.by_part(self.cases[place], value)
        if not isinstance(value, Exception) or not self.judge.is_by_name:
            return by_part
        mistakes = [(each, self.mistaken(which, place)) for which, each in enumerate(self.judge.mistakes)]
        told = [
            part for part in by_part if any(each.text(part) and is_same(value, gives[part]) for each, gives in mistakes)
        ]
        if not told:
            raise value
        return dict.fromkeys(told, value)

    def picture(self) -> Callable[[], Picture] | None:
        """Of the first case in which something is wrong; of the first case if nothing is."""
        seen = [place for place, value in enumerate(self.values) if not isinstance(value, Exception)]
        wrong_places = {place for place, _ in self.wrong}
        place = min(seen, key=lambda place: place not in wrong_places, default=None)
        every = [(self.cases[place], self.values[place]) for place in seen]
        return None if place is None else self.judge.draw(self.cases[place], self.values[place], every)

    def first_wrong(self, verdicts: Mapping[str, Verdict], parts: Mapping[str, str]) -> Verdict:
        """Of parts that count together, by the names that are said: the first that is wrong in the first wrong case."""
        order = [part for _, part in self.wrong]
        found = [name for name, verdict in verdicts.items() if not verdict.is_right]
        if not found:
            return right()
        name = min(found, key=lambda name: order.index(parts[name]) if parts[name] in order else len(order))
        verdict = verdicts[name]
        return replace(verdict, context=f"{name}: {verdict.context}")

    def verdict(self, part: str) -> Verdict:
        """On one part: its first wrong case, with the hint for all of them."""
        judge, tried = self.judge, [cell for cell in self.cells if cell[1] == part]
        source_of = judge.after.get(part)
        if callable(source_of):
            tried = [cell for cell in tried if self.verdict(source_of(self.cases[cell[0]])).is_right]
            if not tried:
                return not_done("no other part is right yet")
        wrong_ones = [cell for cell in tried if cell in self.wrong]
        if not wrong_ones:
            is_left = any(part in expected for expected in self.expected[len(self.given) :])
            return not_done("it was not tried, because an earlier case was stopped") if is_left else right()
        place = wrong_ones[0][0]
        case, value = self.cases[place], self.given[place][part]
        said = judge.said(case)
        hint = self._hint(part, self.cells)
        if hint is None and (source := self._source(part, wrong_ones)):
            return wrong(FOLLOWS.format(source))
        # Of a truth value there is one wrong one: in the wrong cases alone, any mistake that is wrong there would fit.
        for cells in (tried,) if isinstance(self.expected[place][part], bool) else (tried, wrong_ones):
            hint = hint or self._hint(part, cells)
        if hint is None and value is None and not may_be_none(self.expected):
            nothing = self.values[place] is None
            text = f"`{judge.name}` gives None: is a `return` missing?" if nothing else "this is None"
            return not_done(text if judge.is_by_name or not said else f"{said}: {text}")
        told = self._otherwise(part, value, self.expected[place][part]) if hint is None else hint
        text = told(case, value) if callable(told) else told
        return replace(wrong(text, context=self._context(value, said)), hints=() if hint is None else (hint,))

    def _hint(self, part: str, cells: Sequence[tuple[int, str]]) -> Text | None:
        """Of the first mistake that gives the same in these cells; the most that a number may be off is small."""
        for which, mistake in enumerate(self.judge.mistakes):
            text = mistake.text(part)
            if text is not None and all(
                self._gives(place, name, self.mistaken(which, place), _NEAR_A_MISTAKE) for place, name in cells
            ):
                return text
        return None

    def _source(self, part: str, wrong_ones: Sequence[tuple[int, str]]) -> str | None:
        """The wrong part from which this one follows in all of its wrong cases."""
        for name, source, formula in self.judge.follows:
            if name == part and any(source == other for _, other in self.wrong):
                with suppress(TypeError, ValueError, LookupError, ZeroDivisionError):  # there are no such numbers
                    own = [(self.given[place], self.cases[place]) for place, _ in wrong_ones]
                    if all(is_same(given[part], formula(case, given)) for given, case in own):
                        return source
        return None

    def _otherwise(self, part: str, value: Any, expected: Any) -> Text:
        """The hint where none of a mistake's fits."""
        if isinstance(value, (Exception, Advice)):
            return str(value)
        if number(expected) is not None and value is not None and number(value) is None:
            return NOT_A_NUMBER
        if is_rounded(number(value), number(expected)):
            return ROUNDED
        otherwise = self.judge.otherwise
        return otherwise[part] if isinstance(otherwise, Mapping) else otherwise

    def _gives(self, place: int, part: str, other: ByName, most: float = math.inf) -> bool:
        """Whether the answer gives what another program gives, in one part of one case."""
        tolerance = self.judge.tolerance
        of_part = tolerance[part] if isinstance(tolerance, Mapping) else tolerance
        return is_same(self.given[place][part], other.get(part), min(of_part, most))

    def _context(self, value: Any, said: str) -> str:
        """The case in words, after what the answer gives in it; what is only observed is not shown."""
        as_number, value = number(value), value.tolist() if isinstance(value, np.ndarray) else value
        is_long = isinstance(value, (list, tuple)) and len(repr(value)) > _MOST_SHOWN
        if not said:
            return ""
        if isinstance(value, Exception) or self.judge.observe or is_long:
            return f"{said}: "
        return f"{value!r} {said}: " if as_number is None else f"{as_number:.6g} {said}: "


def is_same(value: Any, expected: Any, tolerance: float = TOLERANCE) -> bool:
    """Whether numbers, texts, and lists of these are equal, numbers to a relative error; errors by their kind."""
    if isinstance(value, Exception) and isinstance(expected, Exception):
        kinds = [getattr(error, "kind", type(error).__name__) for error in (value, expected)]
        return bool(kinds[0] == kinds[1])
    if (known := number(expected)) is not None:
        found = number(value)
        return found is not None and (is_near(found, known, tolerance) or (math.isnan(found) and math.isnan(known)))
    if isinstance(expected, (list, tuple, np.ndarray)):
        is_list = isinstance(value, (list, tuple, np.ndarray)) and getattr(value, "ndim", 1) > 0
        if not is_list or len(value) != len(expected):
            return False
        return all(is_same(item, other, tolerance) for item, other in zip(value, expected, strict=True))
    if isinstance(expected, dict):
        has_names = isinstance(value, dict) and set(value) == set(expected)
        return has_names and all(is_same(value[key], item, tolerance) for key, item in expected.items())
    return type(value) is type(expected) and bool(value == expected)
