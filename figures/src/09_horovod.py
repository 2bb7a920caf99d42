"""The pictures of notebook 09: rank and local rank on two hosts, and one process for all devices or one for each.

Run it from anywhere: python figures/src/09_horovod.py
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import QUIET, arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
HOSTS, SLOTS = 2, 2  # a slot is the room for one process, with its own GPU
DEVICES = 4  # of the one host in the other picture


@dataclass(frozen=True)
class Place:
    """Where a process runs, in Horovod's words: its number in all, on its host, and its host's number."""

    rank: int
    local_rank: int
    cross_rank: int


def places(hosts: int, slots: int) -> list[Place]:
    """The processes of `horovodrun -np hosts·slots`: ranks fill one host after the other."""
    return [Place(host * slots + slot, slot, host) for host in range(hosts) for slot in range(slots)]


def rank_and_local_rank(folder: Path) -> None:
    """Four processes on two hosts of two GPUs; the local rank picks the GPU."""
    figure, axes = canvas(7.2, 3.3)
    slots = ",".join(f"host{host}:{SLOTS}" for host in range(HOSTS))
    command = f"horovodrun -np {HOSTS * SLOTS} -H {slots} python train.py"
    label(axes, (3.6, 3.12), command, family="monospace")
    boxes = [row(SLOTS, left + 0.3, left + 3.1, 0.3) for left in (0.12, 3.68)]
    for host in range(HOSTS):
        left = (0.12, 3.68)[host]
        axes.add_patch(Rectangle((left, 0.62), 3.4, 2.05, fill=False, edgecolor=QUIET, linewidth=1.2))
        label(axes, (left, 2.8), f"host{host}", ha="left", fontweight="bold")
        label(axes, (left + 3.4, 2.8), "the local rank picks the GPU", ha="right", fontsize=9)
    described = []
    for place in places(HOSTS, SLOTS):
        lefts, width = boxes[place.cross_rank]
        left, middle = lefts[place.local_rank], lefts[place.local_rank] + width / 2
        box(axes, (left, 1.7), width, 0.85, f"rank {place.rank}\nlocal rank {place.local_rank}", place.rank)
        arrow(axes, (middle, 1.7), (middle, 1.22))
        box(axes, (left, 0.77), width, 0.45, f"GPU {place.local_rank}")
        described.append(f"Rank {place.rank} on host{place.cross_rank} has local rank and GPU {place.local_rank}.")
    text = f"hvd.size() = {HOSTS * SLOTS} processes in all      hvd.local_size() = {SLOTS} on this host\n"
    text += "Only rank 0, of all ranks, writes checkpoints; local rank 0 exists on every host."
    label(axes, (3.6, 0.3), text, fontsize=9, linespacing=1.4)
    draw.save(
        figure,
        folder / "09_rank_and_local_rank.svg",
        f"{HOSTS * SLOTS} processes that horovodrun started on {HOSTS} hosts of {SLOTS} GPUs. {' '.join(described)} "
        f"The size is {HOSTS * SLOTS}, the local size {SLOTS}. Only rank 0 writes checkpoints; a local rank 0 exists "
        "on every host.",
    )


def processes_and_devices(folder: Path) -> None:
    """One process that drives all devices of a host, and one process for each of them."""
    figure, axes = canvas(7.2, 3.6)
    for left, title in ((0.12, "one process for all devices"), (3.72, "one process per device")):
        label(axes, (left, 3.42), title, ha="left", fontweight="bold")
        axes.add_patch(Rectangle((left, 0.72), 3.36, 2.52, fill=False, edgecolor=QUIET, linewidth=1.2))
        label(axes, (left + 0.08, 3.1), "host", ha="left", fontsize=9, color="#5A5A5A")

    lefts, width = row(DEVICES, 0.3, 3.3, 0.12)
    label(axes, (1.8, 2.93), "gradients stay inside the process", fontsize=9)
    _process(axes, (0.24, 1.6), 3.12, "process: one memory")
    box(axes, (0.36, 1.72), 1.35, 0.62, "one Python\ninterpreter")
    box(axes, (1.89, 1.72), 1.35, 0.62, "one input\npipeline")
    _devices(axes, lefts, width)

    lefts, width = row(DEVICES, 3.9, 6.9, 0.12)
    for device, left in enumerate(lefts):
        _process(axes, (left - 0.02, 1.6), width + 0.04, f"process {device}")
        box(axes, (left + 0.05, 2.05), width - 0.1, 0.32, "Python", device, fontsize=9)
        box(axes, (left + 0.05, 1.68), width - 0.1, 0.32, "input", device, fontsize=9)
    for left in lefts[1:]:
        start, end = (left - 0.18, 2.86), (left + 0.06, 2.86)
        axes.annotate("", end, start, arrowprops={"arrowstyle": "<|-|>", "shrinkA": 0, "shrinkB": 0})
    label(axes, (5.4, 3.02), "messages (NCCL, MPI, Gloo)", fontsize=9)
    _devices(axes, lefts, width)

    texts = (
        "MirroredStrategy: threads share the memory;\none host only, one Python for all devices",
        "Horovod: one memory per process;\ngoes on to other hosts unchanged",
    )
    for left, text in zip((0.12, 3.72), texts, strict=True):
        label(axes, (left + 1.68, 0.38), text, fontsize=9, linespacing=1.3)
    draw.save(
        figure,
        folder / "09_processes_and_devices.svg",
        "Two ways to use the four devices of a host. Left, one process for all devices, as with MirroredStrategy: "
        "one memory, one Python interpreter and one input pipeline serve four devices, each with a replica; this "
        "works on one host only. Right, one process per device, as with Horovod: four processes, each with its own "
        "memory, interpreter and input pipeline and one device, talk by messages; the same program goes on to other "
        "hosts.",
    )


def _process(axes: Axes, corner: tuple[float, float], width: float, title: str) -> None:
    axes.add_patch(Rectangle(corner, width, 1.15, fill=False, edgecolor=QUIET, linestyle="--", linewidth=1.1))
    label(axes, (corner[0] + width / 2, corner[1] + 0.97), title, fontsize=9)


def _devices(axes: Axes, lefts: list[float], width: float) -> None:
    for device, left in enumerate(lefts):
        arrow(axes, (left + width / 2, 1.6), (left + width / 2, 1.36))
        box(axes, (left, 0.84), width, 0.52, f"device {device}\nreplica {device}", device, fontsize=9)


def main(folder: Path = FOLDER) -> None:
    """Draw both into a folder."""
    draw.apply_style()
    rank_and_local_rank(folder)
    processes_and_devices(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
