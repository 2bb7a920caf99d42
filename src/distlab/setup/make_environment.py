"""Make the course's Python environment, `.venv`, unless it is whole.

`make setup` runs this with the system's Python:

    PYTHONPATH=src python3 -P -m distlab.setup.make_environment

Whatever interrupts the work leaves `.venv/unfinished` behind, and the next run begins from nothing; packages come from
uv's cache then.
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

from distlab.setup.virtual_environment import (
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

BYTES_NEEDED = 3_500_000_000
PROXIES = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
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
        self._variables = dict(os.environ)
        # What the user has set for other projects must not decide where these packages go.
        for name in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "PIP_TARGET", "PIP_PREFIX", "UV_TARGET"):
            self._variables.pop(name, None)
        self._variables["PIP_USER"] = "0"  # also against pip's own file of settings
        cache = _cache_of_uv()
        if not cache or not can_write(cache):
            print("The folder for caches cannot be written to: packages are downloaded without it.", flush=True)
            self._variables |= {"UV_NO_CACHE": "1", "PIP_NO_CACHE_DIR": "1"}

    def make_environment(self) -> None:
        """An interpreter with pip in an otherwise empty `.venv`. Raises EnvironmentNotMade."""
        folder = self._environment.folder
        if folder.is_symlink():  # perhaps to the environment of another checkout; venv makes none behind a link
            raise EnvironmentNotMade(
                f"{folder} is a link to {folder.resolve()}; remove the link, then run `make setup` again."
            )
        folder.mkdir(exist_ok=True)
        self._environment.unfinished.touch()
        for entry in folder.iterdir():
            if entry != self._environment.unfinished:
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        free = shutil.disk_usage(folder).free
        if free < BYTES_NEEDED:
            raise EnvironmentNotMade(
                f".venv needs {BYTES_NEEDED / 1e9:.1f} GB, and the disk has {free / 1e9:.1f} GB left."
            )
        check_limits(folder)
        python = system_python()
        sentence = f"{python} cannot make a virtual environment; on Debian and Ubuntu install python3-venv."
        self._run([python, "-m", "venv", str(folder)], sentence)

    def install_packages(self, requirement_of_uv: str, again: bool) -> None:
        """uv, with it the packages of the lock, then the course itself. Raises EnvironmentNotMade.

        `again` replaces what is installed, so that each digest of a changed lock is checked. Bytecode is compiled here:
        otherwise, where Python may not write it, each process would compile TensorFlow again.
        """
        print("Installing the packages of requirements.lock into .venv", flush=True)
        folder, python, course = self._environment.folder, str(self._environment.python), self._environment.course
        (folder / "uv.txt").write_text(requirement_of_uv)
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
        self._run([*pip, "--requirement", str(folder / "uv.txt")])
        uv = [str(folder / "bin" / "uv"), "pip", "install", "--python", python]
        replace = ["--reinstall"] if again else []
        lock = ["--require-hashes", "--requirement", str(course / "requirements.lock")]
        self._run([*uv, "--compile-bytecode", *replace, *lock])
        self._run([*uv, "--no-deps", "--no-build-isolation", "--editable", str(course)])

    def _run(self, command: list[str], sentence: str | None = None) -> None:
        with self._environment.log.open("a", encoding="utf-8") as output:
            begin = output.tell()
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._variables,
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
            raise EnvironmentNotMade(sentence or f"The packages could not be installed: {self._cause(said, status)}")

    def _cause(self, said: str, status: int) -> str:
        log, text, said = self._environment.log, said, said.lower()
        if "no space left" in said or "quota exceeded" in said:
            place = f"the disk is full, that of .venv or that of uv's cache, {_cache_of_uv()}"
            return f"{place}; free {BYTES_NEEDED / 1e9:.1f} GB and run `make setup` again."
        if "hash mismatch" in said or "do not match the hashes" in said:
            return f"a file is not the one that requirements.lock names, see {log}."
        if self._variables.get("UV_OFFLINE") and "offline" in said:
            return f"UV_OFFLINE is set, and a package is not in uv's cache; unset it (the log is {log})."
        if "unknownissuer" in said or "certificate_verify_failed" in said or "certificate verify failed" in said:
            return (
                "the network, or a proxy in it, presents a certificate of an authority that is not known here; set "
                "SSL_CERT_FILE and PIP_CERT to the file with that authority's certificate, then run `make setup` again "
                f"(for uv, UV_SYSTEM_CERTS=1 is enough where this system knows the authority; the log is {log})."
            )
        signs = ("dns error", "error sending request", "name resolution", "connect", "proxy")
        if any(sign in said for sign in signs):
            # Not its address, in which there may be a password.
            proxy = next((name for name in PROXIES if self._variables.get(name)), None)
            what = f" through the proxy that {proxy} names: correct or unset {proxy}, or" if proxy else ";"
            return f"the package index was not reached{what} run `make setup` again with a network (the log is {log})."
        if "no matching distribution found" in said:
            return f"the package index was not reached, or does not offer a package of requirements.lock, see {log}."
        lines = [line.strip() for line in text.splitlines() if line.strip()] or [f"exit status {status}"]
        reason = next((line for line in lines if "error" in line.lower()), lines[-1])
        return f"{reason[:300]} (the log is {log}); `make setup` tries again."


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


def set_up(environment: Environment) -> None:
    """Make the environment whole by as little as is needed. Raises EnvironmentNotMade."""
    check_may_read(environment)
    check_place(environment)
    check_may_run(environment)
    uv = requirement_of_uv(environment.course)
    check_project(environment.course)
    if environment.reason_to_build() is None and not environment.needs_update():
        return
    check_may_write(environment)
    with one_at_a_time(environment), guard() as guarding:
        reason = environment.reason_to_build()  # another set-up may have ended meanwhile
        if reason is None and not environment.needs_update():
            return
        before = environment.record()
        again = reason is None and before is not None and before.lock != environment.sources()[0]
        installer = Installer(environment, guarding)
        if reason:
            print(reason, flush=True)
            installer.make_environment()
        environment.unfinished.touch()
        installer.install_packages(uv, again)
        finish(environment)


def finish(environment: Environment) -> None:
    """Write down of what the environment was made, once every file of it is there.

    Raises EnvironmentNotMade if one is not.
    """
    # Horovod's is built and checked by `distlab setup`.
    names = tuple(sorted(name for name in environment.packages() if not name.startswith("horovod-")))
    if missing := environment.missing(names):
        raise EnvironmentNotMade(
            f"{missing[0]} is missing or damaged after the installation, so uv's cache may be damaged: remove "
            f"{_cache_of_uv()}, then run `make setup` again."
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

    # Beside .venv, which may be removed.
    with (environment.course / ".venv.lock").open("a") as file:
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


def _cache_of_uv() -> Path | None:
    if cache := os.environ.get("UV_CACHE_DIR"):
        return Path(cache)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        return Path(caches) / "uv"
    try:
        return Path.home() / ".cache" / "uv"
    except RuntimeError:  # a user without a name and without HOME, as in a container
        return None


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
        set_up(Environment(Path(__file__).resolve().parents[3]))
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
