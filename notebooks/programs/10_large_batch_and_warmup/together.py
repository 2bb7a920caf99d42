"""Run programs of this folder one after the other in the same ranks: starting TensorFlow in 8 ranks takes longest.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    distlab launch --with mpirun --workers 8 together.py -- \
        train --epochs 10 --then noise_scale --steps 120 --then batch_norm --result result.json
    mpirun -np 8 --oversubscribe -bind-to none python together.py train --then noise_scale --result result.json
    srun --ntasks=8 --mpi=pmix python together.py train --then noise_scale --then batch_norm --result result.json

After `--then` comes the next program, with its own arguments. Rank 0 writes the results under the programs' names;
the second call of one program is "train 2".
"""

import argparse
import importlib
import json
from itertools import groupby
from pathlib import Path

import distlab  # noqa: F401  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd


def parse() -> tuple[list[list[str]], Path | None]:
    """The programs, each a list of its name and its arguments, and the file for the result."""
    parser = argparse.ArgumentParser(description="Run programs one after the other in the same ranks.")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options, rest = parser.parse_known_args()
    calls = [list(words) for is_separator, words in groupby(rest, lambda word: word == "--then") if not is_separator]
    return calls, options.result


def main() -> None:
    """Run them; rank 0 writes the results."""
    calls, file = parse()
    hvd.init()
    results: dict[str, dict] = {}
    for name, *arguments in calls:
        again = sum(key.split()[0] == name for key in results)
        results[f"{name} {again + 1}" if again else name] = importlib.import_module(name).main(arguments)
    if hvd.rank() == 0 and file:
        file.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
