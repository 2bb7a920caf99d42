"""The devices of a notebook, GPUs or logical CPU devices; the cores of a process; what the machine is made of."""

import os
import platform
import shutil
import subprocess
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from distlab.runtime.errors import PlainError

_THREADS = Path("/proc/self/task")


class DevicesAlreadyUsed(PlainError, RuntimeError):
    """TensorFlow has fixed its devices; the message says to restart the kernel."""


def at_least(count: int) -> list[str]:
    """The names of `count` devices: GPUs if there are that many, else the processor divided into logical devices.

    Says in one line which it is. Must run before TensorFlow's first operation; raises DevicesAlreadyUsed after it.
    """
    import tensorflow as tf  # here, because it takes seconds and the rest of this module does not need it

    gpus = tf.config.list_physical_devices("GPU")
    if len(gpus) >= count:
        print(f"Devices: {count} of {len(gpus)} GPUs")
        return [f"GPU:{index}" for index in range(count)]
    divide_processor(count)
    reason = f"{len(gpus) or 'no'} GPU{'s' * (len(gpus) > 1)} here"
    print(f"Devices: {count} logical CPU devices ({reason}); they share its cores")
    return [f"CPU:{index}" for index in range(count)]


def divide_processor(count: int) -> None:
    """Make TensorFlow see the processor as `count` logical devices; raises DevicesAlreadyUsed when it is too late."""
    import tensorflow as tf

    processor = tf.config.list_physical_devices("CPU")[0]
    try:
        tf.config.set_logical_device_configuration(processor, [tf.config.LogicalDeviceConfiguration()] * count)
        devices = len(tf.config.list_logical_devices("CPU"))
    except RuntimeError:
        devices = 0
    if devices != count:
        raise DevicesAlreadyUsed(
            "TensorFlow has already fixed its devices; restart the kernel and run this cell first."
        )


def cores() -> int:
    """The number of processor cores that this process may use."""
    return len(allowed_cores())


def allowed_cores() -> list[int]:
    """The cores that this thread may run on, by number; all cores where the system does not say (macOS)."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def core_of(local_rank: int, cores: Sequence[int]) -> int:
    """The core of a rank: each its own, and shared in turn when there are more ranks on the host than cores."""
    return cores[local_rank % len(cores)]


def hold_cores(cores: Collection[int]) -> bool:
    """Let every thread of this process, and those that they start later, run on these cores only.

    False where the system has no such call. Raises OSError for cores that do not exist.
    """
    if not hasattr(os, "sched_setaffinity"):
        return False
    os.sched_setaffinity(0, cores)
    for thread in _THREADS.iterdir() if _THREADS.is_dir() else ():
        with suppress(ProcessLookupError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread.name), cores)
    return True


def memory_gib() -> float:
    """The machine's memory in GiB (2³⁰ bytes)."""
    return psutil.virtual_memory().total / 2**30


def gpu_names() -> list[str]:
    """The names of the GPUs that `nvidia-smi` lists; empty without one."""
    return nvidia_smi("--query-gpu=name", "--format=csv,noheader").splitlines()


def topology() -> str:
    """How the devices are connected: `nvidia-smi topo -m` where there are GPUs, else the processor's parts."""
    if report := nvidia_smi("topo", "-m"):
        return report
    nodes = sorted(Path("/sys/devices/system/node").glob("node[0-9]*"))
    physical = psutil.cpu_count(logical=False)
    lines = [f"{platform.machine()} processor: {cores()} cores for this process, {physical} physical"]
    lines += [f"{node.name}: cores {(node / 'cpulist').read_text().strip()}" for node in nodes]
    return "\n".join([*lines, "no GPU, so there are no links between GPUs to show"])


def nvidia_smi(*arguments: str) -> str:
    """What `nvidia-smi` prints; nothing where there is none, or where it fails."""
    if not shutil.which("nvidia-smi"):
        return ""
    answer = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=20, check=False)
    return answer.stdout.strip() if answer.returncode == 0 else ""
