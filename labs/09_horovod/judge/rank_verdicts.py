"""From what the ranks did to a verdict: what holds for every function of lab 09, written, failed or right."""

from collections.abc import Callable

from lab_09.hints import Lab09Hint
from lab_09.observations import GaveNothing, Observation

from distlab.labs.plain_data import Plain, as_record
from distlab.labs.verdict import Verdict, not_done, wrong

JudgeOfStep = Callable[[Observation], Verdict]


def observations_of(observed: Plain) -> dict[object, Observation]:
    """What `observe` has seen, by name."""
    assert isinstance(observed, dict)
    return {name: as_record(fields, Observation) for name, fields in observed.items()}


def judged(seen: Observation, judge: JudgeOfStep) -> Verdict:
    """The verdict of `judge`, unless the function is not written or raised something."""
    if not seen.is_written:
        return not_done("the function is still empty")
    error = seen.cause
    if error is None:
        return judge(seen)
    if error.kind in (GaveNothing.__name__, NotImplementedError.__name__):
        return not_done("the function gives nothing")
    if error.kind == "Stalled":
        return wrong(Lab09Hint.HANGS.says(error=error.message))
    if error.kind == "TimeoutError":
        return wrong(Lab09Hint.TOO_SLOW)
    if error.kind == "SystemExit":
        return wrong(Lab09Hint.ENDS_THE_PROGRAM.says(rank=error.rank))
    return wrong(Lab09Hint.RAISES.says(rank=error.rank, error=error))
