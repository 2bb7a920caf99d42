"""Recording notebook 15: `python -m course_tools.cluster_record SOURCE` runs it on the cluster of this machine.

It executes the notebook of a text source with one cell more, which writes all that the cells got as the record for
those who have no cluster. The committed notebook stays as it is.
"""

import sys
from pathlib import Path

import nbformat

from course_tools import notebooks

WRITE = "login.record()"
"""The additional cell; `login` is the notebook's LoginNode."""


def record(source: Path) -> None:
    """Execute and record; raises failed_cells.CellFailed if a cell fails, and writes nothing then."""
    notebook = notebooks.convert(source)
    notebook.cells.append(nbformat.v4.new_code_cell(WRITE))
    notebooks.execute(notebook, source.parents[1])


if __name__ == "__main__":
    record(Path(sys.argv[1]))
