"""Train with PyTorch's fully_shard (FSDP): every rank keeps a part of every weight.

On a laptop, as one rank and as two; on each of two hosts with four GPUs (PORT is a free one of
HOST0); and under Slurm with one task per host:

    python train_fsdp.py start.npz --result result.json
    torchrun --standalone --nproc-per-node 2 train_fsdp.py start.npz --folder saved
    export ALL="--nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST0:PORT"
    torchrun $ALL train_fsdp.py start.npz
    srun --nodes=2 torchrun $ALL --rdzv-id $SLURM_JOB_ID train_fsdp.py start.npz

`start.py` writes start.npz. Every rank writes its part of a checkpoint after each epoch;
`--resume` goes on from it, on any number of ranks. The numbers in comments are the eight steps
of notebook 09.
"""

import layouts
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as parts
import torch_network
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler
from train_ddp import Optimizer, initialize  # steps 1 and 2 are the same


def train(options: object, device: torch.device) -> dict:
    """Train; this rank's losses, the whole state of the model, the bytes that it holds."""
    torch.manual_seed(dist.get_rank())  # each rank draws other first weights
    model = torch_network.network().to(device)
    # Step 4, average: `backward` gathers a unit's weights and reduce-scatters its gradients.
    # Two layers with weights are units, the rest is the third.
    for layer in (model[0], model[4]):
        fully_shard(layer)
    fully_shard(model)
    # Step 5, broadcast: not by itself! Here the parts of rank 0's weights are sent.
    first = torch_network.first_state(options.start) if dist.get_rank() == 0 else {}
    from_rank_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, first, options=from_rank_0)
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
            loss = cross_entropy(model(pictures.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        if options.folder:
            save(options, model, optimizer, done=epoch + 1)
    momentum = [slot["momentum_buffer"].to_local() for slot in optimizer.state.values()]
    held = {"parameters": sum(weight.to_local().nbytes for weight in model.parameters())}
    held["optimizer"] = sum(tensor.nbytes for tensor in momentum)
    # Every rank takes part in gathering the whole state.
    state = {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
    return {"losses": losses, "state": state, "held": held}


def save(options: object, model: nn.Module, optimizer: Optimizer, done: int) -> None:
    """Write a checkpoint after so many epochs."""
    # Step 6, checkpoint: every rank writes its part; if one stays away, the others wait.
    of_model, of_optimizer = get_state_dict(model, optimizer)
    state = {"model": of_model, "optimizer": of_optimizer, "epochs_done": torch.tensor(done)}
    parts.save(state, checkpoint_id=options.folder / "checkpoint")


def load(options: object, model: nn.Module, optimizer: Optimizer) -> int:
    """Read the parts that now belong to this rank, whoever wrote them; the epochs done."""
    of_model, of_optimizer = get_state_dict(model, optimizer)
    state = {"model": of_model, "optimizer": of_optimizer, "epochs_done": torch.tensor(0)}
    parts.load(state, checkpoint_id=options.folder / "checkpoint")
    of_both = {"model_state_dict": state["model"], "optim_state_dict": state["optimizer"]}
    set_state_dict(model, optimizer, **of_both)
    return int(state["epochs_done"])


if __name__ == "__main__":
    options = layouts.parser_of_ranks("Train with PyTorch's fully_shard.").parse_args()
    torch_network.report(options, train(options, initialize()))
    torch_network.leave()
