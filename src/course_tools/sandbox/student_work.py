"""A student's work in sandboxes: the cells that have run, and the answer that a judge may question."""

from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import numpy as np

from course_tools.sandbox.confine import SandboxLimits
from course_tools.sandbox.process import Killed, Question, Sandbox, SandboxFailed, Starved
from course_tools.sandbox.server import Server, ServerGone
from course_tools.sandbox.student_time import Allowance, StudentTime
from distlab.labs.answer import source_in
from distlab.labs.answer_errors import Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Array, Plain, plain
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World
from distlab.simulate.errors import no_operation

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
    question finds a fresh process in which all other cells have run again. `changes` are all that the checker's
    functions have suffered, `troubles` what the machine, not the student, is to blame for.
    """

    server: Server
    limits: SandboxLimits
    files: dict[str, bytes] = field(default_factory=dict)
    changes: list[Changed] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    is_out_of_time: bool = False
    _time: StudentTime = field(default_factory=StudentTime)
    _done: list[Cell] = field(default_factory=list)
    _sandbox: Sandbox | None = None
    _for_ranks: list[Sandbox] = field(default_factory=list)
    _all: list[Sandbox] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.allow_in_all(float("inf"))

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for sandbox in self._all:
            sandbox.end()
        self._time.meter.close()

    def run_cell(self, text: str, name: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of the result. Raises Gone and TookTooLong."""
        result = self.ask({"do": "run", "text": text, "name": name}, self.allow(seconds))
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
        """What a judge may question; all questions together may take `seconds` of the student's time."""
        return SandboxedAnswer(self, self.allow(seconds))

    def allow_in_all(self, seconds: float) -> None:
        """So many seconds from now on for everything."""
        self._for_all = self._time.allow(seconds)

    def allow(self, seconds: float) -> Allowance:
        """So many seconds from now on. Raises TookTooLong if those for the whole lab are used up."""
        if self.is_out_of_time:
            raise TookTooLong("the time for the whole lab is used up")
        return self._time.allow(seconds)

    @property
    def seconds_used(self) -> float:
        """Of those that are allowed in all."""
        return self._for_all.used(self._time.spent())

    def ask(self, question: Question, allowance: Allowance, respond: Callable[[Plain], Plain] | None = None) -> Plain:
        """Ask the student's process, a new one if the last has ended."""
        return self._asked(self._alive(allowance), question, allowance, respond)

    def ask_rank(self, sandbox: Sandbox, question: Question, allowance: Allowance) -> Plain:
        """Ask one of the `sandboxes_for_ranks`."""
        return self._asked(sandbox, question, allowance)

    def sandboxes_for_ranks(self, count: int, allowance: Allowance) -> list[Sandbox]:
        """`count` sandboxes in which all cells have run, each knowing nothing of the others."""
        if any(sandbox.gone is not None for sandbox in self._for_ranks):
            self._end_ranks()
        while len(self._for_ranks) < count:
            self._for_ranks.append(self._fresh(allowance))
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

    def _asked(
        self,
        sandbox: Sandbox,
        question: Question,
        allowance: Allowance,
        respond: Callable[[Plain], Plain] | None = None,
    ) -> Plain:
        try:
            return sandbox.ask(question, [allowance, self._for_all], respond)
        except Changed as error:
            self.changes.append(error)
            raise
        except (Starved, Killed) as error:
            self.troubles.append(str(error))
            raise
        finally:
            self.is_out_of_time = self._for_all.is_used_up(self._time.spent())

    def _alive(self, allowance: Allowance) -> Sandbox:
        if self._sandbox is None or self._sandbox.gone is not None:
            self._sandbox = self._fresh(allowance)
        return self._sandbox

    def _fresh(self, allowance: Allowance) -> Sandbox:
        try:
            sandbox = Sandbox(self.server, self.limits, self.files, self._time)
        except (SandboxFailed, ServerGone) as error:
            self.troubles.append(f"a sandbox could not be started: {error}")
            raise
        self._all = [running for running in self._all if running.gone is None] + [sandbox]
        try:
            for cell in self._done:
                self._asked(sandbox, {"do": "run", "text": cell.text, "name": cell.name}, allowance)
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

    def __init__(self, work: SandboxedWork, allowance: Allowance) -> None:
        """All questions together take no more than the allowance."""
        self._work, self._allowance = work, allowance

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._work.ask({"do": "value", "name": name}, self._allowance)

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        sent: Question = {"arguments": plain(list(arguments)), "keywords": plain(keywords)}
        question: Question = {"do": "call", "name": name, "none_is_an_answer": none_is_an_answer, **sent}
        return self._work.ask(question, self._allowance)

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        place: Question = {"module": function.__module__, "function": function.__qualname__}
        question: Question = {"do": "inside", **place, "arguments": plain(list(arguments)), "asks": respond is not None}
        return self._work.ask(question, self._allowance, respond)

    def source(self, name: str) -> str:
        """See Answer."""
        source = self._work.source(name)
        if source is None:
            raise NotDone(f"there is no `{name}` yet")
        return source

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer. Every rank runs in its own sandbox, up to eight; further ranks share them in turn."""
        sandboxes = self._work.sandboxes_for_ranks(min(world.size, MOST_SANDBOXES_FOR_RANKS), self._allowance)
        program = _Program(name, self._work, sandboxes, self._allowance)
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

    def __init__(self, name: str, work: SandboxedWork, sandboxes: list[Sandbox], allowance: Allowance) -> None:
        self.__name__ = name
        self._work, self._sandboxes, self._allowance = work, sandboxes, allowance
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
                    raise ProgramError(no_operation(rank.index))
            resume: Question = {"do": "resume_rank", "rank": rank.index, "result": result, "now": rank.now}
            operation = self._ask(sandbox, resume)

    def _ask(self, sandbox: Sandbox, question: Question) -> Plain:
        try:
            return self._work.ask_rank(sandbox, question, self._allowance)
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
