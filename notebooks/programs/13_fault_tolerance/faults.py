"""The simulated faults of `train.py`, and the list of the steps that each worker has done.

    python train.py --backup backup --kill-at-step 13 --kill-worker 0 --steps-done .

On a laptop and under Slurm alike `train.py` reads the options; see there how to start it on several hosts.
"""

import argparse
import os
import signal
import time

import tensorflow as tf

from distlab import cluster_spec


def check(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the program with one sentence if the fault that the options ask for would never come, or not all work."""
    task = cluster_spec.from_slurm() if options.slurm else os.environ.get("TF_CONFIG")
    workers = len(cluster_spec.workers(task)) if task else 1
    if (options.kill_worker is None) != (options.kill_at_step is None):
        parser.error("--kill-worker and --kill-at-step need each other: which worker, and after which step")
    if options.kill_worker is None:
        return
    steps = options.epochs * options.steps_per_epoch
    if options.kill_at_step > steps:
        parser.error(f"--kill-at-step is {steps} at most: the training has no more steps")
    if options.kill_worker >= workers:
        parser.error(f"--kill-worker is {workers - 1} at most: the first worker is 0, and this job has {workers}")


class StepsDone(tf.keras.callbacks.Callback):
    """Notes each step that is done, and sends this process the signal that `--kill-at-step` asks for."""

    def __init__(self, options: argparse.Namespace, worker: int) -> None:
        super().__init__()
        self.options, self.worker = options, worker
        if options.steps_done:
            options.steps_done.mkdir(parents=True, exist_ok=True)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this worker."""
        step, options = int(self.model.optimizer.iterations.numpy()), self.options
        if options.steps_done:
            with (options.steps_done / f"worker-{self.worker}.txt").open("a") as file:
                file.write(f"{step}\n")
        if self.worker == options.kill_worker and step == options.kill_at_step:
            print(f"step {step} is done: worker {self.worker} sends itself SIG{options.signal}", flush=True)
            if options.signal == "KILL":
                time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.Signals[f"SIG{options.signal}"])
