"""Every damaged or unsuitable file is refused by name, with what was expected and found, and stays as it was."""

import io
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from distlab import data
from distlab.data import download

Arrays = dict[str, Any]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `load("mnist")` looks first; a download would be an error."""
    monkeypatch.setenv("DISTLAB_DATA", str(tmp_path))
    monkeypatch.setattr(download, "into", lambda file, name: pytest.fail(f"a download of {name} was asked for"))
    return tmp_path / "mnist.npz"


def arrays(count: int = 40) -> Arrays:
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (count, 28, 28), dtype=np.uint8)
    y = (np.arange(count) % 10).astype(np.uint8)
    return {"x_train": x, "y_train": y, "x_test": x[:9], "y_test": y[:9]}


def npz(save: Callable[..., None] = np.savez, **changed: Any) -> bytes:
    """The bytes of an .npz file that is right but for the changed arrays; None leaves an array out."""
    content = io.BytesIO()
    save(content, **{name: array for name, array in (arrays() | changed).items() if array is not None})
    return content.getvalue()


def refusal(file: Path, content: bytes, kind: type[data.DataError]) -> str:
    """The message for a file with this content, after checks of its type and wording and that the file is kept."""
    file.write_bytes(content)
    with pytest.raises(kind) as caught:
        data.load("mnist")
    message = str(caught.value)
    assert isinstance(caught.value, data.DataError)
    assert message.startswith(f"{file}: expected ")
    assert ", found " in message
    assert "\n" not in message
    assert "pickle.load" not in message, "the reader must not be told to unpickle it"
    assert file.read_bytes() == content
    return message


def test_the_undamaged_file_is_accepted(file: Path) -> None:
    for save in (np.savez, np.savez_compressed):
        file.write_bytes(npz(save))
        assert len(data.load("mnist").train.images) == 40


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 0.9999])
def test_a_truncated_file_is_damaged(file: Path, save: Callable[..., None], share: float) -> None:
    content = npz(save)
    length = int(len(content) * share)
    assert f"found {length:,} bytes that cannot be read" in refusal(file, content[:length], data.DamagedFile)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_bit_in_an_array_is_damage(file: Path, save: Callable[..., None]) -> None:
    content = npz(save)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        member = archive.getinfo("x_train.npy")
    middle = member.header_offset + member.compress_size // 2
    refusal(file, content[:middle] + bytes([content[middle] ^ 4]) + content[middle + 1 :], data.DamagedFile)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_byte_anywhere_never_escapes_as_another_error(file: Path, save: Callable[..., None]) -> None:
    """Half of them fall into headers; some of these mean nothing (a date), so that the file may stay readable."""
    content = npz(save)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        headers = [info.header_offset for info in archive.infolist()] + [archive.start_dir]
    random = np.random.default_rng(1)
    places = [*random.integers(0, len(content), 100), *(start + step for start in headers for step in range(0, 170, 3))]
    right = data.WrongContent, data.DamagedFile
    expected = arrays()["x_train"] / np.float32(255)
    refused = 0
    for place in (place for place in places if place < len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            assert np.array_equal(data.load("mnist").train.images, expected)
        except right:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize(
    "content",
    [b"<html>Please log in to the campus network</html>", b"\x93NUMPY\x01\x00", b"PK", b"PK\x03\x04" + 500 * b"\0"],
    ids=["web page", "npy", "two letters", "zeros"],
)
def test_what_is_no_npz_file_is_damaged(file: Path, content: bytes) -> None:
    assert "an .npz file of plain arrays" in refusal(file, content, data.DamagedFile)


def test_an_empty_zip_file_lacks_every_array(file: Path) -> None:
    content = io.BytesIO()
    zipfile.ZipFile(content, "w").close()
    assert "found no x_train, y_train, x_test, y_test" in refusal(file, content.getvalue(), data.WrongContent)


def test_a_folder_in_the_files_place_is_named(file: Path) -> None:
    file.mkdir()
    (file / "inside").touch()
    with pytest.raises(data.DamagedFile, match=f"^{file}: expected an .npz file .*, found a folder"):
        data.load("mnist")
    assert (file / "inside").exists()


def test_a_link_to_nowhere_is_named(file: Path) -> None:
    file.symlink_to("nowhere")
    with pytest.raises(data.DamagedFile, match=f"^{file}: expected an .npz file .*, found nothing that can be read"):
        data.load("mnist")
    assert file.is_symlink()


class Plant:
    """Unpickling it creates a file."""

    def __init__(self, trap: Path) -> None:
        self.trap = trap

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.trap,)


@pytest.mark.parametrize("name", ["x_train", "y_test", "extra"])
def test_object_arrays_are_never_unpickled(file: Path, tmp_path: Path, name: str) -> None:
    trap = tmp_path / "trap"
    planted = np.empty(1, dtype=object)
    planted[0] = Plant(trap)
    content = npz(**{name: planted})
    with np.load(io.BytesIO(content), allow_pickle=True) as loaded:
        assert loaded[name].dtype == object
    assert trap.exists(), "the planted pickle does not work, so that this test would prove nothing"
    trap.unlink()
    refusal(file, content, data.DamagedFile)
    assert not trap.exists()


def test_a_plain_pickle_is_never_unpickled(file: Path, tmp_path: Path) -> None:
    refusal(file, pickle.dumps(Plant(tmp_path / "trap")), data.DamagedFile)
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("name", ["x_train", "y_train", "x_test", "y_test"])
def test_a_missing_array_is_named(file: Path, name: str) -> None:
    assert f"found no {name};" in refusal(file, npz(**{name: None}), data.WrongContent)


IMAGES = arrays()["x_train"]
LABELS = arrays()["y_train"]
UNSUITABLE: dict[str, tuple[Arrays, str, str]] = {
    "flat images": ({"x_train": IMAGES.reshape(40, 784)}, "x_train as uint8 (n, 28, 28)", "uint8 (40, 784)"),
    "8 x 8 images": ({"x_test": IMAGES[:9, :8, :8]}, "x_test as uint8 (n, 28, 28)", "uint8 (9, 8, 8)"),
    "colour": ({"x_train": np.zeros((40, 28, 28, 3), np.uint8)}, "x_train as uint8", "uint8 (40, 28, 28, 3)"),
    "one number": ({"x_train": np.uint8(1)}, "x_train as uint8", "uint8 ()"),
    "float images": ({"x_train": IMAGES / np.float32(255)}, "x_train as uint8", "float32 (40, 28, 28)"),
    "signed images": ({"x_test": IMAGES[:9].view(np.int8)}, "x_test as uint8", "int8 (9, 28, 28)"),
    "float labels": ({"y_train": LABELS.astype(float)}, "y_train as integers (40,)", "float64 (40,)"),
    "boolean labels": ({"y_train": LABELS > 4}, "y_train as integers", "bool (40,)"),
    "one-hot labels": ({"y_train": np.eye(10, dtype=np.uint8)[LABELS]}, "y_train as integers (40,)", "uint8 (40, 10)"),
    "fewer labels": ({"y_train": LABELS[:39]}, "y_train as integers (40,)", "uint8 (39,)"),
    "more test labels": ({"y_test": LABELS[:10]}, "y_test as integers (9,)", "uint8 (10,)"),
    "label 10": ({"y_train": LABELS + 1}, "labels from 0 to 9 in y_train", "labels from 1 to 10"),
    "label -1": ({"y_test": LABELS[:9].astype(int) - 1}, "labels from 0 to 9 in y_test", "labels from -1 to 7"),
    "no images": ({"x_train": IMAGES[:0], "y_train": LABELS[:0]}, "x_train as uint8 (n, 28, 28) with n > 0", "(0, 28"),
    "text": ({"y_train": np.array(["a"] * 40)}, "y_train as integers (40,)", "<U1 (40,)"),
}


@pytest.mark.parametrize("case", UNSUITABLE)
def test_unsuitable_arrays_are_refused_with_what_was_expected_and_found(file: Path, case: str) -> None:
    changed, expected, found = UNSUITABLE[case]
    message = refusal(file, npz(**changed), data.WrongContent)
    assert f"expected {expected}" in message
    assert found in message.split(", found ")[1]


def test_a_zip_member_that_is_no_array_is_wrong_content(file: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name in arrays():
            archive.writestr(f"{name}.npy", b"these are notes, not an array")
    refusal(file, content.getvalue(), data.WrongContent)


def test_a_header_that_promises_more_memory_than_there_is_is_damage(file: Path) -> None:
    header = io.BytesIO()
    shape = (10**9, 28, 28)
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": shape})
    content = io.BytesIO(npz(x_train=None))
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("x_train.npy", header.getvalue() + bytes(100))
    refusal(file, content.getvalue(), data.DamagedFile)
