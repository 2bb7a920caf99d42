"""What TensorFlow's C++ code prints while it is imported, and how to hide it."""

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

# Which processor features there are, that there is no GPU: C++ notes that TF_CPP_MIN_LOG_LEVEL does not reach.
NOTES = re.compile(r"WARNING: All log messages before absl|I\d{4} \d\d:|E\d{4} .*cuda_platform|\S+ \S+: I (tensor|ext)")


@contextmanager
def hidden() -> Iterator[None]:
    """Hide these notes among what this process writes to stderr; everything else is written at the end."""
    sys.stderr.flush()
    stderr = os.dup(2)
    with tempfile.TemporaryFile() as written:
        os.dup2(written.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            written.seek(0)
            for line in written:
                if not NOTES.match(line.decode(errors="replace")):
                    os.write(2, line)
