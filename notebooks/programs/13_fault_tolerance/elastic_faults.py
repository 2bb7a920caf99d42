"""The simulated faults of `train_elastic.py`.

That program reads the options; its own text has the whole line for a laptop, and how to find
the hosts under Slurm:

    horovodrun ... python train_elastic.py --hosts hosts.txt --kill-at-step 13 --add-at-step 22
"""

import argparse
import os
import signal
import time
from pathlib import Path
from typing import Any

import horovod.tensorflow.keras as hvd
import tensorflow as tf


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `OfRank`."""
    parser.add_argument("--pause", type=float, default=0.0, help="seconds after each step")
    parser.add_argument("--kill-at-step", type=int, help="the last rank kills itself then")
    parser.add_argument("--add-at-step", type=int, help="rank 0 adds a slot to --hosts then")
    parser.add_argument("--hosts", type=Path, help="the file that the discovery script prints")


class OfRank(tf.keras.callbacks.Callback):
    """Lets the last rank kill itself, once, and rank 0 add a slot on its own host."""

    def __init__(self, state: Any, options: argparse.Namespace) -> None:
        super().__init__()
        self.state, self.options = state, options

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """After each step of this rank."""
        step, rank, size = int(self.model.optimizer.iterations), hvd.rank(), hvd.size()
        time.sleep(self.options.pause)
        if step == self.options.kill_at_step and rank > 0 and rank == size - 1:
            print(f"step {step} is done: rank {rank} kills itself", flush=True)
            time.sleep(1)  # the others finish this step too and wait in the next one
            os.kill(os.getpid(), signal.SIGKILL)
        if step == self.options.add_at_step:
            if rank == 0:
                host, file = os.environ["HOROVOD_HOSTNAME"], self.options.hosts
                lines = file.read_text().split()
                others = [line for line in lines if line.split(":")[0] != host]
                file.write_text("\n".join([f"{host}:2", *others]) + "\n")
            for _ in range(100):  # so that the job hears of it after this step
                self.state.check_host_updates()  # ends this call by an exception
                time.sleep(0.2)
