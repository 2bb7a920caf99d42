"""Digits as the course expects them, where the other data sets are read from, and which files are refused."""

import hashlib
import io
import os
import pickle
import shlex
import shutil
import socket
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

from distlab import data
from distlab.data import download
from distlab.runtime import processes
from tests.distlab.data.mirrors import idx

Arrays = dict[str, Any]

DIGITS_SHA256 = {
    "train": "7bc37beb07e44e72750dae7e56fa30ae44323fb7aec5b04ee7bbc677e95acc38",
    "test": "93b5740f5ba062bbf8d1b46e1ef6c63b818f5e39f77218677b4a3229d83b7305",
}


@pytest.fixture(scope="module")
def digits() -> data.Dataset:
    return data.load("digits")


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Empty folders instead of all that are searched, in the order of the search; downloading is an error."""
    monkeypatch.setenv("DISTLAB_DATA", str(tmp_path / "own"))
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "into", lambda file, name: pytest.fail(f"a download of {name} was asked for"))
    (tmp_path / "own").mkdir()
    return {
        "own": tmp_path / "own",
        "keras": tmp_path / "home" / ".keras" / "datasets",
        "course": tmp_path / "cache" / "distlab" / "data",
    }


def write_npz(folder: Path, name: str = "mnist", images: int = 3) -> Path:
    """A small data set whose number of training images distinguishes it from others."""
    folder.mkdir(parents=True, exist_ok=True)
    x = np.arange(images * 28 * 28, dtype=np.uint8).reshape(images, 28, 28)
    file = folder / f"{name}.npz"
    np.savez(file, x_train=x, y_train=np.arange(images) % 10, x_test=x[:1], y_test=np.zeros(1, np.uint8))
    return file


def write_archives(folder: Path, images: int = 5) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    x = np.random.default_rng(0).integers(0, 256, (images, 28, 28), dtype=np.uint8)
    y = (np.arange(images) % 10).astype(np.uint8)
    for archive, array in zip(download.ARCHIVES["fashion_mnist"], (x, y, x[:2], y[:2]), strict=True):
        (folder / archive.file).write_bytes(idx(array))


@pytest.mark.parametrize(("part", "count"), [("train", 1433), ("test", 364)])
def test_digits_are_float_images_in_the_unit_interval_with_integer_labels(
    digits: data.Dataset, part: str, count: int
) -> None:
    images, labels = getattr(digits, part)
    assert images.shape == (count, 28, 28)
    assert images.dtype == np.float32
    assert images.min() == 0
    assert images.max() == 1
    assert labels.shape == (count,)
    assert labels.dtype == np.int64
    assert sorted(set(labels.tolist())) == list(range(10))


def test_digits_unpack_like_a_keras_dataset(digits: data.Dataset) -> None:
    (x_train, y_train), (x_test, y_test) = digits
    assert len(x_train) == len(y_train)
    assert len(x_test) == len(y_test)


def test_digits_training_and_test_images_are_disjoint_and_together_the_whole_set(digits: data.Dataset) -> None:
    train, test = ({image.tobytes() for image in part.images} for part in digits)
    assert not train & test
    assert len(train) + len(test) == 1797


def test_digits_split_is_stratified(digits: data.Dataset) -> None:
    """Every fifth image of a class is a test image: at most one image away from a fifth."""
    train, test = (np.bincount(part.labels, minlength=10) for part in digits)
    assert np.all(np.abs(test - (train + test) / 5) < 1)
    shares = train / train.sum() - test / test.sum()
    assert np.abs(shares).max() < 0.002


@pytest.mark.parametrize("part", ["train", "test"])
def test_digits_split_is_the_fixed_one(digits: data.Dataset, part: str) -> None:
    """Each pixel is a whole number of 1/(16 · 27 · 27); hashing that number does not depend on a machine's rounding.

    On a scale of 255 it would: 2,498 pixels lie half-way between two integers.
    """
    images, labels = getattr(digits, part)
    numerators = np.rint(images.astype(np.float64) * (16 * 27 * 27)).astype("<u2")
    digest = hashlib.sha256(numerators.tobytes() + labels.astype("<i8").tobytes()).hexdigest()
    assert digest == DIGITS_SHA256[part]


def test_digits_are_scikit_learns_images_enlarged_linearly(digits: data.Dataset) -> None:
    source = load_digits()
    is_test = np.zeros(1797, bool)
    for digit in range(10):
        is_test[np.flatnonzero(source.target == digit)[::5]] = True
    assert np.array_equal(digits.train.labels, source.target[~is_test])
    assert np.array_equal(digits.test.labels, source.target[is_test])
    weights = np.array([np.interp(np.linspace(0, 7, 28), np.arange(8), row) for row in np.eye(8)])
    enlarged = np.einsum("ri,nrc,cj->nij", weights, source.images / 16, weights)
    np.testing.assert_allclose(digits.train.images, enlarged[~is_test], atol=1e-6)
    np.testing.assert_allclose(digits.test.images, enlarged[is_test], atol=1e-6)


def test_digits_labels_belong_to_the_images(digits: data.Dataset) -> None:
    train, test = digits
    classifier = KNeighborsClassifier(3).fit(train.images.reshape(-1, 784), train.labels)
    assert classifier.score(test.images.reshape(-1, 784), test.labels) > 0.97


def test_digits_need_no_file(places: dict[str, Path]) -> None:
    assert data.find("digits") is None
    assert len(data.load("digits").train.images) == 1433


def test_describe_says_how_many_images_and_how_to_choose_another_set() -> None:
    assert data.describe("digits").startswith("Data: digits, 1,433 training and 364 test images")
    assert "dataset=mnist" in data.describe("digits")


def test_places_are_searched_in_order(places: dict[str, Path]) -> None:
    files = [write_npz(folder, images=3 + index) for index, folder in enumerate(places.values())]
    for index, file in enumerate(files):
        assert data.find("mnist") == file
        assert len(data.load("mnist").train.images) == 3 + index
        file.unlink()
    assert data.find("mnist") is None


def test_without_distlab_data_the_caches_are_searched(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_npz(places["course"])
    monkeypatch.delenv("DISTLAB_DATA")
    assert data.find("mnist") == file
    monkeypatch.setenv("DISTLAB_DATA", "")
    assert data.find("mnist") == file


def test_a_data_folder_without_the_set_is_named_and_nothing_is_downloaded(places: dict[str, Path]) -> None:
    with pytest.raises(data.NotInFolder, match=rf"^DISTLAB_DATA='{places['own']}' holds no mnist\.npz, .* or unset"):
        data.load("mnist")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.write_text("a file"), "is no folder"),
        (lambda folder: folder.symlink_to("nowhere"), "is no folder"),
    ],
    ids=["missing", "a file", "a dangling link"],
)
def test_a_data_folder_that_is_none_is_named(
    places: dict[str, Path], make: Callable[[Path], object], words: str
) -> None:
    write_npz(places["course"])
    places["own"].rmdir()
    make(places["own"])
    with pytest.raises(data.NotInFolder, match=rf"^DISTLAB_DATA='{places['own']}' {words}; set it to the folder"):
        data.load("mnist")
    assert len(data.load("digits").test.images) == 364


def test_the_home_folder_may_be_written_with_its_sign(places: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_npz(Path.home() / "sets")
    monkeypatch.setenv("DISTLAB_DATA", "~/sets")
    assert data.find("mnist") == file


def zip_bomb(file: Path) -> None:
    """An archive of 1 MB whose array has 2 GB."""
    with (
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x_train.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_2_0(
            member, {"descr": "|u1", "fortran_order": False, "shape": (2**31 // 784, 28, 28)}
        )
        for _ in range(2**31 // 2**24):
            member.write(bytes(2**24))


def listen(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))


PLANTED = {
    "a pipe": os.mkfifo,
    "a socket": listen,
    "a link to a device without an end": lambda file: file.symlink_to("/dev/zero"),
    "a link to itself": lambda file: file.symlink_to(file.name),
    "a folder": Path.mkdir,
    "an empty file": Path.touch,
    "a text": lambda file: file.write_text("x" * 10**6),
    "an archive of one text": lambda file: zipfile.ZipFile(file, "w").writestr("x_train.npy", "text"),
    "an archive that unpacks to 2 GB": zip_bomb,
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", PLANTED)
def test_whatever_lies_in_the_place_of_a_set_gives_a_sentence(places: dict[str, Path], kind: str) -> None:
    place = places["own"] / "mnist.npz"
    PLANTED[kind](place)
    program = "from distlab import data; data.load('mnist')"
    finished = processes.run([sys.executable, "-c", program], 300)
    assert finished.status == 1, "it was over in time"
    [line] = finished.output.splitlines()
    assert line.startswith(("DamagedFile: ", "WrongContent: ")) and "mnist.npz: expected" in line


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("capsh"), reason="root may read every file")
def test_a_file_that_may_not_be_read_is_not_called_damaged(places: dict[str, Path]) -> None:
    file = write_npz(places["own"])
    file.chmod(0)
    command = [sys.executable, "-c", "from distlab import data; data.load('mnist')"]
    if os.geteuid() == 0:
        command = ["capsh", "--drop=cap_dac_override,cap_dac_read_search", "--", "-c", shlex.join(command)]
    finished = processes.run(command, 300)
    assert (finished.status, finished.output.splitlines()[-1]) == (
        1,
        f"DamagedFile: {file} may not be read by this user (Permission denied): `chmod a+r`, or ask its owner.",
    )


def test_keras_home_comes_before_the_folder_in_home(
    places: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(places["keras"])
    file = write_npz(tmp_path / "elsewhere" / "datasets", images=4)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "elsewhere"))
    assert data.find("mnist") == file
    file.unlink()
    assert data.find("mnist") == places["keras"] / "mnist.npz"


def test_a_set_that_is_nowhere_is_downloaded_into_the_courses_cache(
    places: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISTLAB_DATA")
    monkeypatch.setattr(download, "into", lambda file, name: write_npz(file.parent, name, images=7))
    assert len(data.load("mnist").train.images) == 7
    assert data.find("mnist") == places["course"] / "mnist.npz"


def test_file_gives_scaled_images_and_labels(places: dict[str, Path]) -> None:
    write_npz(places["own"])
    train, test = data.load("mnist")
    expected = np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28) / 255
    np.testing.assert_allclose(train.images, expected, atol=1e-7)
    assert train.images.dtype == np.float32
    assert train.labels.tolist() == [0, 1, 2]
    assert train.labels.dtype == np.int64
    assert test.images.shape == (1, 28, 28)


def test_fashion_mnist_is_read_from_keras_folder_of_archives(places: dict[str, Path]) -> None:
    write_archives(places["keras"] / "fashion-mnist")
    train, test = data.load("fashion_mnist")
    assert train.images.shape == (5, 28, 28)
    assert test.images.shape == (2, 28, 28)
    assert train.labels.tolist() == [0, 1, 2, 3, 4]
    expected = np.random.default_rng(0).integers(0, 256, (5, 28, 28), dtype=np.uint8)
    np.testing.assert_array_equal(np.rint(train.images * 255).astype(np.uint8), expected)


def test_an_incomplete_folder_of_archives_is_passed_over(places: dict[str, Path]) -> None:
    folder = places["keras"] / "fashion-mnist"
    write_archives(folder)
    (folder / download.ARCHIVES["fashion_mnist"][2].file).unlink()
    assert data.find("fashion_mnist") is None


def test_a_damaged_archive_is_named_and_kept(places: dict[str, Path]) -> None:
    folder = places["keras"] / "fashion-mnist"
    write_archives(folder)
    damaged = folder / download.ARCHIVES["fashion_mnist"][0].file
    content = damaged.read_bytes()[:-20]
    damaged.write_bytes(content)
    with pytest.raises(data.DamagedFile, match=f"^{damaged}: expected a gzip archive in the IDX format, found"):
        data.load("fashion_mnist")
    assert damaged.read_bytes() == content


def test_archives_in_the_wrong_places_are_wrong_content(places: dict[str, Path]) -> None:
    folder = places["keras"] / "fashion-mnist"
    write_archives(folder)
    images, labels, *_ = (folder / archive.file for archive in download.ARCHIVES["fashion_mnist"])
    images.write_bytes(labels.read_bytes())
    with pytest.raises(data.WrongContent, match=f"^{folder}: expected x_train as uint8"):
        data.load("fashion_mnist")


def test_real_mnist_is_read_where_this_user_has_it() -> None:
    if not data.find("mnist"):
        pytest.skip("this user has no mnist.npz, neither in Keras's folder nor in one that DISTLAB_DATA names")
    train, test = data.load("mnist")
    for images, labels in (train, test):
        assert images.shape[1:] == (28, 28)
        assert len(images) == len(labels) > 1000
        assert images.min() == 0
        assert images.max() == 1
        assert set(labels.tolist()) == set(range(10))
    # Published for the whole training set: mean 0.1307, standard deviation 0.3081.
    assert train.images.mean() == pytest.approx(0.1307, abs=0.005)
    assert train.images.std() == pytest.approx(0.3081, abs=0.005)
    classifier = KNeighborsClassifier(3).fit(train.images[:1500].reshape(-1, 784), train.labels[:1500])
    assert classifier.score(test.images[:500].reshape(-1, 784), test.labels[:500]) > 0.85


@pytest.mark.parametrize("name", ["cifar10", "", "MNIST", "../mnist"])
def test_an_unknown_name_lists_the_known_ones(name: str) -> None:
    with pytest.raises(data.UnknownDataset, match="digits, mnist, fashion_mnist") as caught:
        data.load(name)
    assert repr(name) in str(caught.value)
    assert isinstance(caught.value, data.DataError)


# Files that are refused. Each is named, with what was expected and what is there, and stays as it was.


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


@pytest.mark.parametrize(("part", "fewer"), [("training", 1432), ("test", 363)])
def test_a_set_that_was_shortened_is_named_before_a_chapter_trains_on_it(
    part: str, fewer: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISTLAB_DATA", str(tmp_path))
    train, test = data.load("digits")
    counts = {"training": len(train.labels), "test": len(test.labels)}

    def write() -> None:
        images = np.zeros((1433, 28, 28), np.uint8)
        x, x_test = images[: counts["training"]], images[: counts["test"]]
        y, y_test = np.arange(len(x)) % 10, np.arange(len(x_test)) % 10
        np.savez(tmp_path / "mnist.npz", x_train=x, y_train=y, x_test=x_test, y_test=y_test)

    write()
    assert data.describe("mnist").startswith("Data: mnist, 1,433 training and 364 test images (pass dataset=digits")
    counts[part] = fewer
    write()
    with pytest.raises(data.WrongContent, match=f"mnist.npz has {fewer} {part} images, and the chapters need at least"):
        data.describe("mnist")


def npz(save: Callable[..., None] = np.savez, **changed: Any) -> bytes:
    """The bytes of an .npz file that is right except for the changed arrays; None leaves an array out."""
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


@pytest.mark.slow
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_a_flipped_byte_anywhere_never_escapes_as_another_error(file: Path, save: Callable[..., None]) -> None:
    """Half of them fall into headers; some of these mean nothing (a date), so that the file may stay readable."""
    content = npz(save)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        headers = [info.header_offset for info in archive.infolist()] + [archive.start_dir]
    random = np.random.default_rng(1)
    places = [*random.integers(0, len(content), 100), *(start + step for start in headers for step in range(0, 170, 3))]
    refusals = data.WrongContent, data.DamagedFile
    expected = arrays()["x_train"] / np.float32(255)
    refused = 0
    for place in (place for place in places if place < len(content)):
        file.write_bytes(content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :])
        try:
            assert np.array_equal(data.load("mnist").train.images, expected)
        except refusals:
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


class Trap:
    """Unpickling it creates a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.file,)


@pytest.mark.parametrize("name", ["x_train", "y_test", "extra"])
def test_object_arrays_are_never_unpickled(file: Path, tmp_path: Path, name: str) -> None:
    trap = tmp_path / "trap"
    objects = np.empty(1, dtype=object)
    objects[0] = Trap(trap)
    content = npz(**{name: objects})
    with np.load(io.BytesIO(content), allow_pickle=True) as loaded:
        assert loaded[name].dtype == object
    assert trap.exists(), "the trap does not work, so this test would prove nothing"
    trap.unlink()
    refusal(file, content, data.DamagedFile)
    assert not trap.exists()


def test_a_plain_pickle_is_never_unpickled(file: Path, tmp_path: Path) -> None:
    refusal(file, pickle.dumps(Trap(tmp_path / "trap")), data.DamagedFile)
    assert not (tmp_path / "trap").exists()


@pytest.mark.parametrize("name", ["x_train", "y_train", "x_test", "y_test"])
def test_a_missing_array_is_named(file: Path, name: str) -> None:
    there = ", ".join(key for key in ("x_train", "y_train", "x_test", "y_test") if key != name)
    assert f"found no {name} but {there};" in refusal(file, npz(**{name: None}), data.WrongContent)


def test_digits_without_scikit_learns_file_are_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sklearn").mkdir()
    (tmp_path / "sklearn" / "__init__.py").touch()
    command = [sys.executable, "-c", "from distlab import data; data.load('digits')"]
    source = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    finished = processes.run(command, 300, env=os.environ | {"PYTHONPATH": source})
    assert finished.status == 1
    last = finished.output.splitlines()[-1]
    assert last.startswith(f"DamagedFile: {tmp_path}/sklearn/datasets/data/digits.csv.gz is missing")
    assert last.endswith("`make setup` installs scikit-learn, whose file it is, again.")


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
    changed, expected, content = UNSUITABLE[case]
    message = refusal(file, npz(**changed), data.WrongContent)
    assert f"expected {expected}" in message
    assert content in message.split(", found ")[1]


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
