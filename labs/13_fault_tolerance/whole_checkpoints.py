"""Tell whole checkpoints from half-written ones, and find the newest whole one.

    python whole_checkpoints.py FOLDER

reads every `tf.train.Checkpoint` in the folder from the first to the last byte, prints a line for each, oldest first,
and names the newest whole one at the end. Exit status: 0 if the newest is whole, 1 if an older one has to serve, 2 if
there is none. Under Slurm, in the batch script of a job that is started again, before the training:

    srun --nodes=1 --ntasks=1 python whole_checkpoints.py /shared/checkpoints

It needs one process, so there is no mpirun line. In a program, the chief seals each checkpoint after it was saved, and
all workers go on from the newest that is whole and sealed:

    seal(manager.save(step))
    checkpoint.restore(newest(folder, is_sealed, is_whole))
"""

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf


def is_whole(prefix: str) -> bool:
    """Whether every value of a checkpoint can be read; TensorFlow compares each with its checksum."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception:  # damaged bytes raise an OpError, an IndexError or nearly anything else
        return False
    return True


def seal(prefix: str) -> None:
    """Write the digests of a checkpoint's files beside it; call it after the save, on the chief."""
    part = Path(f"{prefix}.seal.part")
    with part.open("w") as file:
        json.dump(digests(prefix), file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the file gets its name
    part.rename(f"{prefix}.seal")


def is_sealed(prefix: str) -> bool:
    """Whether a checkpoint's files are, byte for byte, those that were sealed."""
    try:
        return json.loads(Path(f"{prefix}.seal").read_text()) == digests(prefix)
    except (OSError, ValueError):
        return False


def digests(prefix: str) -> dict[str, str]:
    """The SHA-256 digest of each of a checkpoint's files."""
    path = Path(prefix)
    files = [path.with_name(f"{path.name}.index"), *sorted(path.parent.glob(f"{path.name}.data-*"))]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def newest(folder: str | Path, *checks: Callable[[str], bool]) -> str | None:
    """The newest checkpoint in a folder that passes every check, whatever TensorFlow's own list says; None if none."""
    for prefix in reversed(in_order(folder)):
        if all(check(prefix) for check in checks):
            return prefix
        print(f"{Path(prefix).name} is damaged and not used")
    return None


def in_order(folder: str | Path) -> list[str]:
    """The checkpoints of which a file is there, by the number that ends their names, so that 10 comes after 9."""
    found = (re.fullmatch(r"(.*-(\d+))\.(index|data-\d+-of-\d+)", str(file)) for file in Path(folder).iterdir())
    numbers = {match[1]: int(match[2]) for match in found if match}
    return sorted(numbers, key=numbers.__getitem__)


def main() -> int:
    """Check every checkpoint of a folder; the exit status."""
    parser = argparse.ArgumentParser(description="Tell whole checkpoints from half-written ones.")
    parser.add_argument("folder", type=Path)
    prefixes = in_order(parser.parse_args().folder)
    verdicts = [is_whole(prefix) for prefix in prefixes]
    for prefix, verdict in zip(prefixes, verdicts, strict=True):
        print(f"{Path(prefix).name}: {'whole' if verdict else 'damaged'}")
    if not any(verdicts):
        print("no whole checkpoint")
        return 2
    print(f"use {[prefix for prefix, verdict in zip(prefixes, verdicts, strict=True) if verdict][-1]}")
    return 0 if verdicts[-1] else 1


if __name__ == "__main__":
    sys.exit(main())
