"""Tell whole checkpoints from damaged ones, say what is wrong with them, and find the newest whole one.

    python whole_checkpoints.py FOLDER

reads every `tf.train.Checkpoint` in the folder from the first to the last byte, prints one line for each, oldest first,
and then the newest whole one. Exit status: 0 if the newest is whole, 1 if only an older one is, 2 if there is none.
Under Slurm, in the batch script of a job that is started again, before the training:

    srun --nodes=1 --ntasks=1 python whole_checkpoints.py /shared/checkpoints

It needs one process, so there is no mpirun line. A program seals each checkpoint after saving it, and resumes from the
newest one that is whole, sealed, and of its own model:

    seal(manager.save(step))
    checkpoint.restore(newest(folder, layout(checkpoint)))
"""

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from pathlib import Path

import tensorflow as tf

Layout = dict[str, list[int]]
"""The shape of each variable, by its name in the checkpoint."""


def seal(prefix: str) -> None:
    """Write size and digest of a checkpoint's files next to it; call it after the save, on the chief."""
    contents = {file.name: {"bytes": file.stat().st_size, "sha256": digest(file)} for file in files_of(prefix)}
    part = Path(f"{prefix}.seal.part")
    with part.open("w") as file:
        json.dump(contents, file)
        file.flush()
        os.fsync(file.fileno())  # on the disk before the file gets its name
    part.rename(f"{prefix}.seal")
    for old in part.parent.glob("ckpt-*.seal"):
        if not files_of(str(old.with_suffix(""))):  # the CheckpointManager has deleted them
            old.unlink()


def digest(file: Path) -> str:
    """The SHA-256 digest of a file."""
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def files_of(prefix: str) -> list[Path]:
    """The index file of a checkpoint and its data files, as far as they exist."""
    path = Path(prefix)
    return sorted(file for part in ("index", "data-*") for file in path.parent.glob(f"{path.name}.{part}"))


def broken_seal(prefix: str) -> str | None:
    """How a checkpoint's files differ from those that were sealed; None if they are the same, byte for byte."""
    try:
        sealed = json.loads(Path(f"{prefix}.seal").read_text())
        for name, expected in sealed.items():
            kind, file = name.removeprefix(f"{Path(prefix).name}.").split("-")[0], Path(prefix).with_name(name)
            if not file.exists():
                return f"its {kind} file is missing"
            if file.stat().st_size < expected["bytes"]:
                return f"its {kind} file is truncated"
            if digest(file) != expected["sha256"]:
                return f"the bytes of its {kind} file have changed"
    except FileNotFoundError:
        return "it has no seal: the job ended before the save was complete"
    except (ValueError, AttributeError, KeyError, TypeError):
        return "its seal cannot be read"
    return None if sorted(sealed) == [file.name for file in files_of(prefix)] else "its seal lists other files"


def unreadable(prefix: str) -> str | None:
    """Why some value cannot be read; TensorFlow compares each one with its checksum."""
    try:
        reader = tf.train.load_checkpoint(prefix)
        for name in reader.get_variable_to_shape_map():
            reader.get_tensor(name)
    except Exception as error:  # an OpError, an IndexError or nearly any other
        return f"TensorFlow cannot read it: {type(error).__name__}"
    return None


def layout(checkpoint: tf.train.Checkpoint) -> Layout:
    """Names and shapes of the variables that this program's checkpoints have. All workers call it together."""
    with tempfile.TemporaryDirectory() as folder:
        return dict(tf.train.list_variables(checkpoint.write(f"{folder}/layout")))


def problem(prefix: str, expected: Layout | None = None) -> str | None:
    """Why a program should not resume from this checkpoint; None if it can."""
    try:
        reason = broken_seal(prefix) or unreadable(prefix)
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    if reason is None and expected is not None:
        variables = dict(tf.train.list_variables(prefix))
        variables.pop("save_counter/.ATTRIBUTES/VARIABLE_VALUE", None)  # the CheckpointManager's
        if variables != expected:
            return "it is a checkpoint of another model"
    return reason


def newest(folder: str | Path, expected: Layout | None = None) -> str | None:
    """The newest checkpoint without a problem; prints which one it is, and why newer ones are passed over."""
    passed_over, chosen = [], None
    for prefix in reversed(in_order(folder)):
        reason = problem(prefix, expected)
        if reason is None:
            chosen = prefix
            break
        passed_over.append(f"Checkpoint {number(prefix)} cannot be used ({reason})")
    why = ",\n".join(passed_over) or (
        f"Checkpoint {number(chosen)} is whole" if chosen else f"There is no checkpoint in {folder}"
    )
    end = f"resuming from checkpoint {number(chosen)}" if chosen else "starting from the beginning"
    print(f"{why}: {end}.", flush=True)
    return chosen


def rewrite_list(folder: Path, chosen: str | None) -> None:
    """Write the file `checkpoint`, from which a CheckpointManager learns what it has saved, up to the chosen one.

    The manager fails on a file that it cannot read, and would count a damaged checkpoint as one of those to keep.
    """
    if chosen is None:
        (folder / "checkpoint").unlink(missing_ok=True)
        return
    usable = [prefix for prefix in in_order(folder) if number(prefix) <= number(chosen)]
    times = [max(file.stat().st_mtime for file in files_of(prefix)) for prefix in usable]
    tf.compat.v1.train.update_checkpoint_state(
        str(folder), chosen, usable, all_model_checkpoint_timestamps=times, last_preserved_timestamp=0.0
    )


def number(prefix: str) -> int:
    """The number that ends a checkpoint's name: in this course, the steps that were done when it was saved."""
    return int(prefix.rpartition("-")[2])


def in_order(folder: str | Path) -> list[str]:
    """The checkpoints of which at least one file exists, by number, so that 10 comes after 9."""
    names = (re.fullmatch(r"(ckpt-\d+)\.(index|data-\d+-of-\d+)", file.name) for file in Path(folder).glob("*"))
    return sorted({str(Path(folder) / match[1]) for match in names if match}, key=number)


def main() -> int:
    """Check every checkpoint of a folder; the exit status."""
    parser = argparse.ArgumentParser(description="Tell whole checkpoints from damaged ones.")
    parser.add_argument("folder", type=Path)
    prefixes = in_order(parser.parse_args().folder)
    whole = []
    for prefix in prefixes:
        # Not every program seals its checkpoints: those without a seal are only read.
        has_seal = Path(f"{prefix}.seal").exists()
        reason = (broken_seal(prefix) if has_seal else None) or unreadable(prefix)
        print(f"{Path(prefix).name}: {f'damaged, {reason}' if reason else 'whole'}")
        whole += [] if reason else [prefix]
    if not whole:
        print("no whole checkpoint")
        return 2
    print(f"use {whole[-1]}")
    return 0 if whole[-1] == prefixes[-1] else 1


if __name__ == "__main__":
    sys.exit(main())
