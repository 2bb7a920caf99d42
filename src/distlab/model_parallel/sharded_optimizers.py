"""ZeRO: data parallelism with Adam in which every rank holds only its share of the model's states.

    run = World(4).run(lambda rank: train(rank, layers, batches, stage=3))
    run.results[0].bytes_held, run.bytes_sent
    model_state_bytes(7.5e9, ranks=64, stage=3)  # by formula, for a model of any size

Ψ parameters, N ranks. Stage 0 is plain data parallelism; stage 1 shards the optimizer's states (P_os in the paper),
stage 2 also the gradients (P_os+g), stage 3 also the parameters (P_os+g+p).
Source: Rajbhandari et al., arXiv:1910.02054, sections 3.1, 5 and 7, and figure 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from distlab.collectives import all_gather, chunks_of, reduce_scatter, ring_all_reduce
from distlab.model_parallel import layered_network
from distlab.simulate import Rank

STAGES = {
    0: "every device holds all states",
    1: "optimizer states sharded",
    2: "optimizer states and gradients sharded",
    3: "optimizer states, gradients and parameters sharded",
}

Numbers = np.ndarray | np.float64


@dataclass(frozen=True)
class BytesPerParameter:
    """What each state takes for one parameter: its value, its gradient, and what the optimizer keeps (K)."""

    parameters: float
    gradients: float
    optimizer: float


MIXED_PRECISION_ADAM = BytesPerParameter(2, 2, 12)
"""fp16 values and gradients; fp32 copy of the values, momentum and variance: K = 12 (section 3.1), 16 together."""


def model_state_bytes(
    parameters: ArrayLike, ranks: ArrayLike, stage: int, each: BytesPerParameter = MIXED_PRECISION_ADAM
) -> Numbers:
    """The bytes of parameters, gradients and optimizer states on one device; float64, shape of the arguments together.

    Stage 0: (2 + 2 + K)Ψ. Stage 1: (2 + 2)Ψ + KΨ/N. Stage 2: 2Ψ + (2 + K)Ψ/N. Stage 3: (2 + 2 + K)Ψ/N.
    Activations and buffers come on top. Raises ValueError for an unknown stage.
    """
    _check_stage(stage)
    psi, n = np.broadcast_arrays(np.asarray(parameters, np.float64), np.asarray(ranks, np.float64))
    whole = sharded = 0.0
    for sharded_from, size in ((3, each.parameters), (2, each.gradients), (1, each.optimizer)):
        if stage >= sharded_from:
            sharded += size
        else:
            whole += size
    return (whole * psi + sharded * psi / n)[()]


def bytes_sent(parameter_bytes: ArrayLike, ranks: ArrayLike, stage: int) -> Numbers:
    """The bytes that each rank sends in one step; n = `parameter_bytes`, those of all values (and all gradients).

    Stages 0 to 2: 2((N−1)/N)n, a reduce-scatter of the gradients and an all-gather of the parameters, which together
    are the all-reduce of stage 0. Stage 3: 3((N−1)/N)n, since the parameters are gathered twice, for the forward and
    for the backward pass (section 7: at most 1.5 times plain data parallelism).
    """
    _check_stage(stage)
    n, ranks = np.asarray(parameter_bytes, np.float64), np.asarray(ranks, np.float64)
    return ((3 if stage == 3 else 2) * (ranks - 1) / ranks * n)[()]


def _check_stage(stage: int) -> None:
    """Raise ValueError unless `stage` is 0, 1, 2 or 3."""
    if stage not in STAGES:
        raise ValueError(f"ZeRO has the stages 1, 2 and 3, and 0 for none, not {stage}")


class Adam:
    """The optimizer of some parameters with its states. Source: Kingma and Ba, arXiv:1412.6980, algorithm 1."""

    def __init__(self, values: np.ndarray, learning_rate: float) -> None:
        """`values` are the parameters at the start; they are not kept."""
        self._learning_rate = learning_rate
        self._momentum, self._variance = np.zeros_like(values), np.zeros_like(values)
        self._steps = 0

    @property
    def nbytes(self) -> int:
        """The bytes of all its arrays."""
        return self._momentum.nbytes + self._variance.nbytes

    def update(self, values: np.ndarray, gradient: np.ndarray) -> None:
        """Change `values` in place by one step along `gradient`, of the same shape and dtype."""
        beta_1, beta_2, epsilon = 0.9, 0.999, 1e-8
        self._steps += 1
        self._momentum += (1 - beta_1) * (gradient - self._momentum)
        self._variance += (1 - beta_2) * (gradient**2 - self._variance)
        momentum = self._momentum / (1 - beta_1**self._steps)
        variance = self._variance / (1 - beta_2**self._steps)
        values -= self._learning_rate * momentum / (np.sqrt(variance) + epsilon)


class StateBytes(NamedTuple):
    """The bytes that one rank holds of each of the model's states."""

    parameters: int
    gradients: int
    optimizer: int


@dataclass(frozen=True)
class Trained:
    """What one rank has after the last step.

    parameters: one flat array for each layer, whole in stages 0 to 2, this rank's shard in stage 3.
    bytes_held: when all gradients of a step were ready.
    gathered_bytes: of the whole layers that stage 3 held at once, at most; 0 otherwise.
    """

    parameters: list[np.ndarray]
    bytes_held: StateBytes
    gathered_bytes: int


class Replica:
    """One rank's part of the training: it holds what its stage lets it hold, and nothing else between two steps."""

    def __init__(self, rank: Rank, layers: Sequence[np.ndarray], stage: int, learning_rate: float) -> None:
        self.rank = rank
        self.stage = stage
        self.shapes = [layer.shape for layer in layers]
        flat, shares = [layer.ravel() for layer in layers], [self.own_share(layer.ravel()) for layer in layers]
        self.parameters = [values.copy() for values in (shares if stage == 3 else flat)]
        self.adam_states = [Adam(values, learning_rate) for values in (shares if stage >= 1 else flat)]
        self.gradients: dict[int, np.ndarray] = {}
        self.bytes_held = StateBytes(0, 0, 0)
        self.gathered_bytes = 0

    async def step(self, inputs: np.ndarray, labels: np.ndarray, examples: int) -> None:
        """One step on this rank's part of a batch that has `examples` examples altogether."""
        last = len(self.shapes) - 1
        activations = [inputs]
        for index in range(len(self.shapes)):
            layer = await self._layer(index)
            activations.append(layered_network.forward(layer, activations[-1], index == last))
        gradient = layered_network.loss_gradient(activations[-1], labels, examples)
        for index in reversed(range(len(self.shapes))):
            layer = await self._layer(index)
            inputs, outputs = activations[index : index + 2]
            gradient, by_layer = layered_network.backward(layer, inputs, outputs, gradient, index == last)
            self.gradients[index] = await self.sum_over_ranks(by_layer.ravel())
        self._count()
        for index in range(len(self.shapes)):
            await self.update_layer(index)

    async def _layer(self, index: int) -> np.ndarray:
        """A whole layer; in stage 3 it is gathered, and dropped as soon as the pass through it is done."""
        values = self.parameters[index]
        if self.stage == 3:
            values = await all_gather(self.rank, values)
            self.gathered_bytes = max(self.gathered_bytes, values.nbytes)
        return values.reshape(self.shapes[index])

    def own_share(self, layer: np.ndarray) -> np.ndarray:
        """The 1/N of a layer's values that this rank updates."""
        return chunks_of(layer, self.rank.size)[self.rank.index]

    async def sum_over_ranks(self, gradient: np.ndarray) -> np.ndarray:
        """What this rank keeps of a layer's gradient, after the backward pass through it."""
        if self.stage == 0:
            return await ring_all_reduce(self.rank, gradient)
        own_sum = await reduce_scatter(self.rank, gradient)
        if self.stage == 1:  # keeps the whole array, of which only its own share is a sum
            self.own_share(gradient)[:] = own_sum
            return gradient
        return own_sum.copy()  # stages 2 and 3 drop the rest

    async def update_layer(self, layer: int) -> None:
        """One step of Adam; in stages 1 and 2 each rank updates its share and sends it to all."""
        parameters, gradient = self.parameters[layer], self.gradients.pop(layer)
        if self.stage in (0, 3):  # the rank has all of the layer, or its share of everything
            self.adam_states[layer].update(parameters, gradient)
        else:
            own_sum = self.own_share(gradient) if self.stage == 1 else gradient
            self.adam_states[layer].update(self.own_share(parameters), own_sum)
            parameters[:] = await all_gather(self.rank, self.own_share(parameters))

    def _count(self) -> None:
        self.bytes_held = StateBytes(
            parameters=sum(values.nbytes for values in self.parameters),
            gradients=sum(gradient.nbytes for gradient in self.gradients.values()),
            optimizer=sum(state.nbytes for state in self.adam_states),
        )


async def train(
    rank: Rank,
    layers: Sequence[np.ndarray],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    stage: int,
    learning_rate: float = 1e-3,
) -> Trained:
    """One step of Adam for each batch, of which rank r takes chunk r.

    layers: the network at the start (`layered_network`), float32 or 64, the same on every rank.
    batches: (inputs, labels) of the whole batch, the same on every rank.
    stage: 0 to 3, as in `STAGES`; the weights come out the same, up to the order of additions.
    Sends `bytes_sent` a step. Raises ValueError for an unknown stage.
    """
    _check_stage(stage)
    replica = Replica(rank, layers, stage, learning_rate)
    for inputs, labels in batches:
        own_inputs, own_labels = (chunks_of(part, rank.size)[rank.index] for part in (inputs, labels))
        await replica.step(own_inputs, own_labels, len(labels))
    return Trained(replica.parameters, replica.bytes_held, replica.gathered_bytes)


def whole_layers(results: Sequence[Trained], shapes: Sequence[tuple[int, ...]], stage: int) -> list[np.ndarray]:
    """The layers after training, from what every rank has; `shapes` are theirs."""
    if stage < 3:
        return [values.reshape(shape) for values, shape in zip(results[0].parameters, shapes, strict=True)]
    shards = zip(*(result.parameters for result in results), strict=True)
    return [np.concatenate(parts).reshape(shape) for parts, shape in zip(shards, shapes, strict=True)]


def train_serially(
    layers: Sequence[np.ndarray], batches: Sequence[tuple[np.ndarray, np.ndarray]], learning_rate: float = 1e-3
) -> list[np.ndarray]:
    """The same training on one device, with whole batches: what the sharded runs are compared with."""
    trained = [layer.copy() for layer in layers]
    states = [Adam(layer, learning_rate) for layer in trained]
    for inputs, labels in batches:
        gradients = layered_network.gradients(trained, inputs, labels)
        for layer, state, gradient in zip(trained, states, gradients, strict=True):
            state.update(layer, gradient)
    return trained
