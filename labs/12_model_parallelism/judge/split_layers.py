"""Layers that are split among ranks, by columns, by rows and both: what each rank holds, and what must come out.

Numbers are small whole ones, so that sums are exact in any order.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from distlab import costs
from distlab.labs.answer import Answer
from distlab.labs.plain_data import Plain
from distlab.simulate import Network, SimulationError, World

Array = NDArray[np.float64]
Units = NDArray[np.int64]
ELEMENT = np.dtype(np.float64).itemsize
_STEPS = Network(latency=1.0, seconds_per_byte=0.0)


@dataclass(frozen=True)
class LayerSizes:
    """Ranks, examples, and the units of the layers."""

    ranks: int
    examples: int
    inputs: int
    hidden: int
    outputs: int


@dataclass(frozen=True)
class Undivided:
    """Two layers, undivided, with inputs and the gradient of the loss by the outputs.

    inputs (n, inputs); first (inputs, hidden); second (hidden, outputs); by_outputs (n, outputs).
    """

    sizes: LayerSizes
    inputs: Array
    first: Array
    first_bias: Array
    second: Array
    second_bias: Array
    by_outputs: Array

    @property
    def before_relu(self) -> Array:
        """What the first layer computes before its ReLU."""
        return np.asarray(self.inputs @ self.first + self.first_bias)

    @property
    def hidden(self) -> Array:
        """The first layer's outputs."""
        return np.asarray(np.maximum(self.before_relu, 0))

    @property
    def outputs(self) -> Array:
        """The second layer's outputs."""
        return np.asarray(self.hidden @ self.second + self.second_bias)

    @property
    def by_inputs(self) -> Array:
        """The gradient of the loss by the inputs."""
        return np.asarray((self.by_outputs @ self.second.T * (self.before_relu > 0)) @ self.first.T)

    def units(self) -> list[Units]:
        """The hidden units of each rank: as many as `numpy.array_split` gives it."""
        return np.array_split(np.arange(self.sizes.hidden), self.sizes.ranks)


def drawn(generator: np.random.Generator, sizes: LayerSizes) -> Undivided:
    """Random small whole numbers; no bias is 0, no matrix is."""

    def small(*shape: int) -> Array:
        return np.asarray(generator.integers(1, 5, shape) * generator.choice([-1.0, 1.0], shape))

    n, inputs, hidden, outputs = sizes.examples, sizes.inputs, sizes.hidden, sizes.outputs
    return Undivided(
        sizes,
        small(n, inputs),
        small(inputs, hidden),
        small(hidden),
        small(hidden, outputs),
        small(outputs),
        small(n, outputs),
    )


@dataclass(frozen=True)
class LayerSplit:
    """One way to split.

    name: of the student's program.  own_part: what a rank holds, of a network and the rank's units.
    results: what every rank must return.  bytes_at_most: what the rank that sends most may send.
    """

    name: str
    own_part: Callable[[Undivided, Units], tuple[Array, ...]]
    results: Callable[[Undivided], tuple[Array, ...]]
    bytes_at_most: Callable[[LayerSizes], int]


@dataclass(frozen=True)
class SplitRun:
    """One run of a student's program.

    expected: what every rank must return.  results: what each returned, None for what is missing; none by rank if
    `error` ended the run.
    """

    network: Undivided
    expected: tuple[Array, ...]
    results: list[tuple[Plain, ...]]
    error: SimulationError | None
    largest_bytes_sent: int = 0

    @property
    def circumstances(self) -> str:
        """Such as "4 ranks, 8 units"."""
        sizes = self.network.sizes
        return f"{sizes.ranks} rank{'' if sizes.ranks == 1 else 's'}, {sizes.hidden} units"

    def is_right(self, part: int) -> bool:
        """Whether every rank returned this part of what is expected."""
        return self.error is None and all(equal(result[part], self.expected[part]) for result in self.results)


def attempt(answer: Answer, split: LayerSplit, network: Undivided) -> SplitRun:
    """The student's program on the network's parts."""
    inputs = [split.own_part(network, units) for units in network.units()]
    expected = split.results(network)
    try:
        run = answer.run(split.name, World(network.sizes.ranks, _STEPS), inputs)
    except SimulationError as error:
        return SplitRun(network, expected, [], error)
    results = [_parts_of(result, len(expected)) for result in run.results]
    return SplitRun(network, expected, results, None, int(run.bytes_sent_by_rank.max()))


def numbers(result: Plain) -> Array | None:
    """The result if it is an array of real numbers, as float64."""
    return result.astype(np.float64) if isinstance(result, np.ndarray) and result.dtype.kind in "iuf" else None


def equal(result: Plain, expected: Array) -> bool:
    """Whether a result is an array of these numbers."""
    array = numbers(result)
    return array is not None and array.shape == expected.shape and np.allclose(array, expected, rtol=1e-9, atol=1e-9)


def gathered(ranks: int, rows: int, columns: int) -> int:
    """The bytes that the rank that sends most sends in a ring all-gather of (rows, columns), cut by columns."""
    longest = rows * -(-columns // ranks) * ELEMENT
    return int(costs.all_gather_ring(ranks, ranks * longest).largest_bytes_sent)


def reduced(ranks: int, rows: int, columns: int) -> int:
    """The same of a ring all-reduce whose chunks are all as long as the longest, whole rows."""
    longest = -(-rows // ranks) * columns * ELEMENT
    return int(costs.all_reduce("ring", ranks, ranks * longest).largest_bytes_sent)


def _parts_of(result: Plain, count: int) -> tuple[Plain, ...]:
    """What a rank returned, as a tuple of `count` things; None for what is missing."""
    if count == 1:
        return (result,)
    return tuple(result) if isinstance(result, (tuple, list)) and len(result) == count else (None,) * count


BY_COLUMNS = LayerSplit(
    "by_columns",
    lambda network, units: (network.inputs, network.first[:, units], network.first_bias[units]),
    lambda network: (network.before_relu,),
    lambda sizes: gathered(sizes.ranks, sizes.examples, sizes.hidden),
)
BY_ROWS = LayerSplit(
    "by_rows",
    lambda network, units: (network.hidden[:, units], network.second[units], network.second_bias),
    lambda network: (network.outputs,),
    lambda sizes: reduced(sizes.ranks, sizes.examples, sizes.outputs),
)
TWO_LAYERS = LayerSplit(
    "two_layers",
    lambda network, units: (
        network.inputs,
        network.first[:, units],
        network.first_bias[units],
        network.second[units],
        network.second_bias,
        network.by_outputs,
    ),
    lambda network: (network.outputs, network.by_inputs),
    lambda sizes: (
        reduced(sizes.ranks, sizes.examples, sizes.outputs) + reduced(sizes.ranks, sizes.examples, sizes.inputs)
    ),
)
SPLITS: Mapping[str, LayerSplit] = {split.name: split for split in (BY_COLUMNS, BY_ROWS, TWO_LAYERS)}
