"""One network on a mesh of data × tensor parallel ranks; it needs PyTorch alone.

torchrun --nproc-per-node 4 mesh.py
"""

from copy import deepcopy

import torch
from torch import nn
from torch.distributed import destroy_process_group
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import parallel


def train(model: nn.Module, batches: list) -> None:
    """One step of SGD per batch, whether the model is divided or not."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, labels in batches:
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
        optimizer.zero_grad()


def divide(model: nn.Sequential) -> DeviceMesh:
    """Linear layer 0 by columns and 2 by rows; what is left, among the data-parallel ranks."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))  # on GPUs: "cuda"
    plan = {"0": parallel.ColwiseParallel(), "2": parallel.RowwiseParallel()}
    parallel.parallelize_module(model, mesh["tp"], plan)
    fully_shard(model, mesh=mesh["dp"])
    return mesh


torch.manual_seed(12)  # every rank makes the same network and the same global batches
model = nn.Sequential(nn.Linear(784, 80), nn.ReLU(), nn.Linear(80, 16))
batches = [(torch.randn(64, 784), torch.randint(16, (64,))) for _ in range(10)]
undivided = deepcopy(model)
train(undivided, batches)

mesh = divide(model)
replica = mesh.get_local_rank("dp")
train(model, [[part.chunk(2)[replica] for part in batch] for batch in batches])

is_first, differences = mesh.get_rank() == 0, []
for name, whole in undivided.named_parameters():
    weight = model.get_parameter(name)
    differences.append((weight.full_tensor() - whole).abs().max().item())
    if is_first:
        part = tuple(weight.to_local().shape)
        print(f"{name:9} {tuple(whole.shape)!s:10} on rank 0: {part}")
if is_first:
    print(f"largest difference of the weights: {max(differences):.0e}")
destroy_process_group()
