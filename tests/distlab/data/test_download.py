"""A data set from mirrors that fail in every way; it appears complete or not at all.

Also when several processes ask at the same time, or one of them is killed.
"""

import gzip
import json
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
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


def wait_until(condition: Callable[[], object], seconds: float = 60) -> bool:
    """Whether the condition comes true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return bool(condition())


def test_four_archives_make_one_file_in_a_new_folder(server: Any, file: Path) -> None:
    download.into(file, "mnist")
    assert_complete(file, server)
    assert [path.rsplit("/")[-1] for path in server.requests] == [archive.file for archive in server.archives]


def test_load_downloads_once_into_the_courses_cache(
    server: Any, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISTLAB_DATA", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))  # this user may have the set there, for Keras
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


@pytest.mark.slow
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
    archives = file.with_suffix(".archives")
    archives.mkdir(parents=True)
    (archives / server.archives[0].file).write_bytes(b"half an archive")
    (archives / "tmp0x1y2z").write_bytes(b"a piece")
    file.with_suffix(".part").write_bytes(b"PK\x03\x04")
    download.into(file, "mnist")
    assert_complete(file, server)


def test_a_process_that_is_killed_while_it_downloads_blocks_nobody(server: Any, file: Path) -> None:
    asked = json.dumps([str(file), server.archives, [server.mirror("trickles")]])
    command = [sys.executable, "-c", ASK, asked]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdin.write("go\n")
        process.stdin.flush()
        assert wait_until(lambda: server.requests)
        process.kill()
    assert not file.exists()
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


# One archive, and what is in it.

# What the message says about a mirror that answers in this way (see mirrors.py).
FAULTS = {
    "not_found": "404 Not Found",
    "closes_half_way": "closed after [0-9,]+ of [0-9,]+ bytes",
    "closes_at_once": "closed connection|reset",
    "never_answers": "timed out",
    "trickles": "not complete after 1 s",
    "changes_a_byte": "SHA-256 [0-9a-f]{12}… instead of [0-9a-f]{12}…",
    "sends_a_web_page": "SHA-256 [0-9a-f]{12}… instead of [0-9a-f]{12}…",
    "redirects_nowhere": "Invalid IPv6 URL",
}


@pytest.fixture(params=FAULTS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of failing, with a limit of one second for those that would last."""
    if request.param == "never_answers":
        monkeypatch.setattr(download, "SECONDS_WITHOUT_DATA", 1)
    if request.param == "trickles":
        monkeypatch.setattr(download, "SECONDS_PER_ARCHIVE", 1)
    return request.param


@pytest.mark.parametrize("good", ["delivers", "delivers_without_length"])
def test_a_good_mirror_is_the_only_one_asked(server: Any, tmp_path: Path, good: str) -> None:
    file = download.fetch(server.archives[0], (server.mirror(good), server.mirror("not_found")), tmp_path)
    np.testing.assert_array_equal(download.parse_archive(file.read_bytes()), server.arrays["x_train"])
    assert len(server.requests) == 1


@pytest.mark.slow
def test_the_second_mirror_replaces_the_first(server: Any, tmp_path: Path, way: str) -> None:
    file = download.fetch(server.archives[0], (server.mirror(way), server.mirror("delivers")), tmp_path)
    np.testing.assert_array_equal(download.parse_archive(file.read_bytes()), server.arrays["x_train"])
    assert [path.split("/")[1] for path in server.requests] == [way, "delivers"]


def test_the_second_mirror_replaces_one_that_refuses_the_connection(
    server: Any, tmp_path: Path, silent_port: int
) -> None:
    download.fetch(server.archives[0], (f"http://127.0.0.1:{silent_port}/", server.mirror("delivers")), tmp_path)
    assert len(server.requests) == 1


@pytest.mark.slow
def test_the_message_names_the_mirror_and_its_fault(server: Any, tmp_path: Path, way: str) -> None:
    mirror = server.mirror(way)
    with pytest.raises(download.DownloadFailed, match=f"{mirror}: .*({FAULTS[way]})"):
        download.fetch(server.archives[0], (mirror,), tmp_path)


def test_when_all_mirrors_fail_each_is_named_with_the_way_round(server: Any, tmp_path: Path, silent_port: int) -> None:
    mirrors = (server.mirror("not_found"), server.mirror("closes_half_way"), f"http://127.0.0.1:{silent_port}/")
    with pytest.raises(download.DownloadFailed) as caught:
        download.fetch(server.archives[0], mirrors, tmp_path)
    message = str(caught.value)
    assert not isinstance(caught.value, download.WrongDigest)
    assert isinstance(caught.value, data.DataError)
    assert message.startswith("x_train.gz could not be downloaded")
    assert all(mirror in message for mirror in mirrors)
    assert "Connection refused" in message
    assert "dataset=digits" in message
    assert "DISTLAB_DATA" in message


@pytest.mark.parametrize("ways", [["changes_a_byte", "sends_a_web_page"], ["changes_a_byte", "not_found"]])
def test_when_all_that_answer_send_something_else_the_error_says_so(
    server: Any, tmp_path: Path, ways: list[str]
) -> None:
    with pytest.raises(download.WrongDigest) as caught:
        download.fetch(server.archives[0], tuple(map(server.mirror, ways)), tmp_path)
    assert isinstance(caught.value, download.DownloadFailed)


def test_an_endless_answer_is_given_up(server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST_ARCHIVE", 100)
    with pytest.raises(download.DownloadFailed, match="more than 100 bytes"):
        download.fetch(server.archives[0], (server.mirror("delivers_without_length"),), tmp_path)


def test_published_archives_have_two_mirrors_and_whole_digests() -> None:
    assert set(download.MIRRORS) == set(download.ARCHIVES) == {"mnist", "fashion_mnist"}
    for name, archives in download.ARCHIVES.items():
        assert len(download.MIRRORS[name]) == 2
        assert all(mirror.endswith("/") for mirror in download.MIRRORS[name])
        assert [len(bytes.fromhex(archive.sha256)) for archive in archives] == [32] * 4


def idx_file(shape: tuple[int, ...], values: bytes, kind: int = 8) -> bytes:
    """An IDX file as its definition says: two zero bytes, type, number of axes, sizes, values."""
    return gzip.compress(struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + values)


@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3), (3, 28, 28)])
def test_an_archive_gives_its_array(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    parsed = download.parse_archive(idx_file(shape, array.tobytes()))
    assert parsed.dtype == np.uint8
    np.testing.assert_array_equal(parsed, array)


BAD_ARCHIVES = {
    "empty": gzip.compress(b""),
    "three bytes": gzip.compress(b"\0\0\x08"),
    "no zero bytes": gzip.compress(b"\0\x01\x08\x01\0\0\0\x01x"),
    "floats": idx_file((1,), bytes(4), kind=13),
    "sizes cut off": gzip.compress(b"\0\0\x08\x03\0\0\0\x01\0\0"),
    "sizes missing": gzip.compress(b"\0\0\x08\x03"),
    "a value missing": idx_file((3,), b"ab"),
    "a value too many": idx_file((3,), b"abcd"),
    "sizes whose product overflows to 0": idx_file((2**31, 2**31, 4), b""),
}


@pytest.mark.parametrize("content", BAD_ARCHIVES.values(), ids=BAD_ARCHIVES)
def test_a_header_that_does_not_fit_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"IDX|buffer|size"):
        download.parse_archive(content)


def test_what_is_not_packed_by_gzip_is_refused() -> None:
    with pytest.raises(OSError, match=r"[Gg]zip"):
        download.parse_archive(b"<html></html>")
    with pytest.raises(EOFError):
        download.parse_archive(idx_file((3,), b"abc")[:-9])
