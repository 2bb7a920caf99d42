"""uv installs into `.venv`, also after it has seen that folder without what makes it an environment."""

import os
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from course_tools.setup import uv_interpreters
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade

pytestmark = [pytest.mark.slow, pytest.mark.fault]
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """One with uv, of a user with an empty cache."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    made = Environment(tmp_path)
    make(made)
    return made


def make(environment: Environment) -> None:
    subprocess.run([PYTHON, "-m", "venv", "--without-pip", environment.folder], check=True)
    (environment.folder / "bin" / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    of_uv = Path(str(metadata.distribution("uv").locate_file(f"uv-{metadata.version('uv')}.dist-info")))
    (packages,) = environment.folder.glob("lib/python3.*/site-packages")
    shutil.copytree(of_uv, packages / of_uv.name)


def environment_by_uv(environment: Environment) -> str:
    """Where uv would install."""
    command = [environment.folder / "bin" / "uv", "pip", "list", "--python", environment.python]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stderr


def test_notes_of_uv_on_an_environment_that_was_being_removed_do_not_count(environment: Environment) -> None:
    uv_interpreters.check(environment, os.environ)
    shutil.rmtree(environment.folder)
    make(environment)
    shutil.rmtree(uv_interpreters.cache_of_uv() or "")
    (environment.folder / "pyvenv.cfg").unlink()
    assert str(environment.folder) not in environment_by_uv(environment)
    shutil.rmtree(environment.folder)
    make(environment)
    assert str(environment.folder) not in environment_by_uv(environment)
    uv_interpreters.check(environment, os.environ)
    assert str(environment.folder) in environment_by_uv(environment)


def test_an_environment_that_uv_does_not_know_is_named(environment: Environment) -> None:
    (environment.folder / "pyvenv.cfg").unlink()
    with pytest.raises(EnvironmentNotMade, match=r"^uv takes .*/bin/python for another Python: remove .*/cache, "):
        uv_interpreters.check(environment, os.environ)
