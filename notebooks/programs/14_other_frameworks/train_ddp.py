"""Train with PyTorch's DistributedDataParallel: every rank keeps the whole model.

On a laptop, as one rank and as two; on each of two hosts with four GPUs (PORT is a free one of
HOST0); and under Slurm with one task per host:

    python train_ddp.py start.npz --result result.json
    torchrun --standalone --nproc-per-node 2 train_ddp.py start.npz --folder saved
    export ALL="--nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST0:PORT"
    torchrun $ALL train_ddp.py start.npz
    srun --nodes=2 torchrun $ALL --rdzv-id $SLURM_JOB_ID train_ddp.py start.npz

`start.py` writes start.npz. Rank 0 alone writes a checkpoint after each epoch; `--resume` goes
on from it. The numbers in comments are the eight steps of notebook 09.
"""

import os

import layouts
import torch
import torch.distributed as dist
import torch_network
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

Optimizer = torch.optim.Optimizer


def initialize() -> torch.device:
    """Meet the other ranks, and give this one its device."""
    # Step 1, initialise: torchrun has set RANK and where to meet. Else this is one rank.
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    # Step 2, pin the device: the GPU of this process's place on the host.
    if not torch.cuda.is_available():
        return torch.device("cpu")
    local_rank = int(os.environ.get("LOCAL_RANK", 0))
    device = torch.device("cuda", local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def train(options: object, device: torch.device) -> dict:
    """Train; this rank's losses, the whole state of the model, the bytes that it holds."""
    torch.manual_seed(dist.get_rank())  # each rank draws other first weights
    network = torch_network.network().to(device)
    if dist.get_rank() == 0:
        network.load_state_dict(torch_network.first_state(options.start))
    # Step 4, average: `backward` of the wrapped model does it, bucket by bucket.
    # Step 5, broadcast: making it sends rank 0's weights, but no optimizer's state.
    model = DistributedDataParallel(network)
    # Step 3, scale the learning rate.
    rate = options.learning_rate * dist.get_world_size()
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    first_epoch = load(options, model, optimizer) if options.resume else 0
    # Step 7, shard the data: rank r of N takes every N-th image from the r-th on.
    images = torch_network.samples(options.start)
    sampler = DistributedSampler(images, shuffle=False, drop_last=True)
    # Step 8, steps per epoch: the loader's length follows from the sampler's share.
    batches = DataLoader(images, options.batch, sampler=sampler, drop_last=True)
    losses = []
    for epoch in range(first_epoch, options.epochs):
        sampler.set_epoch(epoch)  # with shuffle=True, a new order for each epoch
        for pictures, labels in batches:
            optimizer.zero_grad()
            # Mixed precision: products in bfloat16, weights and gradients stay float32.
            with torch.autocast(device.type, torch.bfloat16, enabled=options.mixed_precision):
                loss = cross_entropy(model(pictures.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if options.folder and dist.get_rank() == 0:
            save(options, model, optimizer, done=epoch + 1)
    momentum = [slot["momentum_buffer"] for slot in optimizer.state.values()]
    held = {"parameters": sum(weight.nbytes for weight in model.parameters())}
    held["optimizer"] = sum(tensor.nbytes for tensor in momentum)
    return {"losses": losses, "state": network.state_dict(), "held": held}


def save(options: object, model: nn.Module, optimizer: Optimizer, done: int) -> None:
    """Write a checkpoint after so many epochs."""
    # Step 6, checkpoint on rank 0: of the model without its wrapper. Any program can load it.
    options.folder.mkdir(parents=True, exist_ok=True)
    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "epochs_done": done}, options.folder / "checkpoint.pt")


def load(options: object, model: nn.Module, optimizer: Optimizer) -> int:
    """Read it on every rank, since nothing sends the optimizer's state; the epochs done."""
    device = next(model.parameters()).device
    saved = torch.load(options.folder / "checkpoint.pt", map_location=device)
    model.module.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["epochs_done"]


if __name__ == "__main__":
    arguments = layouts.parser_of_ranks("Train with PyTorch's DistributedDataParallel.")
    arguments.add_argument("--mixed-precision", action="store_true", help="use bfloat16")
    options = arguments.parse_args()
    torch_network.report(options, train(options, initialize()))
    torch_network.leave()
