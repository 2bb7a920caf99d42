"""Limits that the Linux kernel keeps for all processes of a student together: groups of processes (cgroup v2).

A server has a group; in it each student has one, with a limit on memory; in that each sandbox has one, with a limit on
processes. Groups are folders: this module makes, fills and removes them, and `fork_server` decides when.
"""

import errno
import os
import select
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from course_tools.sandbox.confine import SandboxLimits

CONTROLLERS = ("memory", "pids")
_NOT_EVERYWHERE = "memory.swap.max"  # is missing where the kernel cannot swap
_ATTEMPTS = 20
_SECONDS_TO_EMPTY = 60.0
_GONE = (errno.ENOENT, errno.ENODEV)  # the second: it was removed while a file in it was open


class NoGroups(Exception):
    """This process may not make groups with limits; the message says why, in a few words."""


@dataclass(frozen=True)
class GroupSettings:
    """What is written into which file: of a student's group, and of the group of each sandbox in it."""

    student: Mapping[str, str]
    sandbox: Mapping[str, str]


class Group:
    """A folder of the cgroup v2 file system."""

    def __init__(self, path: Path) -> None:
        """The group at this path, which may not be there yet."""
        self.path = path

    def enable(self, controllers: Iterable[str]) -> None:
        """Let the groups in it have these limits. Raises OSError: not while processes are in the group itself."""
        missing = [name for name in controllers if name not in self._words("cgroup.subtree_control")]
        if missing:
            self.write("cgroup.subtree_control", " ".join(f"+{name}" for name in missing))

    def controllers(self) -> list[str]:
        """Which limits the groups in it could have."""
        return self._words("cgroup.controllers")

    def is_enabled(self, controllers: Iterable[str]) -> bool:
        """Whether the groups in it have these limits already."""
        return set(controllers) <= set(self._words("cgroup.subtree_control"))

    def write(self, file: str, value: str) -> None:
        """Change a setting. Raises OSError."""
        descriptor = os.open(self.path / file, os.O_WRONLY)  # never makes a file
        try:
            os.write(descriptor, value.encode())
        finally:
            os.close(descriptor)

    def change(self, settings: Mapping[str, str]) -> None:
        """Change several settings. Raises OSError."""
        for file, value in settings.items():
            if file != _NOT_EVERYWHERE or (self.path / file).exists():
                self.write(file, value)

    def processes(self) -> list[int]:
        """Those in the group itself."""
        return [int(word) for word in self._words("cgroup.procs")]

    def events(self, file: str) -> dict[str, int]:
        """How often something has happened; empty if the group has no such file."""
        counts = {}
        with suppress(OSError, ValueError):
            for line in (self.path / file).read_text().splitlines():
                name, _, count = line.partition(" ")
                counts[name] = int(count)
        return counts

    def kill(self) -> None:
        """Kill all processes in it and in the groups in it, and wait until they have ended. Raises OSError."""
        self.write("cgroup.kill", "1")
        until = time.monotonic() + _SECONDS_TO_EMPTY
        descriptor = os.open(self.path / "cgroup.events", os.O_RDONLY)
        try:
            changed = select.poll()
            changed.register(descriptor, select.POLLPRI)
            while b"populated 1" in os.pread(descriptor, 4096, 0) and time.monotonic() < until:
                changed.poll(1000)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        """End all processes in it, remove it and the groups in it; nothing if it is not there. Raises OSError."""
        try:
            self.kill()
            for folder, _, _ in os.walk(self.path, topdown=False):
                Path(folder).rmdir()
        except OSError as error:
            if error.errno not in _GONE:
                raise

    def _words(self, file: str) -> list[str]:
        return (self.path / file).read_text().split()


def settings(limits: SandboxLimits, controllers: Sequence[str] = CONTROLLERS) -> GroupSettings:
    """The kernel's limits, as far as these controllers have any.

    Files on a sandbox's disk are in memory and belong to what the kernel counts: so its limit is higher than the one
    that the keeper counts to, which comes first where it counts everything.
    """
    student = {"memory.max": str(limits.memory + limits.disk), "memory.swap.max": "0", "memory.oom.group": "1"}
    sandbox = {"pids.max": str(limits.threads)}
    return GroupSettings(*(_of(controllers, files) for files in (student, sandbox)))


def with_limits(places: Sequence[Group], controllers: Sequence[str] = CONTROLLERS) -> Group:
    """A new group for the groups of students, in the first of these places that allows it. Raises NoGroups."""
    errors = []
    # A place that gives the limits already comes first: enabling them changes something that others see.
    for place in sorted(places, key=lambda place: not place.is_enabled(controllers)):
        try:
            return _made_in(place, controllers)
        except OSError as error:
            errors.append(error)
    raise NoGroups(_why_not(places, controllers, errors))


def own_groups() -> list[Group]:
    """The group of this process and those above it, the nearest first. Raises NoGroups."""
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
        own = next(line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        raise NoGroups("this system has no cgroup v2") from None
    for line in lines:
        fields, _, kind = line.partition(" - ")
        root, mounted = fields.split()[3:5]
        # ".." is in it where the group is outside of what this process may see.
        if kind.split()[0] == "cgroup2" and Path(own).is_relative_to(root) and ".." not in own:
            top = Path(mounted)
            path = top / Path(own).relative_to(root)
            return [Group(folder) for folder in (path, *path.parents) if folder.is_relative_to(top)]
    raise NoGroups("no cgroup v2 file system is mounted")


class SandboxGroup:
    """The group of one sandbox, in that of its student."""

    def __init__(self, server: Group, student: str, number: int, settings: GroupSettings) -> None:
        """Make both; the keeper of another sandbox of the student may be making or removing the student's. OSError."""
        self._student = Group(server.path / f"student-{student}")
        self._own = Group(self._student.path / f"sandbox-{number}")
        self._settings = settings
        for attempt in range(_ATTEMPTS):
            try:
                self._make()
                return
            except OSError as error:
                if error.errno not in _GONE or attempt == _ATTEMPTS - 1:
                    raise

    def add(self, process: int) -> None:
        """Move a process into it; what that starts will be in it too. Raises OSError."""
        self._own.write("cgroup.procs", str(process))

    @property
    def has_run_out_of_memory(self) -> bool:
        """Whether the kernel has refused memory to the student's group because of its own limit."""
        return self._student.events("memory.events").get("oom", 0) > 0

    def remove(self) -> None:
        """Kill what is in it, and remove it; the student's too if this was the last sandbox in it. Raises OSError."""
        self._own.remove()
        with suppress(OSError):
            self._student.path.rmdir()

    def _make(self) -> None:
        self._student.path.mkdir(exist_ok=True)
        self._student.change(self._settings.student)
        self._student.enable(sorted({file.partition(".")[0] for file in self._settings.sandbox}))
        self._own.path.mkdir()
        self._own.change(self._settings.sandbox)


def _of(controllers: Sequence[str], files: Mapping[str, str]) -> dict[str, str]:
    return {file: value for file, value in files.items() if file.partition(".")[0] in controllers}


def _made_in(place: Group, controllers: Sequence[str]) -> Group:
    place.enable(controllers)
    group = Group(Path(tempfile.mkdtemp(prefix="distlab-", dir=place.path)))
    try:
        group.enable(controllers)
        group.write("cgroup.kill", "1")  # is there since Linux 5.14
    except OSError:
        group.path.rmdir()
        raise
    return group


def _why_not(places: Sequence[Group], controllers: Sequence[str], errors: Sequence[OSError]) -> str:
    for name in controllers:
        if all(name not in group.controllers() for group in places):
            return f"its cgroup v2 has no controller for {name}"
    if any(error.errno == errno.EBUSY for error in errors):
        return "its cgroup v2 groups have processes of their own, so that groups in them cannot have limits"
    return f"no group of cgroup v2 can be made ({errors[0].strerror})"
