"""What Horovod's options do: tensor fusion, fp16 compression, gradient accumulation, each measured.

On a laptop, two ranks, over MPI:

    mpirun -np 2 -bind-to none python measure_options.py --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=1`:

    srun --mpi=pmix python measure_options.py --result result.json

How many all-reduces there were, and of how many bytes, is read from the timeline that Horovod records. Rank 0
writes the result.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from distlab import checks, models, profiling  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd
import horovod.tensorflow.keras as hvd_keras
import numpy as np
import tensorflow as tf
from mpi4py import MPI  # after TensorFlow, whose libraries it would disturb at the end; it keeps MPI for a second init

TENSORS, REPEATS = 40, 30
LAST = "last_of_recording"


def start(fusion_bytes: int | None = None, with_timeline: bool = True) -> None:
    """Initialise Horovod, again if need be; for recordings on demand, and with this fusion threshold if one is given.

    From then on the thread that writes recordings keeps a core of rank 0 busy, even while there is nothing to write.
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
    """Do the work on all ranks; how many all-reduces it took and how many bytes each rank put into them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "timeline.json"
        hvd.start_timeline(str(file))
        work()
        mark_end()  # when it is there, all before it are in the recording
        hvd.stop_timeline()
        MPI.COMM_WORLD.Barrier()
        if hvd.rank() > 0:
            return {}
        calls = [call for call in profiling.horovod_timeline.read(file).collectives() if call.tensors != (LAST,)]
        return {"all-reduces": len(calls), "bytes": sum(call.nbytes for call in calls)}


def fusion(threshold: int) -> dict[str, float]:
    """Average TENSORS small gradients at once, as a step does, with this fusion threshold in bytes."""
    start(threshold)
    gradients = [tf.ones(500) for _ in range(TENSORS)]
    name = f"threshold_{threshold}"

    @tf.function(autograph=False)
    def step() -> list[tf.Tensor]:
        return [hvd.allreduce(one, name=f"{name}_{number}") for number, one in enumerate(gradients)]

    step()
    seconds = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - begin)
    return {"seconds": float(np.median(seconds)), **recorded(step)}


def compression(kind: type) -> dict[str, object]:
    """Average a gradient of 10,000 numbers, and three special numbers, compressed in this way."""
    ours = np.random.default_rng(hvd.rank()).normal(scale=1e-2, size=10_000).astype(np.float32)
    name = kind.__name__
    exact = MPI.COMM_WORLD.allreduce(ours.astype(np.float64)) / hvd.size()
    averages = []
    counts = recorded(lambda: averages.append(hvd.allreduce(tf.constant(ours), compression=kind, name=name)))
    special = tf.constant([40_000.0, 1.0, 1e-8])
    return {
        **counts,
        "error": float(np.abs(averages[0].numpy() - exact).max() / np.abs(exact).max()),
        "special": [str(one) for one in hvd.allreduce(special, compression=kind, name=f"{name}_special").numpy()],
    }


def accumulation(batch: int, passes: int) -> dict[str, object]:
    """Train on 512 images of this rank in such batches, and average the gradients after each so many of them."""
    tf.keras.utils.set_random_seed(9)
    model = models.mlp(dropout=0.0)
    optimizer = hvd_keras.DistributedOptimizer(
        tf.keras.optimizers.SGD(0.1), backward_passes_per_step=passes, average_aggregated_gradients=True
    )
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    random = np.random.default_rng(hvd.rank())
    images, labels = random.random((512, 28, 28), np.float32), random.integers(10, size=512)
    counts = recorded(lambda: model.fit(images, labels, batch_size=batch, shuffle=False, verbose=0))
    return {**counts, "batches": 512 // batch, "weights": model.get_weights()}


def measured() -> dict:
    """Everything, on all ranks; what rank 0 knows is the result. Horovod is initialised again, at the end as usual."""
    result = {"fusion": {"fused": fusion(128 * 2**20), "not fused": fusion(0)}}
    start()
    result["compression"] = {"none": compression(hvd.Compression.none), "fp16": compression(hvd.Compression.fp16)}
    trainings = {"16, each batch": (16, 1), "16, every 4th batch": (16, 4), "64, each batch": (64, 1)}
    result["accumulation"] = {name: accumulation(*sizes) for name, sizes in trainings.items()}
    weights = {name: training.pop("weights") for name, training in result["accumulation"].items()}
    for name, training in result["accumulation"].items():
        training["from 64, each"] = checks.largest_difference(weights[name], weights["64, each batch"])
    start(with_timeline=False)
    return result


def main() -> None:
    """Measure; rank 0 writes the result."""
    parser = argparse.ArgumentParser(description="Measure what Horovod's options do.")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    result = measured()
    if hvd.rank() == 0:
        for name, part in result.items():
            print(f"{name}: {json.dumps(part)}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
