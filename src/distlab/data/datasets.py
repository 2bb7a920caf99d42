"""The course's image sets as NumPy arrays: `digits`, which needs no network, `mnist` and `fashion_mnist`."""

import os
import zipfile
import zlib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from distlab.data import download
from distlab.data.download import KEYS, DataError
from distlab.runtime.environment import cache_folder
from distlab.runtime.lookups import NoSuchName, require_name

NAMES = ("digits", *download.ARCHIVES)
IMAGE_SIZE = 28
CLASSES = 10
FEWEST_IMAGES = {"training": 1433, "test": 364}
"""So many images the chapters can train on and test with: those of digits."""


class UnknownDataset(DataError, NoSuchName):
    """No data set has that name."""


class NotInFolder(DataError):
    """The folder that DISTLAB_DATA names does not hold the data set, or is none."""


class DamagedFile(DataError):
    """A file cannot be read as a data set: truncated, not an .npz file, with pickled objects in it, or not allowed."""


class WrongContent(DataError):
    """A file was read, but its arrays are missing or have another shape or type than the images of the course."""


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

    Raises UnknownDataset, NotInFolder, DamagedFile, WrongContent, `download.DownloadFailed` or `download.WrongDigest`.
    """
    require_name(NAMES, name, "data set", UnknownDataset)
    if name == "digits":
        return _digits()
    file = find(name)
    if file is None and (own_folder := _own_folder()):
        raise NotInFolder(
            f"DISTLAB_DATA={str(own_folder)!r} holds no {name}.npz, and no cache does; put the file there, or unset "
            "DISTLAB_DATA to download the data set."
        )
    if file is None:
        file = cache_folder() / "data" / f"{name}.npz"
        download.into(file, name)
    return _as_dataset(_read(file, name), file)


def find(name: str) -> Path | None:
    """Where `load` would read a data set from: an .npz file, or Keras's folder of archives; None if it would read none.

    A place that something else occupies, such as a folder called mnist.npz, counts too: `load` says what is wrong.
    Raises NotInFolder when DISTLAB_DATA names no folder that can be read.
    """
    if name not in download.ARCHIVES:
        return None
    file = f"{name}.npz"
    homes = [Path(home) for home in (os.environ.get("KERAS_HOME"), Path.home() / ".keras") if home]
    places = [home / "datasets" / entry for home in homes for entry in (file, name.replace("_", "-"))]
    places.append(cache_folder() / "data" / file)
    if own_folder := _own_folder():
        places.insert(0, own_folder / file)
    return next((place for place in places if _is_occupied(place, name)), None)


def _own_folder() -> Path | None:
    """The folder that DISTLAB_DATA names; None without it."""
    if not (name := os.environ.get("DISTLAB_DATA")):
        return None
    folder = Path(name).expanduser().absolute()
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.X_OK):
        kind = "cannot be read" if folder.is_dir() else "is no folder" if os.path.lexists(folder) else "does not exist"
        fix = "set it to the folder that holds NAME.npz, or unset it"
        raise NotInFolder(f"DISTLAB_DATA={str(folder)!r} {kind}; {fix}.")
    return folder


def describe(name: str) -> str:
    """One line for the top of a notebook: which data, how many images, and how to choose another set.

    Raises what `load` does, and WrongContent for a set that was shortened so much that the chapters cannot train on it.
    """
    train, test = load(name)
    for part, images in (("training", train.images), ("test", test.images)):
        if len(images) < FEWEST_IMAGES[part]:
            raise WrongContent(
                f"{find(name)} has {len(images)} {part} images, and the chapters need at least "
                f"{FEWEST_IMAGES[part]:,}, as many as digits has; take dataset=digits for quick runs."
            )
    choice = "dataset=mnist for MNIST" if name == "digits" else "dataset=digits for the set that needs no network"
    return f"Data: {name}, {len(train.images):,} training and {len(test.images):,} test images (pass {choice})"


def _digits() -> Dataset:
    """8 × 8 digits enlarged to 28 × 28; every fifth image of each class, in the order of the set, is a test image."""
    # The file that `sklearn.datasets.load_digits` reads; importing scikit-learn takes every process seconds.
    package = find_spec("sklearn")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("scikit-learn is not installed in this environment")
    file = Path(package.origin).parent / "datasets" / "data" / "digits.csv.gz"
    try:
        table = np.loadtxt(file, delimiter=",").reshape(-1, 65)
    except (OSError, ValueError, EOFError, zlib.error) as error:
        what = f"{file} is missing or damaged ({' '.join(str(error).split()) or type(error).__name__})"
        raise DamagedFile(f"{what}; `make setup` installs scikit-learn, whose file it is, again.") from error
    enlarge = _linear_interpolation(8, IMAGE_SIZE)
    images = (enlarge @ (table[:, :-1].reshape(-1, 8, 8) / 16) @ enlarge.T).astype(np.float32)
    labels = table[:, -1].astype(np.int64)
    is_test = np.zeros(len(labels), dtype=bool)
    for digit in range(CLASSES):
        is_test[np.flatnonzero(labels == digit)[::5]] = True
    return Dataset(LabelledImages(images[~is_test], labels[~is_test]), LabelledImages(images[is_test], labels[is_test]))


def _linear_interpolation(size: int, new_size: int) -> NDArray[np.float64]:
    """The matrix (new_size, size) that enlarges a row of pixels; the first and the last keep their places."""
    places = np.linspace(0, size - 1, new_size)
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(size)))


def _is_occupied(place: Path, name: str) -> bool:
    if place.suffix == ".npz":
        return os.path.lexists(place)
    return all((place / archive.file).is_file() for archive in download.ARCHIVES[name])


def _read(place: Path, name: str) -> dict[str, NDArray[Any]]:
    if place.suffix != ".npz":
        archives = [place / archive.file for archive in download.ARCHIVES[name]]
        return dict(zip(KEYS, map(_read_archive, archives), strict=True))
    try:
        if not place.is_file():  # to open a pipe would wait for somebody to write into it
            raise ValueError("it is not a regular file")
        with place.open("rb") as file:
            if file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise ValueError("it does not start as one")
        with zipfile.ZipFile(place) as archive:
            if sum(member.file_size for member in archive.infolist()) > download.LARGEST_CONTENT:
                raise ValueError(f"its arrays would take more than {download.LARGEST_CONTENT:,} bytes")
        # Reading every array here finds a truncated file before anything uses it.
        with np.load(place, allow_pickle=False) as arrays:
            return {key: np.asarray(arrays[key]) for key in arrays.files}
    except Exception as error:  # damaged bytes make NumPy and zipfile raise nearly anything
        raise _damaged(place, "an .npz file of plain arrays", error) from error


def _read_archive(file: Path) -> NDArray[np.uint8]:
    try:
        return download.parse_archive(file.read_bytes())
    except (OSError, ValueError, EOFError, zlib.error) as error:
        raise _damaged(file, "a gzip archive in the IDX format", error) from error


def _damaged(file: Path, expected: str, error: Exception) -> DamagedFile:
    if isinstance(error, PermissionError):
        return DamagedFile(f"{file} may not be read by this user ({error.strerror}): `chmod a+r`, or ask its owner.")
    if file.is_dir():
        content = "a folder"
    else:
        content = f"{file.stat().st_size:,} bytes that cannot be read" if file.is_file() else "nothing that can be read"
        content += f" ({' '.join(str(error).split()) or type(error).__name__})"
    return DamagedFile(
        f"{file}: expected {expected}, found {content}; the file was kept; put a good copy in its place, or move it "
        "away."
    )


def _as_dataset(arrays: dict[str, NDArray[Any]], file: Path) -> Dataset:
    def reject(expected: str, content: str) -> NoReturn:
        fix = "the file was kept; put a good copy in its place"
        raise WrongContent(f"{file}: expected {expected}, found {content}; {fix}.")

    if missing := [key for key in KEYS if key not in arrays]:
        reject(f"the arrays {', '.join(KEYS)}", f"no {', '.join(missing)} but {', '.join(arrays) or 'nothing'}"[:300])
    parts = []
    for part in ("train", "test"):
        images, labels = arrays[f"x_{part}"], arrays[f"y_{part}"]
        if images.dtype != np.uint8 or images.shape[1:] != (IMAGE_SIZE, IMAGE_SIZE) or not len(images):
            reject(f"x_{part} as uint8 (n, {IMAGE_SIZE}, {IMAGE_SIZE}) with n > 0", f"{images.dtype} {images.shape}")
        if labels.dtype.kind not in "iu" or labels.shape != (len(images),):
            reject(f"y_{part} as integers ({len(images)},)", f"{labels.dtype} {labels.shape}")
        if labels.min() < 0 or labels.max() >= CLASSES:
            reject(f"labels from 0 to {CLASSES - 1} in y_{part}", f"labels from {labels.min()} to {labels.max()}")
        parts.append(LabelledImages(images.astype(np.float32) / np.float32(255), labels.astype(np.int64)))
    return Dataset(*parts)
