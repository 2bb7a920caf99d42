"""Making the environment of a small course for real, interrupted, damaged and repeated.

The course has the real sources of set-up and a lock of a few packages made here; uv itself comes from the lock.
"""

import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from course_tools.setup import failed_installation, make_environment
from course_tools.setup.virtual_environment import Environment, EnvironmentNotMade, requirement_of_uv
from distlab.runtime import processes
from tests import small_disks
from tests.long_tests import long

pytestmark = [pytest.mark.slow, pytest.mark.fault]

PACKAGES, FILES = 4, 300
# By which signal a set-up is interrupted, and when, as a part of the time that one takes.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
INTERRUPTIONS = list(zip(SIGNALS, (0.2, 0.5, 0.8), strict=True))
if "DISTLAB_FAULTS" in os.environ:  # see tests/fault_report.py
    INTERRUPTIONS = [(number, moment / 20) for number in SIGNALS for moment in range(20)]
SYSTEM_PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"


def make_wheel(folder: Path, name: str) -> str:
    """A wheel of many small files; its entry for a lock."""
    files = {f"{name}/part_{number}.py": f"number = {number}\n" for number in range(FILES)}
    metadata = f"{name}-1.0.dist-info"
    files[f"{metadata}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    files[f"{metadata}/WHEEL"] = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{metadata}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{metadata}/RECORD"])
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return f"{name}==1.0 \\\n    --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


class Course:
    """A checkout with the real set-up and a small lock, and a home of its own."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder / "a course"
        self.environment = Environment(self.folder)
        for part in ("__init__.py", "runtime/__init__.py", "runtime/environment.py", "setup"):
            source, target = root / "src" / "distlab" / part, self.folder / "src" / "distlab" / part
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        wheels = folder / "wheels"
        wheels.mkdir()
        entries = [make_wheel(wheels, f"package_{number}") for number in range(PACKAGES)]
        entries += [requirement_of_uv(root), make_wheel(wheels, "z_last")]
        self.lock = self.folder / "requirements.lock"
        self.lock.write_text("".join(entries))
        (self.folder / "pyproject.toml").write_text(
            '[project]\nname = "distlab"\nversion = "1"\n[build-system]\nrequires = ["hatchling"]\n'
            'build-backend = "backend"\nbackend-path = ["."]\n'
        )
        (self.folder / "backend.py").write_text(BACKEND)
        self.home = folder / "home"
        self.home.mkdir()
        self.variables = {
            **{name: value for name, value in os.environ.items() if name != "DISTLAB_RUN"},
            "HOME": str(self.home),
            "UV_FIND_LINKS": str(wheels),
            "PYTHONPATH": "src",
        }

    def start(self, python: Path = SYSTEM_PYTHON) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(python), "-P", "-m", "course_tools.setup.make_environment"],
            cwd=self.folder,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def set_up(self) -> tuple[int, str]:
        """Exit status and what was printed, which has no traceback."""
        process = self.start()
        output, _ = process.communicate(timeout=600)
        assert "Traceback" not in output
        return process.returncode, output

    def is_whole(self) -> bool:
        environment = self.environment
        whole = environment.reason_to_build() is None and not environment.needs_update()
        program = "import distlab_here, z_last.part_1, package_0.part_299"
        return whole and subprocess.run([str(environment.python), "-c", program]).returncode == 0

    def working(self) -> list[psutil.Process]:
        """Living processes that work in this course."""
        working = []
        for process in psutil.process_iter():
            try:
                if str(self.folder) in " ".join(process.cmdline()) and process.status() != psutil.STATUS_ZOMBIE:
                    working.append(process)
            except psutil.Error:
                continue
        return working


BACKEND = """
import zipfile
from pathlib import Path

def build_editable(folder, settings=None, metadata=None):
    name = "distlab-1-py3-none-any.whl"
    files = {
        "distlab_here.py": "",
        "distlab-1.dist-info/METADATA": "Metadata-Version: 2.1\\nName: distlab\\nVersion: 1\\n",
        "distlab-1.dist-info/WHEEL": "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["distlab-1.dist-info/RECORD"] = "".join(f"{file},,\\n" for file in [*files, "distlab-1.dist-info/RECORD"])
    with zipfile.ZipFile(Path(folder) / name, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content)
    return name
"""


@pytest.fixture(scope="module")
@long
def made(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[tuple[Course, float]]:
    """A course that was set up, and the seconds that this took with uv in the cache."""
    course = Course(tmp_path_factory.mktemp("made"), root)
    status, output = course.set_up()
    if "package index was not reached" in output:
        pytest.skip("uv is not in a cache here, and the package index is not reached")
    assert status == 0, output
    shutil.rmtree(course.environment.folder)
    begin = time.monotonic()
    assert course.set_up()[0] == 0
    yield course, time.monotonic() - begin


def test_a_set_up_that_is_repeated_does_nothing(made: tuple[Course, float]) -> None:
    course, _ = made
    before = course.environment.ready.stat().st_mtime_ns
    assert course.set_up() == (0, "")
    assert course.is_whole()
    assert course.environment.ready.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("number", "moment"), INTERRUPTIONS, ids=[f"{number.name} at {moment:g}" for number, moment in INTERRUPTIONS]
)
def test_a_set_up_that_was_interrupted_is_completed_by_the_next(
    made: tuple[Course, float], number: signal.Signals, moment: float
) -> None:
    course, seconds = made
    shutil.rmtree(course.environment.folder, ignore_errors=True)
    process = course.start()
    try:
        process.communicate(timeout=moment * seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert "Traceback" not in output
    if number != signal.SIGKILL and process.returncode and course.environment.folder.exists():
        assert process.returncode == 128 + number
        assert "Set-up was interrupted; `make setup` starts it again." in output
    deadline = time.monotonic() + 60
    while (left := course.working()) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=0.1)
    assert not left, f"a part of the set-up works on: {left}"
    status, output = course.set_up()
    assert status == 0, output
    assert course.is_whole()


def test_a_set_up_ends_with_the_make_that_started_it(made: tuple[Course, float]) -> None:
    course, _ = made
    shutil.rmtree(course.environment.folder, ignore_errors=True)
    command = f"'{SYSTEM_PYTHON}' -P -m course_tools.setup.make_environment & echo; wait"
    shell = subprocess.Popen(["sh", "-c", command], cwd=course.folder, env=course.variables, stdout=subprocess.PIPE)
    assert shell.stdout
    shell.stdout.readline()
    while not course.environment.unfinished.exists():
        time.sleep(0.01)
    shell.kill()
    shell.communicate()
    deadline = time.monotonic() + 60
    while (left := course.working()) and time.monotonic() < deadline:
        psutil.wait_procs(left, timeout=0.1)
    assert not left
    assert course.set_up()[0] == 0
    assert course.is_whole()


KILLED_WHEN_A_PROGRAM_HAS_STARTED = """
import os, signal, subprocess, sys
from pathlib import Path
from course_tools.setup import failed_installation, make_environment
from course_tools.setup.virtual_environment import Environment

class Killing(subprocess.Popen):
    def __init__(self, command, **settings):
        super().__init__(command, **settings)
        if command[0] == "sleep":
            print(self.pid, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen = Killing
environment = Environment(Path(sys.argv[1]))
environment.folder.mkdir()
with make_environment.guard() as guard:
    make_environment.Installer(environment, guard)._run(["sleep", "600"])
"""


def test_what_an_installer_said_is_quoted(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    command = [
        "sh",
        "-c",
        "echo Collecting; echo 'error: Failed to parse: `uv.toml`'; echo '  Caused by: line 3'; exit 2",
    ]
    with make_environment.guard() as guard, pytest.raises(EnvironmentNotMade) as failure:
        make_environment.Installer(Environment(tmp_path), guard)._run(command)
    said = str(failure.value)
    assert said.startswith("The packages could not be installed: error: Failed to parse: `uv.toml` (the log is ")


@pytest.mark.parametrize("name", ["https_proxy", "ALL_PROXY", None])
def test_a_proxy_that_is_set_is_named_where_the_index_is_not_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str | None
) -> None:
    for proxy in failed_installation.PROXIES:
        monkeypatch.delenv(proxy, raising=False)
    if name:
        monkeypatch.setenv(name, "http://user:secret@192.0.2.1:3128")
    (tmp_path / ".venv").mkdir()
    command = ["sh", "-c", "echo 'error: error sending request for url'; exit 2"]
    with make_environment.guard() as guard, pytest.raises(EnvironmentNotMade) as failure:
        make_environment.Installer(Environment(tmp_path), guard)._run(command)
    said = str(failure.value)
    assert ("through the proxy that" in said) == (name is not None)
    assert f"correct or unset {name}, or run `make setup`" in said or name is None
    assert "secret" not in said


def test_a_program_ends_with_a_set_up_that_is_killed_while_it_starts_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED_WHEN_A_PROGRAM_HAS_STARTED, str(tmp_path)]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    started = int(finished.stdout)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(started) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not psutil.pid_exists(started) or psutil.Process(started).status() == psutil.STATUS_ZOMBIE


def test_two_at_once_wait_for_each_other(made: tuple[Course, float]) -> None:
    course, _ = made
    shutil.rmtree(course.environment.folder, ignore_errors=True)
    both = [course.start(), course.start()]
    outputs = [process.communicate(timeout=600)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], outputs
    assert sum("waiting for it" in output for output in outputs) == 1
    assert sum("Installing the packages" in output for output in outputs) == 1
    assert course.is_whole()


def test_files_that_are_lost_come_back(made: tuple[Course, float]) -> None:
    course, _ = made
    libraries = course.environment.folder / "lib"
    for half in ("package_0", "z_last"):
        shutil.rmtree(next(libraries.glob(f"python3.*/site-packages/{half}")))
    status, output = course.set_up()
    assert status == 0
    assert f"Files of .venv are missing or damaged ({2 * FILES}, such as " in output
    assert course.is_whole()


def test_a_changed_lock_is_installed_and_its_digests_are_checked(made: tuple[Course, float]) -> None:
    course, _ = made
    text = course.lock.read_text()
    try:
        course.lock.write_text(text.replace(text[text.index("sha256:") + 7 :][:64], "0" * 64, 1))
        status, output = course.set_up()
        assert status == 1
        assert "a file is not the one that requirements.lock names" in output
        assert len(output.strip().splitlines()) <= 3
        course.lock.write_text(f"{text}# changed\n")
        status, output = course.set_up()
        assert status == 0 and output.startswith("Fetching the packages of requirements.lock\nInstalling"), output
        assert not (course.environment.folder / "fetched").exists()
        assert course.is_whole()
    finally:
        course.lock.write_text(text)
    assert course.set_up()[0] == 0
    assert course.is_whole()


@pytest.fixture
def whole(made: tuple[Course, float]) -> Course:
    """The course with its environment whole, whatever the tests before have left."""
    course, _ = made
    if not course.is_whole():
        assert course.set_up()[0] == 0
    return course


def test_without_a_network_a_changed_lock_leaves_the_environment_as_it_was(
    whole: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = whole.lock.read_text()
    offline = {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple", "UV_HTTP_RETRIES": "0"}
    monkeypatch.setattr(whole, "variables", whole.variables | offline)
    try:
        whole.lock.write_text(f"a_new_package==1.0 \\\n    --hash=sha256:{'0' * 64}\n{text}")
        status, output = whole.set_up()
    finally:
        whole.lock.write_text(text)
    assert status == 1
    assert re.search(
        r"not reached for [\w-]+ on 127.0.0.1, which UV_DEFAULT_INDEX names: correct that setting, or run `make setup`",
        output,
    )
    assert whole.set_up() == (0, "")
    assert whole.is_whole()


def test_without_a_network_files_that_are_lost_cost_no_others(whole: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = next(whole.environment.folder.glob("lib/python3.*/site-packages/z_last/part_1.py"))
    content = lost.read_text()
    lost.unlink()
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(whole.home)}
    monkeypatch.setattr(whole, "variables", whole.variables | offline)
    status, output = whole.set_up()
    assert status == 1
    assert "the package index was not reached, or does not offer uv of requirements.lock" in output
    lost.write_text(content)
    assert whole.set_up() == (0, "")
    assert whole.is_whole()


def test_the_environments_own_python_can_make_it_again(made: tuple[Course, float]) -> None:
    """make finds it first on PATH."""
    course, _ = made
    course.environment.unfinished.touch()
    process = course.start(course.environment.python)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert course.is_whole()


def test_a_course_that_was_moved_is_made_again_also_at_a_long_path_with_spaces(made: tuple[Course, float]) -> None:
    course, _ = made
    name = "moved to a folder with a long name and many spaces in it " * 4
    moved = course.folder.with_name(name[: 200 - len(str(course.folder.parent)) - 2] + "x")
    assert len(str(moved)) == 200
    course.folder.rename(moved)
    try:
        process = subprocess.run(
            [str(SYSTEM_PYTHON), "-P", "-m", "course_tools.setup.make_environment"],
            cwd=moved,
            env=course.variables,
            capture_output=True,
            text=True,
        )
        assert process.returncode == 0, process.stdout
        assert f"The course was in {course.folder} when .venv was made" in process.stdout
        assert Environment(moved).reason_to_build() is None
    finally:
        moved.rename(course.folder)
    assert course.set_up()[0] == 0


def test_a_cache_that_is_a_file_is_done_without(made: tuple[Course, float]) -> None:
    course, _ = made
    shutil.rmtree(course.environment.folder, ignore_errors=True)
    cache = course.home / "no folder"
    cache.write_text("")
    before = course.variables
    course.variables = {**before, "UV_CACHE_DIR": str(cache / "uv")}
    try:
        status, output = course.set_up()
    finally:
        course.variables = before
    assert status == 0, output
    assert "The folder for caches cannot be written to" in output
    assert course.is_whole()


def test_what_pip_is_told_for_other_projects_does_not_matter(made: tuple[Course, float]) -> None:
    course, _ = made
    shutil.rmtree(course.environment.folder, ignore_errors=True)
    settings = course.home / ".config" / "pip"
    settings.mkdir(parents=True)
    (settings / "pip.conf").write_text("[install]\nuser = true\n")
    try:
        status, output = course.set_up()
    finally:
        shutil.rmtree(settings)
    assert status == 0, output
    assert course.is_whole()


def test_the_environment_belongs_to_the_python_that_runs_set_up(made: tuple[Course, float]) -> None:
    course, _ = made
    config = (course.environment.folder / "pyvenv.cfg").read_text()
    assert sysconfig.get_python_version() in config


def test_a_python_that_cannot_make_environments_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_venv = tmp_path / "python"
    without_venv.write_text('#!/bin/sh\n[ "$2" != venv ]\n')
    without_venv.chmod(0o755)
    with make_environment.guard() as guard:
        monkeypatch.setattr(make_environment, "system_python", lambda: str(without_venv))
        with pytest.raises(
            EnvironmentNotMade, match="cannot make a virtual environment; on Debian and Ubuntu install python3-venv"
        ):
            make_environment.Installer(Environment(tmp_path), guard).make_environment()


def test_a_disk_that_is_too_small_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make_environment, "BYTES_NEEDED", 10**18)
    with (
        make_environment.guard() as guard,
        pytest.raises(EnvironmentNotMade, match=r"^\.venv needs 1000000000\.0 GB, and"),
    ):
        make_environment.Installer(Environment(tmp_path), guard).make_environment()


def test_what_is_behind_a_link_is_not_touched(tmp_path: Path) -> None:
    """It may be the environment of another checkout, which would be emptied."""
    others = tmp_path / "other" / ".venv"
    (others / "bin").mkdir(parents=True)
    (others / "ready").write_text("whole")
    (tmp_path / ".venv").symlink_to(others)
    sentence = rf"\.venv is a link to {others}; remove the link, then run `make setup` again, or clone the whole course"
    with make_environment.guard() as guard, pytest.raises(EnvironmentNotMade, match=sentence):
        make_environment.Installer(Environment(tmp_path), guard).make_environment()
    assert sorted(path.name for path in others.iterdir()) == ["bin", "ready"]


LIMITED = """
import sys
from pathlib import Path
from course_tools.setup.make_environment import check_limits
check_limits(Path(sys.argv[1]))
"""


@small_disks.needs_mounts
def test_a_disk_without_room_for_the_files_is_named(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path)]
    finished = processes.run(small_disks.with_disk(tmp_path, "size=8g,nr_inodes=500", command), 300)
    assert finished.output.splitlines()[-1].endswith(
        "EnvironmentNotMade: .venv needs 20,000 files at least, and the disk has room for 499 more (inodes)."
    )
    assert processes.run(small_disks.with_disk(tmp_path, "size=8g,nr_inodes=100000", command), 300).status == 0


def test_a_shell_that_forbids_large_files_is_named(tmp_path: Path) -> None:
    command = shlex.join([sys.executable, "-c", LIMITED, str(tmp_path)])
    finished = processes.run(["bash", "-c", f"ulimit -f 1000; {command}"], 300)
    assert "EnvironmentNotMade: This shell allows files of 0.001 GB only" in finished.output
    assert "run `ulimit -f unlimited`, then `make setup` again." in finished.output
