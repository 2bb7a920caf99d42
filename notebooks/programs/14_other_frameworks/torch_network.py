"""The network of this folder in PyTorch, its data, its weights in Keras's layout, the report.

`train_ddp.py`, `train_fsdp.py` and `train_deepspeed.py` differ in what they do with it.
"""

import argparse
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


def network() -> nn.Sequential:
    """Images float32 (n, 1, 28, 28) to logits float32 (n, 10)."""
    features = [nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*features, nn.Linear(2704, 64), nn.ReLU(), nn.Linear(64, 10))


def samples(start: Path) -> TensorDataset:
    """The images, with their one channel first, and the labels."""
    with np.load(start) as arrays:
        images, labels = (torch.from_numpy(arrays[name]) for name in ("images", "labels"))
    return TensorDataset(images[:, None], labels)


def first_state(start: Path) -> dict[str, torch.Tensor]:
    """The first weights as a state for `network`, by names such as 0.weight and 0.bias."""
    arrays = layouts.to_channels_first(layouts.read(start))
    return dict(zip(network().state_dict(), map(torch.from_numpy, arrays), strict=True))


def keras_weights(state: Mapping[str, torch.Tensor]) -> list[np.ndarray]:
    """A whole state of `network` in Keras's layout."""
    return layouts.to_channels_last([tensor.cpu().numpy() for tensor in state.values()])


def summary(result: dict) -> dict:
    """Of all ranks: the losses' means, and the bytes that each holds."""
    of_ranks = [None] * dist.get_world_size()
    dist.all_gather_object(of_ranks, {"losses": result["losses"], "held": result["held"]})
    losses = np.mean([rank["losses"] for rank in of_ranks], axis=0).tolist()
    held = [rank["held"] for rank in of_ranks]
    return {"ranks": len(of_ranks), "losses": losses, "held": held}


def report(options: argparse.Namespace, result: dict) -> None:
    """Say how it went; rank 0 writes the summary and the weights."""
    found = summary(result)
    if dist.get_rank() == 0:
        who, weights = f"{found['ranks']} ranks,", keras_weights(result["state"])
        layouts.report(options, who, found, weights)


def leave() -> None:
    """Leave the process group; the last line of a program.

    `dist.destroy_process_group()` is the documented way. But on CPUs PyTorch 2.13 sometimes
    aborts one rank in it ("terminate called without an active exception"), and torchrun takes
    that for a failure. There the process ends without it, when all ranks have come here.
    """
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()
        return
    dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
