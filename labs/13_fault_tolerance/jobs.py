"""Logs of sick jobs, drawn with their diagnosis."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, lru_cache

import numpy as np

Event = dict[str, object]

KILLED, STRAGGLER, NEVER_COMES = "a worker is killed", "a straggler", "a worker that never comes"
HALF_WRITTEN, COME_AND_GO, NOTICE = "a half-written checkpoint", "ranks come and go", "a notice"
ILLNESSES = (KILLED, STRAGGLER, NEVER_COMES, HALF_WRITTEN, COME_AND_GO, NOTICE)


@dataclass(frozen=True)
class SickJob:
    """A log, what ails the job, which worker and which step are concerned."""

    log: list[Event]
    illness: str
    worker: int
    step: int


@dataclass
class _Log:
    """The log of a job, written event by event; all workers compute `images` images in each step."""

    generator: np.random.Generator
    workers: int
    images: int
    events: list[Event] = field(default_factory=list)
    second: float = 0.0

    def write(self, event: str, worker: int | None = None, **values: object) -> None:
        self.second += float(self.generator.uniform(0.01, 0.05))
        place: Event = {} if worker is None else {"worker": worker}
        self.events.append({"second": round(self.second, 2), "event": event} | place | values)

    def begin(self, misspelt: int | None = None, misspelt_host: bool = False) -> None:
        """The cluster and who listens; the misspelt worker at another port, or on another host."""
        ports = self.generator.choice(np.arange(20_000, 30_000), self.workers + 1, replace=False).tolist()
        hosts = [f"node{number:02}" for number in self.generator.choice(99, self.workers, replace=False)]
        listed = [f"{host}:{port}" for host, port in zip(hosts, ports, strict=False)]
        actual = list(listed)
        if misspelt_host and misspelt is not None:
            unlisted = [host for host in (f"node{number:02}" for number in range(99)) if host not in hosts]
            actual[misspelt] = f"{self.generator.choice(unlisted)}:{ports[misspelt]}"
        elif misspelt is not None:
            actual[misspelt] = f"{hosts[misspelt]}:{ports[-1]}"
        self.write("cluster", addresses=listed)
        for worker in self.generator.permutation(self.workers).tolist():
            self.second += float(self.generator.uniform(1, 9))
            self.write("listens", worker, address=actual[worker])

    def step(self, number: int, slower: dict[int, float] | None = None, missing: int | None = None) -> None:
        """A step of all workers but the missing one; those in `slower` compute so many times as long."""
        times = {worker: 0.002 * self.images for worker in range(self.workers) if worker != missing}
        times = {worker: seconds * float(self.generator.uniform(0.995, 1.005)) for worker, seconds in times.items()}
        for worker, factor in (slower or {}).items():
            times[worker] *= factor
        self.second += max(times.values())
        for worker in self.generator.permutation(list(times)).tolist():
            waiting = max(times.values()) - times[worker] + float(self.generator.uniform(0.001, 0.002))
            seconds = {"computing": round(times[worker], 4), "waiting": round(waiting, 4)}
            self.write("step", worker, step=number, images=self.images, **seconds)

    def train(
        self, first: int, last: int, every: int, damaged: tuple[int, ...] = (), missing: int | None = None
    ) -> None:
        """Steps with a checkpoint after every `every` of them; the damaged ones have no seal."""
        for step in range(first, last + 1):
            self.step(step, missing=missing)
            if step % every == 0:
                self.write("saved", 0, step=step, sealed=step not in damaged)

    def others(self, worker: int) -> list[int]:
        """All but one, in any order."""
        return [peer for peer in self.generator.permutation(self.workers).tolist() if peer != worker]


def _integer(generator: np.random.Generator, low: int, high: int) -> int:
    return int(generator.integers(low, high + 1))


def _started(generator: np.random.Generator, workers: int | None = None) -> tuple[_Log, int, int]:
    """A log, the worker of interest, which is not the chief, and the steps between two checkpoints."""
    log = _Log(generator, workers or _integer(generator, 4, 6), _integer(generator, 16, 40))
    return log, _integer(generator, 1, log.workers - 1), _integer(generator, 3, 5)


def _killed(generator: np.random.Generator, variant: int) -> SickJob:
    """The launcher ends the others with a signal.

    In variant 1 the newest checkpoint lacks its seal. In variant 2 there are two workers, and no checkpoint yet. In
    variants 3 and 4 the job is started again, and rightly goes on from the newest whole checkpoint; in variant 4 a
    newer one lacks its seal. There the job saves again after its second start.
    """
    log, worker, every = _started(generator, workers=2 if variant == 2 else None)
    newest = 0 if variant == 2 else every * _integer(generator, 2, 3)
    whole = newest - every if variant in (1, 4) else newest
    last = newest + (1 if variant == 3 else _integer(generator, 1, every - 1))
    log.begin()
    log.train(1, last, every, damaged=() if whole == newest else (newest,))
    log.write("exit", worker, code=-9)
    for peer in log.others(worker):
        log.write("signal", peer, signal=15)
        log.write("exit", peer, code=-15)
    if variant in (3, 4):
        log.begin()
        log.write("restored", 0, step=whole)
        log.train(whole + 1, whole + every, every)  # further than `last` in variant 3, and less far in variant 4
    return SickJob(log.events, KILLED, worker, last)


def _straggler(generator: np.random.Generator, variant: int) -> SickJob:
    """In variant 1 it is slow from the first step on, by the smallest factor; else it waits least in the step before.

    In variant 2 it is slow in the last three steps only. In variant 3 the last step is the single slow one of another
    worker. In variant 4 the step before is slower than those of the others too, but less than twice as long. In
    variants 5 and 6 the last two steps are slow ones of another worker, of the first one or of the last one.
    """
    while True:
        job = _drawn_straggler(generator, variant)
        before = [event for event in job.log if event.get("step") == job.step - 1 and event["event"] == "step"]
        if variant == 1 or min(before, key=lambda event: float(str(event["waiting"])))["worker"] == job.worker:
            return job


def _drawn_straggler(generator: np.random.Generator, variant: int) -> SickJob:
    """Before it is always slow, another worker has a single slow step, and it has one itself (not in variant 1)."""
    log, worker, every = _started(generator)
    worker = min(worker, log.workers - 2) if variant == 6 else worker
    hiccup, onset, factor = _integer(generator, 2, 4), _integer(generator, 6, 9), FACTORS[_integer(generator, 0, 2)]
    stray = hiccup + 1
    if variant == 1:
        hiccup, stray, onset, factor = 0, 0, 1, FACTORS[0]
    else:
        onset = max(onset, stray + 2) + (4 if variant == 2 else 0)
    last = onset + (2 if variant == 2 else 6)
    if variant == 3:
        hiccup = last
    log.begin()
    for step in range(1, last + 1):
        slower = {worker: factor} if step >= onset or step == stray else {}
        if variant == 4 and step == onset - 1:
            slower = {worker: ALMOST_TWICE}
        if variant in (5, 6) and step > last - 2:
            slower[0 if variant == 5 else log.workers - 1] = 3.0
        log.step(step, slower | ({0: 8.0} if step == hiccup else {}))
        if step % every == 0:
            log.write("saved", 0, step=step, sealed=True)
    return SickJob(log.events, STRAGGLER, worker, onset)


def _never_comes(generator: np.random.Generator, variant: int) -> SickJob:
    """It runs, but listens at another port than the list of addresses says; in the end the launcher kills all.

    In variant 3 it is another host, with the same port.
    """
    log, worker, _ = _started(generator)
    log.begin(misspelt=worker, misspelt_host=variant == 3)
    log.second += 240
    for peer in generator.permutation(log.workers).tolist():
        log.write("exit", peer, code=-9)
    return SickJob(log.events, NEVER_COMES, worker, 0)


def _half_written(generator: np.random.Generator, variant: int) -> SickJob:
    """A machine loses power, and the job that is started again finds no checkpoint, though an older one is whole.

    In variant 1 it goes on until it has saved the same steps again, well and badly, and further ones. In variant 2 it
    goes on from a whole checkpoint that is not the newest one.
    """
    log, worker, every = _started(generator)
    whole = every * (2 if variant == 2 else _integer(generator, 1, 2))
    newest = whole + every * (2 if variant == 1 else 1)
    log.begin()
    log.train(1, newest + _integer(generator, 0, every - 1), every, damaged=tuple(range(whole + 1, newest + 1)))
    log.write("exit", worker, code=-9)
    for peer in log.others(worker):
        log.write("exit", peer, code=-15)
    log.begin()
    restored = every if variant == 2 else 0
    log.write("restored", 0, step=restored)
    again = (*range(every, newest, every), newest + 2 * every)
    last = newest + 2 * every + 1 if variant == 1 else restored + every - 1
    log.train(restored + 1, last, every, damaged=again)
    return SickJob(log.events, HALF_WRITTEN, 0, newest)


def _come_and_go(generator: np.random.Generator, variant: int) -> SickJob:
    """An elastic job goes on without one rank, with as many images per rank as before; not the last in variant 1."""
    workers = _integer(generator, 4, 6)
    lost = _integer(generator, 1, workers - 2 if variant == 1 else workers - 1)
    log = _Log(generator, workers, images=(workers - 1) * _integer(generator, 4, 8))
    every = _integer(generator, 3, 5)
    commit = every * _integer(generator, 1, 3)
    last = commit + _integer(generator, 1, every - 1)
    log.begin()
    log.train(1, last, every)
    log.write("exit", lost, code=-9)
    log.write("size", workers=workers - 1)
    log.write("restored", 0, step=commit)
    log.train(commit + 1, last + every, every, missing=lost)
    return SickJob(log.events, COME_AND_GO, lost, last)


def _notice(generator: np.random.Generator, variant: int) -> SickJob:
    """One worker gets it, saves alone and exits; the others wait for it until the launcher kills them.

    In variant 1 the launcher asks them to end first.
    """
    log, worker, every = _started(generator)
    last = every * _integer(generator, 2, 3) + _integer(generator, 1, every - 1)
    log.begin()
    log.train(1, last, every)
    log.write("signal", worker, signal=15 if variant else 10)
    log.write("saved", worker, step=last, sealed=True)
    log.write("exit", worker, code=85)
    log.second += 240
    others = log.others(worker)
    for peer in others if variant else ():
        log.write("signal", peer, signal=15)
    for peer in others:
        log.write("exit", peer, code=-9)
    return SickJob(log.events, NOTICE, worker, last)


_DRAWN: dict[str, Callable[[np.random.Generator, int], SickJob]] = {
    NOTICE: _notice,
    STRAGGLER: _straggler,
    HALF_WRITTEN: _half_written,
    KILLED: _killed,
    COME_AND_GO: _come_and_go,
    NEVER_COMES: _never_comes,
}
FACTORS = (2.5, 3.5, 4.5)
"""How many times as long a straggler computes; with whole numbers some wrong shares would be equal."""
ALMOST_TWICE = 1.8
LETTERS, SEED = "ABCDEF", 13  # the seed of the logs that students see


def drawn_jobs(generator: np.random.Generator, variant: int) -> dict[str, SickJob]:
    """One job of each illness, by letter, which always has the same illness; none has a variant above 6."""
    return {letter: draw(generator, variant) for letter, draw in zip(LETTERS, _DRAWN.values(), strict=True)}


@cache
def lettered_jobs() -> dict[str, SickJob]:
    """The jobs whose logs students see, as the judges have them: a student may change what `given` holds."""
    return drawn_jobs(np.random.default_rng(SEED), variant=0)


@lru_cache(maxsize=16)  # one check after another, and the grader for each student, ask for the same
def hidden_jobs(seed: int, variant: int) -> dict[str, SickJob]:
    """Jobs whose logs students do not see, by letter."""
    return drawn_jobs(np.random.default_rng([seed, variant]), variant)


def in_words(event: Event) -> str:
    """An event as a line."""
    values = [f"{name} {value}" for name, value in event.items() if name not in ("second", "event", "worker")]
    worker = f"worker {event['worker']}" if "worker" in event else "launcher"
    return f"{event['second']:>7} s  {worker:9} {event['event']:9} {', '.join(values)}"
