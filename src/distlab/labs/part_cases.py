"""Exercises in independent parts, judged case by case: what goes wrong in one case counts for its part only."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from distlab.labs.answer_errors import AnswerError, Changed, Gone, NotDone, TookTooLong
from distlab.labs.verdict import Verdict, not_done, parts, right, wrong
from distlab.simulate import SimulationError


class PartCase(NamedTuple):
    """One case of a part: `verdict` asks the answer and judges it, `said` are the words before an error."""

    part: str
    verdict: Callable[[], Verdict]
    said: str = ""


def judge_cases(cases: Iterable[PartCase]) -> Verdict:
    """An equal share of the points for each part; of a part the first case that is not right counts.

    An error of the answer in a case is the verdict on its part. If every part has the same error, this is raised again.
    After a case that was stopped no further one is tried, and the parts of these are not right.
    """
    verdicts: dict[str, Verdict] = {}
    errors: dict[str, AnswerError | SimulationError] = {}
    stopped: AnswerError | None = None
    for case in cases:
        if not verdicts.get(case.part, right()).is_right:
            continue
        if stopped:
            verdicts[case.part] = not_done("it was not tried, because an earlier case was stopped")
            errors[case.part] = stopped
            continue
        try:
            verdicts[case.part] = case.verdict()
        except Changed:
            raise
        except (AnswerError, SimulationError) as error:
            verdicts[case.part], errors[case.part] = error_verdict(error, case.said), error
            if isinstance(error, (TookTooLong, Gone)):
                stopped = error
    if len(errors) == len(verdicts) and len({str(error) for error in errors.values()}) == 1:
        raise next(iter(errors.values()))
    return parts(verdicts)


def error_verdict(error: AnswerError | SimulationError, said: str = "") -> Verdict:
    """The verdict on a part in which the answer has this error; `said` says in which case."""
    return not_done(f"{said}{error}") if isinstance(error, NotDone) else wrong(str(error), context=said)
