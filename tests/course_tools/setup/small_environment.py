"""A whole environment of one package, of two files."""

import json
import sys
from dataclasses import asdict
from pathlib import Path

from course_tools.setup.virtual_environment import Environment, EnvironmentRecord

LOCK = """\
# of a small course
numpy==2.0.0 \\
    --hash=sha256:00 \\
    --hash=sha256:11
    # via
    #   course
uv==0.13.8 \\
    --hash=sha256:22
wheel==0.48.0 \\
    --hash=sha256:33
"""


def make(course: Path) -> Environment:
    """The environment of a checkout in that folder."""
    (course / "requirements.lock").write_text(LOCK)
    (course / "pyproject.toml").write_text("[project]\n")
    environment = Environment(course)
    libraries = environment.folder / "lib" / "python3.11" / "site-packages"
    metadata = libraries / "numpy-2.0.0.dist-info"
    metadata.mkdir(parents=True)
    (libraries / "numpy.py").touch()
    (metadata / "RECORD").write_text(
        'numpy.py,sha256=1,2\n"numpy-2.0.0.dist-info/RECORD",,\n__pycache__/numpy.cpython-311.pyc,,\n'
    )
    environment.python.parent.mkdir()
    environment.python.symlink_to(sys.executable)
    record = EnvironmentRecord(str(course), *environment.sources(), (metadata.name,))
    environment.ready.write_text(json.dumps(asdict(record)))
    return environment
