"""The picture of notebook 15: a login node, a queue, three compute nodes, and a job with its tasks.

Run it from anywhere: python figures/src/15_clusters.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
NODES = 3
WAITING = ("job 8: 3 nodes", "job 9: 2 nodes")


def cluster(folder: Path) -> None:
    """Two nodes belong to job 7, the third is idle; two jobs wait."""
    figure, axes = canvas(7.2, 3.55)
    box(axes, (0.1, 0.45), 1.75, 3.0)
    label(axes, (0.97, 3.25), "login node", fontweight="bold")
    label(axes, (0.97, 2.86), "you: edit, submit, look", fontsize=8)
    label(axes, (0.97, 2.4), "sbatch  srun\nsqueue  scancel", fontsize=8, family="monospace", linespacing=1.5)
    box(axes, (0.25, 0.6), 1.45, 1.35)
    label(axes, (0.97, 1.76), "queue, seen from here", fontsize=8)
    for place, text in enumerate(WAITING):
        box(axes, (0.35, 1.24 - 0.5 * place), 1.25, 0.36, text, fontsize=8)
    lefts, width = row(NODES, 2.6, 7.05, 0.25)
    for node, left in enumerate(lefts):
        middle = left + width / 2
        box(axes, (left, 0.45), width, 3.0)
        label(axes, (middle, 3.25), f"compute node {node + 1}", fontweight="bold")
        if node < 2:
            box(axes, (left + 0.12, 1.35), width - 0.24, 0.62, f"task {node}:\npython train.py", node, fontsize=8)
        else:
            label(axes, (middle, 1.66), "idle", fontsize=8, color="#5A5A5A")
        box(axes, (left + 0.12, 0.6), width - 0.24, 0.36, "cores, memory,\nGPUs", fontsize=8)
    left, right = lefts[0] + 0.05, lefts[1] + width - 0.05
    box(axes, (left, 2.2), right - left, 0.75)
    label(axes, ((left + right) / 2, 2.72), "job 7, with an allocation of two nodes", fontsize=8, fontweight="bold")
    label(axes, ((left + right) / 2, 2.42), "srun starts a step of two tasks", fontsize=8)
    for node in range(2):
        middle = lefts[node] + width / 2
        arrow(axes, (middle, 2.2), (middle, 1.97))
    arrow(axes, (1.85, 2.57), (left, 2.57))
    text = "All nodes see the same files. Nobody trains on the login node: it is everybody's."
    label(axes, (3.6, 0.2), text, fontsize=8, color="#5A5A5A")
    draw.save(
        figure,
        folder / "15_cluster.svg",
        "A cluster. On the left the login node, where you edit, submit and look, with the scheduler's queue, in which "
        "jobs 8 and 9 wait. On the right three compute nodes. Job 7 has an allocation of nodes 1 and 2; srun has "
        "started a step of two tasks, one python train.py on each. Node 3 is idle: the waiting jobs need more than "
        "one node.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    cluster(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
