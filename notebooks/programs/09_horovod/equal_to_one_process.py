"""Do the ranks together train the same model as one process? Horovod's programs against it.

On a laptop, two ranks over Gloo or over MPI; under Slurm in a batch script or after `salloc
--nodes=2 --ntasks-per-node=1`:

    horovodrun -np 2 --gloo python equal_to_one_process.py --result result.json
    mpirun -np 2 -bind-to none python equal_to_one_process.py --result result.json
    srun --mpi=pmix python equal_to_one_process.py --result result.json

Each program trains for 20 steps of SGD on all ranks. Then rank 0 runs the loop of
`train_serial.py` from the same first weights, with the batch of all ranks together and the
rate that belongs to it.
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


def arguments_of(dataset: str) -> list[str]:
    """Arguments with which the ranks do STEPS steps, in two epochs."""
    images = STEPS // 2 * 32 * hvd.size()
    return ["--dataset", dataset, "--epochs", "2", "--images", str(images)]


def compared(first_weights: list, of_ranks: list[list], dataset: str) -> dict[str, float]:
    """How far the ranks are from one process, and from one another, after the same start."""
    options = train_serial.parse(arguments_of(dataset))
    options.batch *= hvd.size()
    options.learning_rate *= hvd.size()
    serial = train_serial.train(options, first_weights)
    between = [checks.largest_difference(of_ranks[0], other) for other in of_ranks]
    return {
        "from one process": checks.largest_difference(of_ranks[0], serial["weights"]),
        "between ranks": max(between),
        "steps": len(serial["losses"]),
        "moved": checks.largest_difference(first_weights, serial["weights"]),
    }


def main() -> None:
    """Compare each program; rank 0 writes the result."""
    parser = argparse.ArgumentParser(
        description="Compare Horovod's programs with one process."
    )
    parser.add_argument("--dataset", default="digits")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    cluster_spec.check_mpi_of_srun()
    hvd.init()
    train_tape.pin_device()
    runs = {}
    for name, program in PROGRAMS.items():
        run = program.train(program.parse(arguments_of(options.dataset)))
        runs[name] = run["first_weights"], hvd.allgather_object(run["weights"])
    # Only now: a model that rank 0 alone makes shifts the names of its next variables, and
    # Horovod then waits.
    if hvd.rank() == 0:
        result = {name: compared(*run, options.dataset) for name, run in runs.items()}
        for name, differences in result.items():
            print(f"{hvd.size()} ranks, {name}: {differences['from one process']:.1g} apart")
        if options.result:
            found = {"ranks": hvd.size(), "programs": result}
            options.result.write_text(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
