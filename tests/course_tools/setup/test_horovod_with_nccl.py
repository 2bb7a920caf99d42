"""Horovod with NCCL, built for real from NVIDIA's packages: it holds CUDA's runtime and finds NCCL by itself."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools.setup import horovod, nvidia
from distlab.runtime.environment import cache_folder

PROGRAM = """
import distlab, horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
print("sum:", float(hvd.allreduce(tf.constant(2.0), op=hvd.Sum)), hvd.nccl_built(), hvd.gloo_built(), hvd.mpi_built())
print(*(line.split()[-1] for line in open("/proc/self/maps") if "libnccl" in line or "libcudart" in line))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.environ.get("DISTLAB_BUILD_NCCL") != "1",
    reason="downloads 0.5 GB and compiles for minutes; DISTLAB_BUILD_NCCL=1",
)
def test_it_loads_without_a_gpu_and_finds_nccl_and_no_other_cuda(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = horovod.Build(nvidia.PACKAGES, nvidia.PACKAGES)
    name = horovod.wheel_name(build)
    wheel = next((cache_folder() / "wheels" / name).glob("*.whl"), None) or horovod._build_wheel(name, build)
    packages = tmp_path / "lib" / "python3" / "site-packages"  # laid out as in an environment
    packages.mkdir(parents=True)
    for entry in (Path(sys.prefix) / "lib").glob("[!p]*"):  # libmpi, and all but Python's own
        (tmp_path / "lib" / entry.name).symlink_to(entry)
    nvidia.install(nvidia.NCCL, "--target", str(packages))
    uv = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--target", str(packages), str(wheel)]
    subprocess.run(uv, check=True)

    [library] = (packages / "horovod" / "tensorflow").glob("mpi_lib*.so")
    symbols = subprocess.check_output(["nm", "-D", "--undefined-only", str(library)], text=True)
    assert "ncclAllReduce" in symbols and re.findall(r" U (_*cu(?:da)?[A-Z]\w*)", symbols) == []
    dynamic = subprocess.check_output(["readelf", "-d", str(library)], text=True)
    assert re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic) == ["$ORIGIN/../../../..:$ORIGIN/../../nvidia/nccl/lib"]

    for variable in [name for name in os.environ if re.search("NCCL|CUDA|LD_LIBRARY_PATH", name)]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    said = subprocess.check_output([sys.executable, "-c", PROGRAM], text=True, timeout=300).splitlines()
    assert said[-2] == "sum: 2.0 22707 True True"
    assert set(said[-1].split()) == {f"{packages}/nvidia/nccl/lib/libnccl.so.2"}
