"""Inputs for the tests of collectives: sizes, networks, arrays whose sums are exact."""

from functools import partial

import numpy as np
import pytest

from distlab.collectives import (
    ALL_REDUCE,
    hierarchical_all_reduce,
)
from distlab.simulate import (
    Network,
)

SIZES = range(1, 18)
ALL_SIX = {**ALL_REDUCE, "hierarchical": partial(hierarchical_all_reduce, ranks_per_host=3)}
DTYPES = (np.float32, np.float64, np.int32, np.int64, np.uint8)
# Each of α, β and γ matters, and none hides another.
NETWORK = Network(latency=5e-6, seconds_per_byte=1e-9, seconds_per_byte_reduced=0.3e-9)
EXACTLY = partial(pytest.approx, rel=1e-9, abs=0)


def inputs_for(size: int, shape: tuple[int, ...] | int, dtype: type = np.float64, seed: int = 0) -> list[np.ndarray]:
    """One array per rank, all different, of whole numbers small enough for their sum to be exact in every dtype."""
    random = np.random.default_rng(seed)
    return [random.integers(0, 15, shape).astype(dtype) for _ in range(size)]


def total_of(inputs: list[np.ndarray]) -> np.ndarray:
    return np.add.reduce(inputs, dtype=inputs[0].dtype)


def same(result: np.ndarray, expected: np.ndarray) -> None:
    assert result.dtype == expected.dtype
    np.testing.assert_array_equal(result, expected, strict=True)
