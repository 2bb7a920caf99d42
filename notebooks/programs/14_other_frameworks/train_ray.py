"""Ray starts the processes: Horovod's ranks, or the workers of TensorFlow's strategy.

On a laptop, with the interpreter that has Ray, where the program starts a Ray of its own and
ends it; after `ray start --head` and, on the other hosts, `ray start --address HOST0:PORT`;
and in a batch script for Slurm:

    python train_ray.py start.npz --way RayExecutor --result result.json
    python train_ray.py start.npz --way RayExecutor --workers 8 --address HOST0:PORT
    srun ray symmetric-run --address HOST0:PORT --min-nodes 2 -- python train_ray.py ...

`start.py` writes start.npz, which all machines must see. Ray trains nothing: what each worker
calls is the training of `train_horovod.py` or `train_tensorflow.py`.
"""

import argparse
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from distlab.runtime import processes

import layouts
import numpy as np

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported
import ray

GLOBAL_BATCH, RATE = 48, 0.02
Trained = tuple[list[float], list[np.ndarray]]  # losses and weights


@contextmanager
def running_ray(workers: int, address: str | None = None) -> Iterator[Path]:
    """Ray, with a core for each worker, and a folder for what they write.

    Without an `address`, HOST:PORT, Ray is started on this machine; afterwards, whatever
    happens, its processes and its files are gone.
    """
    # The path of a socket has about a hundred characters, and Ray's lie deep.
    place, mark = os.environ.get("RAY_TMPDIR", "/tmp"), processes.new_mark()
    with (
        tempfile.TemporaryDirectory(prefix="ray-", dir=place) as folder,
        processes.guarded(mark, folder),
        processes.marked(mark),
    ):
        how = {"address": address} if address else own_ray(workers, folder)
        try:
            ray.init(logging_level="ERROR", log_to_driver=False, **how)
            yield Path(folder)
        finally:
            ray.shutdown()


def own_ray(workers: int, folder: str) -> dict:
    """Arguments for a Ray of our own, which leaves nothing in the home folder."""
    # Without it nobody gets at Ray's daemons, which listen to the network.
    os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
    # Cloud machines may be announced to end soon: here one process more to start.
    os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
    own = {"num_cpus": workers, "object_store_memory": 2**27, "include_dashboard": False}
    return own | {"_temp_dir": folder}


def train_with_horovod(start: Path, workers: int) -> Trained:
    """What each rank does, without a word of Ray; its losses, and the weights."""
    import train_horovod  # here, since it imports TensorFlow, which only the workers need

    train_horovod.pin_device()
    options = layouts.parser_of_ranks("").parse_args([str(start)])
    options.batch, options.learning_rate = GLOBAL_BATCH // workers, RATE / workers
    result = train_horovod.train(options)
    return result["losses"], result["weights"]


def train_with_tensorflow(config: dict) -> None:
    """What each worker does: Ray has set TF_CONFIG, and stores what the chief reports."""
    import train_tensorflow
    from ray import train

    options = train_tensorflow.parse([str(config["start"])])
    result = train_tensorflow.train(options, train_tensorflow.make_strategy())
    is_chief = train.get_context().get_world_rank() == 0
    with tempfile.TemporaryDirectory() as folder:
        layouts.write(Path(folder) / "weights.npz", result["weights"])
        checkpoint = train.Checkpoint.from_directory(folder) if is_chief else None
        train.report({"losses": result["losses"]}, checkpoint=checkpoint)


def ray_executor(options: argparse.Namespace, folder: Path) -> Trained:
    """Horovod on Ray."""
    from horovod.ray import RayExecutor

    settings = RayExecutor.create_settings(timeout_s=120)
    executor = RayExecutor(settings, num_workers=options.workers)  # use_gpu=True: a GPU each
    executor.start()
    of_ranks = executor.run(train_with_horovod, args=[options.start, options.workers])
    executor.shutdown()
    losses = np.mean([losses for losses, _ in of_ranks], axis=0).tolist()
    return losses, of_ranks[0][1]


def tensorflow_trainer(options: argparse.Namespace, folder: Path) -> Trained:
    """TensorFlow's strategy for several workers on Ray."""
    from ray.train import RunConfig, ScalingConfig
    from ray.train.tensorflow import TensorflowTrainer

    run = TensorflowTrainer(
        train_with_tensorflow,
        train_loop_config={"start": options.start},
        scaling_config=ScalingConfig(num_workers=options.workers),  # use_gpu=True: a GPU each
        run_config=RunConfig(storage_path=str(options.folder or folder)),
    ).fit()
    with run.checkpoint.as_directory() as saved:
        return run.metrics["losses"], layouts.read(Path(saved) / "weights.npz")


if __name__ == "__main__":
    ways = {"RayExecutor": ray_executor, "TensorflowTrainer": tensorflow_trainer}
    parser = layouts.parser("Train on Ray.")
    parser.add_argument("--way", choices=ways, required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--address", help="HOST:PORT of Ray (default: one is started here)")
    parser.add_argument("--folder", type=Path, help="that all machines see, for checkpoints")
    options = parser.parse_args()
    options.start = options.start.absolute()  # the workers run in folders of their own
    with running_ray(options.workers, options.address) as folder:
        losses, weights = ways[options.way](options, folder)
    result = {"ranks": options.workers, "losses": losses}
    layouts.report(options, f"{options.way}: {options.workers} workers,", result, weights)
