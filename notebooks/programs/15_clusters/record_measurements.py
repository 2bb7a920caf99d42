"""Measure two and three hosts with links of 1 Gbit/s and 100 Mbit/s, and record what `distlab measure` gives.

On an idle machine with Slurm:

    python record_measurements.py

It starts a cluster of three nodes and ends it again. The files are in recorded/: measured_2_hosts_100mbit.json and
three others.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from distlab import cluster, costs

RECORDED = Path(__file__).with_name("recorded")
RATES, HOSTS = ("1gbit", "100mbit"), (2, 3)
CLUSTER, SECONDS = "measurements", 300


def measure(running: cluster.Cluster, hosts: int, file: Path, options: Sequence[str] = ()) -> None:
    """One rank of one thread on each host, started by srun, with Horovod over Gloo between them."""
    tasks = [f"--nodes={hosts}", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    measure = [sys.executable, "-m", "course_tools", "measure"]
    program = [*measure, "--gloo-from-slurm", "--threads=1", f"--output={file}"]
    finished = running.run(["srun", *tasks, *program, *options], SECONDS)
    if finished.status != 0:
        raise SystemExit(f"srun ended with status {finished.status}:\n{finished.output}")


def main() -> None:
    """Record everything, and say how far the predictions of two hosts for three were off."""
    parser = argparse.ArgumentParser(description="Record measurements of hosts with slow links.")
    parser.add_argument("--folder", type=Path, default=RECORDED, help="(default: recorded, next to this program)")
    folder = parser.parse_args().folder
    folder.mkdir(exist_ok=True)
    with cluster.up(CLUSTER, max(HOSTS)) as running:
        for rate in RATES:
            for node in running.nodes():
                running.link(node, rate=rate)
            files = [folder / f"measured_{hosts}_hosts_{rate}.json" for hosts in HOSTS]
            for hosts, file in zip(HOSTS, files, strict=True):
                measure(running, hosts, file)
            two, three = map(costs.read_measurement, files)
            prediction = costs.predict_measured(two, HOSTS)
            print(f"links of {rate}", costs.measured_table(prediction, compare=[three]), sep="\n\n", end="\n\n")


if __name__ == "__main__":
    main()
