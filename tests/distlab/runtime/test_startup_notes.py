"""TensorFlow's notes are hidden, and nothing else."""

import os
import subprocess
import sys

import pytest

from distlab.runtime import startup_notes

NOTE = b"I0000 00:00:1795470259.384640 14355 cudart_stub.cc:31] Could not find cuda drivers on your machine.\n"
IMPORT = """
import os
from distlab.runtime import startup_notes
with startup_notes.hidden():
    import tensorflow
    os.write(2, b"mine")
"""


def test_everything_else_is_written_also_after_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), startup_notes.hidden():
        os.write(2, b"before\n" + NOTE)
        os.write(2, b"after")
        raise KeyError
    assert capfd.readouterr().err == "before\nafter"
    os.write(2, b"later")
    assert capfd.readouterr().err == "later"


@pytest.mark.slow
def test_the_import_of_tensorflow_is_silent() -> None:
    command = [sys.executable, "-c", IMPORT]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stderr == "mine"
