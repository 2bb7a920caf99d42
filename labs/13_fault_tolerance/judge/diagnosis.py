"""What ails a job, and the number that cures it: two exercises of lab 13 and their judges."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
from lab_13 import given, jobs
from lab_13.given import in_lines
from lab_13.hints import Lab13Hint
from lab_13.jobs import SickJob

from distlab.labs.answer import Answer
from distlab.labs.number_judge import Expected, Mistakes, described, is_near, number, problem_of_names
from distlab.labs.part_cases import PartCase, judge_cases
from distlab.labs.plain_data import Plain
from distlab.labs.verdict import WRONG, Hint, Verdict, not_done, right, wrong

_HIDDEN = "in another log like this one: "
SHARE_TOLERANCE = 0.03  # the seconds in a log vary by half a per cent from step to step

_ILLNESS_HINTS: Mapping[str, tuple[Hint, Hint, Hint]] = {
    jobs.KILLED: (Lab13Hint.NOT_KILLED, Lab13Hint.KILLED_WORKER, Lab13Hint.KILLED_STEP),
    jobs.STRAGGLER: (Lab13Hint.NOT_STRAGGLER, Lab13Hint.STRAGGLER_WORKER, Lab13Hint.STRAGGLER_STEP),
    jobs.NEVER_COMES: (Lab13Hint.NOT_NEVER_COMES, Lab13Hint.NEVER_WORKER, Lab13Hint.NEVER_STEP),
    jobs.HALF_WRITTEN: (Lab13Hint.NOT_HALF_WRITTEN, Lab13Hint.HALF_WRITTEN_WORKER, Lab13Hint.HALF_WRITTEN_STEP),
    jobs.COME_AND_GO: (Lab13Hint.NOT_COME_AND_GO, Lab13Hint.COME_AND_GO_WORKER, Lab13Hint.COME_AND_GO_STEP),
    jobs.NOTICE: (Lab13Hint.NOT_NOTICE, Lab13Hint.NOTICE_WORKER, Lab13Hint.NOTICE_STEP),
}

_STEPS_WITHOUT_FACT = (jobs.NEVER_COMES, jobs.HALF_WRITTEN)
VARIANTS = (0, 1, 2, 3, 4)  # of the hidden logs: each occurs
CURED_VARIANTS = (0, 1, 2, 4)  # in a log of variant 3 the mean of the other workers' times is no measure


def _judge(
    generator: np.random.Generator, variants: tuple[int, ...], verdict_on: Callable[[SickJob], Verdict]
) -> Verdict:
    """A sixth of the points for each letter: the log of the lab itself, and hidden ones of the same illness.

    The verdict shows the first hidden log that is not right.
    """
    failed: list[SickJob] = []

    def on_hidden(job: SickJob) -> Verdict:
        failed.append(job)
        verdict = verdict_on(job)
        if verdict.is_right:
            failed.remove(job)
        elif verdict.hints:
            verdict = replace(verdict, text=f"{_HIDDEN}{verdict.text}")
        return verdict

    seen = jobs.lettered_jobs()
    cases = [PartCase(f"job {letter}", partial(verdict_on, job)) for letter, job in seen.items()]
    seed = int(generator.integers(2**63))
    for variant in variants:
        hidden = jobs.hidden_jobs(seed, variant)
        cases += [PartCase(f"job {letter}", partial(on_hidden, job), _HIDDEN) for letter, job in hidden.items()]
    verdict = judge_cases(cases)
    if not failed or verdict.state != WRONG:
        return verdict
    letter = next(letter for letter, job in seen.items() if job.illness == failed[0].illness)
    return replace(verdict, text=f"{verdict.text}\nAnother log like that of job {letter}:\n{in_lines(failed[0].log)}")


def judge_diagnose(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each illness: its name, the worker and the step."""
    seen = list(given.LOGS.values())

    def verdict_on(job: SickJob) -> Verdict:
        return _verdict_on_diagnosis(job, answer.call("diagnose", job.log), is_hidden=job.log not in seen)

    return _judge(generator, VARIANTS, verdict_on)


def _verdict_on_diagnosis(job: SickJob, diagnosis: Plain, is_hidden: bool) -> Verdict:
    if problem := problem_of_names("diagnose", ("illness", "worker", "step"), diagnosis):
        return problem
    assert isinstance(diagnosis, dict)
    illness, worker, step = (diagnosis[name] for name in ("illness", "worker", "step"))
    wrong_illness, wrong_worker, wrong_step = _ILLNESS_HINTS[job.illness]
    if illness is worker is step is None:
        if not is_hidden:
            return not_done("`diagnose` gives a dictionary in which all values are None")
        where_to_look = Lab13Hint.STRAGGLER_NOT_FOUND if job.illness == jobs.STRAGGLER else wrong_illness
        return wrong(Lab13Hint.NOTHING_FOUND.says().then(where_to_look))
    if not isinstance(illness, str) or illness not in jobs.ILLNESSES:
        return wrong(Lab13Hint.UNKNOWN_ILLNESS.says(said=illness))
    if illness != job.illness:
        return wrong(wrong_illness, context=f"not `{illness}`: ")
    for name, said in (("worker", worker), ("step", step)):
        if number(said) is None:
            return wrong(Lab13Hint.NO_WHOLE_NUMBER.says(name=name, said=said))
    if number(worker) != job.worker:
        return wrong(wrong_worker.says(said=f"Worker {worker!r}"))
    if (wrong_number := number(step)) is not None and wrong_number != job.step:
        facts = {} if job.illness in _STEPS_WITHOUT_FACT else {"fact": _fact(job, wrong_number)}
        return wrong(wrong_step.says(said=f"Step {step!r}", **facts))
    return right()


def _fact(job: SickJob, step: float) -> str:
    """What in the log shows that the step is not the right one."""
    if job.illness == jobs.STRAGGLER:
        if step >= job.step:
            return "it was slow before"
        times = _computing_times(job, job.step - 1)
        others = np.mean([seconds for worker, seconds in times.items() if worker != job.worker])
        factor = times[job.worker] / others
        said = "is as fast as" if factor < 1.1 else f"computes {factor:.1f} times as long as"  # less than twice
        return f"in step {job.step - 1} it {said} the others"
    if step < job.step:
        return f"it had also done step {np.floor(step) + 1:g} by then"
    return f"it had not done step {step:g} by then"


def _computing_times(job: SickJob, step: int) -> dict[object, float]:
    """The seconds that each worker computes in a step."""
    events = [event for event in job.log if event["event"] == "step" and event["step"] == step]
    return {event["worker"]: float(str(event["computing"])) for event in events}


def judge_cure(answer: Answer, generator: np.random.Generator) -> Verdict:
    """A sixth of the points for each illness."""

    def verdict_on(job: SickJob) -> Verdict:
        return _verdict_on_cure(job, answer.call("cure", job.log, job.illness, job.worker, job.step))

    return _judge(generator, CURED_VARIANTS, verdict_on)


def _verdict_on_cure(job: SickJob, cure: Plain) -> Verdict:
    value = number(cure)
    if value is None:
        return wrong(Lab13Hint.NO_NUMBER.says(got=described(cure)))
    hint = _expected(job).hint_for(value)
    if hint and job.illness == jobs.STRAGGLER and not 0 <= value <= 1:
        hint = Lab13Hint.NOT_A_SHARE
    return wrong(hint, context=f"`{job.illness}`: {value:.6g} is wrong: ") if hint else right()


def _expected(job: SickJob) -> Expected:
    mistakes, otherwise = _MISTAKES[job.illness](job)
    return Expected(job.cure, mistakes, otherwise, SHARE_TOLERANCE if job.illness == jobs.STRAGGLER else 1e-9)


def _addresses(job: SickJob) -> list[str]:
    addresses = job.log[0]["addresses"]
    assert isinstance(addresses, list)
    return addresses


def _killed(job: SickJob) -> tuple[Mistakes, Hint]:
    saved = [int(str(event["step"])) for event in job.log if event["event"] == "saved"]
    again = any(event["event"] == "restored" for event in job.log)
    counted_from_newest = Lab13Hint.KILLED_SAVED_AGAIN if again else Lab13Hint.KILLED_UNSEALED
    whole = job.step - job.cure
    mistakes = [(whole, Lab13Hint.KILLED_RESUME)]
    mistakes += [(job.step - step, counted_from_newest) for step in saved[-1:]]
    return mistakes, Lab13Hint.KILLED_OTHERWISE


def _straggler(job: SickJob) -> tuple[Mistakes, Hint]:
    workers = len(_addresses(job))
    factor = (1 / job.cure - 1) / (workers - 1)
    ways = product((np.mean, np.median), (False, True))
    of_all_steps = [_share_of_all_steps(job, typical, together) for typical, together in ways]
    return [
        *((share, Lab13Hint.ALL_STEPS) for share in of_all_steps if not is_near(share, job.cure, SHARE_TOLERANCE)),
        (1 / workers, Lab13Hint.EVEN_SHARE),
        (1 / factor, Lab13Hint.SPEED_AS_SHARE),
        (1 / (1 + factor), Lab13Hint.ONE_OTHER),
        (1 / factor / (workers - 1), Lab13Hint.SHARE_OF_OTHERS),
        (1 / factor / workers, Lab13Hint.SPEED_BY_WORKERS),
        (factor / (factor + workers - 1), Lab13Hint.SHARE_UPSIDE_DOWN),
    ], Lab13Hint.STRAGGLER_OTHERWISE


def _share_of_all_steps(job: SickJob, typical: Callable[[list[float]], np.floating], together: bool) -> float:
    """The straggler's share by the typical times of all steps, also those before it is always slow.

    The others have a typical time each, or one together.
    """
    times: dict[object, list[float]] = {}
    for event in job.log:
        if event["event"] == "step":
            times.setdefault(event["worker"], []).append(float(str(event["computing"])))
    speeds = {worker: 1 / float(typical(seconds)) for worker, seconds in times.items()}
    if not together:
        return speeds[job.worker] / sum(speeds.values())
    others = [each for worker, seconds in times.items() if worker != job.worker for each in seconds]
    return speeds[job.worker] / (speeds[job.worker] + (len(times) - 1) / float(typical(others)))


def _never_comes(job: SickJob) -> tuple[Mistakes, Hint]:
    port = float(_addresses(job)[job.worker].partition(":")[2])
    return [(port, Lab13Hint.PORT_LISTED)], Lab13Hint.PORT_OTHERWISE


def _half_written(job: SickJob) -> tuple[Mistakes, Hint]:
    return [(job.step, Lab13Hint.RESUME_BROKEN), (0.0, Lab13Hint.RESUME_AT_ZERO)], Lab13Hint.RESUME_OTHERWISE


def _come_and_go(job: SickJob) -> tuple[Mistakes, Hint]:
    workers = len(_addresses(job))
    images = job.cure * (workers - 1) / workers
    return [
        (images, Lab13Hint.IMAGES_KEPT),
        (images * workers, Lab13Hint.IMAGES_OF_ALL),
        (images * (workers - 1) / workers, Lab13Hint.IMAGES_FEWER),
    ], Lab13Hint.IMAGES_OTHERWISE


def _notice(job: SickJob) -> tuple[Mistakes, Hint]:
    return [(job.step, Lab13Hint.SAVE_AT_ONCE)], Lab13Hint.SAVE_OTHERWISE


_MISTAKES: Mapping[str, Callable[[SickJob], tuple[Mistakes, Hint]]] = {
    jobs.KILLED: _killed,
    jobs.STRAGGLER: _straggler,
    jobs.NEVER_COMES: _never_comes,
    jobs.HALF_WRITTEN: _half_written,
    jobs.COME_AND_GO: _come_and_go,
    jobs.NOTICE: _notice,
}
