"""What predictions are made of: networks, transformers and machines, by name or in your own files, and the assumptions.

The numbers are in the TOML files beside this one, with their sources.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from distlab.runtime.lookups import look_up
from distlab.simulate import Link

BYTES_PER_PARAMETER = 4
BYTES_PER_ACTIVATION = 2

PASSES = 4
"""A transformer's step costs four forward passes: one, one again as activations are recomputed, and two backward."""

Described = TypeVar("Described")


def _content(name: str) -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Assumptions:
    """The numbers behind a prediction, the same for every model, cluster and number of ranks; shares are fractions."""

    bandwidth_share: float
    tcp_core_bandwidth: float
    backward_share: float
    variation: float
    slowdown: float
    fusion_bytes: float
    cycle_seconds: float
    step_overhead: float
    matrix_share: float


ASSUMED = Assumptions(**{name: entry["number"] for name, entry in _content("assumptions").items()})
MEANINGS = {name: entry["meaning"] for name, entry in _content("assumptions").items()}
"""What each number is, in words."""


class Layer(NamedTuple):
    """One layer: its name, its trainable parameters and the multiply-adds of one image's forward pass."""

    name: str
    parameters: int
    multiply_adds: int


@dataclass(frozen=True)
class Measurement:
    """Images per second that one device trained, at this batch size per device, with the source."""

    images_per_second: float
    batch: int
    source: str
    second_hand: bool = False


@dataclass(frozen=True)
class Model:
    """A network: `layers` with parameters in forward order, the batch per device that is usual, and what was measured.

    A batch normalisation counts with the convolution before it; multiply-adds are those of convolutions and matrix
    products. measured: on one device, by hardware name. given: on one device of any machine.
    """

    name: str
    title: str
    layers: tuple[Layer, ...]
    batch: int
    measured: dict[str, Measurement] = field(default_factory=dict)
    given: Measurement | None = None

    @cached_property
    def parameters(self) -> int:
        """Trainable parameters."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """The size of one gradient in single precision."""
        return BYTES_PER_PARAMETER * self.parameters

    @cached_property
    def training_flops(self) -> int:
        """Floating-point operations of one image's training step: two for each multiply-add of three forward passes.

        Backward computes two products for each of the forward's.
        """
        return 3 * 2 * sum(layer.multiply_adds for layer in self.layers)


def _layers(
    convolutions: Sequence[Mapping[str, Any]], biases: int, dense: Sequence[tuple[str, int, int]]
) -> Iterator[Layer]:
    """From the tables of `networks.toml`, which says what they mean."""
    for block in convolutions:
        for chain in block["chains"] * block.get("times", 1):
            channels = block["channels"]
            for width, height, across, size in chain:
                weights = height * across * channels * width
                yield Layer("convolution", weights + biases * width, weights * size**2)
                channels = width
    for name, inputs, outputs in dense:
        yield Layer(name, inputs * outputs + outputs, inputs * outputs)


def _networks(sources: Mapping[str, str], networks: Mapping[str, Mapping[str, Any]]) -> Iterator[Model]:
    for name, entries in networks.items():
        layers = _layers(entries.get("convolutions", ()), entries.get("biases", 0), entries["dense"])
        measured = {
            machine: Measurement(**{**speed, "source": sources[speed["source"]]})
            for machine, speed in entries.get("measured", {}).items()
        }
        yield Model(name, entries["title"], tuple(layers), entries["batch"], measured)


MODELS: dict[str, Model] = {network.name: network for network in _networks(**_content("networks"))}
"""Every network by its name."""


@dataclass(frozen=True)
class Hardware:
    """A cluster of equal hosts.

    inside: the link between two ranks of one host. between: the connection of a host to all others.
    flops: floating-point operations per second of one device in training.
    memory_bandwidth: of one device, in bytes per second.
    algorithm: the all-reduce that its users published results with, or "fastest": NCCL chooses by size and ranks.
    source: where the facts are from; second_hand: True when they were not read in the maker's or authors' own text.
    matrix_flops: the peak of one device in half-precision matrix products with single-precision sums, by its data
        sheet; 0 where it has no units for them. memory_bytes: of one device.
    uses_tcp: True where hosts reach each other by TCP, so that their processors copy every byte; False for RDMA.
    """

    name: str
    title: str
    ranks_per_host: int
    inside: Link
    between: Link
    flops: float
    memory_bandwidth: float
    algorithm: str
    source: str
    second_hand: bool = True
    matrix_flops: float = 0.0
    memory_bytes: float = 0.0
    uses_tcp: bool = False

    @property
    def seconds_per_byte_reduced(self) -> float:
        """γ: adding one array to another reads two bytes and writes one for each byte of it, at memory speed."""
        return 3 / self.memory_bandwidth

    def reached_links(self) -> tuple[Link, Link]:
        """`inside` and `between` at the speed that an all-reduce reaches on them."""
        inside, between = (link.seconds_per_byte / ASSUMED.bandwidth_share for link in (self.inside, self.between))
        copying = 1 / ASSUMED.tcp_core_bandwidth if self.uses_tcp else 0.0
        return Link(self.inside.latency, inside), Link(self.between.latency, between + copying)


_MACHINES = _content("hardware")


def _machine(name: str, own: dict[str, Any]) -> Hardware:
    """The machine with these entries, as `hardware.toml` has them; one that is `like` another has its other ones."""
    entries = {**(_MACHINES["machines"][own["like"]] if "like" in own else {}), **own}
    entries.pop("like", None)
    if images_per_second := entries.pop("resnet50", None):
        entries["flops"] = images_per_second * MODELS["resnet50"].training_flops
    inside, between = (_link(**entries.pop(place)) for place in ("inside", "between"))
    return Hardware(name=name, inside=inside, between=between, **entries)


def _link(latency: float | str, gigabytes_per_second: float = 0, gigabits_per_second: float = 0) -> Link:
    latencies = _MACHINES["latencies"]
    seconds = latencies["large_messages"] * latencies[latency] if isinstance(latency, str) else latency
    if not (gigabits_per_second or gigabytes_per_second):
        raise ValueError("a link needs gigabits_per_second or gigabytes_per_second")
    return Link(seconds, 8e-9 / gigabits_per_second if gigabits_per_second else 1e-9 / gigabytes_per_second)


HARDWARE = {name: _machine(name, entries) for name, entries in _MACHINES["machines"].items()}
"""Every preset by its name."""


@dataclass(frozen=True)
class Transformer:
    """A decoder: `layers` of width `hidden` with `heads` attention heads, `vocabulary` words, `sequence` tokens.

    matrix_parameters: weights of one layer's matrices, 12 hidden² in the GPT family. other_parameters: of one layer,
    biases and normalisation, 13 hidden in the GPT family. learned_positions: whether each position has a vector.
    Sources: N for Narayanan et al., arXiv:2104.04473, equations 2 and 3 and table 1; K for Korthikanti et al.,
    arXiv:2205.05198, equations 1 and 2.
    """

    name: str
    title: str
    layers: int
    hidden: int
    heads: int
    source: str
    matrix_parameters: int
    vocabulary: int = 51_200
    sequence: int = 2_048
    other_parameters: int = 0
    learned_positions: bool = True

    @cached_property
    def parameters(self) -> int:
        """All parameters; for the GPT family 12lh²(1 + 13/(12h) + (V + s)/(12lh)) (N, equation 2)."""
        embedded = self.vocabulary + (self.sequence if self.learned_positions else 0)
        return self.layers * (self.matrix_parameters + self.other_parameters) + embedded * self.hidden

    def training_flops(self, sequences: int) -> float:
        """Floating-point operations of matrix products in one step on this many sequences, recomputation included.

        For the GPT family 96Bslh²(1 + s/(6h) + V/(16lh)) (N, equation 3); the output layer is not recomputed.
        """
        per_token = PASSES * self.layers * (2 * self.matrix_parameters + 4 * self.sequence * self.hidden)
        output = (PASSES - 1) * 2 * self.vocabulary * self.hidden
        return float(sequences * self.sequence * (per_token + output))

    def layer_activation_bytes(self, micro_batch: int, tensor: int = 1) -> float:
        """All that one layer's backward pass needs, on one of `tensor` ranks: sbh(10 + 24/t + 5as/(ht)) (K, eq. 2)."""
        s, b, h, a, t = self.sequence, micro_batch, self.hidden, self.heads, tensor
        return s * b * h * (10 + 24 / t + 5 * a * s / (h * t))

    def boundary_bytes(self, micro_batch: int) -> int:
        """The activations between two layers: 2sbh."""
        return BYTES_PER_ACTIVATION * self.sequence * micro_batch * self.hidden


def _transformer(name: str, hidden: int, **entries: Any) -> Transformer:
    if "matrix_parameters" not in entries:
        entries |= {"matrix_parameters": 12 * hidden**2, "other_parameters": 13 * hidden}
    return Transformer(name, hidden=hidden, **entries)


TRANSFORMERS = {name: _transformer(name, **entries) for name, entries in _content("transformers").items()}
"""Every transformer by its name; with activations recomputed, mixed precision and Adam."""


def model_of(model: str | Model) -> Model:
    """A network by its name, or your own from a file NAME.toml, which may say the speed of one device.

    The file has `batch`, per rank, and `layers` in the order of the forward pass, each with `name`, `parameters` and
    the `flops` of one image's forward pass. It may have `title` and `images_per_second`, which one device trains.
    Raises ValueError with the file's name for anything else, NoSuchName for an unknown name.
    """
    if isinstance(model, Model):
        return model
    if not model.endswith(".toml"):
        return look_up(MODELS, model, "model")
    file = Path(model)

    def layer(name: str, parameters: float, flops: float) -> Layer:
        return Layer(name, round(parameters), round(flops / 2))

    def network(
        layers: list[dict[str, Any]], batch: int, title: str = file.stem, images_per_second: float | None = None
    ) -> Model:
        speed = Measurement(images_per_second, batch, model) if images_per_second else None
        return Model(file.stem, title, tuple(layer(**each) for each in layers), batch, given=speed)

    return _described(network, file)


def hardware_of(hardware: str | Hardware) -> Hardware:
    """A machine by its name, or your own from a file NAME.toml with the entries of one in hardware.toml.

    `like` takes from that one what the file does not say. Raises as `model_of` does.
    """
    if isinstance(hardware, Hardware):
        return hardware
    if not hardware.endswith(".toml"):
        return look_up(HARDWARE, hardware, "hardware")
    file = Path(hardware)
    return _described(lambda **own: _machine(file.stem, {"title": file.stem, "source": hardware} | own), file)


def _described(take: Callable[..., Described], file: Path) -> Described:
    try:
        return take(**tomllib.loads(file.read_text(encoding="utf-8-sig")))
    except KeyError as error:
        raise ValueError(f"{file}: there is no {error}") from error
    except FileNotFoundError as error:
        raise ValueError(f"There is no file {file.absolute()}.") from error
    except (OSError, TypeError, ValueError) as error:  # Python says what is missing or unknown
        raise ValueError(f"{file}: {error}") from error
