"""The simulated faults of `train.py`, and the steps that each worker has done, with their times.

    distlab launch --workers 2 train.py -- --backup backup --kill-at-step 13 --kill-worker 0 --steps-done .

On a laptop and under Slurm alike `train.py` reads the options; see there how to start it on several hosts.
"""

import argparse
import os
import signal
import time
from pathlib import Path

import tensorflow as tf


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `OfWorker`."""
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that each step takes longer (default: 0)")
    parser.add_argument("--kill-worker", type=int, help="the worker that sends itself a signal")
    parser.add_argument("--kill-at-step", type=int, help="after this step")
    parser.add_argument("--signal", choices=("KILL", "USR1", "TERM"), default="KILL", help="which one (default: KILL)")
    parser.add_argument("--steps-done", type=Path, help="folder in which each worker notes its steps")


class OfWorker(tf.keras.callbacks.Callback):
    """Sends a worker of `train.py` the signal that `--kill-at-step` asks for, and notes each step that is done."""

    def __init__(self, options: argparse.Namespace, worker: int) -> None:
        super().__init__()
        self.options, self.worker = options, worker
        if options.steps_done:
            options.steps_done.mkdir(parents=True, exist_ok=True)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this worker."""
        step, options = int(self.model.optimizer.iterations.numpy()), self.options
        time.sleep(options.pause)
        if options.steps_done:
            for content, line in (("", f"{step}\n"), ("-seconds", f"{time.time():.3f}\n")):
                with (options.steps_done / f"worker-{self.worker}{content}.txt").open("a") as file:
                    file.write(line)
        if self.worker == options.kill_worker and step == options.kill_at_step:
            print(f"step {step} is done: worker {self.worker} sends itself SIG{options.signal}", flush=True)
            if options.signal == "KILL":
                time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.Signals[f"SIG{options.signal}"])
