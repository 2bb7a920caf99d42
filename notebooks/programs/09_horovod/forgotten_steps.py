"""What happens to the training when a step of the way to Horovod is forgotten?

On a laptop, two ranks over Gloo or over MPI; under Slurm in a batch script or after `salloc
--nodes=1 --ntasks=2`, on one host since the ranks share a folder:

    horovodrun -np 2 --gloo python forgotten_steps.py --result result.json
    mpirun -np 2 -bind-to none python forgotten_steps.py --result result.json
    srun --mpi=pmix python forgotten_steps.py --result result.json

To forget a step, a function of `train_serial.py` replaces that of `train_tape.py`. `answers`
asks each run the same questions; `forgotten` says from the answers which steps are missing.
"""

import argparse
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from unittest import mock

from distlab import checks, cluster_spec

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf
import train_serial
import train_tape

FUNCTIONS = {  # the function of both programs in which each step is taken
    "scale the learning rate": "make_optimizer",
    "wrap the tape": "step",
    "broadcast the variables": "begin",
    "checkpoint on rank 0": "save",
    "shard the data": "batches",
    "steps per epoch": "steps_per_epoch",
}
NOTHING, TOLERANCE = "nothing", 1e-5


def between_ranks(of_ranks: list[list[np.ndarray]]) -> float:
    """The largest difference of any array between rank 0 and another rank."""
    return max(checks.largest_difference(of_ranks[0], other) for other in of_ranks)


def forgotten(answers: dict) -> list[str]:
    """The steps that are missing in the run that gave these answers."""
    scaled_rate = answers["rate for one rank"] * answers["ranks"]
    signs = {
        "scale the learning rate": answers["rate"] < 0.99 * scaled_rate,
        "wrap the tape": answers["first changes differ by"] > TOLERANCE,
        "broadcast the variables": answers["first weights differ by"] > TOLERANCE,
        "checkpoint on rank 0": answers["writers"] != [0],
        "shard the data": answers["samples of a step on several ranks"] > 0,
        "steps per epoch": answers["rounds per epoch"] > 1,
    }
    return [step for step, is_missing in signs.items() if is_missing]


def answers(step: str, options: argparse.Namespace, shared: Path) -> dict:
    """Train an epoch without that step, with folders in `shared`; what all ranks know then."""
    folders = [shared / step / f"rank-{rank}" for rank in range(hvd.size())]
    folders[hvd.rank()].mkdir(parents=True)
    own = argparse.Namespace(**vars(options) | {"folder": folders[hvd.rank()]})
    names = [] if step == NOTHING else [FUNCTIONS[step]]
    replaced = {name: getattr(train_serial, name) for name in names}
    taken = replaced.get("step", train_tape.step)
    rates, last_layer, weights = [], [], []

    def observed(state: tf.train.Checkpoint, *batch: tf.Tensor) -> tf.Tensor:
        rates.append(float(state.optimizer.learning_rate))
        last_layer.append(state.model.trainable_variables[-2].numpy())
        if len(weights) < 2:
            weights.append(state.model.get_weights())
        return taken(state, *batch)

    with mock.patch.multiple(train_tape, **replaced | {"step": observed}):
        trained = train_tape.train(own)
    change = [new - old for old, new in zip(*weights, strict=True)]
    observations = {"first": weights[0], "change": change, "last layer": last_layer}
    of_ranks = hvd.allgather_object(observations | trained)
    seen = [rank["seen"] for rank in of_ranks]  # [rank][step][sample]
    steps = list(zip(*seen, strict=True))
    layers = zip(*(rank["last layer"] for rank in of_ranks), strict=True)
    return {
        "ranks": hvd.size(),
        "rate for one rank": options.learning_rate,
        "rate": rates[0],
        "first weights differ by": between_ranks([rank["first"] for rank in of_ranks]),
        "first changes differ by": between_ranks([rank["change"] for rank in of_ranks]),
        "last layer differs by": [between_ranks([[one] for one in each]) for each in layers],
        "last weights differ by": between_ranks([rank["weights"] for rank in of_ranks]),
        "seen": seen,
        "steps": len(steps),
        "samples of a step on several ranks": max(
            sum(map(len, step)) - len(set().union(*step)) for step in steps
        ),
        "rounds per epoch": np.size(seen) / options.images,
        "writers": [rank for rank, folder in enumerate(folders) if [*folder.iterdir()]],
        "last loss": float(np.mean([rank["losses"][-1] for rank in of_ranks])),
    }


def wait_for_all() -> None:
    """Until every rank is here."""
    hvd.allreduce(tf.zeros(1), name="wait_for_all")


def race(folder: Path, times: int = 20) -> dict:
    """Let all ranks write their number to one path, several times: what fails, whose stays?"""
    failures, kept, path = 0, [], str(folder / "one-for-all")
    number = tf.Variable(np.full(50_000, hvd.rank(), np.float32))
    found = tf.Variable(np.zeros(50_000, np.float32))
    for _ in range(times):
        wait_for_all()
        try:
            tf.train.Checkpoint(number=number).write(path)
        except tf.errors.OpError:
            failures += 1
        wait_for_all()
        if hvd.rank() == 0:
            with suppress(tf.errors.OpError):
                tf.train.Checkpoint(number=found).read(path).assert_consumed()
                values = found.numpy()
                kept.append(int(values.max()) if np.ptp(values) == 0 else "mixed")
    return {"times": times, "failures": int(sum(hvd.allgather_object(failures))), "kept": kept}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Forget each step in turn.")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    train_tape.pin_device()
    training = train_tape.parse(["--dataset", options.dataset])
    with tempfile.TemporaryDirectory() as scratch:
        shared = Path(hvd.broadcast_object(scratch, root_rank=0))
        result = {step: answers(step, training, shared) for step in (NOTHING, *FUNCTIONS)}
        result["race"] = race(shared)
        wait_for_all()
    if hvd.rank() == 0:
        for step in (NOTHING, *FUNCTIONS):
            noticed = ", ".join(forgotten(result[step])) or NOTHING
            print(f"{step} forgotten; noticed: {noticed}", flush=True)
        if options.result:
            options.result.write_text(json.dumps(result) + "\n")
