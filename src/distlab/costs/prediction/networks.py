"""Networks by name: their layers with parameters and multiply-adds, and the speeds published for one device.

The layers are computed from the papers' tables. Only layers with parameters are listed, in the order of the forward
pass; a batch normalisation counts with the convolution before it. Parameters are the trainable ones, multiply-adds
those of convolutions and matrix products. The convolutions of Inception V3, and the speeds with their sources, are in
`networks.toml`.
"""

import tomllib
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

BYTES_PER_PARAMETER = 4

TRAINING_TO_FORWARD = 3
"""A training step costs about three forward passes: backward computes two products for each of the forward's."""


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
    def forward_flops(self) -> int:
        """Floating-point operations of one image's forward pass: two for each multiply-add."""
        return 2 * sum(layer.multiply_adds for layer in self.layers)

    @property
    def training_flops(self) -> int:
        """Floating-point operations of one image's training step."""
        return TRAINING_TO_FORWARD * self.forward_flops


def _convolution(
    name: str,
    kernel: tuple[int, int],
    channels: tuple[int, int],
    output: tuple[int, int],
    biases: int = 0,
) -> Layer:
    """A convolution to an image of size `output`; `biases` counts parameters per output channel besides the kernel."""
    weights = kernel[0] * kernel[1] * channels[0] * channels[1]
    return Layer(name, weights + biases * channels[1], weights * output[0] * output[1])


def _dense(name: str, inputs: int, outputs: int) -> Layer:
    return Layer(name, inputs * outputs + outputs, inputs * outputs)


def mlp() -> tuple[Layer, ...]:
    """The lecture's network, `distlab.models.mlp`: 784 → 128 → 10."""
    return _dense("hidden", 28 * 28, 128), _dense("output", 128, 10)


def cnn() -> tuple[Layer, ...]:
    """The course's convolutional network, `distlab.models.cnn`: 32 filters of 3 × 3, pooling, 64 → 10."""
    return (
        _convolution("convolution", (3, 3), (1, 32), (26, 26), biases=1),
        _dense("hidden", 13 * 13 * 32, 64),
        _dense("output", 64, 10),
    )


def vgg16() -> tuple[Layer, ...]:
    """Simonyan and Zisserman, arXiv:1409.1556, table 1, configuration D; images of 224 × 224."""
    layers, channels, size = [], 3, 224
    for block, (count, width) in enumerate(((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)), start=1):
        for index in range(1, count + 1):
            name = f"convolution {block}.{index}"
            layers.append(_convolution(name, (3, 3), (channels, width), (size, size), biases=1))
            channels = width
        size //= 2
    layers.append(_dense("dense 6", size * size * channels, 4096))
    return *layers, _dense("dense 7", 4096, 4096), _dense("dense 8", 4096, 1000)


def resnet(blocks: tuple[int, int, int, int]) -> tuple[Layer, ...]:
    """He et al., arXiv:1512.03385, table 1, bottleneck blocks; (3, 4, 6, 3) gives ResNet-50, (3, 4, 23, 3) ResNet-101.

    Images of 224 × 224. The stride is in the 3 × 3 convolution, as in the reference models of PyTorch and of Goyal et
    al.; the paper has it in the 1 × 1 before, with 6 % fewer multiply-adds for ResNet-50 and as many parameters.
    """
    layers = [_convolution("stem", (7, 7), (3, 64), (112, 112), biases=2)]
    channels, size = 64, 56
    for stage, (count, width) in enumerate(zip(blocks, (64, 128, 256, 512), strict=True), start=2):
        for block in range(1, count + 1):
            name = f"block {stage}.{block}"
            before = (size, size)
            size = size // 2 if stage > 2 and block == 1 else size
            after = (size, size)
            layers.append(_convolution(f"{name} reduce", (1, 1), (channels, width), before, biases=2))
            layers.append(_convolution(f"{name} middle", (3, 3), (width, width), after, biases=2))
            layers.append(_convolution(f"{name} expand", (1, 1), (width, 4 * width), after, biases=2))
            if block == 1:
                layers.append(_convolution(f"{name} shortcut", (1, 1), (channels, 4 * width), after, biases=2))
            channels = 4 * width
    return *layers, _dense("output", channels, 1000)


def inception_v3() -> tuple[Layer, ...]:
    """Szegedy et al., arXiv:1512.00567, table 1 and figures 5 to 7, without the auxiliary classifier; 299 × 299.

    The widths that the paper leaves out are those of the reference models (TensorFlow's slim, PyTorch).
    """
    layers: list[Layer] = []
    for block in _CONTENT["inception_v3"]:
        for chain in block["chains"]:
            channels = block["channels"]
            for width, height, across, size in chain:
                name = f"convolution {len(layers) + 1}"
                layers.append(_convolution(name, (height, across), (channels, width), (size, size), biases=2))
                channels = width
    return *layers, _dense("output", 2048, 1000)


_CONTENT = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_SPEEDS = {
    network: {
        machine: Measurement(**{**entries, "source": _CONTENT["sources"][entries["source"]]})
        for machine, entries in by_machine.items()
    }
    for network, by_machine in _CONTENT["speeds"].items()
}
MODELS: dict[str, Model] = {
    name: Model(name, title, layers, batch, _SPEEDS.get(name, {}))
    for name, title, layers, batch in (
        ("mlp", "the lecture's MLP, 28 × 28 images", mlp(), 64),
        ("cnn", "the course's CNN, 28 × 28 images", cnn(), 64),
        ("resnet50", "ResNet-50, 224 × 224 images", resnet((3, 4, 6, 3)), 32),
        ("resnet101", "ResNet-101, 224 × 224 images", resnet((3, 4, 23, 3)), 64),
        ("inception_v3", "Inception V3, 299 × 299 images", inception_v3(), 64),
        ("vgg16", "VGG-16, 224 × 224 images", vgg16(), 64),
    )
}
"""Every network by its name."""
