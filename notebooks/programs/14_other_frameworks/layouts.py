"""The weights of one network in the layouts of two families of frameworks; NumPy alone, so that every one can use it.

Keras keeps the channels last, PyTorch (and MXNet) first. The network's weights are six arrays, in this order:

    array            channels last (Keras)      channels first (PyTorch)
    convolution      (height, width, in, out)   (out, in, height, width)
    its bias         (out,)                     (out,)
    first dense      (inputs, units)            (units, inputs)
    its bias         (units,)                   (units,)
    second dense     (inputs, units)            (units, inputs)
    its bias         (units,)                   (units,)

The inputs of the first dense layer are an image of features laid out flat: in Keras row by row, column by column,
channel by channel; in PyTorch channel by channel first. A transposition alone would leave them in the wrong order,
without an error.
"""

import json
import os
import zipfile
import zlib
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np


def to_channels_first(weights: Sequence[np.ndarray], features: tuple[int, int, int] = (13, 13, 16)) -> list[np.ndarray]:
    """Weights as Keras has them, as PyTorch has them; `features`: height, width, channels of what is laid out flat."""
    convolution, bias, dense, dense_bias, head, head_bias = weights
    units = dense.shape[1]
    channel_by_channel = dense.reshape(*features, units).transpose(3, 2, 0, 1).reshape(units, -1)
    parts = [convolution.transpose(3, 2, 0, 1), bias, channel_by_channel, dense_bias, head.T, head_bias]
    return [np.ascontiguousarray(part) for part in parts]


def to_channels_last(weights: Sequence[np.ndarray], features: tuple[int, int, int] = (13, 13, 16)) -> list[np.ndarray]:
    """The way back."""
    convolution, bias, dense, dense_bias, head, head_bias = weights
    height, width, channels = features
    units = dense.shape[0]
    row_by_row = dense.reshape(units, channels, height, width).transpose(2, 3, 1, 0).reshape(-1, units)
    parts = [convolution.transpose(2, 3, 1, 0), bias, row_by_row, dense_bias, head.T, head_bias]
    return [np.ascontiguousarray(part) for part in parts]


def write(file: Path, weights: Iterable[np.ndarray], **others: np.ndarray) -> None:
    """Write weights in Keras's layout as the arrays weight_0, weight_1 ... of an .npz file, with other arrays."""
    with file.open("wb") as opened:  # under exactly this name
        np.savez(opened, **{f"weight_{index}": weight for index, weight in enumerate(weights)}, **others)


def read(file: Path) -> list[np.ndarray]:
    """The weights in such a file, in Keras's layout."""
    with np.load(file) as arrays:
        return [arrays[f"weight_{index}"] for index in range(sum(name.startswith("weight_") for name in arrays.files))]


def ranks() -> int:
    """How many ranks mpirun, horovodrun or torchrun has told this process that there are."""
    return max(1, *_told("OMPI_COMM_WORLD_SIZE", "HOROVOD_SIZE", "WORLD_SIZE"))


def _told(*names: str) -> list[int]:
    """The numbers in these variables; 0 for one that has none."""
    return [int(text) if (text := os.environ.get(name, "")).isdecimal() else 0 for name in names]


def check_batch(parser: ArgumentParser, start: Path, option: str, images: int) -> None:
    """End the program with one sentence if a step of all ranks takes more images than there are: none would be done."""
    with np.load(start) as arrays:
        most = len(arrays["labels"])
    if images > most:
        parser.error(f"with this {option} a step of all ranks takes {images} images, and {start} has {most}")


def check_folder(parser: ArgumentParser, options: Namespace, pattern: str) -> None:
    """End the program with one sentence if --resume is missing where --folder has such checkpoints, or the reverse.

    A training from the beginning would replace them.
    """
    saved = list(options.folder.glob(pattern)) if options.folder else []
    if options.resume and not saved:
        parser.error("--resume needs the --folder in which a run has saved")
    if saved and not options.resume:
        newest = max(saved, key=lambda path: path.stat().st_mtime_ns).name.removesuffix(".index")
        held = f"{options.folder} holds checkpoints, the newest is {newest}"
        raise SystemExit(f"{held}: add --resume to go on, or choose another folder.")
    if options.folder:
        _check_note(options.folder / "options.json", options)


def _check_note(note: Path, options: Namespace) -> None:
    """Note the options of a new training; end one that goes on with others by one sentence.

    What is one rank's may change, with the number of ranks; a line says so.
    """
    now = {name: value for name, value in vars(options).items() if name in ("batch", "global_batch", "learning_rate")}
    with np.load(options.start) as arrays:
        now["start"] = zlib.crc32(arrays["labels"].tobytes(), zlib.crc32(arrays["images"].tobytes()))
    if not options.resume:
        with suppress(OSError):  # the first save says what is wrong with the folder
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps(now) + "\n")  # each rank writes the same
        return
    held = f"What is saved in {note.parent} was trained"
    for name, value in json.loads(note.read_text()).items() if note.exists() else ():
        option = f"--{name.replace('_', '-')} {value}"
        if now.get(name, value) == value:
            continue
        if name == "start":
            raise SystemExit(f"{held} on other images than those of {options.start}: choose another folder.")
        if "global_batch" in now:
            raise SystemExit(f"{held} with {option}: go on with it, or choose another folder.")
        if not any(_told("OMPI_COMM_WORLD_RANK", "HOROVOD_RANK", "RANK")):
            print(f"{held} with {option}; this run has {now[name]}.", flush=True)


def outcome(losses: Sequence[float]) -> str:
    """How a training with these losses went, in a few words; without any it had nothing left to do."""
    if not losses:
        return "no steps: all epochs are done; --epochs can ask for more"
    return f"{len(losses)} steps, last loss {losses[-1]:.4f}"


def start_file(text: str) -> Path:
    """For argparse: the path of a file that start.py wrote; what is missing, damaged or foreign is refused."""
    file = Path(text)
    if not file.exists():
        raise ArgumentTypeError(f"there is no {file}; `python start.py {file}` writes it")
    try:
        with np.load(file) as arrays:
            images, labels = arrays["images"], arrays["labels"]
        is_right = len(read(file)) == 6 and images.shape[1:] == (28, 28) and len(images) == len(labels) > 0
    except (OSError, EOFError, ValueError, KeyError, AttributeError, zipfile.BadZipFile):
        is_right = False
    if not is_right:
        raise ArgumentTypeError(f"{file} is not what start.py writes; `python start.py` with another name writes one")
    return file
