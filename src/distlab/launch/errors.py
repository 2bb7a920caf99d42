"""What can go wrong with a launched job; each error's text is the message for the user, with the mend."""

from typing import TYPE_CHECKING

from distlab.runtime.errors import PlainError

if TYPE_CHECKING:
    from distlab.launch.job import Run

LAST_LINES = 20


class LaunchError(PlainError, RuntimeError):
    """The job could not be started or did not end well; `run` holds what there was of it, None if nothing started."""

    def __init__(self, message: str, run: "Run | None" = None) -> None:
        """With the message for the user."""
        super().__init__(message)
        self.run = run


class WorkerFailed(LaunchError):
    """A process ended with an exit code other than 0; `rank` is its name, `exit_code` is −n after signal n.

    `exit_code` is None when the process that started the rank vanished and nobody could see how.
    """

    def __init__(self, rank: str, exit_code: int | None, message: str, run: "Run") -> None:
        """With the first rank that failed."""
        super().__init__(message, run)
        self.rank = rank
        self.exit_code = exit_code


class WorkerMissing(LaunchError):
    """Within the deadline for starting the ranks in `ranks` did not connect."""

    def __init__(self, ranks: list[str], message: str, run: "Run") -> None:
        """With the names of the missing ranks."""
        super().__init__(message, run)
        self.ranks = ranks


class DeadlinePassed(LaunchError):
    """The job was not over in time."""


class PortTaken(WorkerFailed):
    """A process could not open its address because somebody else had; the launcher then tries other ports."""
