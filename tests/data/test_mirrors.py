"""One archive from mirrors that fail in every way, and what is in it."""

import gzip
import struct
from typing import Any

import numpy as np
import pytest

from distlab import data
from distlab.data import download

# What the message says of a mirror that answers in this way (see conftest.py).
FAULTS = {
    "not_found": "404 Not Found",
    "closes_half_way": "closed after [0-9,]+ of [0-9,]+ bytes",
    "closes_at_once": "closed connection|reset",
    "never_answers": "timed out",
    "trickles": "not complete after 1 s",
    "changes_a_byte": "SHA-256 [0-9a-f]{12}… in place of [0-9a-f]{12}…",
    "sends_a_web_page": "SHA-256 [0-9a-f]{12}… in place of [0-9a-f]{12}…",
    "redirects_nowhere": "Invalid IPv6 URL",
}


@pytest.fixture(params=FAULTS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each way of failing, with one second's patience for those that would last."""
    if request.param == "never_answers":
        monkeypatch.setattr(download, "SECONDS_WITHOUT_DATA", 1)
    if request.param == "trickles":
        monkeypatch.setattr(download, "SECONDS_PER_ARCHIVE", 1)
    return request.param


@pytest.mark.parametrize("good", ["delivers", "delivers_without_length"])
def test_a_good_mirror_is_the_only_one_asked(server: Any, good: str) -> None:
    content = download.fetch(server.archives[0], (server.mirror(good), server.mirror("not_found")))
    np.testing.assert_array_equal(download.parse_archive(content), server.arrays["x_train"])
    assert len(server.requests) == 1


def test_the_second_mirror_steps_in(server: Any, way: str) -> None:
    content = download.fetch(server.archives[0], (server.mirror(way), server.mirror("delivers")))
    np.testing.assert_array_equal(download.parse_archive(content), server.arrays["x_train"])
    assert [path.split("/")[1] for path in server.requests] == [way, "delivers"]


def test_the_second_mirror_steps_in_for_one_that_refuses_the_connection(server: Any, silent_port: int) -> None:
    download.fetch(server.archives[0], (f"http://127.0.0.1:{silent_port}/", server.mirror("delivers")))
    assert len(server.requests) == 1


def test_the_message_names_the_mirror_and_its_fault(server: Any, way: str) -> None:
    mirror = server.mirror(way)
    with pytest.raises(download.DownloadFailed, match=f"{mirror}: .*({FAULTS[way]})"):
        download.fetch(server.archives[0], (mirror,))


def test_when_all_mirrors_fail_each_is_named_with_the_way_round(server: Any, silent_port: int) -> None:
    mirrors = (server.mirror("not_found"), server.mirror("closes_half_way"), f"http://127.0.0.1:{silent_port}/")
    with pytest.raises(download.DownloadFailed) as caught:
        download.fetch(server.archives[0], mirrors)
    message = str(caught.value)
    assert not isinstance(caught.value, download.WrongDigest)
    assert isinstance(caught.value, data.DataError)
    assert message.startswith("x_train.gz could not be downloaded")
    assert all(mirror in message for mirror in mirrors)
    assert "Connection refused" in message
    assert "dataset=digits" in message
    assert "DISTLAB_DATA" in message


@pytest.mark.parametrize("ways", [["changes_a_byte", "sends_a_web_page"], ["changes_a_byte", "not_found"]])
def test_when_all_that_answer_send_something_else_it_is_an_error_of_its_own(server: Any, ways: list[str]) -> None:
    with pytest.raises(download.WrongDigest) as caught:
        download.fetch(server.archives[0], tuple(map(server.mirror, ways)))
    assert isinstance(caught.value, download.DownloadFailed)


def test_an_endless_answer_is_given_up(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST_ARCHIVE", 100)
    with pytest.raises(download.DownloadFailed, match="more than 100 bytes"):
        download.fetch(server.archives[0], (server.mirror("delivers_without_length"),))


def test_published_archives_have_two_mirrors_and_whole_digests() -> None:
    assert set(download.MIRRORS) == set(download.ARCHIVES) == {"mnist", "fashion_mnist"}
    for name, archives in download.ARCHIVES.items():
        assert len(download.MIRRORS[name]) == 2
        assert all(mirror.endswith("/") for mirror in download.MIRRORS[name])
        assert [len(bytes.fromhex(archive.sha256)) for archive in archives] == [32] * 4


def idx(shape: tuple[int, ...], values: bytes, kind: int = 8) -> bytes:
    """An IDX file as its definition says: two zero bytes, type, number of axes, sizes, values."""
    return gzip.compress(struct.pack(f">HBB{len(shape)}I", 0, kind, len(shape), *shape) + values)


@pytest.mark.parametrize("shape", [(0,), (7,), (2, 3), (3, 28, 28)])
def test_an_archive_gives_its_array(shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape), dtype=np.uint8).reshape(shape)
    parsed = download.parse_archive(idx(shape, array.tobytes()))
    assert parsed.dtype == np.uint8
    np.testing.assert_array_equal(parsed, array)


BAD_ARCHIVES = {
    "empty": gzip.compress(b""),
    "three bytes": gzip.compress(b"\0\0\x08"),
    "no zero bytes": gzip.compress(b"\0\x01\x08\x01\0\0\0\x01x"),
    "floats": idx((1,), bytes(4), kind=13),
    "sizes cut off": gzip.compress(b"\0\0\x08\x03\0\0\0\x01\0\0"),
    "sizes missing": gzip.compress(b"\0\0\x08\x03"),
    "a value missing": idx((3,), b"ab"),
    "a value too many": idx((3,), b"abcd"),
    "sizes whose product overflows to 0": idx((2**31, 2**31, 4), b""),
}


@pytest.mark.parametrize("content", BAD_ARCHIVES.values(), ids=BAD_ARCHIVES)
def test_a_header_that_does_not_fit_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"IDX|buffer|size"):
        download.parse_archive(content)


def test_what_is_not_packed_by_gzip_is_refused() -> None:
    with pytest.raises(OSError, match=r"[Gg]zip"):
        download.parse_archive(b"<html></html>")
    with pytest.raises(EOFError):
        download.parse_archive(idx((3,), b"abc")[:-9])
