"""Train the network of this folder with Ray's TensorflowTrainer.

It needs `make setup-frameworks`, and connects to a Ray that runs on all nodes. In a batch
script (slurm/ray.sbatch has a port, a password and folders of the job's own):

    export RAY_ADDRESS=node1:6379  # the first node
    srun ray symmetric-run --address $RAY_ADDRESS --min-nodes 3 -- \
        python train_ray.py --workers 3 --folder /shared/ray --weights weights.npz

`ray symmetric-run` starts Ray on every node, runs the program on the first one when all are
there, and ends Ray after it.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

# Before Ray is imported: no statistics of its use, and no line left out.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_DEDUP_LOGS", "0")

import network
import ray
from ray import train
from ray.train import RunConfig, ScalingConfig
from ray.train.tensorflow import TensorflowTrainer


def train_one_worker(config: dict[str, Any]) -> None:
    """What each worker does: Ray has set TF_CONFIG, and stores the weights of rank 0."""
    import train_multi_worker  # here, since it imports TensorFlow, which only the workers need

    loss, weights = train_multi_worker.train(config["options"], "Ray")
    rank = train.get_context().get_world_rank()
    with tempfile.TemporaryDirectory() as folder:
        network.write(Path(folder) / "weights.npz", weights)
        checkpoint = train.Checkpoint.from_directory(folder) if rank == 0 else None
        train.report({"loss": loss}, checkpoint=checkpoint)


def main() -> None:
    """Train on the Ray that runs."""
    arguments = network.parser("Train with Ray's TensorflowTrainer.")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--address", default="auto", help="HOST:PORT of Ray")
    arguments.add_argument("--folder", type=Path, required=True, help="that all nodes see")
    options = arguments.parse_args()
    for name in ("weights", "result"):  # the workers run in folders of their own
        if path := getattr(options, name):
            setattr(options, name, path.absolute())
    ray.init(address=options.address, logging_level="ERROR", log_to_driver=True)
    # Each worker on a node of its own, if there are enough.
    scaling = ScalingConfig(num_workers=options.workers, placement_strategy="SPREAD")
    trainer = TensorflowTrainer(
        train_one_worker,
        train_loop_config={"options": options},
        scaling_config=scaling,
        run_config=RunConfig(storage_path=str(options.folder.absolute())),
    )
    run = trainer.fit()
    stored = f"the weights of loss {run.metrics['loss']:.4f}"
    print(f"Ray's storage has {stored}: {run.checkpoint.path}", flush=True)


if __name__ == "__main__":
    main()
