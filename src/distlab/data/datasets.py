"""The course's image sets as NumPy arrays: `digits`, which needs no network, `mnist` and `fashion_mnist`."""

import os
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np

from distlab.data import download
from distlab.data.download import KEYS, DataError
from distlab.runtime.environment import cache_folder

NAMES = ("digits", *download.ARCHIVES)
IMAGE_SIZE = 28
CLASSES = 10


class UnknownDataset(DataError, ValueError):
    """No data set has that name."""


class DamagedFile(DataError):
    """A file cannot be read as a data set: truncated, not an .npz file, or with pickled objects in it."""


class WrongContent(DataError):
    """A file was read, but its arrays are missing or have another shape or type than the images of the course."""


class Split(NamedTuple):
    """`images`: float32 (n, 28, 28), each value in [0, 1]; `labels`: int64 (n,), each in 0..9."""

    images: np.ndarray
    labels: np.ndarray


class Dataset(NamedTuple):
    """A data set's training and test splits; unpacks like Keras's: `(x, y), (x_test, y_test) = load(name)`."""

    train: Split
    test: Split


def load(name: str) -> Dataset:
    """Give a data set as float32 images (n, 28, 28) in [0, 1] and int64 labels (n,).

    `digits` is made from scikit-learn's 1,797 real handwritten digits. The others are looked for in
    `$DISTLAB_DATA/NAME.npz`, in Keras's cache folder and in the course's cache folder, and are downloaded if they are
    in none of them. A file that is found but cannot be used is an error, and stays as it is.

    Raises UnknownDataset, DamagedFile, WrongContent, `download.DownloadFailed` or `download.WrongDigest`.
    """
    if name not in NAMES:
        raise UnknownDataset(f"There is no data set {name!r}; choose one of {', '.join(NAMES)}.")
    if name == "digits":
        return _digits()
    file = find(name)
    if file is None:
        file = cache_folder() / "data" / f"{name}.npz"
        download.into(file, name)
    return _as_dataset(_read(file, name), file)


def find(name: str) -> Path | None:
    """Where `load` would read a data set from: an .npz file, or Keras's folder of archives; None if it would read none.

    A place that is taken by something else, such as a folder called mnist.npz, is given too: `load` says what is wrong.
    """
    if name not in download.ARCHIVES:
        return None
    file = f"{name}.npz"
    keras_cache = Path(os.environ.get("KERAS_HOME") or Path.home() / ".keras") / "datasets"
    places = [keras_cache / file, keras_cache / name.replace("_", "-"), cache_folder() / "data" / file]
    if os.environ.get("DISTLAB_DATA"):
        places.insert(0, Path(os.environ["DISTLAB_DATA"]) / file)
    return next((place for place in places if _is_taken(place, name)), None)


def describe(name: str) -> str:
    """One line for the top of a notebook: which data, how many images, and how to choose another set."""
    train, test = load(name)
    other = "dataset=mnist for MNIST" if name == "digits" else "dataset=digits for the set that needs no network"
    return f"Data: {name}, {len(train.images):,} training and {len(test.images):,} test images (pass {other})"


def _digits() -> Dataset:
    """8 × 8 digits enlarged to 28 × 28; every fifth image of each class, in the order of the set, is a test image."""
    from scipy.ndimage import zoom

    # The file that `sklearn.datasets.load_digits` reads; importing scikit-learn takes every process seconds.
    package = Path(find_spec("sklearn").submodule_search_locations[0])
    table = np.loadtxt(package / "datasets" / "data" / "digits.csv.gz", delimiter=",")
    images = zoom(table[:, :-1].reshape(-1, 8, 8) / 16, (1, IMAGE_SIZE / 8, IMAGE_SIZE / 8), order=1).astype(np.float32)
    labels = table[:, -1].astype(np.int64)
    is_test = np.zeros(len(labels), dtype=bool)
    for digit in range(CLASSES):
        is_test[np.flatnonzero(labels == digit)[::5]] = True
    return Dataset(Split(images[~is_test], labels[~is_test]), Split(images[is_test], labels[is_test]))


def _is_taken(place: Path, name: str) -> bool:
    if place.suffix == ".npz":
        return os.path.lexists(place)
    return all((place / archive.file).is_file() for archive in download.ARCHIVES[name])


def _read(place: Path, name: str) -> dict[str, np.ndarray]:
    if place.suffix != ".npz":
        archives = [place / archive.file for archive in download.ARCHIVES[name]]
        return dict(zip(KEYS, map(_read_archive, archives), strict=True))
    try:
        with place.open("rb") as file:
            if file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise ValueError("it does not start as one")
        # Reading every array here finds a truncated file before anything uses it.
        with np.load(place, allow_pickle=False) as arrays:
            return {key: np.asarray(arrays[key]) for key in arrays.files}
    except Exception as error:  # damaged bytes make NumPy and zipfile raise nearly anything
        raise _damaged(place, "an .npz file of plain arrays", error) from error


def _read_archive(file: Path) -> np.ndarray:
    try:
        return download.parse_archive(file.read_bytes())
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise _damaged(file, "a gzip archive in the IDX format", error) from error


def _damaged(file: Path, expected: str, error: Exception) -> DamagedFile:
    if file.is_dir():
        found = "a folder"
    else:
        found = f"{file.stat().st_size:,} bytes that cannot be read" if file.is_file() else "nothing that can be read"
        found += f" ({' '.join(str(error).split()) or type(error).__name__})"
    return DamagedFile(
        f"{file}: expected {expected}, found {found}; it was kept, put a good copy in its place or move it away."
    )


def _as_dataset(arrays: dict[str, np.ndarray], file: Path) -> Dataset:
    def reject(expected: str, found: str) -> None:
        mend = "the file was kept, put a good copy in its place"
        raise WrongContent(f"{file}: expected {expected}, found {found}; {mend}.")

    if missing := [key for key in KEYS if key not in arrays]:
        reject(f"the arrays {', '.join(KEYS)}", f"no {', '.join(missing)}")
    splits = []
    for part in ("train", "test"):
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if images.dtype != np.uint8 or images.shape[1:] != (IMAGE_SIZE, IMAGE_SIZE) or not len(images):
            reject(f"x_{part} as uint8 (n, {IMAGE_SIZE}, {IMAGE_SIZE}) with n > 0", f"{images.dtype} {images.shape}")
        if labels.dtype.kind not in "iu" or labels.shape != (len(images),):
            reject(f"y_{part} as integers ({len(images)},)", f"{labels.dtype} {labels.shape}")
        if labels.min() < 0 or labels.max() >= CLASSES:
            reject(f"labels from 0 to {CLASSES - 1} in y_{part}", f"labels from {labels.min()} to {labels.max()}")
        splits.append(Split(images.astype(np.float32) / 255, labels.astype(np.int64)))
    return Dataset(*splits)
