"""Which notebook runs next: never two that start several processes, the longest first, within the machine's memory."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import nbformat
import psutil

from course_tools.resource_use import MIB

FIGURES = Path(__file__).parents[2] / "docs" / "performance.json"
"""What each notebook took when the course was last measured (see `make bench`)."""

# For a notebook that was never measured.
UNKNOWN_SECONDS, UNKNOWN_MIB = 60.0, 2048.0
# The course fits a machine of 4 GiB for each pair of cores, and leaves the rest to the user.
MIB_PER_SLOT = 2048.0
SHARE_OF_FREE_MEMORY = 0.8

_STARTS = re.compile(
    r"\blaunch\.(tensorflow|mpirun|horovodrun|torchrun|mxnet|start_engines)\(|\bLoginNode\(|\bmpirun\b.*-np"
)


@dataclass(frozen=True)
class Need:
    """What a notebook takes: elapsed seconds alone, MiB of memory, and whether it starts several processes."""

    seconds: float
    memory_mib: float
    several_processes: bool


def starts_processes(notebook: Path) -> bool:
    """Whether the notebook calls the course's launcher; False for a file that is no notebook."""
    try:
        cells = nbformat.read(notebook, as_version=4).cells
        return any(cell.cell_type == "code" and _STARTS.search(cell.source) for cell in cells)
    except Exception:  # whatever is wrong with it: it fails when its turn comes, and says why
        return False


def needs(notebooks: Sequence[Path], figures: Path = FIGURES) -> dict[Path, Need]:
    """What each notebook takes, by the figures of the last measurement where they have it."""
    measured = json.loads(figures.read_text())["notebooks"] if figures.exists() else {}
    return {
        notebook: Need(
            measured.get(notebook.stem, {}).get("seconds", UNKNOWN_SECONDS),
            measured.get(notebook.stem, {}).get("memory_mib", UNKNOWN_MIB),
            starts_processes(notebook),
        )
        for notebook in notebooks
    }


def memory_for(at_once: int) -> float:
    """MiB that so many notebooks side by side may take together: 2 GiB each, and what is free here."""
    return min(MIB_PER_SLOT * at_once, SHARE_OF_FREE_MEMORY * psutil.virtual_memory().available / MIB)


def chooser(need_of: Mapping[Path, Need], memory_mib: float) -> Callable[[Sequence[Path], Sequence[Path]], Path | None]:
    """The `choose` of `run_all` for these needs.

    One that starts several processes comes first whenever none runs, since those follow one another. A notebook that
    needs more memory than there is runs alone.
    """

    def choose(waiting: Sequence[Path], running: Sequence[Path]) -> Path | None:
        left = memory_mib - sum(need_of[notebook].memory_mib for notebook in running)
        crowded = any(need_of[notebook].several_processes for notebook in running)
        fitting = [
            notebook
            for notebook in waiting
            if (need_of[notebook].memory_mib <= left or not running)
            and not (crowded and need_of[notebook].several_processes)
        ]
        order = {notebook: (need_of[notebook].several_processes, need_of[notebook].seconds) for notebook in fitting}
        return max(fitting, key=lambda notebook: order[notebook], default=None)

    return choose
