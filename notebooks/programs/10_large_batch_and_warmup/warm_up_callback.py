"""Train with `Model.fit` and Horovod's own callback for gradual warm-up, and note the learning rate of every step.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    horovodrun -np 8 --gloo python warm_up_callback.py --result result.json
    mpirun -np 8 python warm_up_callback.py --result result.json
    srun --ntasks=8 --mpi=pmix python warm_up_callback.py --result result.json

It takes seconds and writes no checkpoints. The network is the lecture's.
"""

import argparse
import json
from pathlib import Path

from distlab import cluster_spec, data, models  # before TensorFlow: it selects tf-keras

# isort: split
import horovod.tensorflow.keras as hvd
import tensorflow as tf

BATCH, STEPS_PER_EPOCH, WARM_UP_EPOCHS, EPOCHS = 12, 4, 3, 4
RATE = 0.01  # of one rank


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train with Horovod's callback for gradual warm-up.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    cluster_spec.check_mpi_of_srun()
    return parser.parse_args(arguments)


class LearningRates(tf.keras.callbacks.Callback):
    """Notes the learning rate of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.rates: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Note what the step has used."""
        self.rates.append(float(self.model.optimizer.learning_rate))


def train(options: argparse.Namespace) -> list[float]:
    """The learning rates that the callback chose, step by step."""
    images, labels = data.load(options.dataset).train
    samples = tf.data.Dataset.from_tensor_slices((images, labels)).shard(hvd.size(), hvd.rank())
    tf.keras.utils.set_random_seed(options.seed)
    model, rates = models.mlp(), LearningRates()
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(RATE * hvd.size()))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer, loss)
    callbacks = [
        hvd.callbacks.BroadcastGlobalVariablesCallback(0),
        hvd.callbacks.LearningRateWarmupCallback(initial_lr=RATE * hvd.size(), warmup_epochs=WARM_UP_EPOCHS),
        rates,
    ]
    batches = samples.batch(BATCH).repeat()
    tf.config.run_functions_eagerly(True)  # a few steps only: making graphs of them, Horovod's too, takes longer
    model.fit(batches, steps_per_epoch=STEPS_PER_EPOCH, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    tf.config.run_functions_eagerly(False)
    return rates.rates


def main(arguments: list[str] | None = None) -> dict:
    """Train, and give the result; rank 0 writes it."""
    options = parse(arguments)
    hvd.init()
    constants = {"rate": RATE, "steps_per_epoch": STEPS_PER_EPOCH, "warm_up_epochs": WARM_UP_EPOCHS}
    result = {"ranks": hvd.size(), **constants, "rates": train(options)}
    if hvd.rank() == 0:
        print(
            f"warm-up callback: learning rate {result['rates'][0]:.4f} first, {result['rates'][-1]:.4f} last",
            flush=True,
        )
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
    return result


if __name__ == "__main__":
    main()
