"""Step time and memory of a transformer on tensor × pipeline × data ranks, with or without ZeRO.

Placed as in Narayanan et al., arXiv:2104.04473: the tensor ranks of a layer are neighbours on one host, then come the
data-parallel ranks, then the stages of the pipeline.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from distlab.costs.formulas.hierarchical import ring
from distlab.costs.prediction.presets import (
    ASSUMED,
    BYTES_PER_ACTIVATION,
    PASSES,
    TRANSFORMERS,
    Hardware,
    Transformer,
    hardware_of,
)
from distlab.model_parallel.pipelines import activations_held, bubble_fraction
from distlab.model_parallel.sharded_optimizers import model_state_bytes
from distlab.runtime.lookups import look_up
from distlab.simulate import Link

ALL_REDUCES_PER_LAYER = 6
"""Two in a layer's forward pass, two in its recomputation, two in its backward pass (Shoeybi et al., 1909.08053)."""

MEMORY_PASSES = 2 * PASSES
"""Activations are written and read once in each of the passes of a step."""

MICRO_BATCHES_PER_STAGE = 4
"""With four times as many micro-batches as stages the bubble is small (Huang et al., arXiv:1811.06965, section 2.3)."""


@dataclass(frozen=True)
class Split:
    """How a model is divided: among `tensor` ranks in each layer and `pipeline` stages of layers, `chunks` to a stage.

    zero: 0 to 3. micro_batch: sequences that go through the pipeline together.
    """

    tensor: int = 1
    pipeline: int = 1
    zero: int = 0
    micro_batch: int = 1
    chunks: int = 1


@dataclass(frozen=True)
class SplitPrediction:
    """What `predict_split` gives; bytes are those of one device.

    data: replicas. micro_batches: that the batch of each is cut into. seconds: of the parts of a step, which follow one
    another: "matrices", the matrix products; "other" computing, at the speed of memory; communication by "tensor",
    "pipeline" and "data", none of it hidden; "bubble", waiting for the pipeline to fill and to drain.
    """

    transformer: Transformer
    hardware: Hardware
    split: Split
    ranks: int
    data: int
    micro_batches: int
    seconds: Mapping[str, float]
    state_bytes: float
    activation_bytes: float

    @property
    def sequences(self) -> int:
        """Of all ranks in a step."""
        return self.data * self.split.micro_batch * self.micro_batches

    @property
    def step_seconds(self) -> float:
        """Of a whole step."""
        return sum(self.seconds.values())

    @property
    def flops_per_device(self) -> float:
        """Floating-point operations of matrix products per second and device, recomputation included."""
        return self.transformer.training_flops(self.sequences) / (self.ranks * self.step_seconds)

    @property
    def bubble_fraction(self) -> float:
        """The bubble's share of the pipeline's time, by formula."""
        return float(bubble_fraction(self.split.pipeline, self.micro_batches, self.split.chunks))

    @property
    def fits(self) -> bool:
        """Whether states and activations fit into a device's memory."""
        return self.state_bytes + self.activation_bytes <= self.hardware.memory_bytes


def predict_split(
    transformer: str | Transformer,
    hardware: str | Hardware,
    ranks: int,
    split: Split | None = None,
    *,
    sequences: int | None = None,
) -> SplitPrediction:
    """One training step with mixed precision, Adam and recomputed activations.

    sequences: in a step, of all ranks together; by default MICRO_BATCHES_PER_STAGE micro-batches per stage and replica.

    Left out: reading data, the optimizer's own time, ranks that are late, overlap of communication with computing (so
    ZeRO comes out too slow where its transfers are hidden), congestion (so it comes out too fast where they are not).

    Raises ValueError for unknown names, and for ranks, layers, heads or sequences that do not divide.
    """
    model = look_up(TRANSFORMERS, transformer, "transformer") if isinstance(transformer, str) else transformer
    machine, split = hardware_of(hardware), split or Split()
    if not machine.matrix_flops:
        raise ValueError(f"{machine.name} has no matrix units for half precision")
    data, micro_batches = _divided(model, int(ranks), split, sequences)
    inside, between = machine.reached_links()
    boundary_bytes = model.boundary_bytes(split.micro_batch)
    activations = model.layer_activation_bytes(split.micro_batch, split.tensor)
    parameters = model.parameters / (split.tensor * split.pipeline)
    layer_passes = micro_batches * model.layers / split.pipeline
    flops = model.training_flops(data * split.micro_batch * micro_batches)
    matrix = flops / (ranks * machine.matrix_flops * ASSUMED.matrix_share)
    other = layer_passes * MEMORY_PASSES * activations / machine.memory_bandwidth
    one_all_reduce = ring(split.tensor, boundary_bytes, machine.ranks_per_host)
    tensor = layer_passes * ALL_REDUCES_PER_LAYER * float(one_all_reduce.seconds(inside, between))
    # The first stage keeps its layers' inputs for every micro-batch under way, not divided among the tensor ranks, and
    # the activations of the layer that is being recomputed (Korthikanti et al., arXiv:2205.05198, section 5).
    schedule = "interleaved" if split.chunks > 1 else "1f1b"
    under_way = activations_held(schedule, split.pipeline, micro_batches, 0, split.chunks)
    kept = under_way * model.layers / split.pipeline * boundary_bytes
    seconds = {
        "matrices": matrix,
        "other": other,
        "tensor": tensor,
        "pipeline": _pipeline_seconds(boundary_bytes, split, micro_batches, machine),
        "bubble": (split.pipeline - 1) / (split.chunks * micro_batches) * (matrix + other + tensor),
        "data": _data_seconds(parameters, split, data, micro_batches, machine),
    }
    states = float(model_state_bytes(parameters, data, split.zero))
    return SplitPrediction(model, machine, split, int(ranks), data, micro_batches, seconds, states, kept + activations)


def _divided(model: Transformer, ranks: int, split: Split, sequences: int | None) -> tuple[int, int]:
    """How many replicas the ranks make, and how many micro-batches each has.

    Raises ValueError where something is left over.
    """

    def divided(number: int, by: int, what: str) -> int:
        if number < 1 or number % by:
            raise ValueError(f"{number} {what} = {by}")
        return number // by

    data = divided(ranks, split.tensor * split.pipeline, "ranks are no multiple of tensor × pipeline")
    divided(model.layers, split.pipeline * split.chunks, f"layers of {model.name} are no multiple of stages × chunks")
    divided(model.heads, split.tensor, f"attention heads of {model.name} are no multiple of tensor")
    if sequences is None:
        return data, MICRO_BATCHES_PER_STAGE * split.pipeline
    a_time = data * split.micro_batch
    micro_batches = divided(sequences, a_time, "sequences are no multiple of replicas × micro-batch")
    if split.chunks > 1:
        divided(micro_batches, split.pipeline, "micro-batches of interleaved chunks are no multiple of stages")
    return data, micro_batches


def _pipeline_seconds(boundary_bytes: int, split: Split, micro_batches: int, machine: Hardware) -> float:
    """Every chunk sends each micro-batch on, forward and backward.

    Each tensor rank sends its part, and the receiving ones gather the whole inside their host (the scatter/gather
    optimization, Narayanan et al., section 4.1).
    """
    if split.pipeline == 1:
        return 0.0
    (inside, between), per_host = machine.reached_links(), machine.ranks_per_host
    part = boundary_bytes / split.tensor
    if split.tensor * split.pipeline <= per_host:
        sending = inside.latency + part * inside.seconds_per_byte
    else:
        sending = between.latency + per_host * part * between.seconds_per_byte
    gathering = (split.tensor - 1) * (inside.latency + part * inside.seconds_per_byte)
    return 2 * split.chunks * micro_batches * (sending + gathering)


def _data_seconds(parameters: float, split: Split, data: int, micro_batches: int, machine: Hardware) -> float:
    """Gradients reduced and parameters gathered among the replicas, by rings that share their hosts' connections.

    A reduce-scatter and an all-gather in each step; with ZeRO 2 one reduce-scatter for each micro-batch, since sums are
    kept nowhere whole; with ZeRO 3 also two all-gathers for each.
    """
    if data == 1:
        return 0.0
    gradient_bytes = BYTES_PER_ACTIVATION * parameters
    (inside, between), per_host = machine.reached_links(), machine.ranks_per_host
    rings = min(split.tensor, per_host)
    shared = Link(between.latency, rings * between.seconds_per_byte)
    both = float(ring(data, gradient_bytes, max(1, per_host // rings)).seconds(inside, shared))
    halves = {0: 2, 1: 2, 2: micro_batches + 1, 3: 3 * micro_batches}[split.zero]
    return both * halves / 2
