"""The picture of notebook 08: chief, workers and parameter servers, and who asks whom for what.

Run it from anywhere: python figures/src/08_other_strategies.py
"""

import sys
from pathlib import Path

import distlab  # noqa: F401  (selects the course's Keras before anything can import TensorFlow)
from distlab import draw
from distlab.draw import INK, RANK_COLOURS, arrow, box, canvas, label, row

FOLDER = Path(__file__).parents[1]
JOBS = {"chief": 1, "worker": 3, "ps": 2}


def tf_config(job: str, index: int) -> str:
    """The TF_CONFIG of one process, as JSON: every job of the cluster with its addresses, and this process's task."""
    jobs = []
    for name, count in JOBS.items():
        addresses = [f'    "{name}{number}:port"' for number in range(count)]
        jobs.append("\n".join([f'  "{name}": [', ",\n".join(addresses) + "]"]))
    cluster = ",\n".join(jobs)
    return f'{{"cluster": {{\n{cluster}}},\n "task": {{\n    "type": "{job}",\n    "index": {index}}}}}'


def parameter_server_roles(folder: Path) -> None:
    """The chief hands out steps; workers read variables from the servers and write gradients to them."""
    figure, axes = canvas(7.2, 3.75)
    right = 4.75
    workers, width = row(JOBS["worker"], 0.15, right, 0.3)
    servers, server_width = row(JOBS["ps"], 0.6, right - 0.45, 0.5)
    box(axes, (1.45, 3.05), 2.0, 0.55, "chief: runs the program,\ncreates the variables")
    label(axes, (0.15, 2.72), "hands out steps", ha="left", fontsize=9)
    for worker, left in enumerate(workers):
        middle = left + width / 2
        arrow(axes, (2.45 + 0.5 * (worker - 1), 3.05), (middle, 2.42))
        box(axes, (left, 1.75), width, 0.67, f"worker {worker}:\none gradient\nat a time", worker)
        for server, server_left in enumerate(servers):
            end = server_left + server_width * (0.5 + 0.28 * (worker - 1))
            style = {"arrowstyle": "<|-|>", "color": RANK_COLOURS[worker], "shrinkA": 0, "shrinkB": 0}
            style["linestyle"] = ("-", "--", ":")[worker]
            start = middle + 0.25 * (server - 0.5)
            axes.annotate("", (start, 1.75), (end, 0.82), arrowprops=style)
    for server, left in enumerate(servers):
        box(axes, (left, 0.37), server_width, 0.45, f"ps {server}: holds half\nof the variables")
    label(axes, (0.1, 1.28), "variables\ngo up,\ngradients\ngo down", ha="left", fontsize=9)
    text = "Workers do not wait for each other; no two talk to each other."
    label(axes, (2.45, 0.17), text, fontsize=9, color="#5A5A5A")
    box(axes, (5.0, 0.37), 2.05, 3.23)
    label(axes, (5.1, 3.43), "TF_CONFIG of worker 1:", ha="left", fontsize=9)
    style = {"ha": "left", "fontsize": 9, "family": "monospace", "linespacing": 1.3, "color": INK, "va": "top"}
    label(axes, (5.1, 3.26), tf_config("worker", 1), **style)
    text = "cluster is the same for all;\ntask says who this one is:\ntype chief, worker or ps,\nand which of them"
    label(axes, (5.1, 0.77), text, ha="left", fontsize=9)
    draw.save(
        figure,
        folder / "08_parameter_server_roles.svg",
        "Roles in a parameter-server cluster. A chief runs the program, creates the variables and hands out steps to "
        "three workers. Two parameter servers, ps 0 and ps 1, hold half of the variables each. Each worker computes "
        "one gradient at a time: it reads the variables from both servers and writes gradients to both. Workers "
        "neither wait for nor talk to each other. Beside it stands the TF_CONFIG of worker 1: the addresses of one "
        "chief, three workers and two ps, and the task, type worker and index 1.",
    )


def main(folder: Path = FOLDER) -> None:
    """Draw it into a folder."""
    draw.apply_style()
    parameter_server_roles(folder)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
