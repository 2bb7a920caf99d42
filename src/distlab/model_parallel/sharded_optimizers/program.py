"""Data-parallel training with Adam whose states are sharded as far as ZeRO's stages go, as a program of every rank."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from distlab.collectives import all_gather, chunks_of, reduce_scatter, ring_all_reduce
from distlab.model_parallel import layered_network
from distlab.model_parallel.sharded_optimizers.adam import Adam, AdamState
from distlab.model_parallel.sharded_optimizers.memory import check_stage
from distlab.simulate.interface import Rank


@dataclass(frozen=True)
class Trained:
    """What one rank has after the last step.

    parameters: one flat array for each layer, whole in stages 0 to 2, this rank's shard in stage 3.
    bytes_held: of "parameters", "gradients" and "optimizer", when all gradients of a step were ready.
    gathered_bytes: of the whole layers that stage 3 held at once, at most; 0 otherwise.
    """

    parameters: list[np.ndarray]
    bytes_held: dict[str, int]
    gathered_bytes: int


class _Replica:
    """One rank's part of the training: it holds what its stage lets it hold, and nothing else between two steps."""

    def __init__(self, rank: Rank, layers: Sequence[np.ndarray], stage: int, adam: Adam) -> None:
        self._rank = rank
        self._stage = stage
        self._shapes = [layer.shape for layer in layers]
        self.parameters = [self._mine(layer.ravel(), sharded=stage == 3).copy() for layer in layers]
        self._states = [AdamState(adam, self._mine(layer.ravel(), sharded=stage >= 1)) for layer in layers]
        self._gradients: list[np.ndarray | None] = [None] * len(layers)
        self.bytes_held: dict[str, int] = {}
        self.gathered_bytes = 0

    async def step(self, inputs: np.ndarray, labels: np.ndarray, examples: int) -> None:
        """One step on this rank's part of a batch that has `examples` examples altogether."""
        last = len(self._shapes) - 1
        activations = [inputs]
        for index in range(len(self._shapes)):
            layer = await self._layer(index)
            activations.append(layered_network.forward(layer, activations[-1], index == last))
        gradient = layered_network.loss_gradient(activations[-1], labels, examples)
        for index in reversed(range(len(self._shapes))):
            layer = await self._layer(index)
            inputs, outputs = activations[index : index + 2]
            gradient, by_layer = layered_network.backward(layer, inputs, outputs, gradient, index == last)
            self._gradients[index] = await self._reduced(by_layer.ravel())
        self._count()
        for index in range(len(self._shapes)):
            await self._update(index)

    async def _layer(self, index: int) -> np.ndarray:
        """A whole layer: held anyway, or in stage 3 gathered, and dropped as soon as the pass through it is done."""
        values = self.parameters[index]
        if self._stage == 3:
            values = await all_gather(self._rank, values)
            self.gathered_bytes = max(self.gathered_bytes, values.nbytes)
        return values.reshape(self._shapes[index])

    async def _reduced(self, gradient: np.ndarray) -> np.ndarray:
        """The sum over the ranks: whole, or from stage 2 on only this rank's shard, and the rest is dropped."""
        if self._stage == 0:
            return await ring_all_reduce(self._rank, gradient)
        shard = await reduce_scatter(self._rank, gradient)
        if self._stage >= 2:
            return shard.copy()
        # Stage 1 keeps the buffer of the whole gradient, though only this rank's part of it holds a sum.
        self._mine(gradient, sharded=True)[:] = shard
        return gradient

    async def _update(self, index: int) -> None:
        values, gradient = self.parameters[index], self._gradients[index]
        if self._stage in (1, 2):
            shard = self._mine(values, sharded=True)
            self._states[index].update(shard, gradient if self._stage == 2 else self._mine(gradient, sharded=True))
            values[:] = await all_gather(self._rank, shard)
        else:
            self._states[index].update(values, gradient)
        self._gradients[index] = None

    def _mine(self, values: np.ndarray, sharded: bool) -> np.ndarray:
        return chunks_of(values, self._rank.size)[self._rank.index] if sharded else values

    def _count(self) -> None:
        self.bytes_held = {
            "parameters": sum(values.nbytes for values in self.parameters),
            "gradients": sum(gradient.nbytes for gradient in self._gradients),
            "optimizer": sum(state.nbytes for state in self._states),
        }


async def train(
    rank: Rank,
    layers: Sequence[np.ndarray],
    batches: Sequence[tuple[np.ndarray, np.ndarray]],
    stage: int,
    adam: Adam | None = None,
) -> Trained:
    """One step of Adam for each batch, of which rank r takes chunk r.

    layers: the network at the start (`layered_network`), float16, 32 or 64, the same on every rank.
    batches: (inputs, labels) of the whole batch, the same on every rank.
    stage: 0 to 3, as in `memory.STAGES`; the weights come out the same, up to the order of additions.
    Sends 2((N−1)/N)n bytes a step in stages 0 to 2, 3((N−1)/N)n in stage 3, n being the layers' bytes.
    Source: Rajbhandari et al., arXiv:1910.02054, section 5. Raises ValueError for an unknown stage.
    """
    check_stage(stage)
    replica = _Replica(rank, layers, stage, adam or Adam())
    for inputs, labels in batches:
        own_inputs, own_labels = (chunks_of(part, rank.size)[rank.index] for part in (inputs, labels))
        await replica.step(own_inputs, own_labels, len(labels))
    return Trained(replica.parameters, replica.bytes_held, replica.gathered_bytes)


def whole_layers(results: Sequence[Trained], shapes: Sequence[tuple[int, ...]], stage: int) -> list[np.ndarray]:
    """The layers after training, from what every rank has; `shapes` are theirs."""
    if stage < 3:
        return [values.reshape(shape) for values, shape in zip(results[0].parameters, shapes, strict=True)]
    shards = zip(*(each.parameters for each in results), strict=True)
    return [np.concatenate(parts).reshape(shape) for parts, shape in zip(shards, shapes, strict=True)]


def train_serially(
    layers: Sequence[np.ndarray], batches: Sequence[tuple[np.ndarray, np.ndarray]], adam: Adam | None = None
) -> list[np.ndarray]:
    """The same training on one device, with whole batches: what the sharded runs are compared with."""
    trained = [layer.copy() for layer in layers]
    states = [AdamState(adam or Adam(), layer) for layer in trained]
    for inputs, labels in batches:
        for layer, state, gradient in zip(
            trained, states, layered_network.gradients(trained, inputs, labels), strict=True
        ):
            state.update(layer, gradient)
    return trained
