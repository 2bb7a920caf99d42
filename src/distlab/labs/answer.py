"""A student's answer as a judge sees it, and the one that lives in the student's own kernel."""

import inspect
import signal
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import CodeType, TracebackType
from typing import Any, Protocol, cast

from distlab.labs.answer_errors import NotDone, NotPlain, Raised, TookTooLong
from distlab.labs.plain_data import Plain, plain
from distlab.simulate import ProgramError, Rank, RankFailedError, Run, World

SECONDS = 30.0


class Answer(Protocol):
    """What a judge may ask; see docs/labs.md. Every method can raise AnswerError."""

    def value(self, name: str) -> Plain:
        """The student's variable; raises NotDone if there is none, or it is None or `...`."""

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """What the student's function gives; raises NotDone if it is not there, is untouched or gives None."""

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """Run the student's `async def name(rank, input)` on every rank; raises also what `World.run` raises."""

    def inside(self, function: Callable[..., object], *arguments: object) -> Plain:
        """What `function(namespace, *arguments)` gives next to the student's code; it may be forged."""


class OwnAnswer:
    """The answer in a namespace of this process; each question is limited to `seconds` (in the main thread)."""

    def __init__(self, namespace: Mapping[str, Any], seconds: float = SECONDS) -> None:
        """`namespace` maps names to the student's objects, as `globals()` does."""
        self._namespace, self._seconds = namespace, seconds

    def value(self, name: str) -> Plain:
        """See Answer."""
        value = self._named(name)
        if value is None or value is ...:
            raise NotDone(f"`{name}` is still empty")
        return plain(value, f"`{name}`")

    def call(self, name: str, *arguments: object, none_is_an_answer: bool = False, **keywords: object) -> Plain:
        """See Answer."""
        function = self._function(name)
        copies = [plain(argument) for argument in arguments]
        named = {keyword: plain(argument) for keyword, argument in keywords.items()}
        with time_limit(self._seconds, f"`{name}`"):
            value = self._student(f"what `{name}` gives", function, *copies, **named)
        if value is ... or (value is None and not none_is_an_answer):
            raise NotDone(f"`{name}` gives None: is a `return` missing?")
        return cast(Plain, value)

    def run(self, name: str, world: World, inputs: Iterable[Any] | None = None) -> Run:
        """See Answer."""
        program = self._function(name)
        with time_limit(self._seconds, f"`{name}`"):
            try:
                run = world.run(program, inputs)
            except RankFailedError as error:
                if isinstance(error.__cause__, NotImplementedError):
                    raise NotDone.raised_by(name) from None
                raise
            except SystemExit as error:
                raise Raised("SystemExit", str(error), line_of(error.__traceback__, self._namespace)) from error
            if all(result is None or result is ... for result in run.results):
                raise NotDone(f"`{name}` gives None on every rank: is a `return` missing?")
            for result in filter(inspect.iscoroutine, run.results[1:]):
                result.close()  # or Python warns of it later
            results = [plain(result, f"what `{name}` gives on rank {rank}") for rank, result in enumerate(run.results)]
        return replace(run, results=results)

    def inside(self, function: Callable[..., object], *arguments: object) -> Plain:
        """See Answer."""
        copies = [plain(argument) for argument in arguments]
        with time_limit(self._seconds, "your code"):
            return cast(Plain, self._student("the answer", function, self._namespace, *copies))

    def started(self, name: str, rank: Rank, *inputs: object) -> Coroutine[Any, Any, Any]:
        """The coroutine of the student's rank program; raises ProgramError if it is none."""
        program = self._function(name)
        coroutine = program(rank, *inputs)
        if not inspect.iscoroutine(coroutine):
            raise ProgramError(f"{name} is not a coroutine function: write `async def {name}(rank, …)`")
        return coroutine

    def _named(self, name: str) -> Any:
        if name not in self._namespace:
            raise NotDone(f"there is no `{name}` yet: run the cell above, and keep that name")
        return self._namespace[name]

    def _function(self, name: str) -> Callable[..., Any]:
        function = self._named(name)
        if function is None or function is ... or is_untouched(function):
            raise NotDone(f"`{name}` is still empty")
        if not callable(function):
            raise Raised("TypeError", f"`{name}` is of type {type(function).__name__}, not a function")
        return cast(Callable[..., Any], function)

    def _student(self, what: str, function: Callable[..., object], *arguments: object, **keywords: object) -> object:
        try:
            value = function(*arguments, **keywords)
            # Here, since it may run the student's code: what gives the items of an iterator.
            return value if value is ... else plain(value, what)
        except NotPlain:
            raise
        except NotImplementedError:
            raise NotDone.raised_by(getattr(function, "__name__", "it")) from None
        except (Exception, SystemExit) as error:
            kind = type(error).__name__
            raise Raised(kind, str(error), line_of(error.__traceback__, self._namespace)) from error


class _Alarm(BaseException):
    """Not an Exception, so that a student's `except Exception` lets it pass."""


@contextmanager
def time_limit(seconds: float, what: str) -> Iterator[None]:
    """Raise TookTooLong when the block runs longer than `seconds`; without limit outside the main thread.

    Only Python code is stopped, and a call into C when it returns. `what` is the subject of the error's sentence.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise _Alarm

    before = signal.signal(signal.SIGALRM, stop)
    # The alarm comes again, in case the first one meets code that catches everything.
    timer = signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)
    try:
        try:
            yield
        finally:  # it may come here, too, where the block's memory took long to free
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _Alarm:
        raise TookTooLong(f"{what} did not end within {seconds:g} s and was stopped") from None
    finally:
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


def line_of(error_traceback: TracebackType | None, namespace: Mapping[str, Any]) -> int | None:
    """The line, in its cell, of the innermost code of `namespace` that an error passed through."""
    lines = [line for frame, line in traceback.walk_tb(error_traceback) if frame.f_globals is namespace]
    return lines[-1] if lines else None


def is_untouched(function: object) -> bool:
    """Whether a function or coroutine function does nothing but `...`, `pass` or `return None`."""
    code = getattr(function, "__code__", None)
    return isinstance(code, CodeType) and code.co_code[::2] in _EMPTY and code.co_consts[-1] is None


def _nothing() -> None: ...


async def _nothing_awaited() -> None: ...


# What the code does, without the places of constants: those depend on whether there is a docstring.
_EMPTY = [function.__code__.co_code[::2] for function in (_nothing, _nothing_awaited)]
