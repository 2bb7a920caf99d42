"""Making the environment of a small course for real, without a network: its packages are made here.

Its lock has uv as a package whose program is the uv of this environment.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

UV = Path(sys.executable).with_name("uv")
PROJECT = """
[project]
name = "distlab"
version = "1.0"
[build-system]
requires = []
build-backend = "build"
backend-path = ["."]
"""
BUILD = """
import shutil
def build_editable(folder, settings=None, metadata=None):
    return shutil.copy("wheels/distlab-1.0-py3-none-any.whl", folder).rpartition("/")[2]
"""
FIND = "import importlib.util as u; print(*filter(u.find_spec, ('first', 'second', 'distlab', 'pip')))"


class Course:
    """A checkout with the real set-up and a small lock."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder / "a course"
        setup = Path("src", "course_tools", "setup")
        (self.folder / setup).mkdir(parents=True)
        (self.folder / "wheels").mkdir()
        for file in (setup / "environment.py", setup / "__init__.py", setup.parent / "__init__.py"):
            shutil.copy(root / file, self.folder / file)
        self.lock = self.wheel("first") + self.wheel("uv", version("uv"), f'#!/bin/sh\nexec "{UV}" "$@"\n')
        self.wheel("distlab")
        (self.folder / "build.py").write_text(BUILD)
        (self.folder / "pyproject.toml").write_text(PROJECT)

    def wheel(self, name: str, number: str = "1.0", program: str = "") -> str:
        """Make a package of one module and a program; its entry for a lock."""
        metadata, file = f"{name}-{number}.dist-info", self.folder / "wheels" / f"{name}-{number}-py3-none-any.whl"
        files = {
            f"{name}/__init__.py": "",
            f"{name}-{number}.data/scripts/{name}": program,
            f"{metadata}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n",
            f"{metadata}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        }
        files[f"{metadata}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{metadata}/RECORD"])
        with zipfile.ZipFile(file, "w") as archive:
            for inner, content in files.items():
                information = zipfile.ZipInfo(inner)
                information.external_attr = 0o100755 << 16
                archive.writestr(information, content)
        return f"{name}=={number} \\\n    --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}\n"

    def set_up(self, lock: str = "") -> tuple[int, str, set[str]]:
        """Exit status, what was printed, and which packages the environment's Python then imports."""
        (self.folder / "requirements.lock").write_text(lock or self.lock)
        variables = {"PIP_FIND_LINKS": "wheels", "UV_FIND_LINKS": "wheels", "PIP_NO_INDEX": "1", "UV_NO_INDEX": "1"}
        variables |= {"PIP_CONFIG_FILE": os.devnull, "PIP_USER": "1", "PYTHONPATH": "src"}
        command = [sys.executable, "-P", "-m", "course_tools.setup.environment"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        done = subprocess.run(command, cwd=self.folder, env=os.environ | variables, **pipes)
        python = self.folder / ".venv" / "bin" / "python"
        found = subprocess.run([python, "-I", "-c", FIND], capture_output=True, text=True).stdout
        return done.returncode, done.stdout, set(found.split())


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Course:
    """A course that was set up."""
    if not UV.exists():
        pytest.skip("uv is not in this environment")
    course = Course(tmp_path_factory.mktemp("made"), root)
    status, output, packages = course.set_up()
    assert (status, packages) == (0, {"first", "distlab", "pip"}), output
    return course


def test_a_changed_lock_is_installed_into_the_same_environment_and_else_nothing_happens(course: Course) -> None:
    assert course.set_up()[:2] == (0, "")
    made = (course.folder / ".venv" / "pyvenv.cfg").stat().st_mtime_ns
    assert course.set_up(course.lock + course.wheel("second"))[2] == {"first", "second", "distlab", "pip"}
    assert course.set_up()[2] == {"first", "distlab", "pip"}
    assert (course.folder / ".venv" / "pyvenv.cfg").stat().st_mtime_ns == made


def test_a_file_that_is_not_the_locked_one_stops_set_up_which_is_then_run_again(course: Course) -> None:
    course.wheel("third")
    status, output, _ = course.set_up(course.lock + f"third==1.0 \\\n    --hash=sha256:{'0' * 64}\n")
    assert status == 1 and not (course.folder / ".venv" / "ready").exists()
    assert "Hash mismatch" in output and "Set-up stopped at" in output
    shutil.rmtree(next((course.folder / ".venv").glob("lib/python3*/site-packages/first")))
    assert course.set_up()[::2] == (0, {"first", "distlab", "pip"})


def test_a_course_that_was_moved_is_made_again(course: Course) -> None:
    course.set_up()
    course.folder = course.folder.rename(course.folder.with_name("moved"))
    assert course.set_up()[::2] == (0, {"first", "distlab", "pip"})
    assert str(course.folder) in (course.folder / ".venv" / "bin" / "pip").read_text()
