"""Synchronous, with backup workers or asynchronous, by simulation: the judge of an exercise of lab 08."""

import math

import numpy as np
from lab_08.choice_mistakes import mistakes
from lab_08.clusters import (
    ASYNCHRONOUS,
    BACKUP,
    EXAMPLE,
    SYNCHRONOUS,
    WAYS,
    MeasuredCluster,
    choice,
    drawn_clusters,
    excluded,
    rates,
    with_a_busy_server,
)
from lab_08.hints import Lab08Hint

from distlab.labs.answer import Answer
from distlab.labs.number_judge import NumberHint, hint_of, is_near, is_rounded, number, problem_of_names
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import AnyHint, Verdict, not_done, right, wrong


def judge_choose(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A fifth of the points for each cluster: the three rates and the choice."""
    example = _verdict(EXAMPLE, answer.call("choose", *EXAMPLE))
    if not example.is_right:
        return Verdict(example.state, f"in the example {example.text}", hints=example.hints)

    def part_case(letter: str, cluster: MeasuredCluster) -> PartCase:
        return PartCase(f"cluster {letter}", lambda: _verdict(cluster, answer.call("choose", *cluster)))

    lettered = [*drawn_clusters(generator).items(), ("C", with_a_busy_server(generator))]
    return judge_cases(part_case(*each) for each in lettered)


def _verdict(cluster: MeasuredCluster, answer: Plain) -> Verdict:
    names = (*WAYS, "choice")
    if problem := problem_of_names("choose", names, answer):
        return problem
    assert isinstance(answer, dict)
    if all(answer[name] is None for name in names):
        return not_done("`choose` gives a dictionary in which all values are None")
    by_way, finished = rates(cluster), list[str]()
    for way, rate in by_way.items():
        value = number(answer[way])
        if way in excluded(cluster) and answer["choice"] is not None and _is_no_rate(answer[way]):
            return wrong(Lab08Hint.RATE_OF_EXCLUDED.says(way=way))
        if answer[way] is None:
            others = f", and {', '.join(finished)} is right" if finished else ""
            return not_done(f"`choose` gives None for {way}{others}")
        if value is None:
            return wrong(NumberHint.NOT_A_NUMBER, context=f"{way}: ")
        if not is_near(value, rate):
            otherwise = NumberHint.ROUNDED if is_rounded(value, rate) else _OTHERWISE[way]
            hint = hint_of(value, mistakes(cluster)[way]) or otherwise
            return wrong(Lab08Hint.RATE_OF.says(way=way, said=value).then(hint))
        finished.append(way)
    if answer["choice"] is None:
        return not_done("all three rates are right, and the choice is None")
    return _verdict_on_choice(cluster, answer["choice"])


def _is_no_rate(said: Plain) -> bool:
    value = number(said)
    return said is None or (value is not None and (value == 0 or not math.isfinite(value)))


def _verdict_on_choice(cluster: MeasuredCluster, chosen: Plain) -> Verdict:
    best, by_way = choice(cluster), rates(cluster)
    if chosen == best:
        return right()
    if not isinstance(chosen, str) or chosen not in WAYS:
        return wrong(Lab08Hint.NOT_A_WAY.says(said=chosen))
    if chosen in excluded(cluster):
        return wrong(Lab08Hint.TOO_STALE if chosen == ASYNCHRONOUS else Lab08Hint.ALWAYS_DROPPED)
    steps = len(cluster.seconds)
    why: dict[str, AnyHint] = {
        SYNCHRONOUS: Lab08Hint.ALWAYS_ALLOWED,
        BACKUP: Lab08Hint.DROPPING_ALLOWED.says(dropped=round(cluster.dropped * steps), steps=steps),
        ASYNCHRONOUS: Lab08Hint.BUSY_SERVER_ALLOWED
        if is_near(by_way[ASYNCHRONOUS], 1 / cluster.server)
        else Lab08Hint.STALENESS_ALLOWED.says(workers=cluster.workers, allowed=cluster.allowed),
    }
    return wrong(Lab08Hint.BETTER_WAY.says(best=best, best_rate=by_way[best], rate=by_way[chosen]).then(why[best]))


_OTHERWISE = {
    SYNCHRONOUS: Lab08Hint.STEPS_OTHERWISE,
    BACKUP: Lab08Hint.BACKUP_OTHERWISE,
    ASYNCHRONOUS: Lab08Hint.ASYNCHRONOUS_OTHERWISE,
}
