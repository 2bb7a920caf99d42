"""Recording one notebook in a process of its own: `python -m course_tools.recording SOURCE`.

A mistake of the author ends it with the status REFUSED, and the last line that it prints is the sentence to show.
"""

import sys
from pathlib import Path

from course_tools import notebooks
from distlab.runtime.errors import PlainError

REFUSED = 2


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
