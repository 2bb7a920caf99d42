"""Networks by name: their layers, and the speeds on one device that were published for them."""

from dataclasses import dataclass, field
from functools import cached_property

from distlab.costs.prediction import architectures
from distlab.costs.prediction.architectures import BYTES_PER_PARAMETER, Layer


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
        return architectures.forward_flops(self.layers)

    @property
    def training_flops(self) -> int:
        """Floating-point operations of one image's training step."""
        return architectures.training_flops(self.layers)


_ROCE = "Horovod README of 2017 until October, table of 4 servers with 4 Pascal GPUs, row 'Baseline single-GPU'"
_TCP40 = "Horovod README of 2017 until October, table of 16 servers with 4 Pascal GPUs, row 'Baseline single-GPU'"

_NVIDIA = "NVIDIA DeepLearningExamples, PyTorch ResNet50 v1.5, one GPU, container of March 2021"
_DGX1 = "TensorFlow's performance benchmarks of May 2017, NVIDIA DGX-1 with P100, one GPU, synthetic data"


def _horovod(images_per_second: float, on_the_second_cluster: float) -> dict[str, Measurement]:
    first = Measurement(images_per_second, 64, _ROCE)
    second = Measurement(on_the_second_cluster, 64, _TCP40)
    return {"horovod-roce25": first, "horovod-tcp25": first, "horovod-tcp40": second}


MODELS: dict[str, Model] = {
    model.name: model
    for model in (
        Model("mlp", "the lecture's MLP, 28 × 28 images", architectures.mlp(), batch=64),
        Model("cnn", "the course's CNN, 28 × 28 images", architectures.cnn(), batch=64),
        Model(
            "resnet50",
            "ResNet-50, 224 × 224 images",
            architectures.resnet((3, 4, 6, 3)),
            batch=32,
            measured={
                "bigbasin-ethernet50": Measurement(
                    138.0,
                    32,
                    "29 hours for 90 epochs of 1.28 million images on 8 P100, input pipeline and all-reduce inside the "
                    "server included (told of Goyal et al. by NVIDIA's and other authors' accounts of it)",
                    second_hand=True,
                ),
                "dgx1-p100": Measurement(219.0, 64, _DGX1),
                "dgx1-v100": Measurement(367.0, 128, f"{_NVIDIA}, DGX-1 with V100 16 GB, FP32; the batch is assumed"),
                "dgx-a100": Measurement(938.0, 256, f"{_NVIDIA}, DGX A100 with A100 80 GB, TF32; the batch is assumed"),
            },
        ),
        Model(
            "resnet101",
            "ResNet-101, 224 × 224 images",
            architectures.resnet((3, 4, 23, 3)),
            batch=64,
            measured=_horovod(119.4, 136.0),
        ),
        Model(
            "inception_v3",
            "Inception V3, 299 × 299 images",
            architectures.inception_v3(),
            batch=64,
            measured=_horovod(134.4, 148.8) | {"dgx1-p100": Measurement(142.0, 64, _DGX1)},
        ),
        Model(
            "vgg16",
            "VGG-16, 224 × 224 images",
            architectures.vgg16(),
            batch=64,
            measured=_horovod(130.9, 149.6) | {"dgx1-p100": Measurement(154.0, 64, _DGX1)},
        ),
    )
}
"""Every network by its name."""


def model(name: str) -> Model:
    """The network with this name; ValueError, with the names there are, for another."""
    if name not in MODELS:
        raise ValueError(f"there is no model {name!r}; there are {', '.join(MODELS)}")
    return MODELS[name]
