"""Run programs of this folder one after the other in the same ranks: starting TensorFlow in 8 ranks takes longest.

On a laptop, with mpirun where there is a core or a GPU for each rank, and under Slurm:

    distlab launch --with mpirun --workers 8 together.py -- \
        train --epochs 10 --then noise_scale --steps 120 --then batch_norm --result result.json
    mpirun -np 8 python together.py train --epochs 10 --then noise_scale --then batch_norm --result result.json
    srun --ntasks=8 --mpi=pmix python together.py train --then noise_scale --then batch_norm --result result.json

After `--then` comes the next program, with its own arguments. Rank 0 writes the results under the programs' names;
the second call of one program is "train 2".
"""

import argparse
import importlib
import json
import sys
from itertools import groupby
from pathlib import Path

import distlab  # noqa: F401  # before TensorFlow: it selects tf-keras

# isort: split
import horovod.tensorflow as hvd

PROGRAMS = ("train", "noise_scale", "batch_norm", "warm_up_callback")


def parse() -> tuple[list[list[str]], Path | None]:
    """The programs, each a list of its name and its arguments, which it can take, and the file for the result."""
    parser = argparse.ArgumentParser(description="Run programs one after the other in the same ranks.")
    parser.add_argument("--result", type=Path, action="append", help="JSON file that rank 0 writes")
    options, rest = parser.parse_known_args()
    calls = [list(words) for is_separator, words in groupby(rest, lambda word: word == "--then") if not is_separator]
    if not calls or any(call[0] not in PROGRAMS for call in calls):
        parser.error(f"name one or more of {', '.join(PROGRAMS)}, each with its arguments, with --then between them")
    if len(options.result or ()) > 1:
        parser.error("--result is one file for the results of all programs; name it once")
    file = options.result[0] if options.result else None
    for name, *arguments in calls:
        check(name, [*arguments, *(["--result", str(file)] if file else [])])
    return calls, file


def check(name: str, arguments: list[str]) -> None:
    """End this program, under the other one's name, with what that says to arguments that it cannot take."""
    own, sys.argv[0] = sys.argv[0], f"{sys.argv[0]} {name}"
    importlib.import_module(name).parse(arguments)
    sys.argv[0] = own


def main() -> None:
    """Run them; rank 0 writes the results, also of those that came before one that fails."""
    calls, file = parse()
    hvd.init()
    is_first, results = hvd.rank() == 0, {}
    try:
        for name, *arguments in calls:
            again = sum(key.split()[0] == name for key in results)
            results[f"{name} {again + 1}" if again else name] = importlib.import_module(name).main(arguments)
    finally:
        if is_first and file and results:
            file.write_text(json.dumps(results) + "\n")


if __name__ == "__main__":
    main()
