"""What is missing is said in one sentence with the command that helps; nothing is installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from distlab.cluster import layout, missing, requirements


@pytest.fixture(autouse=True)
def whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has everything."""
    for name in [name for names in requirements.PROGRAMS.values() for name in names]:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(layout, "ADMINISTRATORS_FOLDERS", ())
    monkeypatch.setattr(layout, "STATE", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(requirements, "_missing_rights", lambda: None)


def test_nothing_is_missing_on_a_whole_machine() -> None:
    assert missing() is None


def test_packages_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slurmd").unlink()
    (tmp_path / "sshd").unlink()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing() == (
        "The cluster needs Debian packages that are not installed; "
        "install them with 'sudo apt-get install slurm-wlm openssh-server'."
    )


def test_another_system_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "needs Linux" in str(missing())


def test_a_slurm_of_another_origin_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "STATE", "/no/such/folder")
    assert "run 'mkdir /no/such/folder'" in str(missing())


def test_a_user_without_a_name_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 987654)
    assert "user 987654 has none" in str(missing())


@pytest.mark.parametrize(("user", "advice"), [(0, "--privileged"), (1000, "user.max_user_namespaces")])
def test_missing_rights_are_named(user: int, advice: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    refused = subprocess.CompletedProcess([], 1, b"", b"unshare failed: Operation not permitted")
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: refused)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert advice in str(requirements._missing_rights.__wrapped__())
