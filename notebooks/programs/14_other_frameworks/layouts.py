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

from argparse import Namespace
from collections.abc import Iterable, Sequence
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


def check_folder(options: Namespace, pattern: str) -> None:
    """End the program with one sentence if --folder has such checkpoints, which a new training would replace."""
    saved = list(options.folder.glob(pattern)) if options.folder else []
    if saved and not options.resume:
        newest = max(saved, key=lambda path: path.stat().st_mtime_ns).name.removesuffix(".index")
        held = f"{options.folder} holds checkpoints, the newest is {newest}"
        raise SystemExit(f"{held}: add --resume to go on, or choose another folder.")


def outcome(losses: Sequence[float]) -> str:
    """How a training with these losses went, in a few words; without any it had nothing left to do."""
    if not losses:
        return "no steps: all epochs are done; --epochs can ask for more"
    return f"{len(losses)} steps, last loss {losses[-1]:.4f}"
