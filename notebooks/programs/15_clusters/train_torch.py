"""Train the network of this folder with PyTorch (it needs `make setup-frameworks`).

In a batch script or after `salloc --nodes=3 --ntasks-per-node=1`; torchrun starts the ranks of
its node and meets the others at an address of the first node (slurm/torch.sbatch does this):

    srun torchrun --nnodes 3 --nproc-per-node 1 --rdzv-id $SLURM_JOB_ID --rdzv-backend c10d \
        --rdzv-endpoint node1:29500 train_torch.py --weights weights.npz

On a laptop: `torchrun --standalone --nproc-per-node 2 train_torch.py`.
"""

import os
import sys

import network
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel


def make_network(units: int) -> nn.Sequential:
    """The network, with the first weights; PyTorch keeps a layer's kernel transposed."""
    layers = nn.Sequential(nn.Linear(network.INPUTS, units), nn.ReLU(), nn.Linear(units, 10))
    pairs = zip(layers.parameters(), network.first_weights(units), strict=True)
    with torch.no_grad():
        for parameter, weight in pairs:
            parameter.copy_(torch.from_numpy(weight.T))
    return layers


def main() -> None:
    """Train and report."""
    options = network.parser("Train with PyTorch's DistributedDataParallel.").parse_args()
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    if "RANK" in os.environ:  # torchrun has set it, WORLD_SIZE, and where to meet
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    layers = make_network(options.units).to(device)
    model = DistributedDataParallel(layers)  # `backward` averages the gradients
    rates = options.learning_rate, network.MOMENTUM
    optimizer = torch.optim.SGD(model.parameters(), *rates)
    batches = network.Batches(options, dist.get_rank(), dist.get_world_size())
    for images, labels in batches:
        optimizer.zero_grad()
        pictures, classes = (torch.from_numpy(part).to(device) for part in (images, labels))
        loss = cross_entropy(model(pictures), classes)
        loss.backward()
        optimizer.step()
    mean_loss = loss.detach() / dist.get_world_size()
    dist.all_reduce(mean_loss)
    arrays = [parameter.detach().cpu().numpy() for parameter in layers.parameters()]
    weights = [np.ascontiguousarray(array.T) for array in arrays]
    network.report(batches, "PyTorch", float(mean_loss), weights)
    leave()


def leave() -> None:
    """Leave the process group.

    On CPUs PyTorch 2.13 sometimes aborts one rank in `destroy_process_group`, when all is
    done, and torchrun takes that for a failure. There the process ends without it.
    """
    if dist.get_backend() != "gloo":
        dist.destroy_process_group()
        return
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
