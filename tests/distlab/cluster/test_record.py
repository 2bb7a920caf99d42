"""The record knows the process that holds a cluster, and mistakes no other process for it."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from distlab.cluster import ClusterError
from distlab.cluster.record import ClusterRecord

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ClusterRecord:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return ClusterRecord("mine")


def test_a_living_process_is_the_holder_until_it_ends(record: ClusterRecord) -> None:
    with record.locked(), subprocess.Popen(["sleep", "100"]) as process:
        record.holder_file.write_text(Path(f"/proc/{process.pid}/stat").read_text())
        assert record.holder() == process.pid
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert record.holder() is None, "a zombie holds nothing"


def test_another_process_with_the_same_id_is_not_the_holder(record: ClusterRecord) -> None:
    fields = Path("/proc/self/stat").read_text().split()
    fields[21] = str(int(fields[21]) - 1)
    with record.locked():
        record.holder_file.write_text(" ".join(fields))
        assert record.holder() is None


@pytest.mark.parametrize("content", ["", "x", "12", "4294967295 (sh) S"])
def test_a_damaged_record_names_no_holder(content: str, record: ClusterRecord) -> None:
    with record.locked():
        record.holder_file.write_text(content)
        assert record.holder() is None


def test_the_lock_survives_that_the_folder_is_removed(record: ClusterRecord, tmp_path: Path) -> None:
    entered = threading.Event()

    def wait_for_the_lock() -> None:
        with ClusterRecord("mine").locked():
            entered.set()

    with record.locked():
        thread = threading.Thread(target=wait_for_the_lock)
        thread.start()
        assert not entered.wait(0.2)
        record.remove()
    thread.join(60)
    assert entered.is_set()
    record.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "..", "a/b", "Upper", "-x", "x" * 33])
def test_a_name_that_is_no_folder_is_refused(name: str) -> None:
    with pytest.raises(ClusterError, match="is no name for a cluster"):
        ClusterRecord(name)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(ClusterError, match="cannot be written to"), ClusterRecord("mine").locked():
        pass
