"""The course's image sets as NumPy arrays: `digits`, which needs no network, `mnist` and `fashion_mnist`."""

import gzip
import logging
import os
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from distlab.runtime.environment import cache_folder
from distlab.runtime.errors import PlainError
from distlab.runtime.lookups import NoSuchName, require_name

IMAGE_SIZE = 28
CLASSES = 10
SECONDS_WITHOUT_DATA = 20
ADDRESSES = {
    "mnist": "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "fashion_mnist": "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
}
NAMES = ("digits", *ADDRESSES)
# The archives that both sets consist of: the array in each, its file, and the file's SHA-256 in the two sets.
ARCHIVES = {
    "x_train": "train-images-idx3-ubyte.gz",
    "y_train": "train-labels-idx1-ubyte.gz",
    "x_test": "t10k-images-idx3-ubyte.gz",
    "y_test": "t10k-labels-idx1-ubyte.gz",
}
SHA256 = {
    "mnist": {
        "x_train": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "y_train": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "x_test": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "y_test": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
    "fashion_mnist": {
        "x_train": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "y_train": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "x_test": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "y_test": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    },
}


class DataError(PlainError):
    """A data set could not be given; the message is one sentence with the file or address and the fix."""


class UnknownDataset(DataError, NoSuchName):
    """No data set has that name."""


class LabelledImages(NamedTuple):
    """`images`: float32 (n, 28, 28), each value in [0, 1]; `labels`: int64 (n,), each in 0..9."""

    images: NDArray[np.float32]
    labels: NDArray[np.int64]


class Dataset(NamedTuple):
    """A data set's training and test splits; unpacks like Keras's: `(x, y), (x_test, y_test) = load(name)`."""

    train: LabelledImages
    test: LabelledImages


def load(name: str) -> Dataset:
    """A data set as float32 images (n, 28, 28) in [0, 1] and int64 labels (n,).

    `digits` is made from scikit-learn's 1,797 real handwritten digits. The others are read from
    `$DISTLAB_DATA/NAME.npz`, from Keras's cache folder or from the course's cache folder, and are downloaded if they
    are in none of them. A file that is there but cannot be used is an error, and stays as it is. Where DISTLAB_DATA is
    set nothing is downloaded.

    Raises UnknownDataset, and DataError for a file or a download.
    """
    require_name(NAMES, name, "data set", UnknownDataset)
    if name == "digits":
        return _digits()
    place = find(name)
    if place is None and (own_folder := os.environ.get("DISTLAB_DATA")):
        raise DataError(
            f"DISTLAB_DATA={own_folder!r} holds no {name}.npz, and no cache does; put the file there, or unset "
            "DISTLAB_DATA to download the data set."
        )
    place = place or _downloaded(name)
    return _as_dataset(_read(place), place)


def find(name: str) -> Path | None:
    """Where `load` would read a data set from: an .npz file, or a folder of archives; None if it would read none."""
    if name == "digits":
        return None
    homes = [Path(home) for home in (os.environ.get("KERAS_HOME"), Path.home() / ".keras") if home]
    folders = [*(home / "datasets" for home in homes), _cache()]
    places = [place for folder in folders for place in (folder / f"{name}.npz", _archives_folder(folder, name))]
    if own_folder := os.environ.get("DISTLAB_DATA"):
        places.insert(0, Path(own_folder) / f"{name}.npz")
    return next((place for place in places if _is_there(place)), None)


def describe(name: str) -> str:
    """One line for the top of a notebook: which data, how many images, and how to choose another set.

    Raises what `load` does.
    """
    train, test = load(name)
    choice = "dataset=mnist for MNIST" if name == "digits" else "dataset=digits for the set that needs no network"
    return f"Data: {name}, {len(train.images):,} training and {len(test.images):,} test images (pass {choice})"


def _cache() -> Path:
    return cache_folder() / "data"


def _archives_folder(folder: Path, name: str) -> Path:
    """As Keras calls it."""
    return folder / name.replace("_", "-")


def _is_there(place: Path) -> bool:
    return place.exists() if place.suffix else all((place / archive).exists() for archive in ARCHIVES.values())


def _downloaded(name: str) -> Path:
    """The folder of archives that are downloaded now, each checked; a file appears complete or not at all."""
    import pooch  # takes 0.1 s, and only downloads need it

    pooch.get_logger().setLevel(logging.WARNING)  # otherwise it announces each download in the notebook
    folder = _archives_folder(_cache(), name)
    downloader = pooch.HTTPDownloader(timeout=SECONDS_WITHOUT_DATA)
    for key, archive in ARCHIVES.items():
        address, digest = ADDRESSES[name] + archive, f"sha256:{SHA256[name][key]}"
        try:
            pooch.retrieve(address, digest, archive, folder, downloader=downloader)
        except (OSError, ValueError) as error:  # ValueError: the digest is wrong
            raise DataError(
                f"{address} could not be downloaded ({error}); use dataset=digits, or put the data set as {name}.npz "
                "into a folder and set DISTLAB_DATA to that folder."
            ) from error
    return folder


def _digits() -> Dataset:
    """8 × 8 digits enlarged to 28 × 28; every fifth image of each class, in the order of the set, is a test image."""
    # The file that `sklearn.datasets.load_digits` reads; importing scikit-learn takes every process seconds.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("scikit-learn is not installed in this environment")
    table = np.loadtxt(Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    # Linear interpolation as a matrix (28, 8); the first and the last pixel of a row keep their places.
    places = np.linspace(0, 7, IMAGE_SIZE)
    enlarge = np.maximum(0, 1 - np.abs(places[:, None] - np.arange(8)))
    images = (enlarge @ (table[:, :-1].reshape(-1, 8, 8) / 16) @ enlarge.T).astype(np.float32)
    labels = table[:, -1].astype(np.int64)
    is_test = np.zeros(len(labels), dtype=bool)
    for digit in range(CLASSES):
        is_test[np.flatnonzero(labels == digit)[::5]] = True
    return Dataset(LabelledImages(images[~is_test], labels[~is_test]), LabelledImages(images[is_test], labels[is_test]))


def _read(place: Path) -> dict[str, NDArray[Any]]:
    if place.is_dir() and not place.suffix:
        return {key: _read_archive(place / archive) for key, archive in ARCHIVES.items()}
    try:
        if not zipfile.is_zipfile(place):
            raise ValueError("it is no zip file, or not a whole one")
        # Reading every array here finds a truncated file before anything uses it.
        with np.load(place, allow_pickle=False) as arrays:
            return {key: np.asarray(arrays[key]) for key in arrays.files}
    except Exception as error:  # damaged bytes make NumPy and zipfile raise nearly anything
        raise _unusable(place, "an .npz file of plain arrays", error) from error


def _read_archive(file: Path) -> NDArray[np.uint8]:
    """The array in a gzip-compressed IDX file of uint8: three bytes, number of axes, their sizes, the values."""
    try:
        raw = gzip.decompress(file.read_bytes())
        shape = np.frombuffer(raw, dtype=">u4", count=raw[3], offset=4)
        return np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
    except (OSError, ValueError, EOFError, IndexError, zlib.error) as error:
        raise _unusable(file, "a gzip archive in the IDX format", error) from error


def _as_dataset(arrays: dict[str, NDArray[Any]], place: Path) -> Dataset:
    parts = []
    for part in ("train", "test"):
        if missing := {f"x_{part}", f"y_{part}"} - arrays.keys():
            raise _unusable(place, f"the arrays {', '.join(ARCHIVES)}", f"no {' and no '.join(sorted(missing))}")
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if images.dtype != np.uint8 or images.shape[1:] != (IMAGE_SIZE, IMAGE_SIZE) or not len(images):
            raise _unusable(
                place, f"x_{part} as uint8 (n, {IMAGE_SIZE}, {IMAGE_SIZE})", f"{images.dtype} {images.shape}"
            )
        if labels.dtype.kind not in "iu" or labels.shape != (len(images),):
            raise _unusable(place, f"y_{part} as integers ({len(images)},)", f"{labels.dtype} {labels.shape}")
        if labels.min() < 0 or labels.max() >= CLASSES:
            content = f"labels from {labels.min()} to {labels.max()}"
            raise _unusable(place, f"labels from 0 to {CLASSES - 1} in y_{part}", content)
        parts.append(LabelledImages(images.astype(np.float32) / np.float32(255), labels.astype(np.int64)))
    return Dataset(*parts)


def _unusable(place: Path, expected: str, content: object) -> DataError:
    if isinstance(content, Exception):
        size = f"{place.stat().st_size:,} bytes" if place.is_file() else "no file"
        content = f"{size} that cannot be read ({' '.join(str(content).split()) or type(content).__name__})"
    return DataError(
        f"{place}: expected {expected}, found {content}; the file was kept; put a good copy in its place, or move it "
        "away."
    )
