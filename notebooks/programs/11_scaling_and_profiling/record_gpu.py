"""Record what a GPU does in training, in one JSON file: equality, speed, idle time, bandwidth.

torchrun --standalone --nproc-per-node gpu record_gpu.py --result gpu.json
srun --nodes=1 --ntasks=1 --gpus=8 torchrun --standalone --nproc-per-node gpu record_gpu.py
torchrun --standalone --nproc-per-node 2 record_gpu.py  # without a GPU, over gloo: a test
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

HAS_GPU, CPU = torch.cuda.is_available(), torch.device("cpu")
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if HAS_GPU else CPU
WIDTH, BATCHES = (4096, (64, 256, 1024, 4096, 16384)) if HAS_GPU else (256, (8, 16))
WAIT = torch.cuda.synchronize if HAS_GPU else lambda: None  # for what calls have only begun


def seconds(work: Callable[[], object], repeats: int = 10) -> float:
    """Of one call, the mean of some after three that do not count."""
    for _ in range(3):
        work()
    WAIT()
    start = time.perf_counter()
    for _ in range(repeats):
        work()
    WAIT()
    return (time.perf_counter() - start) / repeats


def trained(device: torch.device, rank: int, size: int, steps: int = 20) -> nn.Module:
    """Chapter 14's network, trained on the images of this rank in float32."""
    torch.manual_seed(14)
    features = [nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    model = nn.Sequential(*features, nn.Linear(2704, 64), nn.ReLU(), nn.Linear(64, 10))
    images, labels = torch.rand(steps, 48, 1, 28, 28), torch.randint(10, (steps, 48))
    if size > 1 or device.type == "cuda":
        model = DistributedDataParallel(model.to(device))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for batch, classes in zip(images[:, rank::size], labels[:, rank::size], strict=True):
        optimizer.zero_grad()
        cross_entropy(model(batch.to(device)), classes.to(device)).backward()
        optimizer.step()
    return model


def largest_difference() -> float:
    """Of the weights, between DDP and serial training on the CPU."""
    together = trained(DEVICE, dist.get_rank(), dist.get_world_size())
    serial = trained(CPU, rank=0, size=1)
    pairs = zip(together.parameters(), serial.parameters(), strict=True)
    return max((ours.cpu() - theirs).detach().abs().max().item() for ours, theirs in pairs)


def speeds() -> list[dict]:
    """Training steps of four square layers, and their FLOP/s."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
    model = nn.Sequential(*layers).to(DEVICE)
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
            row = {"batch": batch, "precision": precision, "seconds": took}
            rows.append(row | {"flops": flops})
    return rows


def batches(prefetch: bool, steps: int) -> Iterator[torch.Tensor]:
    """Images on the device: copied when needed, or in the step before, from pinned memory."""
    host = [torch.rand(BATCHES[-2], WIDTH) for _ in range(2)]
    if not (prefetch and HAS_GPU):
        yield from (host[step % 2].to(DEVICE) for step in range(steps))
        return
    host, copying, following = [part.pin_memory() for part in host], torch.cuda.Stream(), None
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
    kind, name = torch.profiler.ProfilerActivity, "CUDA" if HAS_GPU else "CPU"
    with torch.profiler.profile(activities=[getattr(kind, name)]) as profiler:
        elapsed = train()
    device = getattr(torch.autograd.DeviceType, name)
    events = [event for event in profiler.events() if event.device_type == device]
    busy = sum(event.time_range.elapsed_us() for event in events if "Mem" not in event.name)
    return max(0.0, 1 - busy / 1e6 / elapsed)  # copies are no computing


def all_reduces() -> list[dict]:
    """Bus bandwidth by size."""
    rows, factor = [], 2 * (1 - 1 / dist.get_world_size())
    for size in [4**power for power in range(5, 15 if HAS_GPU else 10)]:
        array = torch.ones(size // 4, device=DEVICE)
        took = seconds(lambda array=array: dist.all_reduce(array))
        rows.append({"bytes": size, "seconds": took, "bus_bandwidth": factor * size / took})
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Record what a GPU does in training.")
    parser.add_argument("--result", type=Path, default=Path("gpu.json"))
    file = parser.parse_args().result
    if HAS_GPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if HAS_GPU else "gloo")
    torch.backends.cudnn.allow_tf32 = False  # float32 is float32
    result = {"torch": torch.__version__, "ranks": dist.get_world_size()}
    result["device"] = torch.cuda.get_device_name() if HAS_GPU else "cpu"
    result |= {"largest_difference": largest_difference(), "all_reduces": all_reduces()}
    if dist.get_rank() == 0:
        idle = {"copied in the step": idle_share(False), "prefetched": idle_share(True)}
        result |= {"width": WIDTH, "speeds": speeds(), "idle_share": idle}
        file.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{file}: {result['device']}, {result['ranks']} ranks", flush=True)
    dist.barrier()
    dist.destroy_process_group() if HAS_GPU else os._exit(0)  # as chapter 14's programs do
