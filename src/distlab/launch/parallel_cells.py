"""What `%%px` says where its cell cannot run on all ranks: before their start, after their end, while they are busy."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from ipyparallel import Client
    from IPython.core.interactiveshell import InteractiveShell

NAME = "px"
START = "run the cell with launch.start_engines"


class EnginesFailed(PlainError, RuntimeError):
    """The engines did not start, or cannot run a cell; the message says why."""


def expect() -> None:
    """In a notebook, let a `%%px` cell that comes before `start_engines` say so; IPython would not know the word."""
    ipython = sys.modules.get("IPython")
    shell: InteractiveShell | None = ipython.get_ipython() if ipython else None
    if shell and not shell.find_cell_magic(NAME):  # type: ignore[no-untyped-call]  # IPython declares no types here

        def px(line: str, cell: str) -> object:
            raise EnginesFailed(f"No ranks have been started: {START} first, then this one.")

        shell.register_magic_function(px, "cell", NAME)  # type: ignore[arg-type]


def watch(shell: "InteractiveShell", client: "Client", is_running: Callable[[], bool]) -> None:
    """Let %%px say that the ranks were stopped, or which go on with an interrupted cell.

    A later cell would wait for those without a word.
    """
    run = shell.find_cell_magic(NAME)  # type: ignore[no-untyped-call]  # IPython declares no types here
    interrupted: set[str] = set()

    def require_free_ranks() -> None:
        if not is_running():
            raise EnginesFailed(f"The ranks were stopped: {START} again, and those after it.")
        if waiting := interrupted & client.outstanding:
            ranks = sorted({client.metadata[message]["engine_id"] for message in waiting})
            raise EnginesFailed(
                f"{'Rank' if len(ranks) == 1 else 'Ranks'} {', '.join(map(str, ranks))} still "
                f"{'runs' if len(ranks) == 1 else 'run'} the interrupted cell, perhaps in a collective that another "
                f"rank did not call: {START} again, and those after it."
            )

    def px(line: str, cell: str) -> object:
        require_free_ranks()
        try:
            return run(line, cell)
        except (KeyboardInterrupt, TimeoutError):
            interrupted.update(client.outstanding)
            require_free_ranks()
            raise

    shell.register_magic_function(px, "cell", NAME)  # type: ignore[arg-type]
