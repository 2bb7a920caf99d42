"""A downloaded data set appears complete or not at all, also when several processes ask or one is killed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pytest

from distlab import data
from distlab.data import download

ASK = """
import json, pathlib, sys
from distlab.data import download
file, archives, mirrors = json.loads(sys.argv[1])
download.ARCHIVES["mnist"] = tuple(download.Archive(*archive) for archive in archives)
download.MIRRORS["mnist"] = tuple(mirrors)
print("ready", flush=True)
sys.stdin.readline()
download.into(pathlib.Path(file), "mnist")
"""


@pytest.fixture
def file(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where to download to; the mirror is a good one. At the end nothing but the file and its lock may be there."""
    monkeypatch.setitem(download.MIRRORS, "mnist", (server.mirror("delivers"),))
    folder = tmp_path / "data"
    yield folder / "mnist.npz"
    assert {file.name for file in folder.iterdir()} <= {"mnist.npz", "mnist.lock"}


def assert_complete(file: Path, server: Any) -> None:
    with np.load(file, allow_pickle=False) as arrays:
        assert sorted(arrays.files) == sorted(server.arrays)
        for key, array in server.arrays.items():
            np.testing.assert_array_equal(arrays[key], array)


def test_four_archives_make_one_file_in_a_new_folder(server: Any, file: Path) -> None:
    download.into(file, "mnist")
    assert_complete(file, server)
    assert [path.rsplit("/")[-1] for path in server.requests] == [archive.file for archive in server.archives]


def test_load_downloads_once_into_the_courses_cache(
    server: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISTLAB_DATA", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file.parent.mkdir()
    for _ in range(2):
        train, test = data.load("mnist")
        np.testing.assert_array_equal(np.rint(train.images * 255), server.arrays["x_train"])
        assert test.labels.tolist() == server.arrays["y_test"].tolist()
    assert len(server.requests) == 4
    assert_complete(tmp_path / "cache" / "distlab" / "data" / "mnist.npz", server)


def test_each_archive_may_come_from_another_mirror(server: Any, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(download.MIRRORS, "mnist", tuple(map(server.mirror, ("closes_half_way", "delivers"))))
    download.into(file, "mnist")
    assert_complete(file, server)
    assert len(server.requests) == 8


@pytest.mark.parametrize("way", ["not_found", "changes_a_byte"])
def test_a_download_that_fails_leaves_no_file(
    server: Any, file: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setitem(download.MIRRORS, "mnist", (server.mirror(way),))
    with pytest.raises(download.DownloadFailed):
        download.into(file, "mnist")
    assert not file.exists()


def test_several_processes_that_ask_at_once_download_once(server: Any, file: Path) -> None:
    asked = json.dumps([str(file), server.archives, [server.mirror("delivers")]])
    command = [sys.executable, "-c", ASK, asked]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
            for _ in range(3)
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(server.requests) == 4
    assert_complete(file, server)


def test_several_threads_that_ask_at_once_download_once(server: Any, file: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: download.into(file, "mnist"), range(4)))
    assert len(server.requests) == 4


@pytest.mark.parametrize(
    ("interruption", "expected"),
    [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "No space left on device"), download.DownloadFailed)],
    ids=["Ctrl-C", "disk full"],
)
def test_an_interrupted_write_leaves_nothing_and_can_be_repeated(
    server: Any,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    interruption: BaseException,
    expected: type[BaseException],
) -> None:
    def begin_to_write(stream: BinaryIO, **arrays: np.ndarray) -> None:
        stream.write(b"PK\x03\x04")
        raise interruption

    with monkeypatch.context() as patch:
        patch.setattr(np, "savez_compressed", begin_to_write)
        with pytest.raises(expected):
            download.into(file, "mnist")
    assert list(file.parent.iterdir()) == [file.with_suffix(".lock")]
    download.into(file, "mnist")
    assert_complete(file, server)


def test_what_a_killed_download_left_is_replaced(server: Any, file: Path) -> None:
    file.parent.mkdir()
    file.with_suffix(".part").write_bytes(b"PK\x03\x04")
    download.into(file, "mnist")
    assert_complete(file, server)


def test_a_file_that_is_there_already_is_not_touched(server: Any, file: Path) -> None:
    file.parent.mkdir()
    file.write_bytes(b"the user's own")
    download.into(file, "mnist")
    assert file.read_bytes() == b"the user's own"
    assert server.requests == []


def test_a_cache_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file, not a folder")
    file = tmp_path / "cache" / "data" / "mnist.npz"
    with pytest.raises(download.DownloadFailed, match=f"^{file} could not be written .*dataset=digits"):
        download.into(file, "mnist")
