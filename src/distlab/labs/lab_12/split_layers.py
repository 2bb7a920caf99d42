"""Layers that are split among ranks, by columns, by rows and both: what each rank holds, and what has to come out.

Numbers are small whole ones, so that sums are exact in whichever order they are added.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from distlab import costs
from distlab.labs.answer import Answer
from distlab.simulate import Network, SimulationError, World

ELEMENT = np.dtype(np.float64).itemsize
_STEPS = Network(latency=1.0, seconds_per_byte=0.0)


@dataclass(frozen=True)
class Sizes:
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

    sizes: Sizes
    inputs: np.ndarray
    first: np.ndarray
    first_bias: np.ndarray
    second: np.ndarray
    second_bias: np.ndarray
    by_outputs: np.ndarray

    @property
    def before_relu(self) -> np.ndarray:
        """What the first layer computes before its ReLU."""
        return self.inputs @ self.first + self.first_bias

    @property
    def hidden(self) -> np.ndarray:
        """The first layer's outputs."""
        return np.maximum(self.before_relu, 0)

    @property
    def outputs(self) -> np.ndarray:
        """The second layer's outputs."""
        return self.hidden @ self.second + self.second_bias

    @property
    def by_inputs(self) -> np.ndarray:
        """The gradient of the loss by the inputs."""
        return (self.by_outputs @ self.second.T * (self.before_relu > 0)) @ self.first.T

    def units(self) -> list[np.ndarray]:
        """The hidden units of each rank: as many as `numpy.array_split` gives it."""
        return np.array_split(np.arange(self.sizes.hidden), self.sizes.ranks)


def drawn(generator: np.random.Generator, sizes: Sizes) -> Undivided:
    """Random small whole numbers; no bias is 0, no matrix is."""

    def numbers(*shape: int) -> np.ndarray:
        return generator.integers(1, 5, shape) * generator.choice([-1.0, 1.0], shape)

    n, inputs, hidden, outputs = sizes.examples, sizes.inputs, sizes.hidden, sizes.outputs
    return Undivided(
        sizes,
        numbers(n, inputs),
        numbers(inputs, hidden),
        numbers(hidden),
        numbers(hidden, outputs),
        numbers(outputs),
        numbers(n, outputs),
    )


@dataclass(frozen=True)
class Split:
    """One way to split.

    name: of the student's program.  held: what a rank is given, of a network and the rank's units.
    wanted: what every rank has to return.  bytes_at_most: what the rank that sends most may send.
    """

    name: str
    held: Callable[[Undivided, np.ndarray], tuple[np.ndarray, ...]]
    wanted: Callable[[Undivided], tuple[np.ndarray, ...]]
    bytes_at_most: Callable[[Sizes], int]


@dataclass(frozen=True)
class SplitRun:
    """One run of a student's program. results: by rank, as tuples of what was returned; None if `error` ended it."""

    network: Undivided
    wanted: tuple[np.ndarray, ...]
    results: list[tuple] | None
    error: SimulationError | None
    largest_bytes_sent: int = 0

    @property
    def circumstances(self) -> str:
        """Such as "4 ranks, 8 units"."""
        sizes = self.network.sizes
        return f"{sizes.ranks} rank{'' if sizes.ranks == 1 else 's'}, {sizes.hidden} units"

    def is_right(self, part: int) -> bool:
        """Whether every rank returned this part of what is wanted."""
        return self.results is not None and all(equal(result[part], self.wanted[part]) for result in self.results)


def attempt(answer: Answer, split: Split, network: Undivided) -> SplitRun:
    """The student's program on the network's parts."""
    inputs = [split.held(network, units) for units in network.units()]
    wanted = split.wanted(network)
    try:
        run = answer.run(split.name, World(network.sizes.ranks, _STEPS), inputs)
    except SimulationError as error:
        return SplitRun(network, wanted, None, error)
    results = [_parts_of(result, len(wanted)) for result in run.results]
    return SplitRun(network, wanted, results, None, int(run.bytes_sent_by_rank.max()))


def equal(result: object, wanted: np.ndarray) -> bool:
    """Whether a result is an array of these numbers."""
    is_numbers = isinstance(result, np.ndarray) and result.dtype.kind in "iuf"
    return is_numbers and result.shape == wanted.shape and bool(np.allclose(result, wanted, rtol=1e-9, atol=1e-9))


def gathered(ranks: int, rows: int, columns: int) -> int:
    """The bytes that the rank that sends most sends in a ring all-gather of (rows, columns), cut by columns."""
    longest = rows * -(-columns // ranks) * ELEMENT
    return int(costs.all_gather_ring(ranks, ranks * longest).largest_bytes_sent)


def reduced(ranks: int, rows: int, columns: int) -> int:
    """The same of a ring all-reduce whose chunks are all as long as the longest, whole rows."""
    longest = -(-rows // ranks) * columns * ELEMENT
    return int(costs.all_reduce("ring", ranks, ranks * longest).largest_bytes_sent)


def _parts_of(result: object, count: int) -> tuple:
    """What a rank returned, as a tuple of as many things as are wanted; None for what is not there."""
    if count == 1:
        return (result,)
    given: Sequence = result if isinstance(result, (tuple, list)) else ()
    return tuple(given) if len(given) == count else (None,) * count


BY_COLUMNS = Split(
    "by_columns",
    lambda network, units: (network.inputs, network.first[:, units], network.first_bias[units]),
    lambda network: (network.before_relu,),
    lambda sizes: gathered(sizes.ranks, sizes.examples, sizes.hidden),
)
BY_ROWS = Split(
    "by_rows",
    lambda network, units: (network.hidden[:, units], network.second[units], network.second_bias),
    lambda network: (network.outputs,),
    lambda sizes: reduced(sizes.ranks, sizes.examples, sizes.outputs),
)
TWO_LAYERS = Split(
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
SPLITS: Mapping[str, Split] = {split.name: split for split in (BY_COLUMNS, BY_ROWS, TWO_LAYERS)}
