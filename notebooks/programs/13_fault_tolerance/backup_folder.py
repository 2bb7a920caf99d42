"""What `train.py` asks of its folder for checkpoints: that it can write there, and that it holds the same training.

A module of `train.py`, which is launched as its docstring says; every function speaks in one sentence.
"""

import argparse
import fcntl
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tensorflow as tf
import whole_checkpoints

from distlab import saved_states

NOTE = saved_states.NOTE
REASONS = {
    "No space left on device": "make room on that disk",
    "Disk quota exceeded": "make room on that disk",
    "Permission denied": "remove that file, or give yourself the right to write it",
    "Read-only file system": "choose another folder with --backup",
}
"""What the system says when it refuses a save, and what to do."""


def check_writable(folder: Path) -> None:
    """End the program with one sentence if the folder cannot be written to."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        sys.exit(f"Cannot save in {folder} ({error.strerror}): choose another folder with --backup.")


def check_own(folder: Path) -> None:
    """End the program with one sentence if another program's checkpoints are in the folder: neither would resume."""
    if (folder / NOTE).exists() or any(folder.glob("*.seal")):
        return
    if foreign := next(folder.glob("*-[0-9]*.index"), None):
        sys.exit(f"{folder} has checkpoints of another program ({foreign.stem}): choose another folder with --backup.")


def check_same(folder: Path, options: argparse.Namespace) -> None:
    """End the program with one sentence if the folder's checkpoints are of another data set; else note this one."""
    saved_states.of_dataset(folder, options.dataset, resume=True)


def check_steps(folder: Path, total: int) -> None:
    """End the program with one sentence if the newest whole checkpoint is beyond the `total` steps of the training."""
    whole = [prefix for prefix in whole_checkpoints.in_order(folder) if whole_checkpoints.problem(prefix) is None]
    if whole and (done := whole_checkpoints.number(whole[-1])) > total:
        sys.exit(
            f"Checkpoint {done} in {folder} is beyond the {total} steps of --epochs and --steps-per-epoch: ask for "
            "more, or choose another folder with --backup."
        )


@contextmanager
def alone(folder: Path, is_chief: bool) -> Iterator[None]:
    """Keep the chiefs of other jobs out of the folder in this block; one sentence if there is one."""
    if not is_chief:
        yield
        return
    with (folder / NOTE).open() as note:
        try:
            fcntl.flock(note, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another job saves in {folder}: end it, or choose another folder with --backup.")
        except OSError:
            pass  # a file system without locks
        kept = note.read()
        yield
        if folder.is_dir() and not (folder / NOTE).exists():  # removed meanwhile, and made again by a save
            (folder / NOTE).write_text(kept)


@contextmanager
def in_one_sentence(folder: Path, is_chief: bool) -> Iterator[None]:
    """If the system refuses a save of the chief in this block, end the program with one sentence."""
    try:
        yield
    except (OSError, tf.errors.OpError) as error:
        if is_chief and (sentence := why_not_saved(folder, error)):
            sys.exit(sentence)
        raise


def why_not_saved(folder: Path, error: Exception) -> str | None:
    """One sentence on an error of a save, whose leftovers are removed; None for an error of another kind."""
    reason = next((reason for reason in REASONS if reason in str(error)), None)
    if reason is None:
        return None
    for part in folder.glob("ckpt-*_temp"):
        shutil.rmtree(part, ignore_errors=True)
    for part in folder.glob("ckpt-*.seal.part"):
        part.unlink(missing_ok=True)
    whole = [prefix for prefix in whole_checkpoints.in_order(folder) if whole_checkpoints.problem(prefix) is None]
    state = f"checkpoint {whole_checkpoints.number(whole[-1])} is whole" if whole else "no checkpoint is whole yet"
    file = re.search(rf"(\S+); {reason}|{reason}: '(.+)'", str(error))  # TensorFlow's words, and Python's
    place = f"{file[1] or file[2]}: " if file else ""
    return f"Cannot save in {folder} ({place}{reason}); {state}: {REASONS[reason]}, and start the job again."
