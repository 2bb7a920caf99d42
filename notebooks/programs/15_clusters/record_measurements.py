"""Measure two and three hosts with links of 1 Gbit/s and 100 Mbit/s by `distlab measure`.

On an idle machine with Slurm:

    python record_measurements.py

It starts a cluster of three nodes and ends it again. The files are in recorded/:
measured_2_hosts_100mbit.json and three others.
"""

import sys
from pathlib import Path

from distlab import cluster, costs

RECORDED = Path(__file__).with_name("recorded")
RATES, HOSTS = ("1gbit", "100mbit"), (2, 3)
CLUSTER, SECONDS = "measurements", 300


def measure(running: cluster.Cluster, hosts: int, file: Path) -> None:
    """One rank of one thread on each host, started by srun, with Horovod over Gloo."""
    tasks = [f"--nodes={hosts}", "--ntasks-per-node=1", "--kill-on-bad-exit=1"]
    program = [sys.executable, "-m", "course_tools", "measure", "--gloo-from-slurm"]
    command = ["srun", *tasks, *program, "--threads=1", f"--output={file}"]
    finished = running.run(command, SECONDS)
    if finished.status != 0:
        raise SystemExit(f"srun ended with status {finished.status}:\n{finished.output}")


if __name__ == "__main__":
    with cluster.up(CLUSTER, max(HOSTS)) as running:
        for rate in RATES:
            for node in running.nodes():
                running.link(node, rate=rate)
            files = [RECORDED / f"measured_{hosts}_hosts_{rate}.json" for hosts in HOSTS]
            for hosts, file in zip(HOSTS, files, strict=True):
                measure(running, hosts, file)
            two, three = map(costs.read_measurement, files)
            table = costs.measured_table(costs.predict_measured(two, HOSTS), compare=[three])
            print(f"links of {rate}", table, sep="\n\n", end="\n\n")
