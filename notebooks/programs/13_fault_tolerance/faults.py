"""The simulated faults of `train.py`, and the list of the steps that each worker has done.

    python train.py --backup backup --kill-at-step 13 --kill-worker 0 --steps-done .

On a laptop and under Slurm alike `train.py` reads the options; see there how to start it on several hosts.
"""

import argparse
import os
import signal
import time

import tensorflow as tf


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
