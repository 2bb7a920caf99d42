"""What all collectives share: each is a program that every rank runs, and says so if it is called otherwise."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from distlab.simulate.errors import ProgramError
from distlab.simulate.rank import Rank

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
Collective = Callable[Concatenate[Rank, Arguments], Coroutine[Any, Any, Result]]


def run_by_every_rank(program: Collective[Arguments, Result]) -> Collective[Arguments, Result]:
    """The same program; without a rank in front, as with the arrays of all ranks, its call raises ProgramError.

    Without this, what the call gives is a coroutine, which a notebook shows without a word that nothing has run.
    """

    @wraps(program)
    def called(rank: Rank, *arguments: Arguments.args, **named: Arguments.kwargs) -> Coroutine[Any, Any, Result]:
        if not hasattr(rank, "exchange"):
            name = program.__name__
            raise ProgramError(
                f"{name} is a program that every rank runs: write World(4).run({name}, arrays), with one array for "
                f"each rank; inside such a program, `await {name}(rank, array)`"
            )
        return program(rank, *arguments, **named)

    return cast(Collective[Arguments, Result], called)
