"""Make the course's Python environment, `.venv`, unless it is whole.

`make setup` runs this with the system's Python:

    PYTHONPATH=src python3 -P -m course_tools.setup.make_environment

Whatever interrupts the work leaves `.venv/unfinished` behind, and the next run begins from nothing; packages come from
uv's cache then. Nothing of a finished environment is removed before what replaces it is there.
"""

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import NoReturn

from course_tools.setup import running_programs, uv_interpreters
from course_tools.setup.failed_installation import cache_of_uv, cause
from course_tools.setup.old_environment import give_back_permissions, put_aside, settle
from course_tools.setup.virtual_environment import (
    BYTES_NEEDED,
    Environment,
    EnvironmentNotMade,
    EnvironmentRecord,
    can_write,
    check_may_read,
    check_may_run,
    check_may_write,
    check_place,
    check_project,
    requirement_of_uv,
)

# Folders and bytecode, which are no links to files of a cache; and TensorFlow's library.
FILES_NEEDED, LARGEST_FILE = 20_000, 1_150_000_000
SECONDS_BETWEEN_TRIES = 0.2
# Whatever ends this program closes the pipe, and the guard then kills its own process group. A program that is started
# in that group holds the pipe open until it belongs to it, so that none is missed.
GUARD = "import os, signal, sys; sys.stdin.read(); os.killpg(0, signal.SIGKILL)"


class Installer:
    """Runs the programs that fill the environment; none of them outlives this process."""

    def __init__(self, environment: Environment, guard: subprocess.Popen[str]) -> None:
        """For this environment; caches that cannot be written to are not used."""
        self._environment, self._guard = environment, guard
        self.variables = dict(os.environ)
        # What the user has set for other projects must not decide where these packages go.
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "UV_TARGET"):
            self.variables.pop(name, None)
        self.variables["PIP_USER"] = "0"  # also against pip's own file of settings
        cache = cache_of_uv()
        if not cache or not can_write(cache):
            print("The folder for caches cannot be written to: packages are downloaded without it.", flush=True)
            self.variables |= {"UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}

    def make_environment(self) -> None:
        """An interpreter with pip in an otherwise empty `.venv`. Raises EnvironmentNotMade."""
        folder = self._environment.folder
        if folder.is_symlink():  # perhaps to the environment of another checkout; venv makes none behind a link
            raise EnvironmentNotMade(
                f"{folder} is a link to {folder.resolve()}; remove the link, then run `make setup` again, or clone the "
                "whole course on the other disk."
            )
        put_aside(self._environment)
        free = shutil.disk_usage(folder).free
        if free < BYTES_NEEDED:
            first = "; remove the old .venv first if you do not need it" if self._environment.before.exists() else ""
            raise EnvironmentNotMade(
                f".venv needs {BYTES_NEEDED / 1e9:.1f} GB, and the disk has {free / 1e9:.1f} GB left{first}."
            )
        check_limits(folder)
        python = system_python()
        sentence = f"{python} cannot make a virtual environment; on Debian and Ubuntu install python3-venv."
        self._run([python, "-m", "venv", str(folder)], sentence)

    def install_uv(self, requirement: str) -> None:
        """uv, by pip. Raises EnvironmentNotMade."""
        file = self._environment.folder / "uv.txt"
        file.write_text(requirement)
        pip = [str(self._environment.python), "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
        self._run([*pip, "--requirement", str(file)])

    def fetch_packages(self) -> None:
        """The packages of the lock into uv's cache; the environment stays as it is. Raises EnvironmentNotMade."""
        print("Fetching the packages of requirements.lock", flush=True)
        links = self._environment.folder / "fetched"
        target = ["--target", str(links), "--link-mode", "symlink"]
        try:
            self._install_lock("--no-deps", *(["--dry-run"] if "UV_NO_CACHE" in self.variables else target))
        finally:
            shutil.rmtree(links, ignore_errors=True)

    def install_packages(self, again: bool) -> None:
        """The packages of the lock, then the course itself. Raises EnvironmentNotMade.

        `again` replaces what is installed, so that each digest of a changed lock is checked. Bytecode is compiled here:
        otherwise, where Python may not write it, each process would compile TensorFlow again.
        """
        print("Installing the packages of requirements.lock into .venv", flush=True)
        self._install_lock("--compile-bytecode", *(["--reinstall"] if again else []))
        course = str(self._environment.course)
        self._run([*self._uv_install(), "--no-deps", "--no-build-isolation", "--editable", course])

    def _install_lock(self, *options: str) -> None:
        lock = str(self._environment.course / "requirements.lock")
        self._run([*self._uv_install(), *options, "--require-hashes", "--requirement", lock])

    def _uv_install(self) -> list[str]:
        uv = self._environment.folder / "bin" / "uv"
        return [str(uv), "pip", "install", "--python", str(self._environment.python)]

    def _run(self, command: list[str], sentence: str | None = None) -> None:
        with self._environment.log.open("a", encoding="utf-8") as output:
            begin = output.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.variables,
                cwd=self._environment.course,
                process_group=self._guard.pid,
            )
            try:
                status = process.wait()
            except BaseException:
                os.killpg(self._guard.pid, signal.SIGKILL)
                process.wait()
                raise
        if status:
            said = self._environment.log.read_bytes()[begin:].decode(errors="replace")
            reason = cause(said, status, self._environment.log, self.variables)
            raise EnvironmentNotMade(sentence or f"The packages could not be installed: {reason}")


def check_limits(folder: Path) -> None:
    """Raise EnvironmentNotMade for a disk without room for the files, or for a limit of the shell."""
    import resource

    disk = os.statvfs(folder)
    if disk.f_files and disk.f_favail < FILES_NEEDED:  # some file systems count no inodes
        raise EnvironmentNotMade(
            f".venv needs {FILES_NEEDED:,} files at least, and the disk has room for {disk.f_favail:,} more (inodes)."
        )
    largest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if largest != resource.RLIM_INFINITY and largest < LARGEST_FILE:
        raise EnvironmentNotMade(
            f"This shell allows files of {largest / 1e9:.3f} GB only, and .venv needs one of {LARGEST_FILE / 1e9:.1f} "
            "GB; run `ulimit -f unlimited`, then `make setup` again."
        )


def set_up(environment: Environment, force: bool = False) -> None:
    """Make the environment whole by as little as is needed, with `force` also while others' programs run from it.

    Raises EnvironmentNotMade.
    """
    check_may_read(environment)
    check_place(environment)
    check_may_run(environment)
    uv = requirement_of_uv(environment.course)
    check_project(environment.course)
    if environment.reason_to_build() is None and not environment.needs_update():
        return
    check_may_write(environment)
    with one_at_a_time(environment), guard() as guarding:
        settle(environment)  # after a set-up that was killed
        give_back_permissions(environment)
        reason = environment.reason_to_build()  # another set-up may have ended meanwhile
        if reason is None and not environment.needs_update():
            return
        if environment.folder.is_dir() and not environment.unfinished.exists():
            changed = "requirements.lock or pyproject.toml is another than .venv was made of."
            running_programs.require_none(environment, reason or changed, others_too=not force)
        before = environment.record()
        again = reason is None and before is not None and before.lock != environment.sources()[0]
        installer = Installer(environment, guarding)
        try:
            if reason:
                print(reason, flush=True)
                installer.make_environment()
                installer.install_uv(uv)
            uv_interpreters.check(environment, installer.variables)
            if again:
                installer.fetch_packages()
            environment.unfinished.touch()
            installer.install_packages(again)
            finish(environment)
        finally:
            settle(environment)


def finish(environment: Environment) -> None:
    """Write down of what the environment was made, once every file of it is there.

    Raises EnvironmentNotMade if one is not.
    """
    # Horovod's is built and checked by `distlab setup`.
    names = tuple(sorted(name for name in environment.packages() if not name.startswith("horovod-")))
    if missing := environment.missing(names):
        raise EnvironmentNotMade(
            f"{missing[0]} is missing or damaged after the installation, so uv's cache may be damaged: remove "
            f"{cache_of_uv()}, then run `make setup` again."
        )
    new = environment.ready.with_name("ready.new")
    new.write_text(
        json.dumps(asdict(EnvironmentRecord(str(environment.course), *environment.sources(), names)), indent=1) + "\n"
    )
    new.replace(environment.ready)
    environment.unfinished.unlink(missing_ok=True)


@contextlib.contextmanager
def one_at_a_time(environment: Environment) -> Iterator[None]:
    """Wait until no other set-up works on this checkout. The system lets go of the lock however a process ends."""
    import fcntl

    with environment.lock.open("a") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    print("Another `make` is setting up this course: waiting for it.", flush=True)
                told = True
                time.sleep(SECONDS_BETWEEN_TRIES)
        yield


@contextlib.contextmanager
def guard() -> Iterator[subprocess.Popen[str]]:
    """A process with a group of its own that outlives this one, and then kills the group."""
    command = [system_python(), "-I", "-S", "-c", GUARD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True, process_group=0) as process:
        yield process


def system_python() -> str:
    """The interpreter outside of any virtual environment: the one inside `.venv` goes when that is made again."""
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(python) if python.exists() else sys.executable


def _end_with_parent() -> None:
    """Have the system end this process when make ends, even by SIGKILL (Linux)."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)


def _interrupted(number: int, frame: object) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt(number)


def main() -> int:
    """Set up the checkout that this file is part of; the exit status."""
    _end_with_parent()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, _interrupted)
    try:
        set_up(Environment(Path(__file__).resolve().parents[3]), force="--force" in sys.argv)
    except EnvironmentNotMade as failure:
        print(failure, flush=True)
        return 1
    except KeyboardInterrupt as interrupt:
        print("Set-up was interrupted; `make setup` starts it again.", flush=True)
        return 128 + int(interrupt.args[0])
    except OSError as error:
        print(f"Set-up failed at {error.filename or '.venv'}: {error.strerror}; run `make setup` again.", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
