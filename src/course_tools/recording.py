"""Recording notebooks, each in a process of its own: nbclient has signals ask for the kernel's end, and fails then.

`python -m course_tools.recording SOURCE` records one. A mistake of the author ends it with the status REFUSED, and the
last line that it prints is the sentence to show.
"""

import sys
from pathlib import Path

from course_tools import notebooks
from distlab import cluster
from distlab.runtime import processes
from distlab.runtime.errors import PlainError

NOTEBOOKS = Path("notebooks")
REFUSED = 2
SECONDS_TO_RECORD = 3600.0


def write_notebooks(*, only: str | None = None, force: bool = False, tags: bool = False) -> int:
    """Write the committed notebooks from their text sources; returns the exit status.

    Args:
        only: Some notebooks by number or name: "03" or "02,04".
        force: Also while other programs use the processors.
        tags: Only give the cells their new tags; no text or code may have changed.
    """
    processes.end_on_signals()
    for source in notebooks.sources(NOTEBOOKS, only):
        if tags:
            print(notebooks.update_tags(source), flush=True)
            continue
        if not force:
            notebooks.require_idle()
        command = [sys.executable, "-P", "-m", "course_tools.recording", str(source)]
        try:
            finished = processes.run(command, SECONDS_TO_RECORD)
        except (KeyboardInterrupt, SystemExit) as interrupt:  # SystemExit: see processes.end_on_signals
            print(f"\nInterrupted; {notebooks.notebook_of(source)} is as it was.", flush=True)
            return int(interrupt.code or 0) if isinstance(interrupt, SystemExit) else 130
        if finished.status == REFUSED:
            raise notebooks.NotRecorded(finished.output.strip().splitlines()[-1])
        print(notebooks.notebook_of(source) if finished.status == 0 else finished.output, flush=True)
        if finished.status:
            return 1
    return 0


def record_cluster(*, force: bool = False) -> int:
    """Run notebook 15 on the cluster that runs, and record what it gives; returns the exit status.

    Args:
        force: Also while other programs use the processors.
    """
    processes.end_on_signals()
    if cluster.find() is None:
        raise PlainError("No cluster runs; start one with 'make cluster'.")
    if not force:
        notebooks.require_idle()
    [source] = notebooks.sources(NOTEBOOKS, "15")
    command = [sys.executable, "-P", "-m", "course_tools.cluster_record", str(source.resolve())]
    finished = processes.run(command, SECONDS_TO_RECORD)
    print("Recorded; `make notebooks ONLY=15` shows it." if finished.status == 0 else finished.output, flush=True)
    return int(finished.status != 0)


def main(source: Path) -> int:
    """Write the notebook of a text source; returns the exit status."""
    try:
        notebooks.regenerate(source)
    except PlainError as error:
        print(str(error).replace("\n", " "), flush=True)
        return REFUSED
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
