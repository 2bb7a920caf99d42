"""Logical devices, asked for in time or too late; cores of ranks; what the machine says of itself."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from distlab import devices


def run(program: str) -> list[str]:
    """What a fresh Python process prints: TensorFlow fixes its devices once per process."""
    variables = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    finished = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr[-2000:]
    return finished.stdout.splitlines()


@pytest.mark.slow
def test_the_processor_is_divided_into_devices_that_all_work() -> None:
    said = "Devices: 3 logical CPU devices (no GPU here); they share its cores"
    assert run("""
from distlab import devices
names = devices.at_least(3)
import tensorflow as tf
for name in names:
    with tf.device(name):
        print(tf.constant(1.0).device[-12:])
print(devices.at_least(3) == names, tf.distribute.MirroredStrategy(names).num_replicas_in_sync)
""") == [said, *(f"device:CPU:{number}" for number in range(3)), said, "True 3"]


@pytest.mark.slow
def test_after_the_first_operation_it_is_too_late() -> None:
    assert run("""
import distlab
import tensorflow as tf
tf.constant(1.0) + 1.0
from distlab import devices
try:
    devices.divide_processor(4)
except devices.DevicesAlreadyUsed as error:
    print(error)
print(len(tf.config.list_logical_devices("CPU")))
""") == ["TensorFlow has already fixed its devices; restart the kernel and run this cell first.", "1"]


def test_nvidia_smi_is_asked_for_gpus_and_topology(nvidia_smi: Callable[[str], None]) -> None:
    nvidia_smi("""case "$*" in
    "--query-gpu=name --format=csv,noheader") echo "Model A 80GB"; echo "Model B" ;;
    "topo -m") echo " GPU0 GPU1"; echo "GPU0  X  NV2" ;;
    *) exit 2 ;;
    esac""")
    assert devices.gpu_names() == ["Model A 80GB", "Model B"]
    assert devices.topology() == "GPU0 GPU1\nGPU0  X  NV2"


@pytest.mark.parametrize("has_a_driver", [False, True])
def test_without_a_gpu_the_topology_is_the_processors(
    has_a_driver: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvidia_smi: Callable[[str], None]
) -> None:
    if has_a_driver:
        nvidia_smi("echo No devices were found; exit 6")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert devices.gpu_names() == []
    first, *_, last = devices.topology().splitlines()
    assert f"{devices.cores()} cores for this process" in first and last.startswith("no GPU")


def test_each_rank_has_a_core_of_its_own_until_there_are_no_more() -> None:
    assert [devices.core_of(rank, [4, 5, 9]) for rank in range(4)] == [4, 5, 9, 4]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not hold threads to cores")
def test_threads_from_before_and_from_after_are_held() -> None:
    assert run("""
import os, threading
from distlab import devices
stop = threading.Event()
before, after = (threading.Thread(target=stop.wait) for _ in range(2))
before.start()
core = devices.core_of(1, devices.allowed_cores())
print(devices.hold_cores({core}))
after.start()
print(all(os.sched_getaffinity(each.native_id) == {core} for each in (threading.main_thread(), before, after)))
stop.set()
""") == ["True", "True"]
