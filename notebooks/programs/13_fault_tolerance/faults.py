"""The simulated faults of `train.py`, and the steps that each worker has done.

That program reads the options, and its text says how to start it:

    distlab launch --workers 2 train.py -- --backup backup --kill-at-step 13 --kill-worker 0
"""

import argparse
import os
import signal
import time
from pathlib import Path

import tensorflow as tf


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `OfWorker`."""
    signals = {"choices": ("KILL", "USR1", "TERM"), "default": "KILL"}
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
    parser.add_argument("--kill-worker", type=int, help="this worker sends itself a signal")
    parser.add_argument("--kill-at-step", type=int, help="after this step")
    parser.add_argument("--signal", help="which one (default: KILL)", **signals)
    parser.add_argument("--steps-done", type=Path, help="folder for notes of each step")


class OfWorker(tf.keras.callbacks.Callback):
    """Notes each step that is done, and sends the signal that `--kill-at-step` asks for."""

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
            notes = options.steps_done / f"worker-{self.worker}"
            for content, line in (("", f"{step}\n"), ("-seconds", f"{time.time():.3f}\n")):
                with Path(f"{notes}{content}.txt").open("a") as file:
                    file.write(line)
        if self.worker == options.kill_worker and step == options.kill_at_step:
            sends = f"worker {self.worker} sends itself SIG{options.signal}"
            print(f"step {step} is done: {sends}", flush=True)
            if options.signal == "KILL":
                time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.Signals[f"SIG{options.signal}"])
