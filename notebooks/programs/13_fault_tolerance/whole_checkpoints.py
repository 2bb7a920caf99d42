"""Tell whole checkpoints from damaged ones, and find the newest whole one.

    python whole_checkpoints.py FOLDER
    srun --ntasks=1 python whole_checkpoints.py FOLDER  # in a batch script before the training

reads every `tf.train.Checkpoint` in the folder from the first to the last byte, prints one
line for each, oldest first, and then the newest whole one; exit status 1 if there is none.

A program seals what it saves, and resumes from the newest checkpoint that is whole and sealed:

    seal(manager.save(step))
    checkpoint.restore(newest(folder))
"""

import argparse
import hashlib
import json
import os
import sys
from pathlib import Path

import tensorflow as tf


def seal(prefix: str) -> None:
    """Write size and digest of a checkpoint's files next to it, after the save."""
    part = Path(f"{prefix}.seal.part")
    with part.open("w") as file:
        json.dump(contents(prefix), file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the file gets its name
    part.rename(f"{prefix}.seal")
    for old in part.parent.glob("ckpt-*.seal"):
        if not old.with_suffix(".index").exists():  # the CheckpointManager has deleted it
            old.unlink()


def contents(prefix: str) -> dict[str, list]:
    """Size in bytes and SHA-256 digest of each of a checkpoint's files, by the file's name."""
    folder, name, found = Path(prefix).parent, Path(prefix).name, {}
    for file in (*folder.glob(f"{name}.data-*"), *folder.glob(f"{name}.index")):
        with file.open("rb") as opened:
            digest = hashlib.file_digest(opened, "sha256").hexdigest()
        found[file.name] = [file.stat().st_size, digest]
    return found


def broken_seal(prefix: str) -> str | None:
    """How a checkpoint's files differ from those that were sealed; None if they do not."""
    try:
        sealed = json.loads(Path(f"{prefix}.seal").read_text())
    except FileNotFoundError:
        return "it has no seal: the job ended before the save was complete"
    except ValueError:
        return "its seal cannot be read"
    found = contents(prefix)
    for name, (size, digest) in sealed.items():
        kind = "index" if name.endswith(".index") else "data"
        if name not in found:
            return f"its {kind} file is missing"
        if found[name][0] < size:
            return f"its {kind} file is truncated"
        if found[name][1] != digest:
            return f"the bytes of its {kind} file have changed"
    return None


def unreadable(prefix: str) -> str | None:
    """Why some value cannot be read; TensorFlow compares each one with its checksum."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception as error:  # an OpError, an IndexError or nearly any other
        return f"TensorFlow cannot read it: {type(error).__name__}"
    return None


def newest(folder: str | Path) -> str | None:
    """The newest checkpoint without a problem; prints why newer ones are passed over."""
    passed_over = []
    for prefix in reversed(in_order(folder)):
        reason = broken_seal(prefix) or unreadable(prefix)
        if reason is None:
            why = ",\n".join(passed_over) or f"Checkpoint {number(prefix)} is whole"
            print(f"{why}: resuming from checkpoint {number(prefix)}.", flush=True)
            return prefix
        passed_over.append(f"Checkpoint {number(prefix)} cannot be used ({reason})")
    why = ",\n".join(passed_over) or f"There is no checkpoint in {folder}"
    print(f"{why}: starting from the beginning.", flush=True)
    return None


def rewrite_list(folder: Path, chosen: str | None) -> None:
    """Write the file `checkpoint`, a CheckpointManager's list, up to the chosen one.

    The manager fails on a list that it cannot read, and would count damaged ones as kept.
    """
    (folder / "checkpoint").unlink(missing_ok=True)
    if chosen:
        usable = [prefix for prefix in in_order(folder) if number(prefix) <= number(chosen)]
        times = [1.0] * len(usable), 0.0
        tf.compat.v1.train.update_checkpoint_state(str(folder), chosen, usable, None, *times)


def number(prefix: str) -> int:
    """The number that ends a checkpoint's name: the steps that were done."""
    return int(prefix.rpartition("-")[2])


def in_order(folder: str | Path) -> list[str]:
    """The checkpoints of which at least one file exists, by number: 10 after 9."""
    files = (*Path(folder).glob("ckpt-*.data-*"), *Path(folder).glob("ckpt-*.index"))
    return sorted({str(file.with_suffix("")) for file in files}, key=number)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Tell whole checkpoints from damaged ones.")
    parser.add_argument("folder", type=Path)
    whole = None
    for prefix in in_order(parser.parse_args().folder):
        is_sealed = Path(f"{prefix}.seal").exists()  # not every program seals its checkpoints
        reason = (broken_seal(prefix) if is_sealed else None) or unreadable(prefix)
        print(f"{Path(prefix).name}: {f'damaged, {reason}' if reason else 'whole'}")
        whole = whole if reason else prefix
    print(f"use {whole}" if whole else "no whole checkpoint")
    sys.exit(0 if whole else 1)
