"""A student's work in sandboxes: the cells that have run, and the answer that a judge may question."""

import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from distlab.labs.answer import source_in
from distlab.labs.answer_errors import Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Array, Plain, plain
from distlab.sandbox.confine import SandboxLimits
from distlab.sandbox.process import Question, Sandbox, Server
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World

MOST_SANDBOXES_FOR_RANKS = 8
_MOST_BYTES_SENT = 16 * MOST_BYTES


class Cell(NamedTuple):
    """Text that runs, under a name."""

    text: str
    name: str


class CellRun(NamedTuple):
    """The end of what a cell printed, and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


@dataclass(eq=False)
class SandboxedWork:
    """The cells of one student; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. Deadlines are times of `clock`. `changes`
    are all that the checker's functions have suffered.
    """

    server: Server
    limits: SandboxLimits
    files: dict[str, bytes] = field(default_factory=dict)
    seconds_left: float = float("inf")
    changes: list[Changed] = field(default_factory=list)
    _starting: float = 0.0
    _done: list[Cell] = field(default_factory=list)
    _sandbox: Sandbox | None = None
    _for_ranks: list[Sandbox] = field(default_factory=list)
    _all: list[Sandbox] = field(default_factory=list)
    _stopped: bool = False

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for sandbox in self._all:
            sandbox.end()

    def stop(self) -> None:
        """Let this question and all further ones raise Gone soon; for another thread than that which asks."""
        self._stopped = True
        for sandbox in list(self._all):
            sandbox.stop()

    def run_cell(self, text: str, name: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of the result. Raises Gone and TookTooLong."""
        deadline = self._deadline(seconds)
        result = self.ask(deadline, {"do": "run", "text": text, "name": name})
        self._done.append(Cell(text, name))
        self._end_ranks()
        match result:
            case {"printed": str(printed), "error": None}:
                return CellRun(printed[-4000:], None)
            case {"printed": str(printed), "error": [str(kind), str(message), line]}:
                error = Raised(kind[:80], message[:2000], line if type(line) is int else None)
                return CellRun(printed[-4000:], error)
        return CellRun("", None)

    def answer(self, seconds: float) -> "SandboxedAnswer":
        """What a judge may question from now on for `seconds`."""
        return SandboxedAnswer(self, self._deadline(seconds))

    def ask(self, deadline: float, question: Question, respond: Callable[[Plain], Plain] | None = None) -> Plain:
        """Ask the student's process, a new one if the last has ended."""
        try:
            return self._alive(deadline).ask(self.monotonic(deadline), question, respond)
        except Changed as error:
            self.changes.append(error)
            raise

    def sandboxes_for_ranks(self, count: int, deadline: float) -> list[Sandbox]:
        """`count` sandboxes in which all cells have run, each knowing nothing of the others."""
        if any(sandbox.gone is not None for sandbox in self._for_ranks):
            self._end_ranks()
        while len(self._for_ranks) < count:
            self._for_ranks.append(self._fresh(deadline))
        return self._for_ranks[:count]

    def source(self, name: str) -> str | None:
        """The text of the last definition of `name` in the cells."""
        for cell in reversed(self._done):
            try:
                if (source := source_in(cell.text, name)) is not None:
                    return source
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return None

    def clock(self) -> float:
        """Seconds that pass for the student: it stops while a sandbox starts, which a loaded machine may delay."""
        return time.monotonic() - self._starting

    def monotonic(self, deadline: float) -> float:
        """The `time.monotonic()` of a deadline, provided that no other sandbox is started until then."""
        return deadline + self._starting

    def _deadline(self, seconds: float) -> float:
        if self.seconds_left <= 0:
            raise TookTooLong("the time for the whole lab is used up")
        return self.clock() + min(seconds, self.seconds_left)

    def _alive(self, deadline: float) -> Sandbox:
        if self._sandbox is None or self._sandbox.gone is not None:
            self._sandbox = self._fresh(deadline)
        return self._sandbox

    def _fresh(self, deadline: float) -> Sandbox:
        if self._stopped:
            raise Gone("grading was interrupted")
        began = time.monotonic()
        sandbox = Sandbox(self.server, self.limits, self.files)
        self._starting += time.monotonic() - began
        self._all = [running for running in self._all if running.gone is None] + [sandbox]
        try:
            if self._stopped:
                raise Gone("grading was interrupted")
            for cell in self._done:
                sandbox.ask(self.monotonic(deadline), {"do": "run", "text": cell.text, "name": cell.name})
        except BaseException:
            sandbox.end()
            raise
        return sandbox

    def _end_ranks(self) -> None:
        for sandbox in self._for_ranks:
            sandbox.end()
        self._for_ranks.clear()


class SandboxedAnswer:
    """The `Answer` (see `distlab.labs.answer`) of work in a sandbox."""

    def __init__(self, work: SandboxedWork, deadline: float) -> None:
        """All questions together end by `deadline`, of the work's clock."""
        self._work, self._deadline = work, deadline

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._work.ask(self._deadline, {"do": "value", "name": name})

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        sent: Question = {"arguments": plain(list(arguments)), "keywords": plain(keywords)}
        question: Question = {"do": "call", "name": name, "none_is_an_answer": none_is_an_answer, **sent}
        return self._work.ask(self._deadline, question)

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        place: Question = {"module": function.__module__, "function": function.__qualname__}
        question: Question = {"do": "inside", **place, "arguments": plain(list(arguments)), "asks": respond is not None}
        return self._work.ask(self._deadline, question, respond)

    def source(self, name: str) -> str:
        """See Answer."""
        source = self._work.source(name)
        if source is None:
            raise NotDone(f"there is no `{name}` yet")
        return source

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer. Every rank runs in its own sandbox, up to eight; further ranks share them in turn."""
        sandboxes = self._work.sandboxes_for_ranks(min(world.size, MOST_SANDBOXES_FOR_RANKS), self._deadline)
        program = _Program(name, sandboxes, self._work.monotonic(self._deadline))
        try:
            run = world.run(program, None if inputs is None else cast(list[Plain], plain(list(inputs))))
        except RankFailedError as error:
            if isinstance(error.__cause__, (NotDone, NotPlain, TookTooLong, Gone)):
                raise error.__cause__ from None
            raise
        if all(result is None for result in run.results):
            raise NotDone(f"`{name}` gives None on every rank: is a `return` missing?")
        return run


class _Program:
    """The program that runs on the grader's cluster: it does what the student's program asks for, rank by rank."""

    def __init__(self, name: str, sandboxes: list[Sandbox], deadline: float) -> None:
        self.__name__ = name
        self._sandboxes, self._deadline = sandboxes, deadline
        self._bytes = 0

    def __call__(self, rank: Rank, *inputs: Plain) -> Coroutine[Any, Any, Plain]:
        return self._run(rank, list(inputs))

    async def _run(self, rank: Rank, inputs: list[Plain]) -> Plain:
        sandbox = self._sandboxes[rank.index % len(self._sandboxes)]
        start: Question = {"do": "start_rank", "name": self.__name__, "rank": rank.index, "size": rank.size}
        operation = self._ask(sandbox, {**start, "inputs": inputs})
        while True:
            result: Plain = None
            match operation:  # the numbers of ranks in it may be anything: the cluster checks them
                case ["return", returned]:
                    return returned
                case ["send", to, np.ndarray() as array]:
                    await rank.send(cast(int, to), self._counted(array))
                case ["receive", source]:
                    result = await rank.receive(cast(int, source))
                case ["receive_any"]:
                    result = await rank.receive_any()
                case ["exchange", to, np.ndarray() as array, source]:
                    result = await rank.exchange(cast(int, to), self._counted(array), cast(int, source))
                case ["reduce", np.ndarray() as array] if array.dtype.kind in "biufc":
                    await rank.reduce(array, np.zeros_like(array))  # the student's process has added
                case ["compute", int() | float() as seconds]:
                    await rank.compute(seconds)
                case _:
                    raise ProgramError(f"rank {rank.index} awaits something that is not an operation of its own rank")
            resume: Question = {"do": "resume_rank", "rank": rank.index, "result": result, "now": rank.now}
            operation = self._ask(sandbox, resume)

    def _ask(self, sandbox: Sandbox, question: Question) -> Plain:
        try:
            return sandbox.ask(self._deadline, question)
        except Raised as error:
            if error.kind == "NotImplementedError":
                raise NotDone.raised_by(self.__name__) from None
            # The virtual cluster names the class of what a program raises.
            raise type(error.kind, (Exception,), {})(error.message) from None

    def _counted(self, array: Array) -> Array:
        self._bytes += array.nbytes
        if self._bytes > _MOST_BYTES_SENT:
            raise NotPlain(f"its ranks sent more than {_MOST_BYTES_SENT // 2**20} MiB in one run and were stopped")
        return array
