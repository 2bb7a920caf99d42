"""The data sets of the course: found, checked and loaded the same way everywhere; `download` fetches them."""

from distlab.data.datasets import (
    CLASSES,
    IMAGE_SIZE,
    NAMES,
    DamagedFile,
    Dataset,
    Split,
    UnknownDataset,
    WrongContent,
    describe,
    find,
    load,
)
from distlab.data.download import DataError

__all__ = [
    "CLASSES",
    "IMAGE_SIZE",
    "NAMES",
    "DamagedFile",
    "DataError",
    "Dataset",
    "Split",
    "UnknownDataset",
    "WrongContent",
    "describe",
    "find",
    "load",
]
