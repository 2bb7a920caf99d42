"""Execute a notebook and compare its outputs with the committed ones, here or as a program of its own.

Use: `checked_notebook.py NOTEBOOK SECONDS_PER_CELL IGNORED_PATH …`. Exit status 0: all as committed, no process left.
"""

import os
import sys
from pathlib import Path

from pytest_notebook.nb_regression import NBRegressionFixture

from distlab.runtime import processes


def check(regression: NBRegressionFixture, notebook: Path) -> list[int]:
    """Execute the notebook in its folder and compare; the processes that it left, which are ended.

    Raises NBRegressionError for a difference, and nbclient's errors for a cell that fails.
    """
    mark = processes.new_mark()
    regression.exec_cwd = str(notebook.parent)
    regression.exec_env = {processes.MARK: f"{os.environ.get(processes.MARK, '')} {mark}".strip()}
    try:
        regression.check(str(notebook))
        return processes.alive(mark)
    finally:
        processes.end(mark)


if __name__ == "__main__":
    file, seconds, *ignored = sys.argv[1:]
    fixture = NBRegressionFixture(exec_timeout=int(seconds), diff_ignore=tuple(ignored), diff_use_color=False)
    if left := check(fixture, Path(file)):
        sys.exit(f"it left processes: {left}")
