"""What is missing is said in one sentence with the command that helps; an ordinary user has a cluster, too."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import distlab
from distlab.cluster import missing, namespaces
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench

SOURCE = Path(distlab.__file__).parents[1]
PACKAGES = Path(pytest.__file__).parents[1]
STUDENT = 12345


def test_packages_are_named_with_the_command_that_installs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [
        "slurmctld",
        "srun",
        "sinfo",
        "munged",
        "ssh",
        "ssh-keygen",
        "ip",
        "tc",
        "unshare",
        "nsenter",
        "setpriv",
    ]:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(namespaces, "search_path", lambda: str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert missing() == (
        "The cluster needs Debian packages that are not installed; "
        "install them with 'sudo apt-get install slurm-wlm openssh-server'."
    )


def test_missing_rights_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = subprocess.CompletedProcess([], 1, b"", b"unshare failed: Operation not permitted")
    monkeypatch.setattr(namespaces, "program", lambda name: name)
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: refused)
    assert "--privileged" in str(missing())


@pytest.fixture
def student() -> Iterator[list[str]]:
    """The beginning of a command line that runs Python as an ordinary user of this machine, made up for the test."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user; all other tests run as an ordinary one")
    home = Path(tempfile.mkdtemp())
    user = ["setpriv", f"--reuid={STUDENT}", f"--regid={STUDENT}", "--clear-groups"]
    variables = [f"HOME={home}", f"PYTHONPATH={SOURCE}:{PACKAGES}", "PYTHONDONTWRITEBYTECODE=1"]
    for python in (sys.executable, "/usr/bin/python3"):  # one that another user may run
        command = [*user, "env", *variables, python, "-c", "import distlab.cluster, psutil"]
        if subprocess.run(command, capture_output=True, cwd="/", check=False).returncode == 0:
            break
    else:
        pytest.skip("no interpreter here may be run by another user")
    # First, where this machine has a student of its own.
    users = f"student:x:{STUDENT}:{STUDENT}::{home}:/bin/sh\n" + Path("/etc/passwd").read_text()
    (home / "passwd").write_text(users)
    home.chmod(0o755)
    mount = ["sh", "-c", 'mount --bind "$0" /etc/passwd && cd / && exec "$@"', f"{home}/passwd"]
    yield ["unshare", "--mount", *mount, *user, "env", *variables, python]
    shutil.rmtree(home)


AS_STUDENT = """
import sys
from distlab import cluster
if sentence := cluster.missing():
    sys.exit(sentence)
with cluster.up() as own:
    own.link("node1", rate="100mbit", latency="1ms")
    print(own.run(["srun", "--quiet", "--nodes=3", "sh", "-c", "id -un"]).output.split())
    print(own.run(["ssh", "node2", "id -un; hostname"]).output.split())
"""


@pytest.mark.slow
@NEEDS_CLUSTER
def test_an_ordinary_user_has_a_cluster_too(student: list[str], bench: Bench) -> None:
    finished = processes.run([*student, "-c", AS_STUDENT], 600)
    if "needs the right to create namespaces" in finished.output:
        pytest.skip(finished.output)
    assert finished.output == "['student', 'student', 'student']\n['student', 'node2']\n"
    assert bench.processes() == []
