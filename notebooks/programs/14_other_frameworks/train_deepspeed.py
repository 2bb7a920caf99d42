"""Train with DeepSpeed, with stage 0, 1, 2 or 3 of ZeRO, or with several in turn.

On a laptop with two ranks; by DeepSpeed's own launcher, for the hosts of a file; on each of
two hosts with four GPUs (PORT is a free one of HOST0); and under Slurm, one task per host:

    torchrun --standalone --nproc-per-node 2 train_deepspeed.py start.npz --stages 1
    deepspeed --hostfile hosts train_deepspeed.py start.npz
    export ALL="--nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint HOST0:PORT"
    torchrun $ALL train_deepspeed.py start.npz
    srun --nodes=2 torchrun $ALL --rdzv-id $SLURM_JOB_ID train_deepspeed.py start.npz

`start.py` writes start.npz. Every rank writes its part of a checkpoint after each epoch;
`--resume` goes on from it. Without a GPU, DeepSpeed compiles an extension at its first use,
which takes a minute or two. The numbers in comments are the eight steps of notebook 09.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import layouts
import torch
import torch.distributed as dist
import torch_network
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler

if not torch.cuda.is_available():  # both are read when DeepSpeed is imported
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(Path(sys.prefix) / "extensions"))
warnings.filterwarnings("ignore", category=FutureWarning)  # DeepSpeed uses old names
import deepspeed  # noqa: E402


def initialize() -> torch.device:
    """Meet the other ranks, and give this one its device."""
    # Step 1, initialise: the launcher has set RANK, WORLD_SIZE and where to meet.
    deepspeed.init_distributed("nccl" if torch.cuda.is_available() else "gloo", verbose=False)
    # Step 2, pin the device: the GPU of this process's place on the host.
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def configuration(options: object, stage: int) -> dict:
    """What DeepSpeed is told instead of being programmed; usually a JSON file."""
    settings = {
        "train_micro_batch_size_per_gpu": options.batch,
        "gradient_accumulation_steps": 1,
        # 0 divides nothing, 1 the optimizer's state, 2 gradients too, 3 (even small) weights.
        "zero_optimization": {"stage": stage, "stage3_param_persistence_threshold": 0},
        "zero_allow_untested_optimizer": True,  # it knows Adam; plain SGD works just as well
    }
    if not options.default_clipping:
        settings["gradient_clipping"] = 0.0  # recent versions clip to norm 1.0 by default
    return settings


def train(options: object, stage: int) -> dict:
    """Train; this rank's losses, the whole state of the model, the bytes that it holds."""
    torch.manual_seed(dist.get_rank())  # each rank draws other first weights
    network = torch_network.network()
    if dist.get_rank() == 0:
        network.load_state_dict(torch_network.first_state(options.start))
    # Step 3, scale the learning rate.
    rate = options.learning_rate * dist.get_world_size()
    optimizer = torch.optim.SGD(network.parameters(), rate, momentum=0.9)
    # Step 4, average the gradients: the engine does it in its `backward`. Step 5, broadcast:
    # it sends rank 0's weights to all when it is made. It also moves the model to the device.
    how = {"optimizer": optimizer, "config": configuration(options, stage)}
    engine, *_ = deepspeed.initialize(model=network, **how)
    first_epoch = 0
    folder = options.folder / f"stage_{stage}" if options.folder else None
    if options.resume:
        _, saved = engine.load_checkpoint(str(folder))
        first_epoch = saved["epochs_done"]
    # Step 7, shard the data: rank r of N takes every N-th image from the r-th on.
    images = torch_network.samples(options.start)
    sampler = DistributedSampler(images, shuffle=False, drop_last=True)
    # Step 8, steps per epoch: the loader's length follows from the sampler's share.
    batches = DataLoader(images, options.batch, sampler=sampler, drop_last=True)
    losses = []
    for epoch in range(first_epoch, options.epochs):
        sampler.set_epoch(epoch)  # with shuffle=True, a new order for each epoch
        for pictures, labels in batches:
            loss = cross_entropy(engine(pictures.to(engine.device)), labels.to(engine.device))
            engine.backward(loss)
            engine.step()
            losses.append(loss.item())
        # Step 6, checkpoint: every rank writes its part; if one stays away, the others wait.
        if folder:
            engine.save_checkpoint(str(folder), client_state={"epochs_done": epoch + 1})
    # At stage 3 a rank has a part of each weight, its `ds_tensor`, except in the block below.
    own = [getattr(weight, "ds_tensor", weight) for weight in network.parameters()]
    held = {"parameters": sum(part.nbytes for part in own)}
    momentum = [slot["momentum_buffer"] for slot in optimizer.state.values()]
    held["optimizer"] = sum(tensor.nbytes for tensor in momentum)
    with deepspeed.zero.GatheredParameters(list(network.parameters()), enabled=stage == 3):
        whole = network.state_dict()
        state = {name: tensor.detach().clone() for name, tensor in whole.items()}
    engine.destroy()
    return {"losses": losses, "state": state, "held": held}


def main() -> None:
    """Train with each stage, and report; rank 0 writes the results and the weights."""
    arguments = layouts.parser_of_ranks("Train with DeepSpeed and ZeRO.")
    arguments.add_argument("--stages", type=int, nargs="+", choices=range(4), default=[1])
    arguments.add_argument("--default-clipping", action="store_true", help="of DeepSpeed")
    options = arguments.parse_args()
    initialize()
    deepspeed.utils.logger.setLevel("ERROR")
    result = {}
    for stage in options.stages:
        trained = train(options, stage)
        found = result[str(stage)] = torch_network.summary(trained)
        if dist.get_rank() == 0:
            last = [f"{loss:.4f}" for loss in found["losses"][-1:]]  # none if all was done
            print(f"ZeRO {stage}: {found['ranks']} ranks, last loss", *last, flush=True)
            if options.weights:  # a file for each stage
                file = options.weights.with_stem(f"{options.weights.stem}_{stage}")
                layouts.write(file, torch_network.keras_weights(trained["state"]))
    if dist.get_rank() == 0 and options.result:
        options.result.write_text(json.dumps(result) + "\n")
    torch_network.leave()


if __name__ == "__main__":
    main()
