"""Machines, by name: how many ranks share a host, how fast they reach each other, how fast a device trains.

Speeds of links are what the parts are specified for, per direction; `predict` takes a share of them. `between` is the
connection of a whole host, which its ranks share. Latencies of GPUs are those in NCCL's own model of itself
(src/graph/tuning.cc of NCCL 2.7 to 2.9, ring, protocol Simple: 3.4 µs over NVLink, 5.7 µs over PCIe, 9.6 µs over a
network), times the 1.9 that the same file applies to large messages. They are younger than the clusters of 2017.

A device's FLOP/s is what it reached in training ResNet-50 in single precision, by the speed published for it: 219
images/s on a P100 (TensorFlow's benchmarks, May 2017), 367 on a V100 and, with TF32, 938 on an A100 (NVIDIA's
DeepLearningExamples, PyTorch, 2021), each times 24.5 GFLOP per image. It is used only for models without a published
speed. For VGG-16 on a P100 it would be 2.7 times too slow: its 3 × 3 convolutions take fewer operations than one counts
(Winograd's algorithm).
"""

from dataclasses import dataclass, replace

from distlab.costs.prediction.assumptions import Assumptions
from distlab.costs.prediction.networks import MODELS
from distlab.simulate import Link, Network

_LARGE_MESSAGES = 1.9
_NVLINK, _PCIE, _NETWORK = (_LARGE_MESSAGES * seconds for seconds in (3.4e-6, 5.7e-6, 9.6e-6))


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

    def links_under(self, assumptions: Assumptions) -> tuple[Link, Link]:
        """`inside` and `between` at the speed that an all-reduce reaches on them."""
        inside, between = (link.seconds_per_byte / assumptions.bandwidth_share for link in (self.inside, self.between))
        copying = 1 / assumptions.tcp_core_bandwidth if self.uses_tcp else 0.0
        return Link(self.inside.latency, inside), Link(self.between.latency, between + copying)

    def network(self) -> Network:
        """The same machine for `distlab.simulate`: hierarchical, each host's connection divided evenly among its ranks.

        Dividing evenly is right where all ranks of a host send at once, and pessimistic where one does.
        """
        shared = self.ranks_per_host * self.between.seconds_per_byte
        return Network(
            self.between.latency, shared, self.seconds_per_byte_reduced, self.ranks_per_host, inside_host=self.inside
        )


def _gigabits(gigabits_per_second: float) -> float:
    """Seconds per byte at this speed."""
    return 8e-9 / gigabits_per_second


def _gigabytes(gigabytes_per_second: float) -> float:
    """Seconds per byte at this speed."""
    return 1e-9 / gigabytes_per_second


_PCIE_3_X16 = Link(_PCIE, _gigabytes(15.75))
_RESNET_50 = MODELS["resnet50"].training_flops
_PASCAL_FLOPS, _PASCAL_MEMORY = 219 * _RESNET_50, 732e9
_VOLTA_FLOPS, _VOLTA_MEMORY = 367 * _RESNET_50, 900e9
_HOROVOD_ROCE = Hardware(
    "horovod-roce25",
    "4 Pascal GPUs per server, 25 Gbit/s RoCE (Horovod's benchmark)",
    ranks_per_host=4,
    inside=_PCIE_3_X16,
    between=Link(_NETWORK, _gigabits(25)),
    flops=_PASCAL_FLOPS,
    memory_bandwidth=_PASCAL_MEMORY,
    algorithm="ring",
    source="Horovod README and docs/benchmarks.md: 4 Pascal GPUs per server and the network's speed; the GPUs' model "
    "and how they are connected inside a server are not published: PCIe 3.0 x16 and the P100's data sheet are assumed",
    second_hand=False,
)

HARDWARE: dict[str, Hardware] = {
    hardware.name: hardware
    for hardware in (
        Hardware(
            "laptop",
            "2 cores, ranks on one machine; beyond it gigabit Ethernet",
            ranks_per_host=2,
            inside=Link(20e-6, _gigabytes(2)),
            between=Link(50e-6, _gigabits(1)),
            flops=50e9,
            memory_bandwidth=20e9,
            algorithm="ring",
            source="orders of magnitude only: measure this machine and `fit` α and β",
            uses_tcp=True,
        ),
        _HOROVOD_ROCE,
        replace(
            _HOROVOD_ROCE,
            name="horovod-tcp25",
            title="the same servers with TCP instead of RDMA, 25 Gbit/s",
            uses_tcp=True,
        ),
        replace(
            _HOROVOD_ROCE,
            name="horovod-tcp40",
            title="4 Pascal GPUs per server, plain 40 Gbit/s network with TCP (Horovod's second benchmark of 2017)",
            between=Link(_NETWORK, _gigabits(40)),
            uses_tcp=True,
        ),
        Hardware(
            "bigbasin-ethernet50",
            "8 P100 with NVLink per server, 50 Gbit/s Ethernet (Goyal et al. 2017)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(80)),
            between=Link(_NETWORK, _gigabits(50)),
            flops=_PASCAL_FLOPS,
            memory_bandwidth=_PASCAL_MEMORY,
            algorithm="hierarchical_halving_doubling",
            source="Goyal et al., arXiv:1706.02677, sections 4 and 5; P100 data sheet: 4 NVLinks of 20 GB/s each way, "
            "732 GB/s",
        ),
        Hardware(
            "dgx1-p100",
            "8 P100 with NVLink per server, 4 × 100 Gbit/s InfiniBand (the first DGX-1)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(80)),
            between=Link(_NETWORK, _gigabits(400)),
            flops=_PASCAL_FLOPS,
            memory_bandwidth=_PASCAL_MEMORY,
            algorithm="fastest",
            source="NVIDIA's data sheets of P100 and DGX-1: 4 NVLinks of 20 GB/s each way",
            memory_bytes=16e9,
        ),
        Hardware(
            "dgx1-v100",
            "8 V100 with NVLink per server, 4 × 100 Gbit/s InfiniBand (DGX-1)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(150)),
            between=Link(_NETWORK, _gigabits(400)),
            flops=_VOLTA_FLOPS,
            memory_bandwidth=_VOLTA_MEMORY,
            algorithm="fastest",
            source="NVIDIA's data sheets of V100 and DGX-1: 6 NVLinks of 25 GB/s each way",
            matrix_flops=125e12,
            memory_bytes=32e9,
        ),
        Hardware(
            "dgx2",
            "16 V100 with NVSwitch per server, 8 × 100 Gbit/s InfiniBand (DGX-2)",
            ranks_per_host=16,
            inside=Link(_NVLINK, _gigabytes(150)),
            between=Link(_NETWORK, _gigabits(800)),
            flops=_VOLTA_FLOPS,
            memory_bandwidth=_VOLTA_MEMORY,
            algorithm="fastest",
            source="NVIDIA's data sheets of V100 and DGX-2: 6 NVLinks of 25 GB/s each way",
            matrix_flops=125e12,
            memory_bytes=32e9,
        ),
        Hardware(
            "v100-edr100",
            "8 V100 with NVLink per server, one 100 Gbit/s InfiniBand (OneFlow's DLPerf)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(150)),
            between=Link(_NETWORK, _gigabits(100)),
            flops=_VOLTA_FLOPS,
            memory_bandwidth=_VOLTA_MEMORY,
            algorithm="fastest",
            source="DLPerf report v1.0, test environment; NVIDIA's data sheet of V100",
            second_hand=False,
        ),
        Hardware(
            "abci",
            "4 V100 with NVLink per server, 2 × 100 Gbit/s InfiniBand (ABCI: Mikami et al. 2018)",
            ranks_per_host=4,
            inside=Link(_NVLINK, _gigabytes(150)),
            between=Link(_NETWORK, _gigabits(200)),
            flops=_VOLTA_FLOPS,
            memory_bandwidth=_VOLTA_MEMORY,
            algorithm="fastest",
            source="Mikami et al., arXiv:1811.05233; the authors' all-reduce on a grid is not among the model's",
        ),
        Hardware(
            "p100-fdr",
            "8 P100 with PCIe per server, 56 Gbit/s InfiniBand (MN-1: Akiba et al. 2017)",
            ranks_per_host=8,
            inside=_PCIE_3_X16,
            between=Link(_NETWORK, _gigabits(56)),
            flops=_PASCAL_FLOPS,
            memory_bandwidth=_PASCAL_MEMORY,
            algorithm="ring",
            source="Akiba et al., arXiv:1711.04325: InfiniBand FDR, NCCL; PCIe 3.0 x16 is assumed",
        ),
        Hardware(
            "titanx-fdr",
            "4 GeForce GTX TITAN X per server, 56 Gbit/s InfiniBand (ChainerMN 2017)",
            ranks_per_host=4,
            inside=_PCIE_3_X16,
            between=Link(_NETWORK, _gigabits(56)),
            flops=70 * _RESNET_50,
            memory_bandwidth=336.5e9,
            algorithm="hierarchical",
            source="Akiba et al., arXiv:1710.11351: InfiniBand FDR; NVIDIA's data sheet: 336.5 GB/s, PCIe 3.0 x16",
        ),
        Hardware(
            "dgx-a100",
            "8 A100 with NVLink per server, 8 × 200 Gbit/s InfiniBand (DGX A100)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(300)),
            between=Link(_NETWORK, _gigabits(1600)),
            flops=938 * _RESNET_50,
            memory_bandwidth=1555e9,
            algorithm="fastest",
            source="NVIDIA's data sheet of A100 40 GB: 600 GB/s NVLink both ways together, 1555 GB/s, 312 TFLOP/s",
            matrix_flops=312e12,
            memory_bytes=40e9,
        ),
        Hardware(
            "selene",
            "8 A100 of 80 GB with NVLink per server, 8 × 200 Gbit/s InfiniBand (Narayanan et al. 2021)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(300)),
            between=Link(_NETWORK, _gigabits(1600)),
            flops=938 * _RESNET_50,
            memory_bandwidth=2039e9,
            algorithm="fastest",
            source="Narayanan et al., arXiv:2104.04473, section 5; NVIDIA's data sheet of A100 80 GB: 2039 GB/s",
            matrix_flops=312e12,
            memory_bytes=80e9,
        ),
        Hardware(
            "dgx-h100",
            "8 H100 with NVLink per server, 8 × 400 Gbit/s InfiniBand (DGX H100)",
            ranks_per_host=8,
            inside=Link(_NVLINK, _gigabytes(450)),
            between=Link(_NETWORK, _gigabits(3200)),
            flops=2 * 938 * _RESNET_50,
            memory_bandwidth=3350e9,
            algorithm="fastest",
            source="NVIDIA's data sheet of H100 SXM: 900 GB/s NVLink both ways together, 3350 GB/s, 989 TFLOP/s dense; "
            "taken to train twice as fast as an A100",
            matrix_flops=989e12,
            memory_bytes=80e9,
        ),
        Hardware(
            "gigabit",
            "one CPU rank of 16 cores per host, gigabit Ethernet (a room of workstations)",
            ranks_per_host=1,
            inside=Link(20e-6, _gigabytes(5)),
            between=Link(50e-6, _gigabits(1)),
            flops=500e9,
            memory_bandwidth=50e9,
            algorithm="ring",
            source="orders of magnitude only: measure these machines and `fit` α and β",
            uses_tcp=True,
        ),
    )
}
"""Every preset by its name."""
