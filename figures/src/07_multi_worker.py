"""The picture of notebook 07: three workers, what TF_CONFIG says to each, and what else the chief does.

Run it from anywhere: python figures/src/07_multi_worker.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
WORKERS = 3


def tf_config(index: int) -> str:
    """The TF_CONFIG of worker `index`, as JSON; the cluster is the same for all, the task is not."""
    addresses = ",\n    ".join(f'"host{worker}:port"' for worker in range(WORKERS))
    cluster = f'"cluster": {{"worker": [\n    {addresses}]}}'
    return f'{{{cluster},\n "task": {{"type": "worker",\n          "index": {index}}}}}'


def multi_worker_roles(folder: Path) -> None:
    """Three processes of one program; the task in TF_CONFIG tells each who it is."""
    figure, axes = canvas(7.2, 4.1)
    lefts, width = row(WORKERS, 0.15, 7.05, 0.3)
    box(axes, (0.15, 3.65), 6.9, 0.35, "one program, started once per worker")
    for worker, left in enumerate(lefts):
        middle = left + width / 2
        arrow(axes, (middle, 3.65), (middle, 3.4))
        role = "worker 0 = chief" if worker == 0 else f"worker {worker}"
        box(axes, (left, 3.05), width, 0.35, role, worker, fontweight="bold")
        box(axes, (left, 1.72), width, 1.25)
        label(axes, (left + 0.1, 2.83), "TF_CONFIG =", ha="left", fontsize=8)
        label(axes, (left + 0.1, 2.24), tf_config(worker), ha="left", fontsize=8, family="monospace", linespacing=1.15)
        duty = "trains; also keeps\nthe files" if worker == 0 else "trains; saves into a\ntemporary folder, removes it"
        box(axes, (left, 1.1), width, 0.5, duty, worker, fontsize=8)
        arrow(axes, (middle - 0.12, 1.1), (middle - 0.12, 0.82))
        arrow(axes, (middle + 0.12, 0.82), (middle + 0.12, 1.1))
    box(axes, (0.15, 0.42), 6.9, 0.4, "all-reduce of the gradients between all workers, in every step")
    text = "cluster: who takes part, the same everywhere.  task: which of them this process is, different everywhere."
    label(axes, (3.6, 0.2), text, fontsize=8, color="#5A5A5A")
    draw.save(
        figure,
        folder / "07_multi_worker_roles.svg",
        "Three workers of a multi-worker strategy side by side. All run the same program. The TF_CONFIG of each "
        "lists the same cluster, the addresses of workers 0, 1 and 2; only the index in its task differs. Worker 0 "
        "is the chief: besides training it keeps the files; the others save where nobody looks and remove it. "
        "In every step an all-reduce between all workers adds up the gradients.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    multi_worker_roles(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
