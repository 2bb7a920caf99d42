"""Logical devices, asked for in time or too late; cores of ranks; what the machine says of itself."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from distlab import devices

TOPOLOGY = "\tGPU0\tGPU1\nGPU0\t X \tNV2\nGPU1\tNV2\t X \n"

HOLDING = """
import json, os, threading
from distlab import devices

def wait():
    started.set()
    stop.wait()

started, stop = threading.Event(), threading.Event()
threads = [threading.Thread(target=wait)]
threads[0].start()
started.wait()
core = devices.core_of(1, devices.allowed_cores())
is_held = devices.hold_cores({core})
threads.append(threading.Thread(target=stop.wait))
threads[1].start()
held = [sorted(os.sched_getaffinity(thread.native_id)) for thread in (threading.main_thread(), *threads)]
stop.set()
print(json.dumps([is_held, core, devices.allowed_cores(), held]))
"""


def run(program: str) -> str:
    """What a fresh Python process prints: TensorFlow fixes its devices once per process."""
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1"}
    child = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=300
    )
    assert child.returncode == 0, child.stderr[-2000:]
    return child.stdout


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program called nvidia-smi before everything else on PATH."""
    program = folder / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.slow
def test_the_processor_is_divided_into_devices_that_all_work() -> None:
    answer = run("""
from distlab import devices
names = devices.at_least(3)
import tensorflow as tf
print(names, len(tf.config.list_logical_devices("CPU")))
for name in names:
    with tf.device(name):
        print(tf.constant(1.0).device[-12:])
print(devices.at_least(3) == names, "asked again")
try:
    devices.divide_processor(2)
except devices.DevicesAlreadyUsed:
    print("another number is refused")
strategy = tf.distribute.MirroredStrategy(names)
print(strategy.num_replicas_in_sync)
""")
    said = "Devices: 3 logical CPU devices (no GPU here); they share its cores"
    assert answer.splitlines() == [
        said,
        "['CPU:0', 'CPU:1', 'CPU:2'] 3",
        *[f"device:CPU:{number}" for number in range(3)],
        said,
        "True asked again",
        "another number is refused",
        "3",
    ]


@pytest.mark.slow
def test_after_the_first_operation_it_is_too_late() -> None:
    answer = run("""
import distlab
import tensorflow as tf
tf.constant(1.0) + 1.0
from distlab import devices
for _ in range(2):
    try:
        devices.divide_processor(4)
    except devices.DevicesAlreadyUsed as error:
        print(isinstance(error, RuntimeError), error)
print(len(tf.config.list_logical_devices("CPU")))
""")
    refused = "True TensorFlow has already fixed its devices; restart the kernel and run this cell first."
    assert answer.splitlines() == [refused, refused, "1"]


def test_nvidia_smi_is_asked_for_gpus_and_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "topology.txt").write_text(TOPOLOGY)
    script = f"""case "$*" in
    "--query-gpu=name --format=csv,noheader") echo "Model A 80GB"; echo "Model B" ;;
    "topo -m") cat "{tmp_path}/topology.txt" ;;
    *) exit 2 ;;
    esac"""
    nvidia_smi(tmp_path, monkeypatch, script)
    assert devices.gpu_names() == ["Model A 80GB", "Model B"]
    assert devices.topology() == TOPOLOGY.strip()


def test_without_a_gpu_the_topology_is_the_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for script in ("", "echo No devices were found; exit 6"):
        if script:
            nvidia_smi(tmp_path, monkeypatch, script)
        assert devices.gpu_names() == []
        first, *_, last = devices.topology().splitlines()
        assert f"{devices.cores()} cores for this process" in first and last.startswith("no GPU")


def test_each_rank_has_a_core_of_its_own_until_there_are_no_more() -> None:
    assert [devices.core_of(rank, [4, 5, 9]) for rank in range(4)] == [4, 5, 9, 4]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not hold threads to cores")
def test_threads_from_before_and_from_after_are_held() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDING], capture_output=True, text=True, timeout=300, check=True)
    is_held, core, allowed, held = json.loads(done.stdout)
    assert is_held
    assert allowed == [core]
    assert held == [[core]] * 3
