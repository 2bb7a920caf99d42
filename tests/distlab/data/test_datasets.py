"""Digits as the course expects them, where the other data sets are read from, and which files are refused."""

import gzip
import hashlib
import struct
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits

from distlab import data
from distlab.data import datasets

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 28, 28), dtype=np.uint8)
LABELS = (np.arange(40) % 10).astype(np.uint8)
ARRAYS = {"x_train": IMAGES, "y_train": LABELS, "x_test": IMAGES[:9], "y_test": LABELS[:9]}


def test_digits_are_scikit_learns_images_enlarged_linearly() -> None:
    digits, source = data.load("digits"), load_digits()
    assert (digits.train.images.dtype, digits.train.labels.dtype) == (np.float32, np.int64)
    is_test = np.zeros(1797, bool)
    for digit in range(10):  # a fifth of each class
        is_test[np.flatnonzero(source.target == digit)[::5]] = True
    assert np.array_equal(digits.train.labels, source.target[~is_test])
    assert np.array_equal(digits.test.labels, source.target[is_test])
    weights = np.array([np.interp(np.linspace(0, 7, 28), np.arange(8), row) for row in np.eye(8)])
    enlarged = np.einsum("ri,nrc,cj->nij", weights, source.images / 16, weights)
    np.testing.assert_allclose(digits.train.images, enlarged[~is_test], atol=1e-6)
    np.testing.assert_allclose(digits.test.images, enlarged[is_test], atol=1e-6)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Empty folders instead of all that are searched, in the order of the search; nothing can be downloaded."""
    monkeypatch.setenv("DISTLAB_DATA", str(tmp_path / "own"))
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(datasets, "ADDRESSES", dict.fromkeys(datasets.ADDRESSES, "http://127.0.0.1:9/"))
    (tmp_path / "own").mkdir()
    searched = [tmp_path / "keras/datasets", tmp_path / "home/.keras/datasets", tmp_path / "cache/distlab/data"]
    return [tmp_path / "own", *searched]


def write_npz(folder: Path, **changed: Any) -> Path:
    """A small data set, with other arrays where some are given; None leaves one out."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "mnist.npz"
    np.savez(file, **{name: array for name, array in (ARRAYS | changed).items() if array is not None})
    return file


def write_archives(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for key, archive in datasets.ARCHIVES.items():
        header = struct.pack(f">HBB{ARRAYS[key].ndim}I", 0, 8, ARRAYS[key].ndim, *ARRAYS[key].shape)
        (folder / archive).write_bytes(gzip.compress(header + ARRAYS[key].tobytes(), mtime=0))


def test_places_are_searched_in_order(places: list[Path]) -> None:
    files = [write_npz(folder, x_test=IMAGES[: 1 + n], y_test=LABELS[: 1 + n]) for n, folder in enumerate(places)]
    for index, file in enumerate(files):
        assert data.find("mnist") == file
        assert len(data.load("mnist").test.images) == 1 + index
        file.unlink()
    assert data.find("mnist") is None


def test_keras_s_folder_of_archives_is_read_if_it_is_complete(places: list[Path]) -> None:
    folder = places[2] / "fashion-mnist"
    write_archives(folder)
    train, test = data.load("fashion_mnist")
    np.testing.assert_array_equal(np.rint(train.images * 255), IMAGES)
    assert test.labels.tolist() == LABELS[:9].tolist()
    (folder / datasets.ARCHIVES["x_test"]).unlink()
    assert data.find("fashion_mnist") is None


def test_a_data_folder_without_the_set_is_named_and_nothing_is_downloaded(places: list[Path]) -> None:
    with pytest.raises(data.DataError, match=rf"^DISTLAB_DATA='{places[0]}' holds no mnist\.npz, .* or unset"):
        data.load("mnist")
    assert len(data.load("digits").test.images) == 364


# Downloads


@pytest.fixture
def served(places: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of archives that a server on this machine offers as mnist."""
    monkeypatch.delenv("DISTLAB_DATA")
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "served"
    write_archives(folder)
    digests = {key: hashlib.sha256((folder / file).read_bytes()).hexdigest() for key, file in datasets.ARCHIVES.items()}
    monkeypatch.setitem(datasets.SHA256, "mnist", digests)
    handler = partial(SimpleHTTPRequestHandler, directory=str(folder))
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *words: None)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        monkeypatch.setitem(datasets.ADDRESSES, "mnist", f"http://127.0.0.1:{server.server_port}/")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield folder
        server.shutdown()
        thread.join()


def test_a_set_that_is_nowhere_is_downloaded_once_into_the_courses_cache(served: Path, places: list[Path]) -> None:
    np.testing.assert_array_equal(np.rint(data.load("mnist").train.images * 255), IMAGES)
    for archive in served.iterdir():
        archive.unlink()
    assert data.find("mnist") == places[-1] / "mnist"
    assert data.load("mnist").test.labels.tolist() == LABELS[:9].tolist()


def test_a_download_of_another_content_names_the_way_round_and_leaves_no_set(served: Path) -> None:
    archive = served / datasets.ARCHIVES["y_test"]
    archive.write_bytes(b"<html>Please log in</html>")
    sentence = rf"{archive.name} could not be downloaded .*use dataset=digits, or put .* DISTLAB_DATA"
    with pytest.raises(data.DataError, match=sentence):
        data.load("mnist")
    assert data.find("mnist") is None


def test_without_a_network_the_way_round_is_named(places: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISTLAB_DATA")
    with pytest.raises(data.DataError, match=r"could not be downloaded .*refused.*; use dataset=digits, or put"):
        data.load("mnist")


UNUSABLE = "bytes that cannot be read"
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"x_train": np.array([object()])}, "an .npz file of plain arrays", UNUSABLE),
    ({"y_train": None}, "the arrays x_train, y_train", "no y_train"),
    ({"x_train": IMAGES.reshape(40, 784)}, "x_train as uint8 (n, 28, 28)", "uint8 (40, 784)"),
    ({"x_train": IMAGES / np.float32(255)}, "x_train as uint8", "float32 (40, 28, 28)"),
    ({"y_test": LABELS[:10]}, "y_test as integers (9,)", "uint8 (10,)"),
    ({"y_train": LABELS + 1}, "labels from 0 to 9 in y_train", "labels from 1 to 10"),
]


def assert_refused(file: Path, expected: str, content: str) -> None:
    """Fail unless the file is named, with what was expected and what is there, and stays as it was."""
    before = file.read_bytes()
    with pytest.raises(data.DataError) as caught:
        data.load("mnist")
    assert str(caught.value).startswith(f"{file}: expected {expected}")
    assert content in str(caught.value).split(", found ")[1]
    assert file.read_bytes() == before


@pytest.mark.parametrize(("changed", "expected", "content"), REFUSED)
def test_unsuitable_arrays_are_refused_and_objects_never_unpickled(
    changed: dict[str, Any], expected: str, content: str, places: list[Path]
) -> None:
    assert_refused(write_npz(places[0], **changed), expected, content)


def test_truncated_files_are_refused(places: list[Path]) -> None:
    file = write_npz(places[0])
    file.write_bytes(file.read_bytes()[:-1000])
    assert_refused(file, "an .npz file of plain arrays", f"{file.stat().st_size:,} {UNUSABLE}")
    file.unlink()
    write_archives(places[1] / "mnist")
    archive = places[1] / "mnist" / datasets.ARCHIVES["x_train"]
    archive.write_bytes(archive.read_bytes()[:-20])
    assert_refused(archive, "a gzip archive in the IDX format", UNUSABLE)
