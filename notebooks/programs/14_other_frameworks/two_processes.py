"""The program of lab 14's puzzle on PyTorch itself: two processes train three epochs.

    python two_processes.py program.py

`lab.given.write(program, file)` writes program.py in the lab. This program starts itself twice
under torchrun.
"""

import argparse
import json
import os
import runpy
import tempfile
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

from distlab import frameworks, launch

IMAGES, BATCH, EPOCHS, SECONDS = 480, 24, 3, 90.0
IMPORTS = """
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.data import DataLoader, DistributedSampler, RandomSampler
"""


def names(start: Path, record: dict) -> dict:
    """What the program finds: PyTorch's names, and functions that note what they do."""
    import torch
    import torch_network
    from torch.nn.functional import cross_entropy

    found: dict = {}
    exec(IMPORTS, found)

    def load(dataset: str) -> torch.utils.data.TensorDataset:
        pictures, labels = torch_network.samples(start).tensors
        return torch.utils.data.TensorDataset(torch.arange(len(labels)), pictures, labels)

    def batches_of_epoch(loader: torch.utils.data.DataLoader, steps: int) -> islice:
        record["seen"].append([])
        return islice(loader, steps)

    def loss_of(model: torch.nn.Module, batch: list) -> torch.Tensor:
        numbers, pictures, labels = batch
        record["seen"][-1].append(numbers.tolist())
        device = next(model.parameters()).device
        return cross_entropy(model(pictures.to(device)), labels.to(device))

    def save(network: torch.nn.Module, optimizer: object, epoch: int, folder: None) -> None:
        record["saves"] += 1

    options = {"rate": 0.01, "batch": BATCH, "epochs": EPOCHS, "dataset": "digits"}
    found |= {"load": load, "islice": batches_of_epoch, "loss_of": loss_of, "save": save}
    found |= {"parse": lambda: SimpleNamespace(folder=None, **options)}
    found |= {"make_network": torch_network.network}
    # A first run has nothing to restore.
    found["restore"] = lambda network, optimizer, folder: 0
    return found


def train(file: Path, start: Path, result: Path) -> None:
    """What one process does; rank 0 writes what all have noted."""
    record: dict = {"seen": [], "saves": 0}
    import torch
    import torch_network
    from torch.nn.utils import parameters_to_vector

    dist = torch.distributed
    torch.manual_seed(int(os.environ["RANK"]))  # else all draw the same weights
    left = runpy.run_path(str(file), init_globals=names(start, record))
    of_ranks: list = [None] * dist.get_world_size()
    weights = parameters_to_vector(left["network"].parameters()).tolist()
    dist.all_gather_object(of_ranks, {**record, "weights": weights})
    if dist.get_rank() == 0:
        result.write_text(json.dumps(of_ranks))
    torch_network.leave()


def summary(of_ranks: list[dict]) -> str:
    """What the processes did, in a few lines."""
    first, other = of_ranks
    steps, orders = [len(epoch) for epoch in first["seen"]], set(map(str, first["seen"]))
    seen = [image for rank in of_ranks for step in rank["seen"][0] for image in step]
    pairs = zip(first["weights"], other["weights"], strict=True)
    apart = max(abs(ours - theirs) for ours, theirs in pairs)
    writers = [str(rank) for rank, record in enumerate(of_ranks) if record["saves"]]
    different = f"{len(set(seen))} of {IMAGES} different ones"
    return (
        f"2 processes took {steps} steps in {EPOCHS} epochs, which had {len(orders)} orders\n"
        f"in the first epoch they saw {len(seen)} images together, {different}\n"
        f"their weights differ by {apart:g}\n"
        f"checkpoints were written by rank {' and '.join(writers)}"
    )


def report(file: Path) -> str:
    """Train on two processes; a few lines, or one that says why there is no result."""
    if problem := frameworks.problem("torch"):
        return f"Skipped: {problem}"
    with tempfile.TemporaryDirectory() as folder:
        start, python = Path(folder) / "start.npz", frameworks.python("torch")
        program = Path(__file__).with_name("start.py")
        launch.alone(program, start, "--images", IMAGES, echo=False)
        how = {"python": python, "result": True, "seconds": SECONDS, "echo": False}
        try:
            return summary(launch.torchrun(__file__, file, start, **how).result)
        except launch.LaunchError as error:
            return f"The two processes did not come to an end: {error}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train lab 14's program on two processes.")
    parser.add_argument("file", type=Path)
    parser.add_argument("start", type=Path, nargs="?", help="start.py's file, for a process")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    if options.result:  # as one of the processes
        train(options.file, options.start, options.result)
    else:
        print(report(options.file))
