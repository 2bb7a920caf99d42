"""Four tries to save or to read in a simpler way, of which one works; `loop.py` is right.

On a laptop; any number of workers from 2 on:

    distlab launch --workers 2 save_wrongly.py -- --folder saved --result result.json

By hand, under mpirun or Slurm, set TF_CONFIG in each process before
`python save_wrongly.py --folder saved`; in the first of two it is

    {"cluster": {"worker": ["localhost:PORT0", "localhost:PORT1"]},
     "task": {"type": "worker", "index": 0}}

| stage | what happens |
|---|---|
| everybody | all workers write a checkpoint to the same path, until one of them fails |
| mixed | the chief alone reads a metric, while the others continue and sum something else |
| alone | the chief alone writes a checkpoint, then calls `model.save`; the others wait |

The chief writes the result before it calls `model.save`, gives up after `--patience` and ends
with status 3.
"""

import argparse
import json
import os
import threading
import time
from pathlib import Path

from distlab import cluster_spec, models  # before TensorFlow: it selects tf-keras

import tensorflow as tf

TRIES = 200
Strategy = tf.distribute.Strategy


def all_write(strategy: Strategy, checkpoint: tf.train.Checkpoint, path: str) -> dict:
    """All workers write to one path at the same time: how many fail, and at which try."""
    for number in range(1, TRIES + 1):
        failed = 0.0
        try:
            checkpoint.write(path)
        except tf.errors.OpError as error:
            failed = 1.0
            reason = error.message.split("}} ")[-1]
            print(f"try {number}: {type(error).__name__}: {reason}", flush=True)
        # A sum over all workers, so that they stop together, or begin the next try together.
        own = strategy.run(lambda failed=failed: tf.constant(failed))
        failures = strategy.reduce("SUM", own, axis=None)
        if failures:
            return {"tries": number, "failures": int(failures)}
    return {"tries": TRIES, "failures": 0}


def mixed(strategy: Strategy, mean: tf.keras.metrics.Mean, is_chief: bool) -> dict:
    """The chief alone reads a metric: the true mean, and what the chief gets."""
    strategy.run(lambda: mean.update_state(2.0))  # 2 on every worker, so the mean is 2
    true = float(mean.result())  # every worker calls
    if is_chief:
        return {"true": true, "read alone": float(mean.result())}
    for value in (100.0, 3.0):  # the others continue with their own sums
        strategy.reduce("SUM", strategy.run(lambda value=value: tf.constant(value)), axis=None)
    return {}


def save_alone(model: tf.keras.Model, path: Path, patience: float) -> None:
    """The chief alone saves a model; it ends the process after `patience` seconds."""

    def give_up() -> None:
        when = f"after {patience:g} s"
        print(f"the chief alone has called model.save; {when} it gives up", flush=True)
        os._exit(3)  # even while another thread waits

    threading.Timer(patience, give_up).start()
    model.save(path)
    print("model.save has returned", flush=True)
    os._exit(0)


def main() -> None:
    """Run the stages."""
    parser = argparse.ArgumentParser(description="Save wrongly, and fail safely.")
    add = parser.add_argument
    add("--folder", type=Path, required=True, help="a folder that all workers see")
    add("--patience", type=float, default=5, help="seconds that the chief waits for a save")
    add("--result", type=Path, help="JSON file that the chief writes")
    options = parser.parse_args()
    tf.get_logger().setLevel("ERROR")  # no advice about collectives outside of a tf.function
    with cluster_spec.interruptible():
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    has_chief = "chief" in resolver.cluster_spec().jobs
    is_chief = resolver.task_type == "chief" if has_chief else resolver.task_id == 0
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        model, mean = models.cnn(), tf.keras.metrics.Mean()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.05), loss, metrics=["accuracy"])
    zeros = tf.zeros((96, 28, 28)), tf.zeros(96)  # what is trained does not matter here
    samples = tf.data.Dataset.from_tensor_slices(zeros).batch(48)
    model.fit(samples.repeat(), steps_per_epoch=2, verbose=0)
    options.folder.mkdir(parents=True, exist_ok=True)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer)

    result = {"everybody": all_write(strategy, checkpoint, str(options.folder / "everybody"))}
    result["mixed"] = mixed(strategy, mean, is_chief)
    of_metrics = [variable for metric in model.metrics for variable in metric.variables]
    on_read = tf.VariableSynchronization.ON_READ
    result["combined on read"] = [
        variable.name
        for variable in [*model.variables, *of_metrics]
        if variable.synchronization == on_read
    ]
    if not is_chief:
        time.sleep(options.patience + 600)  # it takes no part any more
        return
    checkpoint.write(str(options.folder / "alone"))
    print("the chief alone has written a checkpoint", flush=True)
    if options.result:
        options.result.write_text(json.dumps(result) + "\n")
    save_alone(model, options.folder / "alone.keras", options.patience)


if __name__ == "__main__":
    main()
