"""Groups of cgroup v2, on the file system of this machine; each test says what it needs of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_tools.sandbox import PLAIN, SandboxedWork, SandboxLimits, Server, control_groups, protections
from course_tools.sandbox.control_groups import Group, GroupSettings, NoGroups, SandboxGroup
from distlab.labs import AnswerError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="groups of cgroup v2 are Linux's")
SECONDS = 300.0


def new_group(*controllers: str) -> Group:
    """One for students' groups, or the test is skipped."""
    try:
        return control_groups.with_limits(control_groups.own_groups(), controllers)
    except NoGroups as reason:
        pytest.skip(f"not on this machine: {reason}")


@pytest.fixture
def server_group() -> Iterator[Group]:
    """Without limits, which needs no controller."""
    group = new_group()
    yield group
    group.remove()


@pytest.fixture
def with_huge_pages() -> Iterator[Group]:
    """With limits on huge pages, a controller that is free also where the others belong to cgroup v1."""
    before = {group.path: group.is_enabled(["hugetlb"]) for group in control_groups.own_groups()}
    group = new_group("hugetlb")
    yield group
    group.remove()
    if not before[group.path.parent]:
        Group(group.path.parent).write("cgroup.subtree_control", "-hugetlb")


@pytest.fixture
def sleeping() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "1000"])
    yield process
    process.kill()
    process.wait()


def sandbox_in(group: Group, number: int = 0, **settings: dict[str, str]) -> SandboxGroup:
    return SandboxGroup(
        group, "somebody", number, GroupSettings(settings.get("student", {}), settings.get("sandbox", {}))
    )


def test_what_a_process_in_a_group_starts_ends_with_the_group(server_group: Group) -> None:
    sandbox = sandbox_in(server_group)
    reading, writing = os.pipe()
    parent = subprocess.Popen(["sh", "-c", "read go; setsid sleep 1000 & setsid sleep 1000"], stdin=reading)
    sandbox.add(parent.pid)
    os.write(writing, b"go\n")
    members = Group(server_group.path / "student-somebody" / "sandbox-0")
    until = time.monotonic() + SECONDS
    while len(members.processes()) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    assert len(members.processes()) == 3
    sandbox.remove()
    assert parent.wait(SECONDS) == -signal.SIGKILL
    assert list(server_group.path.glob("student-*")) == []
    os.close(reading)
    os.close(writing)


def test_the_group_of_a_student_is_there_until_the_last_sandbox(server_group: Group) -> None:
    first, second = sandbox_in(server_group, 0), sandbox_in(server_group, 1)
    first.remove()
    assert [path.name for path in (server_group.path / "student-somebody").glob("*-*")] == ["sandbox-1"]
    second.remove()
    assert list(server_group.path.glob("student-*")) == []
    second.remove()  # is not there any more: nothing to do


def test_a_student_s_group_that_is_removed_meanwhile_is_made_again(
    server_group: Group, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, removed = Group.change, []

    def interrupted(group: Group, settings: dict[str, str]) -> None:
        if not removed and group.path.name == "student-somebody":
            removed.append(group)
            group.path.rmdir()
        change(group, settings)

    monkeypatch.setattr(Group, "change", interrupted)
    sandbox = sandbox_in(server_group, student={"cgroup.max.depth": "3"})
    assert removed
    assert (server_group.path / "student-somebody" / "sandbox-0").is_dir()
    sandbox.remove()


def test_groups_in_one_with_processes_get_no_limits(with_huge_pages: Group, sleeping: subprocess.Popen[bytes]) -> None:
    full = Group(with_huge_pages.path / "full")
    full.path.mkdir()
    full.write("cgroup.procs", str(sleeping.pid))
    with pytest.raises(NoGroups, match="have processes of their own"):
        control_groups.with_limits([full], ["hugetlb"])
    assert [path for path in full.path.iterdir() if path.is_dir()] == []


def test_a_limit_is_written_for_the_student_and_for_the_sandbox(with_huge_pages: Group) -> None:
    size = next(file.name for file in with_huge_pages.path.glob("hugetlb.*.max") if "rsvd" not in file.name)
    limit = {size: str(2**30)}
    sandbox = sandbox_in(with_huge_pages, student=limit, sandbox=limit)
    for place in ("student-somebody", "student-somebody/sandbox-0"):
        assert (with_huge_pages.path / place / size).read_text().strip() == str(2**30)
    sandbox.remove()


def test_why_there_are_no_groups_is_said(tmp_path: Path) -> None:
    (tmp_path / "cgroup.subtree_control").write_text("")
    (tmp_path / "cgroup.controllers").write_text("cpu pids\n")
    with pytest.raises(NoGroups, match="no controller for memory"):
        control_groups.with_limits([Group(tmp_path)])


def test_a_server_without_a_group_says_why_and_the_report_too() -> None:
    with Server(controllers=["nonsense"]) as server:
        assert server.group is None
        assert server.why_counted
    counted = protections.Protections(True, True, True, True, False, server.why_counted)
    assert f"not limited by the kernel, because {server.why_counted}" in str(counted)
    assert "Not in the count: the buffers of sockets and" in str(counted)


@pytest.mark.slow
def test_a_sandbox_is_in_its_group_and_both_end_together() -> None:
    new_group().remove()
    text = "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '1000'])\nplace = open('/proc/self/cgroup').read()"
    with Server(controllers=()) as server, SandboxedWork(server, PLAIN) as work:
        assert work.run_cell(text, "one", SECONDS).error is None
        place = str(work.answer(SECONDS).value("place"))
        assert f"/{server.group.path.name}/student-" in place
        inside = [Group(path) for path in server.group.path.glob("student-*/sandbox-*")]
        assert [len(group.processes()) for group in inside] == [2]
    assert not server.group.path.exists()


GRADER = """
import time
from course_tools.sandbox import PLAIN, SandboxedWork, Server
with Server(controllers=()) as server, SandboxedWork(server, PLAIN) as work:
    work.run_cell("import subprocess; subprocess.Popen(['setsid', 'sleep', '1000'])", "one", 300)
    print(server.group.path, flush=True)
    work.run_cell("while True: pass", "two", 600)
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_when_the_grader_is_ended_no_group_is_left(number: int) -> None:
    new_group().remove()
    grader = subprocess.Popen(
        [sys.executable, "-c", GRADER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        group = Path(grader.stdout.readline().strip())
        assert any(Group(path).processes() for path in group.glob("student-*/sandbox-*"))
        grader.send_signal(number)
        grader.wait(timeout=SECONDS)
        until = time.monotonic() + SECONDS
        while group.exists() and time.monotonic() < until:
            time.sleep(0.05)
        assert not group.exists()
    finally:
        grader.kill()
        grader.stdout.close()


# What the keeper does not see, or not in time, the kernel must.
TAKES_TOO_MUCH = {
    "memory faster than anybody looks": "import mmap\nmany = mmap.mmap(-1, 2**31)\nmany.write(bytes(2**31 - 1))",
    "in a process of its own": "import os\nif os.fork() == 0: many = b'x' * 2**31\nos.wait()",
}


@pytest.mark.slow
@pytest.mark.parametrize("text", TAKES_TOO_MUCH.values(), ids=TAKES_TOO_MUCH)
def test_memory_that_the_kernel_refuses_is_the_student_s_matter(text: str) -> None:
    new_group(*control_groups.CONTROLLERS).remove()
    limits = SandboxLimits(memory=2**28, disk=2**24, address_space=None)
    with Server() as server, SandboxedWork(server, limits) as work:
        with pytest.raises(AnswerError, match="more than 256 MiB of memory"):
            work.run_cell(text, "one", SECONDS)
        assert work.troubles == []
        assert work.run_cell("x = 1", "two", SECONDS).error is None


@pytest.mark.slow
def test_the_kernel_s_limits_are_there_and_the_report_says_so() -> None:
    new_group(*control_groups.CONTROLLERS).remove()
    with Server() as server, SandboxedWork(server, PLAIN) as work:
        assert work.run_cell("x = 1", "one", SECONDS).error is None
        [student] = server.group.path.glob("student-*")
        limit = {name: (student / name).read_text().strip() for name in ("memory.max", "memory.oom.group")}
        assert limit == {"memory.max": str(PLAIN.memory + PLAIN.disk), "memory.oom.group": "1"}
        [sandbox] = student.glob("sandbox-*")
        assert (sandbox / "pids.max").read_text().strip() == str(PLAIN.threads)
    assert "The Linux kernel keeps the limits" in str(protections.find())
