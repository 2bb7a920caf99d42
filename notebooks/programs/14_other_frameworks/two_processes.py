"""The program of lab 14's puzzle on PyTorch itself: torchrun starts two processes, which train three epochs.

    python two_processes.py program.py

`lab.given.write(program, file)` writes program.py in the lab. This program starts itself twice under torchrun.
"""

import argparse
import json
import tempfile
import traceback
from pathlib import Path
from types import SimpleNamespace

from distlab import frameworks, launch

RANKS = 2
IMAGES, BATCH, EPOCHS = 480, 24, 3
SECONDS = 90.0
END = "The program ended with "
LATE = (
    f"The two processes did not end within {SECONDS:g} s and were stopped. "
    "Does one of them wait for a call that the other does not make?"
)


def names(start: Path, saved: Path, record: dict) -> dict:
    """What the program finds: PyTorch's names, and the functions that the lab describes. They note what they do."""
    import os
    from itertools import islice

    import torch
    import torch.distributed as dist
    import torch_network
    from torch.nn.functional import cross_entropy
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import SGD
    from torch.utils.data import DataLoader, DistributedSampler, RandomSampler, TensorDataset

    torch.manual_seed(int(os.environ["RANK"]))  # else PyTorch draws the same first weights in every process

    def load(dataset: str) -> TensorDataset:
        pictures, labels = torch_network.samples(start).tensors
        return TensorDataset(torch.arange(len(labels)), pictures, labels)

    def batches_of_epoch(loader: DataLoader, steps: int) -> islice:
        record["seen"].append([])
        return islice(loader, steps)

    def loss_of(model: torch.nn.Module, batch: list) -> torch.Tensor:
        numbers, pictures, labels = batch
        record["seen"][-1].append(numbers.tolist())
        device = next(model.parameters()).device
        return cross_entropy(model(pictures.to(device)), labels.to(device))

    def save(network: torch.nn.Module, optimizer: SGD, epoch: int, folder: Path) -> None:
        state = {"model": network.state_dict(), "optimizer": optimizer.state_dict(), "epochs_done": epoch + 1}
        torch.save(state, folder / "checkpoint.pt")
        record["saves"] += 1

    def restore(network: torch.nn.Module, optimizer: SGD, folder: Path) -> int:
        return 0  # a first run has nothing to restore; a late rank must not find what the other has saved by then

    options = SimpleNamespace(rate=0.01, batch=BATCH, epochs=EPOCHS, dataset="digits", folder=saved)
    pytorch = {"torch": torch, "dist": dist, "SGD": SGD, "DistributedDataParallel": DistributedDataParallel}
    loading = {"DataLoader": DataLoader, "DistributedSampler": DistributedSampler, "RandomSampler": RandomSampler}
    own = {"parse": lambda: options, "make_network": torch_network.network, "load": load, "loss_of": loss_of}
    return {"os": os, **pytorch, **loading, **own, "islice": batches_of_epoch, "save": save, "restore": restore}


def train(file: Path, start: Path, saved: Path, result: Path) -> None:
    """What one process does; rank 0 writes what all have noted."""
    record: dict = {"seen": [], "saves": 0}
    namespace = names(start, saved, record)
    import torch.distributed as dist
    import torch_network
    from torch.nn.utils import parameters_to_vector

    text = file.read_text()
    try:
        exec(compile(text, str(file), "exec"), namespace)
    except Exception as error:
        places = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
        line = text.splitlines()[places[-1] - 1].partition("  #")[0].strip()
        raise SystemExit(f"{END}{type(error).__name__} in `{line}`: {str(error).splitlines()[0]}") from None
    if not dist.is_initialized():
        raise SystemExit(f"{END}no process group: which card makes it?")
    of_ranks: list = [None] * dist.get_world_size()
    weights = parameters_to_vector(namespace["network"].parameters()).tolist()
    dist.all_gather_object(of_ranks, {**record, "weights": weights})
    if dist.get_rank() == 0:
        result.write_text(json.dumps(summary(of_ranks)))
    torch_network.leave()


def summary(of_ranks: list[dict]) -> dict:
    """What the processes did, in numbers."""
    first, *others = of_ranks
    in_epoch = [image for record in of_ranks for step in record["seen"][0] for image in step]
    orders = {str(epoch) for epoch in first["seen"]}
    apart = max(abs(a - b) for record in others for a, b in zip(first["weights"], record["weights"], strict=True))
    writers = [rank for rank, record in enumerate(of_ranks) if record["saves"]]
    steps = [len(epoch) for epoch in first["seen"]]
    return {"steps": steps, "seen": in_epoch, "orders": len(orders), "apart": apart, "writers": writers}


def report(file: Path) -> str:
    """Train on two processes; the result in a few lines, or one line that says why there is none."""
    if problem := frameworks.problem("torch"):
        return f"Skipped: {problem}"
    with tempfile.TemporaryDirectory() as folder:
        start, saved = Path(folder) / "start.npz", Path(folder) / "saved"
        saved.mkdir()
        launch.alone(Path(__file__).with_name("start.py"), start, "--images", IMAGES, echo=False)
        how = {"python": frameworks.python("torch"), "result": True, "seconds": SECONDS, "echo": False}
        try:
            run = launch.torchrun(__file__, file, start, saved, ranks=RANKS, **how).result
        except launch.DeadlinePassed:
            return LATE
        except launch.LaunchError as error:
            ends = [END + line.partition(END)[2] for line in str(error).splitlines() if END in line]
            return ends[0] if ends else f"The two processes did not come to an end: {error}"
    seen, different = len(run["seen"]), len(set(run["seen"]))
    return (
        f"{RANKS} processes took {run['steps']} steps in {EPOCHS} epochs, which had {run['orders']} orders\n"
        f"in the first epoch they saw {seen} images together, {different} of {IMAGES} different ones\n"
        f"their weights differ by {run['apart']:g}\n"
        f"checkpoints were written by rank {' and '.join(map(str, run['writers']))}"
    )


def main() -> None:
    """With --result as one of the processes, without it as the process that starts them."""
    parser = argparse.ArgumentParser(description="Train with the program of lab 14 on two processes of PyTorch.")
    parser.add_argument("file", type=Path)
    parser.add_argument("start", type=Path, nargs="?", help="the file that start.py wrote, for a process")
    parser.add_argument("saved", type=Path, nargs="?", help="the folder for checkpoints, for a process")
    parser.add_argument("--result", type=Path, help="JSON file that rank 0 writes")
    options = parser.parse_args()
    if options.result:
        train(options.file, options.start, options.saved, options.result)
    else:
        print(report(options.file))


if __name__ == "__main__":
    main()
