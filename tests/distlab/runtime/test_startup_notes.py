"""TensorFlow's notes are hidden, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distlab.runtime import environment, startup_notes

NOTE = b"I0000 00:00:1795470259.384640 14355 cudart_stub.cc:31] Could not find cuda drivers on your machine.\n"
IMPORT = """
import os
from distlab.runtime import startup_notes
with startup_notes.hidden():
    import tensorflow as tf
    os.write(2, b"mine")
print(tf.keras.backend.floatx())
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
def test_the_import_of_tensorflow_is_silent_and_what_keras_is_told_for_other_projects_changes_nothing(
    tmp_path: Path,
) -> None:
    (tmp_path / ".keras").mkdir()
    (tmp_path / ".keras" / "keras.json").write_text('{"floatx": "float16", "backend": "torch"}')
    inherited = {name: value for name, value in os.environ.items() if name not in environment.variables()}
    variables = inherited | {"HOME": str(tmp_path), "TF_USE_LEGACY_KERAS": "1"}
    run = subprocess.run([sys.executable, "-c", IMPORT], env=variables, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("float32\n", "mine")
