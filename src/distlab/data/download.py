"""Downloading a data set: several mirrors, a time-out, every archive's digest checked, written in one step."""

import fcntl
import gzip
import hashlib
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import numpy as np

from distlab.runtime.errors import PlainError

SECONDS_WITHOUT_DATA = 20
SECONDS_PER_ARCHIVE = 600  # a mirror that trickles is given up
LARGEST_ARCHIVE = 64 * 2**20  # bytes
WAY_ROUND = "use dataset=digits, or put the data set as NAME.npz into a folder and set DISTLAB_DATA to that folder"


class DataError(PlainError):
    """A data set could not be given; the message is one sentence with the file or address and the mend."""


class DownloadFailed(DataError):
    """No mirror could deliver an archive, or it could not be saved; the message names each fault and the way round."""


class WrongDigest(DownloadFailed):
    """Every mirror that answered delivered an archive with another SHA-256 than the published one."""


class Archive(NamedTuple):
    """A gzip archive in the IDX format and its SHA-256."""

    file: str
    sha256: str


KEYS = ("x_train", "y_train", "x_test", "y_test")
# In the order of KEYS.
ARCHIVES = {
    "mnist": (
        Archive("train-images-idx3-ubyte.gz", "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"),
        Archive("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        Archive("t10k-images-idx3-ubyte.gz", "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"),
        Archive("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    "fashion_mnist": (
        Archive("train-images-idx3-ubyte.gz", "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        Archive("train-labels-idx1-ubyte.gz", "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        Archive("t10k-images-idx3-ubyte.gz", "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        Archive("t10k-labels-idx1-ubyte.gz", "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
}
MIRRORS = {
    "mnist": (
        "https://storage.googleapis.com/cvdf-datasets/mnist/",
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
    ),
    "fashion_mnist": (
        "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    ),
}


def into(file: Path, name: str) -> None:
    """Download the data set `name` into `file` (.npz with x_train, y_train, x_test, y_test, uint8).

    Several processes may ask at once: one downloads, the others wait and find the file. The file appears complete or
    not at all. Raises DownloadFailed or WrongDigest.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if file.exists():
                return
            arrays = [parse_archive(fetch(archive, MIRRORS[name])) for archive in ARCHIVES[name]]
            # Only the holder of the lock writes it, so that what a killed process left is overwritten.
            part = file.with_suffix(".part")
            try:
                with part.open("wb") as stream:
                    np.savez_compressed(stream, **dict(zip(KEYS, arrays, strict=True)))
                part.replace(file)
            finally:
                part.unlink(missing_ok=True)
    except OSError as error:
        raise DownloadFailed(f"{file} could not be written ({error}); {WAY_ROUND}.") from error


def fetch(archive: Archive, mirrors: tuple[str, ...]) -> bytes:
    """The archive's bytes from the first mirror whose copy has the published digest.

    Raises WrongDigest when a mirror answered and every answer had another digest, else DownloadFailed.
    """
    faults, wrong_digests = [], 0
    for mirror in mirrors:
        try:
            content = _content(mirror + archive.file)
        except urllib.error.HTTPError as error:
            faults.append(f"{mirror}: {error.code} {error.reason}")
            continue
        except (OSError, HTTPException, ValueError) as error:  # a ValueError comes from an address that it redirects to
            faults.append(f"{mirror}: {getattr(error, 'reason', None) or error}")
            continue
        found = hashlib.sha256(content).hexdigest()
        if found == archive.sha256:
            return content
        wrong_digests += 1
        faults.append(f"{mirror}: SHA-256 {found[:12]}… in place of {archive.sha256[:12]}…")
    kind = WrongDigest if wrong_digests else DownloadFailed
    raise kind(f"{archive.file} could not be downloaded ({'; '.join(faults)}); {WAY_ROUND}.")


def _content(address: str) -> bytes:
    deadline = time.monotonic() + SECONDS_PER_ARCHIVE
    content = bytearray()
    with urllib.request.urlopen(address, timeout=SECONDS_WITHOUT_DATA) as response:
        size = response.length  # None when the mirror does not say
        while len(content) != size and (piece := response.read1(2**16)):
            content += piece
            if len(content) > LARGEST_ARCHIVE:
                raise OSError(f"more than {LARGEST_ARCHIVE:,} bytes")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not complete after {SECONDS_PER_ARCHIVE} s")
    if size is not None and len(content) != size:
        raise OSError(f"closed after {len(content):,} of {size:,} bytes")
    return bytes(content)


def parse_archive(content: bytes) -> np.ndarray:
    """The uint8 array in a gzip-compressed IDX file: two zero bytes, type 8, number of axes, sizes, values.

    Raises ValueError when the header does not fit the content, and gzip's own errors (OSError, EOFError) before that.
    """
    raw = gzip.decompress(content)
    if len(raw) < 4 or raw[:3] != b"\0\0\x08":
        raise ValueError(f"not an IDX file of unsigned bytes: it starts with {raw[:3]!r}")
    axes = raw[3]
    shape = np.frombuffer(raw, dtype=">u4", count=axes, offset=4)
    values = np.frombuffer(raw, dtype=np.uint8, offset=4 + 4 * axes)
    if values.size != np.prod(shape, dtype=np.int64):
        raise ValueError(f"the IDX header says {tuple(map(int, shape))}, but {values.size:,} values follow")
    return values.reshape(shape)
