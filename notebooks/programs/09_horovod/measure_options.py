"""What Horovod's options do, measured: tensor fusion, fp16 compression, accumulation.

On a laptop, two ranks over MPI; under Slurm in a batch script or after `salloc --nodes=2`:

    mpirun -np 2 -bind-to none python measure_options.py --result result.json
    srun --mpi=pmix python measure_options.py --result result.json

How many all-reduces there were, and of how many bytes, is read from Horovod's timeline.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from distlab import checks, metrics, models, profiling  # first: it selects tf-keras

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI  # after TensorFlow; it keeps MPI for a second init

TENSORS, REPEATS, LAST = 40, 30, "last_of_recording"


def start(fusion_bytes: int | None = None, with_timeline: bool = True) -> None:
    """Initialise Horovod once more: for timelines, and with a fusion threshold if it is given.

    From then on the thread that writes timelines keeps a core of rank 0 busy.
    """
    hvd.shutdown()
    for name in ("HOROVOD_TIMELINE", "HOROVOD_FUSION_THRESHOLD"):
        os.environ.pop(name, None)
    if with_timeline:
        os.environ["HOROVOD_TIMELINE"] = "DYNAMIC"
    if fusion_bytes is not None:
        os.environ["HOROVOD_FUSION_THRESHOLD"] = str(fusion_bytes)
    hvd.init()


@tf.function(autograph=False)  # without it Horovod ignores the name
def mark_end() -> tf.Tensor:
    """An all-reduce that can be told apart."""
    return hvd.allreduce(tf.zeros(1), name=LAST)


def recorded(work: Callable[[], object]) -> dict[str, int]:
    """Do the work on all ranks; how many all-reduces it took, and of how many bytes."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        hvd.start_timeline(str(file))
        work()
        mark_end()  # when it is there, all before it are in the recording
        hvd.stop_timeline()
        MPI.COMM_WORLD.Barrier()
        if hvd.rank() > 0:
            return {}
        calls = profiling.horovod_timeline.read(file).collectives()
        sizes = [call.nbytes for call in calls if call.tensors != (LAST,)]
        return {"all-reduces": len(sizes), "bytes": sum(sizes)}


def fusion(threshold: int) -> dict[str, float]:
    """Average small gradients at once, as a step does, with this fusion threshold in bytes."""
    start(threshold)
    gradients = {f"of_{threshold}_{number}": tf.ones(500) for number in range(TENSORS)}

    @tf.function(autograph=False)
    def step() -> list[tf.Tensor]:
        return [hvd.allreduce(gradient, name=name) for name, gradient in gradients.items()]

    return {"seconds": metrics.median_seconds(step, REPEATS), **recorded(step)}


def compression(kind: type) -> dict[str, object]:
    """Average a gradient of 10,000 numbers, and three special numbers, in this precision."""
    ours = np.random.default_rng(hvd.rank()).normal(scale=1e-2, size=10_000).astype(np.float32)
    exact = MPI.COMM_WORLD.allreduce(ours.astype(np.float64)) / hvd.size()

    def average(values: object, name: str) -> np.ndarray:
        name = f"{kind.__name__}_{name}"
        return hvd.allreduce(tf.constant(values), compression=kind, name=name).numpy()

    averages = []
    counts = recorded(lambda: averages.append(average(ours, "gradient")))
    error = float(np.abs(averages[0] - exact).max() / np.abs(exact).max())
    special = [str(one) for one in average([40_000.0, 1.0, 1e-8], "special")]
    return {**counts, "error": error, "special": special}


def accumulation(batch: int, passes: int) -> dict[str, object]:
    """Train on 512 images of this rank; average the gradients after so many batches."""
    tf.keras.utils.set_random_seed(9)
    model = models.mlp(dropout=0.0)
    optimizer = hvd_keras.DistributedOptimizer(
        tf.keras.optimizers.SGD(0.1),
        backward_passes_per_step=passes,
        average_aggregated_gradients=True,
    )
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(hvd.rank())
    images, labels = random.random((512, 28, 28), np.float32), random.integers(10, size=512)
    how = {"batch_size": batch, "shuffle": False, "verbose": 0}
    counts = recorded(lambda: model.fit(images, labels, **how))
    return {**counts, "batches": 512 // batch, "weights": model.get_weights()}


def measured() -> dict:
    """Everything, on all ranks; rank 0 knows the counts. Horovod is initialised again."""
    result = {"fusion": {"fused": fusion(128 * 2**20), "not fused": fusion(0)}}
    start()
    result["compression"] = {
        "none": compression(hvd.Compression.none),
        "fp16": compression(hvd.Compression.fp16),
    }
    trainings = {
        "16, each batch": accumulation(16, 1),
        "16, every 4th batch": accumulation(16, 4),
        "64, each batch": accumulation(64, 1),
    }
    large = trainings["64, each batch"]["weights"]
    for training in trainings.values():
        difference = checks.largest_difference(training.pop("weights"), large)
        training["from 64, each"] = difference
    result["accumulation"] = trainings
    start(with_timeline=False)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure what Horovod's options do.")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    result = measured()
    if hvd.rank() == 0:
        for name, part in result.items():
            print(f"{name}: {json.dumps(part)}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
