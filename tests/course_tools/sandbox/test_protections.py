"""What students' code cannot reach on this machine, and what happens where it can."""

import os
import stat
import sys
from pathlib import Path

import pytest

from course_tools.sandbox import protections
from distlab.runtime import processes
from tests import small_disks


@pytest.mark.slow
def test_the_protections_of_this_machine_are_tried_not_assumed() -> None:
    protected, weak = protections.strongest(accept_weak=True)
    assert "limits on time" in str(protected)
    assert protected.complete != ("NOT blocked" in str(protected))
    if os.geteuid() == 0 and not weak:
        assert protected.complete


def test_without_a_full_sandbox_grading_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(weak: bool = False) -> protections.Protections:
        if not weak:
            raise protections.NoSandbox("Not here.")
        return protections.Protections(False, False, True, True, False, "there are none")

    monkeypatch.setattr(protections, "find", none)
    with pytest.raises(protections.NoSandbox, match="--weak"):
        protections.strongest(accept_weak=False)
    protected, weak = protections.strongest(accept_weak=True)
    assert weak
    assert "NOT blocked here: the network, other files" in str(protected)


def test_a_sandbox_that_cannot_be_made_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(protections.NoSandbox, match="cannot be isolated on this machine"):
        protections.find()


@pytest.mark.slow
@small_disks.needs_mounts
def test_a_sandbox_that_could_not_begin_says_why(tmp_path: Path) -> None:
    """As where somebody has changed the permissions of /dev/null."""
    closed = tmp_path / "null"
    os.mknod(closed, stat.S_IFCHR | 0o600, os.makedev(1, 3))
    command = [sys.executable, "-c", "from course_tools.sandbox import protections; protections.find()"]
    done = processes.run(small_disks.with_file(Path(os.devnull), closed, command), 300)
    assert done.output.splitlines()[-1].endswith(
        "cannot be isolated on this machine: PermissionError: [Errno 13] Permission denied: '/dev/null'."
    )
