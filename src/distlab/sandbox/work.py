"""A student's work in sandboxes: the cells that have run, and the answer that a judge may question."""

import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from distlab.labs.answer import source_in
from distlab.labs.answer_errors import Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Plain, plain
from distlab.sandbox.limits import Limits
from distlab.sandbox.process import Sandbox
from distlab.sandbox.server import Server
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World

MOST_SANDBOXES_FOR_RANKS = 8
_MOST_BYTES_SENT = 16 * MOST_BYTES


class Cell(NamedTuple):
    """Text that runs, under a name."""

    text: str
    name: str


class CellRun(NamedTuple):
    """What a cell printed at last and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


@dataclass
class SandboxedWork:
    """The cells of one student; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. Deadlines are times of `clock`. `changes`
    are all that the checker's functions have suffered.
    """

    server: Server
    limits: Limits
    files: dict[str, bytes] = field(default_factory=dict)
    seconds_left: float = float("inf")
    changes: list[Changed] = field(default_factory=list)
    _starting: float = 0.0
    _done: list[Cell] = field(default_factory=list)
    _sandbox: Sandbox | None = None
    _for_ranks: list[Sandbox] = field(default_factory=list)

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for sandbox in (self._sandbox, *self._for_ranks):
            if sandbox is not None:
                sandbox.end()

    def run_cell(self, text: str, name: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of what this gives. Raises Gone and TookTooLong."""
        deadline = self._deadline(seconds)
        result = self.ask(deadline, do="run", text=text, name=name)
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

    def ask(self, deadline: float, respond: Callable[[Plain], Plain] | None = None, **question: object) -> Plain:
        """Ask the student's process, a new one if the last has ended."""
        try:
            return self._alive(deadline).ask(self.monotonic(deadline), respond, **question)
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
                if (found := source_in(cell.text, name)) is not None:
                    return found
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return None

    def clock(self) -> float:
        """Seconds that pass for the student: it stands while a sandbox starts, which a loaded machine may delay."""
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
        began = time.monotonic()
        sandbox = Sandbox(self.server, self.limits, self.files)
        self._starting += time.monotonic() - began
        try:
            for cell in self._done:
                sandbox.ask(self.monotonic(deadline), do="run", text=cell.text, name=cell.name)
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
        return self._work.ask(self._deadline, do="value", name=name)

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        sent = {"arguments": plain(list(arguments)), "keywords": plain(keywords)}
        question = {"do": "call", "name": name, "none_is_an_answer": none_is_an_answer, **sent}
        return self._work.ask(self._deadline, **question)

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        question = {"module": function.__module__, "function": function.__qualname__, "asks": respond is not None}
        return self._work.ask(self._deadline, respond, do="inside", **question, arguments=plain(list(arguments)))

    def source(self, name: str) -> str:
        """See Answer."""
        found = self._work.source(name)
        if found is None:
            raise NotDone(f"there is no `{name}` yet")
        return found

    def run(self, name: str, world: World, inputs: Iterable | None = None) -> Run:
        """See Answer. Every rank runs in a sandbox of its own, up to eight; further ranks share them in turn."""
        sandboxes = self._work.sandboxes_for_ranks(min(world.size, MOST_SANDBOXES_FOR_RANKS), self._deadline)
        program = _Program(name, sandboxes, self._work.monotonic(self._deadline))
        try:
            run = world.run(program, None if inputs is None else plain(list(inputs)))
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

    def __call__(self, rank: Rank, *inputs: object) -> Awaitable:
        return self._run(rank, list(inputs))

    async def _run(self, rank: Rank, inputs: list) -> Plain:
        sandbox = self._sandboxes[rank.index % len(self._sandboxes)]
        start = {"name": self.__name__, "rank": rank.index, "size": rank.size, "inputs": inputs}
        asked = self._ask(sandbox, do="start_rank", **start)
        while True:
            match asked:
                case ["return", result]:
                    return result
                case ["send", to, np.ndarray() as array]:
                    result = await rank.send(to, self._counted(array))
                case ["receive", source]:
                    result = await rank.receive(source)
                case ["receive_any"]:
                    result = await rank.receive_any()
                case ["exchange", to, np.ndarray() as array, source]:
                    result = await rank.exchange(to, self._counted(array), source)
                case ["reduce", np.ndarray() as array] if array.dtype.kind in "biufc":
                    await rank.reduce(array, np.zeros_like(array))  # the student's process has added
                    result = None
                case ["compute", int() | float() as seconds]:
                    result = await rank.compute(seconds)
                case _:
                    raise ProgramError(f"rank {rank.index} awaits something that is not an operation of its own rank")
            asked = self._ask(sandbox, do="resume_rank", rank=rank.index, result=result, now=rank.now)

    def _ask(self, sandbox: Sandbox, **question: object) -> Plain:
        try:
            return sandbox.ask(self._deadline, **question)
        except Raised as error:
            if error.kind == "NotImplementedError":
                raise NotDone.raised_by(self.__name__) from None
            # The virtual cluster names the class of what a program raises.
            raise type(error.kind, (Exception,), {})(error.message) from None

    def _counted(self, array: np.ndarray) -> np.ndarray:
        self._bytes += array.nbytes
        if self._bytes > _MOST_BYTES_SENT:
            raise NotPlain(f"its ranks sent more than {_MOST_BYTES_SENT // 2**20} MiB in one run and were stopped")
        return array
