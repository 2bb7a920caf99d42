"""A student's work in jails: the cells that have run, and the answer that a judge may question."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from course_tools.sandbox.jail import Setting
from course_tools.sandbox.process import Allowance, Jail, SandboxFailed, raised
from course_tools.sandbox.student import OPERATIONS
from distlab.labs.answer_errors import AnswerError, Changed, NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import MOST_BYTES, Plain, plain
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World
from distlab.simulate.errors import no_operation

MOST_JAILS = 3
"""Of one student: ranks in several jails know of each other what messages tell; more ranks share them in turn."""
_MOST_BYTES_SENT = 16 * MOST_BYTES


class CellRun(NamedTuple):
    """The end of what a cell printed, and how it failed: None, or class, message and line."""

    printed: str
    error: Raised | None


class SandboxedWork:
    """The cells of one student, and an `Answer` (see `distlab.labs.answer`) made of them; use it in a `with` block.

    A cell that ended the process, or hung, or changed the checker's functions, is left out from then on: the next
    question finds a fresh process in which all other cells have run again. `changed` says whether the checker's
    functions have suffered. Everything may raise SandboxFailed.
    """

    def __init__(self, setting: Setting, seconds: float = float("inf")) -> None:
        """Everything together may take so many seconds."""
        self.changed = False
        self._setting, self._left, self._now = setting, seconds, Allowance(0.0)
        self._done: list[str] = []
        self._jails: dict[int, Jail] = {}

    def __enter__(self) -> "SandboxedWork":
        return self

    def __exit__(self, *exception: object) -> None:
        for jail in self._jails.values():
            jail.end()

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time for everything is used up."""
        return self._now.used >= self._left

    def run_cell(self, text: str, seconds: float) -> CellRun:
        """Run a cell; an exception in it is part of the result. Raises Gone and TookTooLong."""
        result = self.answer(seconds)._ask("run_cell", [text])
        self._done.append(text)
        self._jails[0].cells_run += 1
        match result:
            case {"printed": str(printed), "error": [str(kind), str(message), line]}:
                return CellRun(printed[-4000:], raised(kind, message, line))
            case {"printed": str(printed)}:
                return CellRun(printed[-4000:], None)
        return CellRun("", None)

    def answer(self, seconds: float) -> "SandboxedWork":
        """What a judge may question: all questions together, until this is called again, may take `seconds`."""
        if self.is_out_of_time:
            raise TookTooLong("the time for the whole lab is used up")
        self._left -= self._now.used
        self._now = Allowance(min(seconds, self._left))
        return self

    def value(self, name: str) -> Plain:
        """See Answer."""
        return self._ask("value", [name])

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        named = {"none_is_an_answer": none_is_an_answer, **keywords}
        return self._ask("call", [name, *map(plain, arguments)], {name: plain(value) for name, value in named.items()})

    def inside(
        self, function: Callable[..., object], *arguments: object, respond: Callable[[Plain], Plain] | None = None
    ) -> Plain:
        """See Answer."""
        place = [function.__module__, function.__qualname__]
        return self._ask("observe", [*place, plain(list(arguments)), respond is not None], respond=respond)

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer: each rank of `world` does what the student's program, in a jail, asks of it."""
        jails = [self._jail(number) for number in range(min(world.size, MOST_JAILS))]
        sent = 0

        def asked(rank: Rank, what: str, *arguments: object) -> Plain:
            try:
                return self._ask(what, arguments, jail=jails[rank.index % len(jails)])
            except Raised as error:
                if error.kind == "NotImplementedError":
                    raise NotDone.raised_by(name) from None
                # The virtual cluster names the class of what a program raises.
                raise type(error.kind, (Exception,), {})(error.message) from None

        async def program(rank: Rank, *inputs: Plain) -> Plain:
            nonlocal sent
            asks = asked(rank, "start_rank", name, rank.index, rank.size, *inputs)
            while True:
                match asks:  # the arguments may be anything: the cluster checks them
                    case ["return", returned]:
                        return returned
                    case [str() as operation, *arguments] if operation in OPERATIONS:
                        sent += sum(argument.nbytes for argument in arguments if isinstance(argument, np.ndarray))
                        if sent > _MOST_BYTES_SENT:
                            most = f"{_MOST_BYTES_SENT // 2**20} MiB"
                            raise NotPlain(f"its ranks sent more than {most} in one run and were stopped")
                        result = await getattr(rank, operation)(*arguments)
                    case _:
                        raise ProgramError(no_operation(rank.index))
                asks = asked(rank, "resume_rank", rank.index, result, rank.now)

        program.__name__ = name
        try:
            run = world.run(program, None if inputs is None else cast(list[Plain], plain(list(inputs))))
        except RankFailedError as error:
            if isinstance(error.__cause__, (AnswerError, SandboxFailed)):
                raise error.__cause__ from None
            raise
        if all(result is None for result in run.results):
            raise NotDone(f"`{name}` gives None on every rank: is a `return` missing?")
        return run

    def _ask(
        self,
        what: str,
        arguments: Sequence[object],
        keywords: Mapping[str, object] | None = None,
        jail: Jail | None = None,
        respond: Callable[[Plain], Plain] | None = None,
    ) -> Plain:
        """Ask a jail, see `Jail.ask`, the first one if none is named."""
        jail = jail or self._jail(0)
        try:
            return jail.ask(self._now, what, arguments, keywords, respond)
        except Changed as error:
            self.changed = True
            jail.end(str(error))
            raise

    def _jail(self, number: int) -> Jail:
        """That jail, a new one if the last has ended, in which all cells have run."""
        jail = self._jails.get(number)
        if jail is None or jail.gone is not None:
            jail = self._jails[number] = Jail(self._setting)
        while jail.cells_run < len(self._done):
            jail.cells_run += 1
            self._ask("run_cell", [self._done[jail.cells_run - 1]], jail=jail)
        return jail
