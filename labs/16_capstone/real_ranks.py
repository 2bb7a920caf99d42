"""Run the capstone's program on real ranks, and compare it with the serial one.

    python real_ranks.py train.py --ranks 1 2 4

`lab.given.write(globals(), file)` writes train.py in the lab. All runs begin with one
checkpoint. For each number of ranks a line says by how much the last weights differ at most
from those of `train_serial.py`; then follow the texts and seconds of each step on rank 0, as
`throughput` takes them. The options of the training are those of `train_serial.py`.
"""

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from distlab import launch, programs

SERIAL = Path(__file__).with_name("train_serial.py")
SECONDS = 300.0


def rank_number() -> int:
    """The rank of this process under mpirun, or its index in TF_CONFIG; 0 if it is alone."""
    if "TF_CONFIG" in os.environ:
        return int(json.loads(os.environ["TF_CONFIG"])["task"]["index"])
    return int(os.environ.get("OMPI_COMM_WORLD_RANK", 0))


def train(program: Path, folder: Path, options: list[str]) -> None:
    """What one process does: train from the checkpoint in `folder`, and write there."""
    module = programs.module(program)
    import train_serial

    parsed = train_serial.parse([*options, "--folder", str(folder / "saved"), "--resume"])
    state, steps = module.train(parsed)
    weights = np.concatenate([array.ravel() for array in state.model.get_weights()])
    table = np.array([[step["texts"], step["seconds"]] for step in steps])
    np.savez(folder / f"rank-{rank_number()}.npz", weights=weights, steps=table)


def write_first(folder: Path, options: list[str]) -> None:
    """Write the checkpoint with which all runs begin."""
    import train_serial

    parsed = train_serial.parse([*options, "--folder", str(folder)])
    train_serial.save(parsed, train_serial.begin(parsed))


def uses_horovod(program: Path) -> bool:
    """Whether the program imports Horovod."""
    return bool(re.search(r"^\s*(import|from) horovod\b", program.read_text(), re.MULTILINE))


def report(program: Path, ranks: Sequence[int], options: Sequence[str] = ()) -> bool:
    """Run all, and print how they compare, or why not; whether all came to their end."""
    if not program.is_file() or "def train(" not in program.read_text():
        print(f"Not done yet: there is no `train` in {program}.")
        return False
    if uses_horovod(program) and (problem := launch.horovod_problem()):
        print(f"Skipped: {problem}")
        return False
    try:
        with tempfile.TemporaryDirectory() as scratch:
            compare(Path(scratch), program, ranks, options)
    except launch.LaunchError as error:
        print(f"The ranks did not come to an end: {error}")
        return False
    return True


def compare(place: Path, program: Path, ranks: Sequence[int], options: Sequence[str]) -> None:
    """Train in folders in `place`, serially and on ranks; print differences, then steps."""
    run = {"seconds": SECONDS, "start_seconds": SECONDS, "echo": False}
    launch.alone(__file__, SERIAL, "--first", place / "first", *options, **run)

    def results(count: int, start: Callable, file: Path, **more: int) -> list[dict]:
        """What each rank has saved, by rank; 0 ranks are the serial program."""
        folder = place / str(count)
        shutil.copytree(place / "first", folder / "saved")
        start(__file__, file, "--folder", folder, *options, **more, **run)
        return [dict(np.load(file)) for file in sorted(folder.glob("rank-*.npz"))]

    [serial] = results(0, launch.alone, SERIAL)
    measured: dict[int, list[tuple[int, float]]] = {}
    for count in ranks:
        if uses_horovod(program):
            found = results(count, launch.mpirun, program, ranks=count)
        else:
            found = results(count, launch.tensorflow, program, workers=count)
        if missing := count - len(found):
            ended = f"{missing} of {count} ended before `train` returned"
            raise launch.LaunchError(f"{ended}: it must not exit itself.")
        differences = [np.abs(rank["weights"] - serial["weights"]).max() for rank in found]
        said = "1 rank" if count == 1 else f"{count} ranks"
        by = f"by {max(differences):.2g} at most"
        print(f"{said}: the weights differ from the serial ones {by}", flush=True)
        steps = found[0]["steps"]
        measured[count] = [(int(texts), float(f"{took:.3g}")) for texts, took in steps]
    print(f"measured = {measured}")


def main() -> None:
    """With --first or --folder as a process that trains, else as the one that starts them."""
    parser = argparse.ArgumentParser(description="Run on real ranks.", allow_abbrev=False)
    parser.add_argument("program", type=Path)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--first", type=Path, help="write the first checkpoint to this folder")
    parser.add_argument("--folder", type=Path, help="train as one rank, in this folder")
    parsed, options = parser.parse_known_args()  # the others are for train_serial.py
    if parsed.first:
        write_first(parsed.first, options)
    elif parsed.folder:
        train(parsed.program, parsed.folder, options)
    elif not report(parsed.program, parsed.ranks, options):
        sys.exit(1)


if __name__ == "__main__":
    main()
