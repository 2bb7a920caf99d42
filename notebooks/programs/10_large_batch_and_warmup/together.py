"""Run programs of this folder one after the other in the same ranks: starting 8 takes longest.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    distlab launch --with mpirun --workers 8 together.py -- train --then noise_scale
    mpirun -np 8 --oversubscribe -bind-to none python together.py train --then batch_norm
    srun --ntasks=8 --mpi=pmix python together.py train --epochs 10 --then batch_norm

After `--then` comes the next program, with its own arguments. Rank 0 writes the results under
the programs' names.
"""

import argparse
import importlib
import json
from itertools import groupby
from pathlib import Path

import distlab  # noqa: F401  # before TensorFlow: it selects tf-keras

import horovod.tensorflow as hvd

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Run programs in the same ranks.")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options, words = parser.parse_known_args()
    hvd.init()
    results = {}
    for is_next, call in groupby(words, lambda word: word == "--then"):
        if not is_next:
            name, *arguments = call
            results[name] = importlib.import_module(name).main(arguments)
    if hvd.rank() == 0 and options.result:
        options.result.write_text(json.dumps(results) + "\n")
