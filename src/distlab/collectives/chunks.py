"""How an array is cut into one chunk per rank."""

import numpy as np


def first_row(length: int, parts: int, part: int) -> int:
    """The row at which chunk `part` begins, when `length` rows are cut into `parts` chunks as `chunks_of` does."""
    rows, longer = divmod(length, parts)
    return part * rows + min(part, longer)


def chunks_of(array: np.ndarray, parts: int) -> list[np.ndarray]:
    """Views of `parts` runs of rows of `array`; their lengths differ by at most one, and the longer ones come first.

    The same cut as `numpy.array_split(array, parts)`; with fewer rows than parts the last chunks are empty.
    """
    rows, longer = divmod(len(array), parts)
    chunks = []
    start = 0
    for part in range(parts):
        stop = start + rows + (part < longer)
        chunks.append(array[start:stop])
        start = stop
    return chunks
