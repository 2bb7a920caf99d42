"""Which nodes to rent, and how many, to be done in time for the least money: an exercise of lab 15 and its judge."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from lab_15.hints import Lab15Hint
from lab_15.scripts import counted

from distlab.labs.answer import Answer
from distlab.labs.answer_errors import Raised
from distlab.labs.number_judge import NumberHint, is_near, is_rounded, number
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, parts, right, wrong

NAMES = ("name", "nodes", "done", "cost")
CHOICE, DONE, COST, NOTHING = "the choice", "done", "cost", "nothing in time"
HOUR = 3600.0


class Offer(NamedTuple):
    """A kind of node: price per node and hour, one node's images per second, hours in the queue, longest job in hours.

    efficiency: by the numbers of nodes that can be rented.
    """

    name: str
    price: float
    images_per_second: float
    efficiency: dict[int, float]
    wait: float
    limit: float


@dataclass(frozen=True)
class RentRules:
    """How time and money are counted; the defaults are right, each change is a usual mistake.

    efficiency: its power in the images per second: 0 leaves it out, −1 divides by it.
    """

    efficiency: int = 1
    waits: str = "each time"
    pays_wait: bool = False
    pays_nodes: bool = True
    pays_limit: bool = False
    may_exceed: bool = True
    by: str = "cost"
    at_deadline: bool = True
    at_any_time: bool = False
    sizes: str = "all"


class Choice(NamedTuple):
    """An offer's name, how many of its nodes, the hours until the training is done, what it costs."""

    name: str
    nodes: int
    done: float
    cost: float


def choices(offers: Sequence[Offer], images: float, rules: RentRules = RentRules()) -> list[Choice]:
    """Every offer with every number of nodes."""
    result = []
    for offer in offers:
        sizes = [*offer.efficiency]
        for nodes in {"all": sizes, "largest": [max(sizes)], "smallest": [min(sizes)]}[rules.sizes]:
            rate = nodes * offer.images_per_second * offer.efficiency[nodes] ** rules.efficiency
            hours = images / rate / HOUR
            if hours > offer.limit and not rules.may_exceed:
                continue
            jobs = math.ceil(hours / offer.limit)
            waits = {"each time": jobs, "never": 0, "once": 1, "once more": math.floor(hours / offer.limit) + 1}
            waiting = waits[rules.waits] * offer.wait
            paid = jobs * offer.limit if rules.pays_limit else hours
            cost = offer.price * (nodes if rules.pays_nodes else 1) * (paid + (waiting if rules.pays_wait else 0))
            result.append(Choice(offer.name, nodes, waiting + hours, cost))
    return result


def rent(offers: Sequence[Offer], images: float, deadline: float, rules: RentRules = RentRules()) -> Choice | None:
    """The cheapest that is done at the deadline or before; None if there is none."""
    in_time = [
        choice
        for choice in choices(offers, images, rules)
        if rules.at_any_time or choice.done < deadline or (choice.done == deadline and rules.at_deadline)
    ]
    return min(in_time, key=lambda choice: getattr(choice, rules.by), default=None)


EXAMPLE = (
    [
        Offer("small", 2.0, 500.0, {1: 1.0, 2: 0.95, 4: 0.9}, 1.0, 24.0),
        Offer("large", 9.0, 2000.0, {1: 1.0, 2: 0.8, 4: 0.6}, 12.0, 48.0),
    ],
    108e6,
    40.0,
)

Case = tuple[list[Offer], float, float]


def drawn_cases(generator: np.random.Generator) -> list[tuple[str, Case]]:
    """Each case is one in which a mistake shows, drawn until the numbers of all mistakes differ from the right ones."""
    cases: list[tuple[str, Case]] = [(CHOICE, EXAMPLE)]
    for rules in _CHOICES:
        cases.append((CHOICE, _drawn_until(generator, rules)))
    offers, images, _ = _drawn(generator)
    earliest = min(choice.done for choice in choices(offers, images))
    return [*cases, (NOTHING, (offers, images, round(0.97 * earliest, 2))), (CHOICE, _at_deadline(generator))]


def _drawn(generator: np.random.Generator) -> Case:
    """Three offers: cheap and slow, dear and fast, in between, in any order; about half of them end in time."""

    def drawn(low: int, high: int) -> int:
        return int(generator.integers(low, high))

    offers = []
    for name, price, speed in (("birch", 2, 400), ("maple", 5, 900), ("cedar", 11, 2200)):
        loss = float(generator.uniform(0.04, 0.2))
        efficiency = {nodes: round(1 / (1 + loss * math.log2(nodes)), 3) for nodes in (1, 2, 4, 8)}
        rate, drawn_price = drawn(speed * 9 // 10, speed * 11 // 10), round(price * drawn(85, 115) / 100, 2)
        offers.append(Offer(name, drawn_price, float(rate), efficiency, float(drawn(1, 14)), float(drawn(5, 30))))
    images = float(drawn(80, 240)) * 1e6
    ends = sorted(choice.done for choice in choices(offers, images))
    deadline = round(float(ends[drawn(3, 8)]) + 0.25, 2)
    return [offers[place] for place in generator.permutation(3)], images, deadline


def _drawn_until(generator: np.random.Generator, rules: RentRules) -> Case:
    """A case in which another offer or size is chosen under these rules, and the cheapest is clearly cheaper."""
    while True:
        case = _drawn(generator)
        true, mistaken = rent(*case), rent(*case, rules)
        if true is not None and (mistaken is None or mistaken[:2] != true[:2]):
            costs = sorted(choice.cost for choice in choices(*case[:2]) if choice.done <= case[2])
            if costs[1] > 1.001 * costs[0]:
                return case


def _at_deadline(generator: np.random.Generator) -> Case:
    """The cheapest ends exactly at the deadline after two jobs that take the whole limit; all numbers are exact."""
    limit, wait = float(generator.integers(4, 9)) * 2, float(generator.integers(1, 5))
    images = 2 * limit * HOUR * 512
    slow = Offer("birch", 2.0, 256.0, {1: 1.0, 2: 1.0}, wait, limit)
    fast = Offer("cedar", 16.0, 1024.0, {1: 1.0, 2: 0.75}, wait, limit)
    return [fast, slow], images, 2 * limit + 2 * wait


_CHOICES = (
    RentRules(efficiency=0),
    RentRules(waits="never"),
    RentRules(waits="once"),
    RentRules(pays_wait=True),
    RentRules(pays_nodes=False),
    RentRules(may_exceed=False),
    RentRules(by="done"),
    RentRules(pays_limit=True),
    RentRules(sizes="largest"),
    RentRules(sizes="smallest"),
    RentRules(efficiency=-1),
)
_MISTAKES: list[tuple[RentRules, Lab15Hint]] = [
    (_CHOICES[8], Lab15Hint.RENT_LARGEST),
    (_CHOICES[9], Lab15Hint.RENT_SMALLEST),
    (_CHOICES[0], Lab15Hint.RENT_NO_EFFICIENCY),
    (_CHOICES[10], Lab15Hint.RENT_EFFICIENCY_DIVIDES),
    (_CHOICES[1], Lab15Hint.RENT_NO_WAIT),
    (_CHOICES[2], Lab15Hint.RENT_ONE_WAIT),
    (RentRules(waits="once more"), Lab15Hint.RENT_MORE_WAITS),
    (_CHOICES[3], Lab15Hint.RENT_WAIT_PAID),
    (_CHOICES[4], Lab15Hint.RENT_ONE_NODE),
    (_CHOICES[7], Lab15Hint.RENT_WHOLE_LIMIT),
    (_CHOICES[5], Lab15Hint.RENT_LIMIT_FORBIDS),
    (_CHOICES[6], Lab15Hint.RENT_FASTEST),
    (RentRules(at_deadline=False), Lab15Hint.RENT_DEADLINE),
    (RentRules(at_any_time=True), Lab15Hint.RENT_CHEAPEST),
]


def judge_rent(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A quarter of the points each for the choice, the end, the cost, and None if nothing ends in time."""
    cases: list[tuple[str, Case, Plain]] = []
    fails: Raised | None = None
    for part, (offers, images, deadline) in drawn_cases(generator):
        given_offers = [offer._asdict() for offer in offers]
        try:
            value = answer.call("rent", given_offers, images, deadline, none_is_an_answer=True)
        except Raised as error:
            if part == CHOICE:
                raise
            fails = error
            continue
        if value is not None and (problem := _problem_of_form(value)):
            return wrong(problem)
        cases.append((part, (offers, images, deadline), value))
    if all(value is None for _, _, value in cases):
        return _always_none(answer)
    verdicts: dict[str, Verdict] = dict.fromkeys((CHOICE, DONE, COST, NOTHING), right())
    exactly = [hint for rules, hint in _MISTAKES if _explains(rules, cases, with_numbers=True)]
    mistake = next(iter(exactly + [hint for rules, hint in _MISTAKES if _explains(rules, cases)]), None)
    for part, case, value in cases:
        hints = _hints(case, value) if part == CHOICE else {NOTHING: value and Lab15Hint.NOTHING_FITS}
        for name, hint in hints.items():
            if hint and verdicts[name].is_right:
                verdicts[name] = wrong(mistake or hint if name in (CHOICE, NOTHING) else hint)
    if fails is not None:
        verdicts[NOTHING] = wrong(Lab15Hint.NOTHING_RAISES, context=f"{fails}; ")
    return parts(verdicts)


def _always_none(answer: Answer) -> Verdict:
    """Not done yet, unless it gives something where there is no deadline: its hours may be seconds."""
    offers, images, _ = EXAMPLE
    given_offers = [offer._asdict() for offer in offers]
    value = answer.call("rent", given_offers, images, math.inf, none_is_an_answer=True)
    if value is None or _problem_of_form(value):
        return not_done("`rent` gives None")
    hints = _hints((offers, images, math.inf), value)
    return wrong(hints[COST] or hints[DONE] or Lab15Hint.SOMETHING_FITS.says(said=_in_words(_example_choice())))


def _example_choice() -> Choice:
    choice = rent(*EXAMPLE)
    assert choice is not None
    return choice


def _explains(rules: RentRules, cases: list[tuple[str, Case, Plain]], with_numbers: bool = False) -> bool:
    """Whether the same offers are chosen in all cases under these rules, with the same end and cost if asked for."""
    for _, case, value in cases:
        mistaken = rent(*case, rules)
        if mistaken is None or not isinstance(value, dict):
            if mistaken is not value:
                return False
            continue
        if mistaken[:2] != (value["name"], value["nodes"]):
            return False
        if with_numbers and not all(map(is_near, _end_and_cost(value), mistaken[2:])):
            return False
    return True


def _problem_of_form(value: Plain) -> AnyHint | None:
    """The hint if this is no choice: a dictionary with a text and three numbers."""
    if not isinstance(value, dict) or not set(NAMES) <= set(value):
        return Lab15Hint.NO_CHOICE.says(names=", ".join(NAMES))
    for name in NAMES:
        if not isinstance(value[name], str) if name == "name" else number(value[name]) is None:
            expected = "a text" if name == "name" else "a number"
            return Lab15Hint.NO_CHOICE_TYPE.says(name=name, said=repr(value[name])[:40], expected=expected)
    return None


def _hints(case: Case, value: Plain) -> dict[str, AnyHint | None]:
    """For the choice, its end and its cost; these two are compared with those of the offer that was chosen."""
    offers, images, _ = case
    true = rent(*case)
    assert true is not None
    if value is None:
        return {CHOICE: Lab15Hint.SOMETHING_FITS.says(said=_in_words(true))}
    assert isinstance(value, dict)
    said = Choice(str(value["name"])[:40], int(number(value["nodes"]) or 0), *_end_and_cost(value))
    hints: dict[str, AnyHint | None] = {CHOICE: None, DONE: None, COST: None}
    if said[:2] != true[:2] or said.nodes != number(value["nodes"]):
        hints[CHOICE] = Lab15Hint.RENT_CHOICE.says(said=_in_words(said))
    own = next((choice for choice in choices(offers, images) if choice[:2] == said[:2]), None)
    if own is not None and not is_near(said.done, own.done):
        hints[DONE] = _mistaken_number(case, said, "done") or Lab15Hint.RENT_DONE.says(said=said.done)
    if own is not None and not is_near(said.cost, own.cost):
        hints[COST] = _mistaken_number(case, said, "cost") or Lab15Hint.RENT_COST.says(said=said.cost)
    return hints


def _end_and_cost(value: Mapping[Any, Plain]) -> tuple[float, float]:
    done, cost = number(value["done"]), number(value["cost"])
    assert done is not None and cost is not None
    return done, cost


def _mistaken_number(case: Case, said: Choice, name: str) -> AnyHint | None:
    value = getattr(said, name)
    for rules, hint in _MISTAKES:
        mistaken = next((choice for choice in choices(case[0], case[1], rules) if choice[:2] == said[:2]), None)
        if mistaken is not None and is_near(value, getattr(mistaken, name)):
            return hint
    true = next(choice for choice in choices(case[0], case[1]) if choice[:2] == said[:2])
    if is_rounded(value, getattr(true, name)):
        return NumberHint.ROUNDED
    for factor in (60, 3600, 1 / 60, 1 / 3600):
        if is_near(value, getattr(true, name) * factor):
            return Lab15Hint.RENT_UNITS.says(factor=round(max(factor, 1 / factor)))
    return None


def _in_words(choice: Choice) -> str:
    return f"{choice.name} with {counted(choice.nodes, 'node')}"
