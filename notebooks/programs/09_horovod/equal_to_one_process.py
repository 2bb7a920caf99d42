"""Do the ranks together train the same model as one process? The three programs with Horovod against the serial one.

On a laptop, two ranks, over Gloo or over MPI:

    horovodrun -np 2 --gloo python equal_to_one_process.py --result result.json
    mpirun -np 2 -bind-to none python equal_to_one_process.py --result result.json

Under Slurm, in a batch script or after `salloc --nodes=2 --ntasks-per-node=1`:

    srun --mpi=pmix python equal_to_one_process.py --result result.json

Each program trains for 20 steps of SGD on all ranks. Then rank 0 runs the loop of `train_serial.py` from the same first
weights, with the batch of all ranks together and the rate that belongs to it. The result holds, for each program, the
largest difference of any weight from the serial run's, the largest between two ranks, and how far training moved them.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, cluster_spec

import horovod.tensorflow as hvd
import train_keras
import train_keras3
import train_serial
import train_tape

PROGRAMS = {"tape": train_tape, "Keras": train_keras, "Keras 3": train_keras3}
STEPS = 20


def arguments_of(dataset: str, ranks: int) -> list[str]:
    """Arguments with which `ranks` ranks do STEPS steps, in two epochs."""
    images = STEPS // 2 * 32 * ranks
    return ["--dataset", dataset, "--epochs", "2", "--images", str(images)]


def trained(program: str, dataset: str) -> dict:
    """The first weights and those of all ranks after training."""
    run = PROGRAMS[program].train(PROGRAMS[program].parse(arguments_of(dataset, hvd.size())))
    return {"first weights": run["first_weights"], "of ranks": hvd.allgather_object(run["weights"])}


def compared(run: dict, dataset: str, ranks: int) -> dict[str, float]:
    """The differences between such a run of `ranks` ranks and one process from the same first weights."""
    options = train_serial.parse(arguments_of(dataset, ranks))
    options.batch, options.learning_rate = options.batch * ranks, options.learning_rate * ranks
    serial = train_serial.train(options, run["first weights"])
    return {
        "from one process": checks.largest_difference(run["of ranks"][0], serial["weights"]),
        "between ranks": max(checks.largest_difference(run["of ranks"][0], other) for other in run["of ranks"]),
        "steps": len(serial["losses"]),
        "moved": checks.largest_difference(run["first weights"], serial["weights"]),
    }


def main() -> None:
    """Compare each program; rank 0 writes the result."""
    parser = argparse.ArgumentParser(description="Compare Horovod's programs with one process.")
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    train_tape.pin_device()
    runs = {program: trained(program, options.dataset) for program in PROGRAMS}
    if hvd.rank() == 0:
        # Not earlier: a model that rank 0 alone makes shifts the names of its next variables, and Horovod then waits.
        result = {program: compared(run, options.dataset, hvd.size()) for program, run in runs.items()}
        for program, differences in result.items():
            print(f"{hvd.size()} ranks, {program}: {differences['from one process']:.1g} from one process", flush=True)
        if options.result:
            options.result.write_text(json.dumps({"ranks": hvd.size(), "programs": result}) + "\n")


if __name__ == "__main__":
    main()
