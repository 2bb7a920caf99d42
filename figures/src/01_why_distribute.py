"""The pictures of notebook 01: data parallelism, model parallelism, synchronous and asynchronous updates.

Run it from anywhere: python figures/src/01_why_distribute.py
"""

import sys
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import HATCHES, INK, QUIET, RANK_COLOURS, arrow, box, canvas, label, row, tint

FOLDER = Path(__file__).parents[1]
REPLICAS = 3


def data_parallelism(folder: Path) -> None:
    """One batch in three shards, three equal models, one mean gradient."""
    figure, axes = canvas(7.2, 4.1)
    lefts, width = row(REPLICAS, 0.3, 6.9, 0.45)
    box(axes, (0.3, 3.6), 6.6, 0.35, "global batch of 96 images")
    for rank, left in enumerate(lefts):
        middle = left + width / 2
        arrow(axes, (middle, 3.6), (middle, 3.3))
        box(axes, (left, 2.95), width, 0.35, f"shard {rank}: 32 images", rank)
        arrow(axes, (middle, 2.95), (middle, 2.65))
        box(axes, (left, 2.05), width, 0.6, f"replica {rank} on device {rank}\nall weights $w$", rank)
        arrow(axes, (middle, 2.05), (middle, 1.75))
        box(axes, (left, 1.4), width, 0.35, f"sum of gradients $g_{rank}$", rank)
        arrow(axes, (middle, 1.4), (middle, 1.1))
        arrow(axes, (middle, 0.7), (middle, 0.45))
        box(axes, (left, 0.1), width, 0.35, r"$w \leftarrow w - \eta\, g$", rank)
    box(axes, (0.3, 0.7), 6.6, 0.4, "all-reduce and division: each replica gets the mean  $g = (g_0 + g_1 + g_2) / 96$")
    draw.save(
        figure,
        folder / "01_data_parallelism.svg",
        "Data parallelism. A global batch of 96 images is cut into three shards of 32. Each of three devices "
        "holds a replica with all the weights and adds the gradients of its own shard. An all-reduce and a division "
        "by 96 give every replica the mean gradient, so that all replicas make the same update.",
    )


def model_parallelism_by_layers(folder: Path) -> None:
    """Four layers on two devices: activations go forward, gradients back."""
    figure, axes = canvas(7.2, 2.2)
    for device, left in enumerate((0.95, 4.15)):
        frame = {"edgecolor": RANK_COLOURS[device], "linestyle": ("-", "--")[device]}
        axes.add_patch(Rectangle((left, 0.25), 2.15, 1.65, fill=False, **frame))
        label(axes, (left + 1.07, 2.05), f"device {device}")
        for inner in range(2):
            text = f"layer {2 * device + inner + 1}\nweights\nonly here"
            box(axes, (left + 0.12 + 1.06 * inner, 0.45), 0.85, 1.25, text, device)
        arrow(axes, (left + 0.97, 1.3), (left + 1.18, 1.3))
        arrow(axes, (left + 1.18, 0.85), (left + 0.97, 0.85), dash="--")
    label(axes, (0.4, 1.3), "whole\nbatch")
    arrow(axes, (0.7, 1.3), (1.07, 1.3))
    arrow(axes, (2.98, 1.3), (4.27, 1.3))
    arrow(axes, (4.27, 0.85), (2.98, 0.85), dash="--")
    label(axes, (3.62, 1.48), "activations", fontsize=8)
    label(axes, (3.62, 0.67), "gradients", fontsize=8)
    arrow(axes, (6.18, 1.3), (6.6, 1.3))
    label(axes, (6.82, 1.3), "loss")
    arrow(axes, (6.6, 0.85), (6.18, 0.85), dash="--")
    draw.save(
        figure,
        folder / "01_model_parallelism_by_layers.svg",
        "Model parallelism by layers. Layers 1 and 2 with their weights lie on device 0, layers 3 and 4 on device "
        "1. The whole batch enters device 0; activations go forward from device 0 to device 1 and on to the loss, "
        "gradients come back the other way.",
    )


def model_parallelism_inside_a_layer(folder: Path) -> None:
    """A hidden layer of ten units, five on each of two devices."""
    figure, axes = canvas(7.2, 3.1)
    inputs, outputs = [(1.1, y) for y in (0.9, 1.4, 1.9, 2.4)], [(6.1, y) for y in (1.15, 1.65, 2.15)]
    hidden = [(3.6, 0.3 + 0.24 * unit + (0.16 if unit > 4 else 0.0)) for unit in range(10)][::-1]
    device_of = [unit // 5 for unit in range(10)]
    for unit, place in enumerate(hidden):
        colour, dash = RANK_COLOURS[device_of[unit]], ("-", "--")[device_of[unit]]
        for neighbour in (*inputs, *outputs):
            line = {"color": colour, "linestyle": dash, "linewidth": 0.5, "alpha": 0.7}
            axes.plot(*zip(place, neighbour, strict=True), marker="", zorder=1, **line)
    for place in (*inputs, *outputs):
        axes.add_patch(Circle(place, 0.1, facecolor="white", edgecolor=QUIET, zorder=2))
    for unit, place in enumerate(hidden):
        colour, hatch = RANK_COLOURS[device_of[unit]], HATCHES[device_of[unit]] * 2
        axes.add_patch(Circle(place, 0.1, facecolor=tint(colour, 0.35), edgecolor=colour, hatch=hatch, zorder=2))
    for device, (bottom, height) in enumerate([(1.49, 1.3), (0.12, 1.3)]):
        frame = {"edgecolor": RANK_COLOURS[device], "linestyle": ("-", "--")[device], "linewidth": 1.2}
        axes.add_patch(Rectangle((3.35, bottom), 0.5, height, fill=False, zorder=3, **frame))
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 1}
        label(axes, (4.5, bottom + height / 2), f"device {device}:\n5 of 10 units", bbox=ground, zorder=4)
    label(axes, (1.1, 2.9), "inputs: a copy on\neach device", fontsize=8)
    label(axes, (3.6, 2.95), "one hidden layer", fontsize=8)
    label(axes, (6.1, 2.75), "outputs: sum of two\npartial results (all-reduce)", fontsize=8)
    draw.save(
        figure,
        folder / "01_model_parallelism_inside_a_layer.svg",
        "Model parallelism inside a layer. The ten units of one hidden layer are divided: five lie on device 0, "
        "five on device 1, each with its own weights. Both devices get a copy of the inputs; each output is the "
        "sum of two partial results, one from each device.",
    )


SECONDS = {0: 1.0, 1: 1.3, 2: 2.1}  # for one gradient on worker 0, 1 and 2; worker 2 is the straggler
UPDATE = 0.2  # seconds for the all-reduce and the update
HORIZON = 6.9


def synchronous_updates(folder: Path) -> None:
    """Every step takes as long as the slowest worker's gradient."""
    figure, axes = _timeline(2.4)
    step = max(SECONDS.values()) + UPDATE
    for number in range(int(HORIZON / step) + 1):
        start = number * step
        if start + step > HORIZON + 1e-9:
            break
        for worker, seconds in SECONDS.items():
            _bar(axes, worker, start, seconds, f"$g_{worker}(w_{number})$")
            wait = max(SECONDS.values()) - seconds
            if wait > 0.3:
                label(axes, (start + seconds + wait / 2, -worker), "waits", fontsize=8, color="#5A5A5A")
        style = {"facecolor": "#DDDDDD", "edgecolor": INK, "linewidth": 0.8}
        axes.add_patch(Rectangle((start + step - UPDATE, -2.4), UPDATE, 2.8, **style))
        axes.text(start + step - UPDATE / 2, 0.55, f"$w_{number + 1}$", ha="center", va="bottom", fontsize=9)
    axes.set_ylim(-2.45, 1.0)
    axes.set_title("synchronous: grey columns are the all-reduce and the update", fontsize=10)
    draw.save(
        figure,
        folder / "01_synchronous_updates.svg",
        "Synchronous updates of three workers over time. In each step every worker computes a gradient from the "
        "same weights. Workers 0 and 1 then wait for worker 2, whose gradient takes twice as long as worker 0's. "
        "An all-reduce gives all of them the mean gradient, all make the same update, and the next step starts at "
        "the same moment on all.",
    )


@dataclass(frozen=True)
class Push:
    """One gradient of an asynchronous run: who computed it, when, from which version, and which version it made."""

    worker: int
    start: float
    end: float
    read: int
    made: int

    @property
    def staleness(self) -> int:
        """How many updates the parameter server took between this gradient's reading and its writing."""
        return self.made - 1 - self.read


def asynchronous_pushes() -> list[Push]:
    """What the three workers do until the horizon when none waits for another."""
    busy_until = {worker: seconds for worker, seconds in SECONDS.items()}
    read_version = dict.fromkeys(SECONDS, 0)
    pushes: list[Push] = []
    while True:
        worker = min(busy_until, key=lambda candidate: (busy_until[candidate], candidate))
        end = busy_until[worker]
        if end > HORIZON:
            return pushes
        made = len(pushes) + 1
        pushes.append(Push(worker, end - SECONDS[worker], end, read_version[worker], made))
        read_version[worker] = made
        busy_until[worker] = end + SECONDS[worker]


def asynchronous_updates(folder: Path) -> None:
    """Each worker writes when it is ready; a gradient may belong to weights that are gone."""
    figure, axes = _timeline(3.0)
    server = 1.1
    pushes = asynchronous_pushes()
    axes.add_patch(Rectangle((0, server - 0.38), HORIZON, 0.86, facecolor="#F2F2F2", edgecolor=QUIET, linewidth=0.8))
    axes.text(0.08, server, "$w_0$", ha="left", va="center", fontsize=9)
    for push in pushes:
        _bar(axes, push.worker, push.start, push.end - push.start, f"$g(w_{{{push.read}}})$, stale {push.staleness}")
        style = {"color": RANK_COLOURS[push.worker], "linestyle": ("-", "--", ":")[push.worker]}
        style |= {"arrowstyle": "<|-|>", "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (push.end, server - 0.38), (push.end, 0.3 - push.worker), arrowprops=style, zorder=0)
        # Two heights: neighbours may be a tenth of a second apart.
        height = server + (0.22 if push.made % 2 else -0.16)
        axes.text(push.end, height, f"$w_{{{push.made}}}$", ha="center", va="center", fontsize=9)
    axes.set_yticks([server, 0, -1, -2], ["parameter\nserver", "worker 0", "worker 1", "worker 2"])
    axes.set_ylim(-2.45, 1.75)
    axes.set_title("asynchronous: an arrow is a gradient written and the newest weights read", fontsize=10)
    settled = [push.staleness for push in pushes if push.start > 0]
    draw.save(
        figure,
        folder / "01_asynchronous_updates.svg",
        "Asynchronous updates of three workers and a parameter server over time. Each worker sends its gradient "
        "to the server when it is ready, gets the newest weights back and goes on; nobody waits. Each bar names "
        "the weights from which the gradient was computed and its staleness, the number of updates by others in "
        f"the meantime: after the start between {min(settled)} and {max(settled)}. {len(pushes)} updates are made "
        f"in {HORIZON} seconds.",
    )


def _timeline(height: float) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(7.2, height))
    axes.set_xlim(0, HORIZON + 0.15)
    axes.set_yticks([0, -1, -2], ["worker 0", "worker 1", "worker 2"])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("seconds")
    return figure, axes


def _bar(axes: Axes, worker: int, start: float, seconds: float, text: str) -> None:
    colour = RANK_COLOURS[worker]
    area = ((start, -worker - 0.3), seconds, 0.6)
    axes.add_patch(Rectangle(*area, facecolor=tint(colour), edgecolor=colour, linewidth=1.2))
    if HATCHES[worker]:
        axes.add_patch(Rectangle(*area, fill=False, edgecolor=tint(colour, 0.45), hatch=HATCHES[worker], linewidth=0))
    ground = {"facecolor": tint(colour), "edgecolor": "none", "pad": 1}
    axes.text(start + seconds / 2, -worker, text, ha="center", va="center", fontsize=8, bbox=ground)


QUESTIONS = (  # from the top: a question, the answer that leaves the tree, and what to use then
    (
        "Does the model fit into one device?",
        "no",
        "checkpoint activations, offload or\nshard the state; then model parallelism",
    ),
    ("Is there a second device?", "no", "OneDeviceStrategy, or none"),
    ("Are the devices TPUs?", "yes", "TPUStrategy"),
    ("Are all devices in one host?", "yes", "MirroredStrategy"),
    ("Is there MPI, or PyTorch code too?", "yes", "Horovod"),
)


def which_strategy(folder: Path) -> None:
    """A decision tree: questions down the left, what to use on the right."""
    figure, axes = canvas(7.2, 4.0)
    described = ["A decision tree."]
    height, step = 0.44, 0.64
    for line, (question, leaves, use) in enumerate(QUESTIONS):
        bottom = 3.45 - step * line
        box(axes, (0.1, bottom), 3.2, height, question)
        box(axes, (4.2, bottom), 2.9, height, use, 0)
        arrow(axes, (3.3, bottom + height / 2), (4.2, bottom + height / 2))
        label(axes, (3.75, bottom + height / 2 + 0.1), leaves, fontsize=8)
        arrow(axes, (1.7, bottom), (1.7, bottom - step + height))
        label(axes, (1.95, bottom - 0.1), {"yes": "no", "no": "yes"}[leaves], fontsize=8)
        described.append(f"{question} If {leaves}: {use.replace(chr(10), ' ')}.")
    box(axes, (0.1, 3.45 - step * len(QUESTIONS)), 3.2, height, "MultiWorkerMirroredStrategy", 0)
    draw.save(figure, folder / "01_which_strategy.svg", " ".join([*described, "Else: MultiWorkerMirroredStrategy."]))


def main(folder: Path = FOLDER) -> None:
    """Draw all of them into a folder."""
    draw.apply_style()
    data_parallelism(folder)
    model_parallelism_by_layers(folder)
    model_parallelism_inside_a_layer(folder)
    synchronous_updates(folder)
    asynchronous_updates(folder)
    which_strategy(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
