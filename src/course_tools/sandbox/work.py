"""A student's work in jails: the cells that have run, and the answer that a judge may question."""

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, NamedTuple, cast

import numpy as np

from course_tools.sandbox.jail import Setting
from course_tools.sandbox.process import Allowance, Jail, SandboxFailed, Trouble
from distlab.labs.answer import source_in
from distlab.labs.answer_errors import Changed, Gone, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Plain, plain
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World
from distlab.simulate.errors import no_operation

MOST_JAILS = 3
"""Of one student: ranks in several jails know of each other what messages tell; more ranks share them in turn."""
_MOST_BYTES_SENT = 16 * MOST_BYTES
_OPERATIONS = ("send", "receive", "receive_any", "exchange", "reduce", "compute")


class CellRun(NamedTuple):
    """The end of what a cell printed, and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


class SandboxedWork:
    """The cells of one student; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. `changes` are all that the checker's
    functions have suffered, `troubles` what the machine, not the student, is to blame for.
    """

    def __init__(self, setting: Setting, seconds: float = float("inf")) -> None:
        """Everything together may take so many seconds."""
        self.in_all = Allowance(seconds)
        self.changes: list[Changed] = []
        self.troubles: list[str] = []
        self._setting = setting
        self._done: list[tuple[str, str]] = []
        self._jails: dict[int, Jail] = {}
        self._ran: dict[int, int] = {}  # how many of the cells have run in each jail

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for jail in self._jails.values():
            jail.end()

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time for everything is used up."""
        return self.in_all.used >= self.in_all.seconds

    def run_cell(self, text: str, name: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of the result. Raises Gone and TookTooLong."""
        allowance = self._allowed(seconds)
        result = self.ask(self.jail(0, allowance), allowance, "run", text, name)
        self._done.append((text, name))
        self._ran[0] = len(self._done)
        match result:
            case {"printed": str(printed), "error": [str(kind), str(message), line]}:
                error = Raised(kind[:80], message[:2000], line if type(line) is int else None)
                return CellRun(printed[-4000:], error)
            case {"printed": str(printed)}:
                return CellRun(printed[-4000:], None)
        return CellRun("", None)

    def answer(self, seconds: float) -> "SandboxedAnswer":
        """What a judge may question; all questions together may take `seconds`."""
        return SandboxedAnswer(self, self._allowed(seconds))

    def ask(self, jail: Jail, allowance: Allowance, what: str, *arguments: object, **keywords: Any) -> Plain:
        """Ask one of the jails, see `Jail.ask`; what goes wrong is kept."""
        try:
            return jail.ask(what, [allowance, self.in_all], *arguments, **keywords)
        except Changed as error:
            self.changes.append(error)
            raise
        except Trouble as error:
            self.troubles.append(str(error))
            raise

    def jail(self, number: int, allowance: Allowance) -> Jail:
        """That jail, a new one if the last has ended, in which all cells have run."""
        jail = self._jails.get(number)
        if jail is None or jail.gone is not None:
            try:
                jail = self._jails[number] = Jail(self._setting)
            except SandboxFailed as error:
                self.troubles.append(f"a jail could not be started: {error}")
                raise
            self._ran[number] = 0
        while self._ran[number] < len(self._done):
            self._ran[number] += 1
            self.ask(jail, allowance, "run", *self._done[self._ran[number] - 1])
        return jail

    def source(self, name: str) -> str | None:
        """The text of the last definition of `name` in the cells."""
        for text, _ in reversed(self._done):
            try:
                if (source := source_in(text, name)) is not None:
                    return source
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
        return None

    def _allowed(self, seconds: float) -> Allowance:
        if self.is_out_of_time:
            raise TookTooLong("the time for the whole lab is used up")
        return Allowance(seconds)


class SandboxedAnswer:
    """The `Answer` (see `distlab.labs.answer`) of work in jails."""

    def __init__(self, work: SandboxedWork, allowance: Allowance) -> None:
        """All questions together take no more than the allowance."""
        self._work, self._allowance = work, allowance

    def _ask(self, what: str, *arguments: object, **keywords: Any) -> Plain:
        return self._work.ask(self._work.jail(0, self._allowance), self._allowance, what, *arguments, **keywords)

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._ask("value", name)

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        return self._ask("call", name, plain(list(arguments)), plain(keywords), none_is_an_answer)

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        place, sent = (function.__module__, function.__qualname__), plain(list(arguments))
        return self._ask("inside", *place, sent, respond is not None, respond=respond)

    def source(self, name: str) -> str:
        """See Answer."""
        source = self._work.source(name)
        if source is None:
            raise NotDone(f"there is no `{name}` yet")
        return source

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer."""
        jails = [self._work.jail(number, self._allowance) for number in range(min(world.size, MOST_JAILS))]
        program = _Program(name, self._work, jails, self._allowance)
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

    def __init__(self, name: str, work: SandboxedWork, jails: list[Jail], allowance: Allowance) -> None:
        self.__name__ = name
        self._work, self._jails, self._allowance = work, jails, allowance
        self._bytes = 0

    def __call__(self, rank: Rank, *inputs: Plain) -> Coroutine[Any, Any, Plain]:
        return self._run(rank, list(inputs))

    async def _run(self, rank: Rank, inputs: list[Plain]) -> Plain:
        asked = self._ask(rank, "start_rank", self.__name__, rank.index, rank.size, *inputs)
        while True:
            match asked:  # the arguments may be anything: the cluster checks them
                case ["return", returned]:
                    return returned
                case [str() as operation, *arguments] if operation in _OPERATIONS:
                    result = await getattr(rank, operation)(*map(self._counted, arguments))
                case _:
                    raise ProgramError(no_operation(rank.index))
            asked = self._ask(rank, "resume_rank", rank.index, result, rank.now)

    def _ask(self, rank: Rank, what: str, *arguments: object) -> Plain:
        try:
            return self._work.ask(self._jails[rank.index % len(self._jails)], self._allowance, what, *arguments)
        except Raised as error:
            if error.kind == "NotImplementedError":
                raise NotDone.raised_by(self.__name__) from None
            # The virtual cluster names the class of what a program raises.
            raise type(error.kind, (Exception,), {})(error.message) from None

    def _counted(self, argument: Plain) -> Plain:
        if isinstance(argument, np.ndarray):
            self._bytes += argument.nbytes
        if self._bytes > _MOST_BYTES_SENT:
            raise NotPlain(f"its ranks sent more than {_MOST_BYTES_SENT // 2**20} MiB in one run and were stopped")
        return argument
