"""Jobs on a cluster of this machine, for the tests of chapter 15."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from distlab import cluster, data, programs
from distlab.runtime import processes
from tests.distlab.cluster.cluster_bench import until

ROOT = Path(__file__).parents[2]
CHAPTER = ROOT / "notebooks/programs/15_clusters"
SECONDS = 900.0  # for a job that trains, on a machine that does much else

network = programs.module(CHAPTER / "network.py")


@dataclass(frozen=True)
class Jobs:
    """A running cluster and its jobs."""

    cluster: cluster.Cluster

    def submit(self, script: Path | str, *words: str | Path, options: tuple[str, ...] = ()) -> str:
        """Submit a script of slurm/, or another; the number of the job."""
        path = CHAPTER / "slurm" / script
        submitted = self.cluster.run(["sbatch", "--parsable", *options, str(path), *map(str, words)])
        assert submitted.status == 0, submitted.output
        return submitted.output.strip()

    def states(self, job: str) -> list[str]:
        """The state of a job, or of each task of an array."""
        return re.findall(r"JobState=(\w+)", self.show(job))

    def show(self, job: str) -> str:
        return self.cluster.run(["scontrol", "show", "job", job]).output

    def wait(self, job: str, *states: str, seconds: float = SECONDS) -> str:
        """Wait until a job has ended, in one of these states; what it has printed."""
        ended = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY"}
        until(lambda: set(self.states(job)) <= ended, f"job {job} has not ended: {self.output(job)[-2000:]}", seconds)
        assert set(self.states(job)) <= set(states), self.output(job) + self.show(job)
        return self.output(job)

    def output(self, job: str) -> str:
        """What the job has written so far, in this folder."""
        return "".join(file.read_text(errors="replace") for file in sorted(Path().glob(f"*-{job}*.out")))

    def wait_for_line(self, job: str, line: str, seconds: float = SECONDS) -> None:
        """Wait until the job has printed a line with this in it; fail if it ends before."""
        until(
            lambda: line in self.output(job) or not set(self.states(job)) & {"PENDING", "RUNNING", "CONFIGURING"},
            f"job {job} has not printed {line!r}: {self.output(job)[-2000:]}",
            seconds,
        )
        assert line in self.output(job), self.output(job) + self.show(job)


@contextmanager
def running_jobs(cache: Path) -> Iterator[Jobs]:
    """A cluster whose nodes find this Python and Horovod's programs first on their path."""
    mark = processes.new_mark()
    with pytest.MonkeyPatch.context() as patch, processes.guarded(mark), processes.marked(mark):
        patch.setenv("XDG_CACHE_HOME", str(cache))
        patch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
        patch.setenv("CUDA_VISIBLE_DEVICES", "-1")  # three nodes would share this machine's
        with cluster.up() as own:
            yield Jobs(own)


def serial_weights(steps: int = 20, batch: int = 48, rate: float = 0.05, units: int = 64) -> list[np.ndarray]:
    """What one process trains, by the derivatives of the two layers written out, in float64."""
    images, labels = data.load("digits").train
    order = np.random.default_rng(network.SEED).permutation(len(labels))
    weights = [weight.astype(np.float64) for weight in network.first_weights(units)]
    velocities = [np.zeros_like(weight) for weight in weights]
    for step in range(steps):
        chosen = order[np.arange(step * batch, (step + 1) * batch) % len(order)]
        inputs = images[chosen].reshape(batch, -1).astype(np.float64)
        before = inputs @ weights[0] + weights[1]
        hidden = np.maximum(before, 0)
        logits = hidden @ weights[2] + weights[3]
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        shares[np.arange(batch), labels[chosen]] -= 1
        of_logits = shares / batch
        of_hidden = (of_logits @ weights[2].T) * (before > 0)
        gradients = [inputs.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ of_logits, of_logits.sum(axis=0)]
        for weight, velocity, gradient in zip(weights, velocities, gradients, strict=True):
            velocity *= network.MOMENTUM
            velocity -= rate * gradient
            weight += velocity
    return weights
