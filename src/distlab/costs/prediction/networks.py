"""Networks by name: their layers with parameters and multiply-adds, and the speeds published for one device.

The layers are computed from the papers' tables in `networks.toml`, where the speeds are too, all with their sources.
Only layers with parameters are listed, in the order of the forward pass; a batch normalisation counts with the
convolution before it. Parameters are the trainable ones, multiply-adds those of convolutions and matrix products.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

BYTES_PER_PARAMETER = 4


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
    """A network: `layers` in forward order, the batch per device that is usual, and `measured` by hardware name."""

    name: str
    title: str
    layers: tuple[Layer, ...]
    batch: int
    measured: dict[str, Measurement] = field(default_factory=dict)

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
    number = 0
    for block in convolutions:
        for chain in block["chains"] * block.get("times", 1):
            channels = block["channels"]
            for width, height, across, size in chain:
                number += 1
                weights = height * across * channels * width
                name = block.get("name", f"convolution {number}")
                yield Layer(name, weights + biases * width, weights * size**2)
                channels = width
    for name, inputs, outputs in dense:
        yield Layer(name, inputs * outputs + outputs, inputs * outputs)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def _network(
    name: str,
    title: str,
    batch: int,
    dense: Sequence[tuple[str, int, int]],
    convolutions: Sequence[Mapping[str, Any]] = (),
    biases: int = 0,
    measured: Mapping[str, Mapping[str, Any]] | None = None,
) -> Model:
    speeds = {
        machine: Measurement(**{**entries, "source": _CONTENT["sources"][entries["source"]]})
        for machine, entries in (measured or {}).items()
    }
    return Model(name, title, tuple(_layers(convolutions, biases, dense)), batch, speeds)


MODELS: dict[str, Model] = {name: _network(name, **entries) for name, entries in _CONTENT["networks"].items()}
"""Every network by its name."""
