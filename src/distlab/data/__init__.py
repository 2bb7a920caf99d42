"""The data sets of the course: read, checked and, if they are missing, downloaded in the same way everywhere.

Begin with `load("digits")`; `NAMES` lists the data sets. The package may import `runtime`.
"""

from distlab.data import topics
from distlab.data.datasets import (
    CLASSES,
    IMAGE_SIZE,
    NAMES,
    DataError,
    Dataset,
    LabelledImages,
    UnknownDataset,
    describe,
    find,
    load,
)

__all__ = [
    "CLASSES",
    "IMAGE_SIZE",
    "NAMES",
    "DataError",
    "Dataset",
    "LabelledImages",
    "UnknownDataset",
    "describe",
    "find",
    "load",
    "topics",
]
