"""One network's weights in the layouts of two families of frameworks; options and report.

NumPy alone, so that every framework can use it. Keras keeps the channels last, PyTorch (and
MXNet) first. The network's weights are six arrays, in this order:

    array            channels last (Keras)      channels first (PyTorch)
    convolution      (height, width, in, out)   (out, in, height, width)
    its bias         (out,)                     (out,)
    first dense      (inputs, units)            (units, inputs)
    its bias         (units,)                   (units,)
    second dense     (inputs, units)            (units, inputs)
    its bias         (units,)                   (units,)

The inputs of the first dense layer are an image of features laid out flat: in Keras row by
row, column by column, channel by channel; in PyTorch channel by channel first. A transposition
alone would leave them in the wrong order, without an error.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

HEIGHT, WIDTH, CHANNELS = 13, 13, 16  # of the features that are laid out flat


def to_channels_first(weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Weights as Keras has them, as PyTorch has them."""
    kernel, bias, dense, dense_bias, head, head_bias = weights
    features = dense.reshape(HEIGHT, WIDTH, CHANNELS, -1).transpose(3, 2, 0, 1)
    dense = features.reshape(len(features), -1)
    parts = [kernel.transpose(3, 2, 0, 1), bias, dense, dense_bias, head.T, head_bias]
    return [np.ascontiguousarray(part) for part in parts]


def to_channels_last(weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The way back."""
    kernel, bias, dense, dense_bias, head, head_bias = weights
    features = dense.reshape(-1, CHANNELS, HEIGHT, WIDTH).transpose(2, 3, 1, 0)
    dense = features.reshape(-1, len(dense))
    parts = [kernel.transpose(2, 3, 1, 0), bias, dense, dense_bias, head.T, head_bias]
    return [np.ascontiguousarray(part) for part in parts]


def write(file: Path, weights: Iterable[np.ndarray], **others: np.ndarray) -> None:
    """Write weights in Keras's layout, weight_0, weight_1 ..., and others to an .npz file."""
    named = {f"weight_{index}": weight for index, weight in enumerate(weights)}
    with file.open("wb") as opened:  # under exactly this name
        np.savez(opened, **named, **others)


def read(file: Path) -> list[np.ndarray]:
    """The weights in such a file, in Keras's layout."""
    with np.load(file) as arrays:
        count = sum(name.startswith("weight_") for name in arrays.files)
        return [arrays[f"weight_{index}"] for index in range(count)]


def parser(description: str) -> ArgumentParser:
    """The options that all programs have."""
    arguments = ArgumentParser(description=description)
    # Not --start: torchrun reads a program's options too, and would call it ambiguous.
    arguments.add_argument("start", type=Path, help="the file that start.py wrote")
    arguments.add_argument("--weights", type=Path, help=".npz file for the trained weights")
    arguments.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return arguments


def parser_of_ranks(description: str) -> ArgumentParser:
    """Also those of programs that save, and whose ranks have their own batch and rate."""
    arguments = parser(description)
    arguments.add_argument("--batch", type=int, default=24, help="images of a rank in a step")
    arguments.add_argument("--epochs", type=int, default=1)
    arguments.add_argument("--learning-rate", type=float, default=0.01, help="for one rank")
    arguments.add_argument("--folder", type=Path, help="for checkpoints; else none is saved")
    arguments.add_argument("--resume", action="store_true", help="go on from the newest one")
    return arguments


def report(options: Namespace, who: str, result: dict, weights: Iterable[np.ndarray]) -> None:
    """Say how it went; write result and weights, in Keras's layout, where the options say."""
    losses = result["losses"]  # none if a resumed run had done all its epochs
    last = [f"{loss:.4f}" for loss in losses[-1:]]
    print(who, f"{len(losses)} steps, last loss", *last, flush=True)
    if options.weights:
        write(options.weights, weights)
    if options.result:
        options.result.write_text(json.dumps(result | {"steps": len(losses)}) + "\n")
