"""Record what a GPU does in training, in one JSON file: equality, speed, roofline, idle time, NCCL.

    torchrun --standalone --nproc-per-node gpu record_gpu.py --result gpu.json

It needs PyTorch, and takes JAX too where it is installed. The file holds no name and no address of the machine. Without
a GPU it runs over gloo with small sizes, only to be tested: torchrun --standalone --nproc-per-node 2 record_gpu.py
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

HAS_GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if HAS_GPU else torch.device("cpu")
WIDTH, BATCHES = (4096, (64, 256, 1024, 4096, 16384)) if HAS_GPU else (256, (8, 16))
PRECISIONS = ("float32", "tf32", "bfloat16")
WAIT = torch.cuda.synchronize if HAS_GPU else lambda: None  # until the device has done its work
NCCL_LOG = Path(tempfile.gettempdir()) / f"nccl.{os.getpid()}.log"


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


def use(precision: str) -> torch.autocast:
    """Float32 with or without TF32, or bfloat16 by autocast."""
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
    return torch.autocast(DEVICE.type, torch.bfloat16, enabled=precision == "bfloat16")


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

    with use("float32"):
        together = train(DEVICE, dist.get_rank(), dist.get_world_size())
        serial = train(torch.device("cpu"), 0, 1)
    pairs = zip(together.parameters(), serial.parameters(), strict=True)
    return max((ours.detach().cpu() - theirs.detach()).abs().max().item() for ours, theirs in pairs)


def peaks() -> dict[str, float]:
    """FLOP/s of a large matrix product in each precision, and bytes per second of a large copy."""
    size, found = 2 * WIDTH, {}
    for precision in PRECISIONS:
        square = torch.rand(size, size, device=DEVICE)
        square = square.bfloat16() if precision == "bfloat16" else square
        with use(precision):
            found[precision] = 2 * size**3 / seconds(lambda square=square: square @ square)
    source = torch.rand(16 * WIDTH * WIDTH, device=DEVICE)
    return found | {"bytes_per_second": 2 * 4 * source.numel() / seconds(source.clone)}


def speeds(peak: dict[str, float]) -> list[dict]:
    """Training steps of four square layers: their share of the peak, and for a roofline their FLOP per byte."""
    rows = []
    for compiled in (False, True) if HAS_GPU else (False,):
        layers = [layer for _ in range(4) for layer in (nn.Linear(WIDTH, WIDTH), nn.ReLU())]
        model = nn.Sequential(*layers).to(DEVICE)
        run, optimizer = torch.compile(model) if compiled else model, torch.optim.SGD(model.parameters(), 0.01)

        def step(images: torch.Tensor, run: nn.Module = run, optimizer: torch.optim.Optimizer = optimizer) -> None:
            optimizer.zero_grad()
            run(images).square().mean().backward()
            optimizer.step()

        for precision in PRECISIONS:
            for batch in BATCHES:
                images = torch.rand(batch, WIDTH, device=DEVICE)
                with use(precision):
                    took = seconds(lambda images=images, step=step: step(images))
                flop, item = 6 * 4 * WIDTH**2 * batch, 2 if precision == "bfloat16" else 4
                moved = 4 * (3 * item * (WIDTH**2 + 2 * batch * WIDTH) + 12 * WIDTH**2)  # estimated; float32 updates
                row = {"batch": batch, "precision": precision, "compiled": compiled, "seconds": took}
                rows.append(row | {"utilisation": flop / took / peak[precision], "flop_per_byte": flop / moved})
    return rows


def batches(prefetch: bool, steps: int) -> Iterator[torch.Tensor]:
    """Images on the device: copied when they are needed, or during the step before, from pinned memory."""
    host = [torch.rand(BATCHES[-2], WIDTH) for _ in range(2)]
    if not (prefetch and HAS_GPU):
        yield from (host[step % 2].to(DEVICE) for step in range(steps))
        return
    host, copying = [images.pin_memory() for images in host], torch.cuda.Stream()
    following = None
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


def jax_peak() -> dict:
    """FLOP/s of a compiled matrix product in bfloat16 by JAX."""
    import jax

    square, product = jax.numpy.ones((2 * WIDTH, 2 * WIDTH), jax.numpy.bfloat16), jax.jit(lambda a: a @ a)
    took = seconds(lambda: product(square).block_until_ready())
    return {"version": jax.__version__, "device": jax.devices()[0].platform, "bfloat16": 2 * (2 * WIDTH) ** 3 / took}


def main() -> None:
    """Measure; rank 0 writes the file."""
    parser = argparse.ArgumentParser(description="Record what a GPU does in training.")
    parser.add_argument("--result", type=Path, default=Path("gpu.json"))
    options = parser.parse_args()
    os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_FILE": str(NCCL_LOG)}
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else JAX takes most of the GPU's memory
    store = {} if "RANK" in os.environ else {"store": dist.HashStore(), "rank": 0, "world_size": 1}
    torch.cuda.set_device(DEVICE) if HAS_GPU else None
    dist.init_process_group("nccl" if HAS_GPU else "gloo", **store)
    result = {"date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__, "cuda": torch.version.cuda}
    result |= {"device": torch.cuda.get_device_name() if HAS_GPU else "cpu", "ranks": dist.get_world_size()}
    for command in ("nvidia-smi", "nvidia-smi topo -m"):  # "" where there is none
        result[command] = subprocess.run(command, shell=True, capture_output=True, text=True, check=False).stdout
    result |= {"largest_difference": largest_difference(), "all_reduces": all_reduces()}
    if dist.get_rank() == 0:
        result |= {"width": WIDTH, "peaks": peaks(), "jax": jax_peak() if find_spec("jax") else {}}
        result["speeds"] = speeds(result["peaks"])
        result["idle_share"] = {"copied in the step": idle_share(False), "prefetched": idle_share(True)}
        log = NCCL_LOG.read_text().splitlines() if NCCL_LOG.exists() else []
        told = [line for line in log if re.search("NCCL version|NET/|Channel 00|Trees|via|nranks", line)]
        result["nccl"] = [re.sub(r"^.*NCCL INFO |\d+(\.\d+){3}", "", line) for line in told[:40]]  # no addresses
        options.result.write_text(json.dumps(result, indent=1) + "\n")
        print(f"{options.result}: {result['device']}, {result['ranks']} ranks")
    dist.barrier()
    os._exit(0) if not HAS_GPU else dist.destroy_process_group()  # see chapter 14's torch_network.py


if __name__ == "__main__":
    main()
