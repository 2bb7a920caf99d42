"""The network of this folder in PyTorch, its data, its weights in the layout that all programs share, and the report.

The programs `train_ddp.py`, `train_fsdp.py` and `train_deepspeed.py` differ in what they do with it.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import layouts
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import TensorDataset


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments that the three programs share."""
    arguments = argparse.ArgumentParser(description=description)
    # Not --start: torchrun reads the options of the program too, and would stop with "ambiguous option".
    arguments.add_argument("start", type=Path, help="the file that start.py wrote")
    arguments.add_argument("--batch", type=int, default=24, help="images of one rank in a step")
    arguments.add_argument("--epochs", type=int, default=1)
    arguments.add_argument("--learning-rate", type=float, default=0.01, help="for one rank; it is scaled")
    arguments.add_argument("--folder", type=Path, help="for checkpoints; without it nothing is saved")
    arguments.add_argument("--resume", action="store_true", help="go on from the checkpoint in --folder")
    arguments.add_argument("--weights", type=Path, help=".npz file for the trained weights, in Keras's layout")
    arguments.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    return arguments


def parse(arguments: argparse.ArgumentParser, checkpoint: str) -> argparse.Namespace:
    """The command line, checked; `checkpoint` is the name of what the program saves in --folder."""
    options = arguments.parse_args()
    layouts.check_folder(options, checkpoint)
    return options


def network(filters: int = 16, units: int = 64) -> nn.Sequential:
    """Images float32 (n, 1, 28, 28) to logits float32 (n, 10); weights of PyTorch's own drawing."""
    features = nn.Sequential(nn.Conv2d(1, filters, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
    return nn.Sequential(*features, nn.Linear(13 * 13 * filters, units), nn.ReLU(), nn.Linear(units, 10))


def samples(start: Path) -> TensorDataset:
    """The images, with their one channel first, and the labels."""
    with np.load(start) as arrays:
        return TensorDataset(torch.from_numpy(arrays["images"])[:, None], torch.from_numpy(arrays["labels"]))


def first_state(start: Path) -> dict[str, torch.Tensor]:
    """The first weights as a state for `network`, which names them 0.weight, 0.bias, 4.weight and so on."""
    arrays = layouts.to_channels_first(layouts.read(start))
    return dict(zip(network().state_dict(), map(torch.from_numpy, arrays), strict=True))


def write_weights(file: Path, state: Mapping[str, torch.Tensor]) -> None:
    """Write a whole state of `network` in Keras's layout."""
    layouts.write(file, layouts.to_channels_last([tensor.cpu().numpy() for tensor in state.values()]))


def summary(result: dict) -> dict:
    """On every rank: how many ranks and steps, the losses' means over the ranks, and the bytes that each rank holds."""
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, {"losses": result["losses"], "held": result["held"]})
    losses = np.mean([rank["losses"] for rank in of_ranks], axis=0).tolist()
    held = [rank["held"] for rank in of_ranks]
    return {"ranks": len(of_ranks), "steps": len(losses), "losses": losses, "held": held}


def report(options: argparse.Namespace, result: dict) -> None:
    """Say how it went; rank 0 writes the summary and the weights."""
    found = summary(result)
    if dist.get_rank() == 0:
        print(f"{found['ranks']} ranks, {layouts.outcome(found['losses'])}", flush=True)
        if options.weights:
            write_weights(options.weights, result["state"])
        if options.result and found["losses"]:
            options.result.write_text(json.dumps(found) + "\n")


def leave() -> None:
    """Leave the process group; the last line of a program.

    `dist.destroy_process_group()` is the documented way, and on GPUs it is used. On CPUs PyTorch 2.13 sometimes
    aborts one rank in it, when everything is done ("terminate called without an active exception"), and torchrun takes
    that for a failure. There the process ends without it, when all ranks have come here.
    """
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()
        return
    dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
