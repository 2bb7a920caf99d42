"""Record what a GPU does in training, in one JSON file: equality, speed, idle time, bandwidth.

    torchrun --standalone --nproc-per-node gpu record_gpu.py --result gpu.json
    srun --nodes=1 --ntasks=1 --gpus=8 torchrun --standalone --nproc-per-node gpu record_gpu.py

Without a GPU it runs over gloo with small sizes, to be tested: torchrun --standalone --nproc-per-node 2 record_gpu.py
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if HAS_GPU else torch.device("cpu")
WIDTH, BATCHES = (4096, (64, 256, 1024, 4096, 16384)) if HAS_GPU else (256, (8, 16))
WAIT = torch.cuda.synchronize if HAS_GPU else lambda: None  # until the device has done its work


def seconds(work: Callable[[], object], repeats: int = 10) -> float:
    """Of one call, the mean of some after three that do not count: calls of a GPU return before it is ready."""
    for _ in range(3):
        work()
    WAIT()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    WAIT()
    return (time.perf_counter() - start) / repeats


def largest_difference(steps: int = 20) -> float:
    """Of the weights of chapter 14's network, between DDP and serial training on the CPU, in float32."""

    def train(device: torch.device, rank: int, size: int) -> nn.Module:
        torch.manual_seed(14)
        features = [nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
        model = nn.Sequential(*features, nn.Linear(2704, 64), nn.ReLU(), nn.Linear(64, 10)).to(device)
        images, labels = torch.rand(steps, 48, 1, 28, 28), torch.randint(10, (steps, 48))
        model = DistributedDataParallel(model) if size > 1 or device.type == "cuda" else model
        optimizer = torch.optim.SGD(model.parameters(), 0.05)
        for batch, classes in zip(images[:, rank::size], labels[:, rank::size], strict=True):
            optimizer.zero_grad()
            cross_entropy(model(batch.to(device)), classes.to(device)).backward()
            optimizer.step()
        return model

    together = train(DEVICE, dist.get_rank(), dist.get_world_size())
    serial = train(torch.device("cpu"), 0, 1)
    pairs = zip(together.parameters(), serial.parameters(), strict=True)
    return max((ours.detach().cpu() - theirs.detach()).abs().max().item() for ours, theirs in pairs)


def speeds() -> list[dict]:
    """Training steps of four square layers, and their FLOP/s."""
    model = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU()))).to(DEVICE)
    optimizer, rows = torch.optim.SGD(model.parameters(), 0.01), []

    def step(images: torch.Tensor) -> None:
        optimizer.zero_grad()
        model(images).square().mean().backward()
        optimizer.step()

    for precision in ("float32", "bfloat16"):
        for batch in BATCHES:
            images = torch.rand(batch, WIDTH, device=DEVICE)
            with torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bfloat16"):
                took = seconds(lambda images=images: step(images))
            flops = (6 * 4 - 2) * WIDTH**2 * batch / took  # no gradient of the images
            rows.append({"batch": batch, "precision": precision, "seconds": took, "flops": flops})
    return rows


def batches(prefetch: bool, steps: int) -> Iterator[torch.Tensor]:
    """Images on the device: copied when they are needed, or during the step before, from pinned memory."""
    host = [torch.rand(BATCHES[-2], WIDTH) for _ in range(2)]
    if not (prefetch and HAS_GPU):
        yield from (host[step % 2].to(DEVICE) for step in range(steps))
        return
    host, copying, following = [images.pin_memory() for images in host], torch.cuda.Stream(), None
    for step in range(steps + 1):
        images = following
        torch.cuda.current_stream().wait_stream(copying)
        with torch.cuda.stream(copying):
            following = host[step % 2].to(DEVICE, non_blocking=True)
        if images is not None:
            images.record_stream(torch.cuda.current_stream())
            yield images


def idle_share(prefetch: bool, steps: int = 20) -> float:
    """Of the time of some steps, how much the GPU computed nothing."""
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 10)).to(DEVICE)

    def train() -> float:
        start = time.perf_counter()
        for images in batches(prefetch, steps):
            model(images).square().mean().backward()
        WAIT()
        return time.perf_counter() - start

    train()
    kind = torch.profiler.ProfilerActivity.CUDA if HAS_GPU else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profiler:
        elapsed = train()
    device = torch.autograd.DeviceType.CUDA if HAS_GPU else torch.autograd.DeviceType.CPU
    events = [event for event in profiler.events() if event.device_type == device and "Mem" not in event.name]
    return max(0.0, 1 - sum(event.time_range.elapsed_us() for event in events) / 1e6 / elapsed)  # kernels, not copies


def all_reduces() -> list[dict]:
    """Bus bandwidth by size; nothing with one rank."""
    rows, factor = [], 2 * (1 - 1 / dist.get_world_size())
    for nbytes in [4**power for power in range(5, 15 if HAS_GPU else 10)] if factor else []:
        array = torch.ones(nbytes // 4, device=DEVICE)
        took = seconds(lambda array=array: dist.all_reduce(array))
        rows.append({"bytes": nbytes, "seconds": took, "bus_bandwidth": factor * nbytes / took})
    return rows


def main() -> None:
    """Measure; rank 0 writes the file."""
    parser = argparse.ArgumentParser(description="Record what a GPU does in training.")
    parser.add_argument("--result", type=Path, default=Path("gpu.json"))
    options = parser.parse_args()
    torch.cuda.set_device(DEVICE) if HAS_GPU else None
    dist.init_process_group("nccl" if HAS_GPU else "gloo")
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32
    result = {"torch": torch.__version__, "cuda": torch.version.cuda, "ranks": dist.get_world_size()}
    result |= {"device": torch.cuda.get_device_name() if HAS_GPU else "cpu"}
    result |= {"largest_difference": largest_difference(), "all_reduces": all_reduces()}
    if dist.get_rank() == 0:
        result |= {"width": WIDTH, "speeds": speeds()}
        result["idle_share"] = {"copied in the step": idle_share(False), "prefetched": idle_share(True)}
        options.result.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{options.result}: {result['device']}, {result['ranks']} ranks")
    dist.barrier()
    os._exit(0) if not HAS_GPU else dist.destroy_process_group()  # see chapter 14's torch_network.py


if __name__ == "__main__":
    main()
