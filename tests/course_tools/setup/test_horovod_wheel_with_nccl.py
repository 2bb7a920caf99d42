"""Horovod with NCCL, built for real from NVIDIA's packages: it holds CUDA's runtime and finds NCCL by itself."""

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from course_tools.setup import horovod_wheel, nvidia_packages
from course_tools.setup.horovod_build import HorovodBuild
from course_tools.setup.horovod_wheel_cache import cached_wheel
from course_tools.setup.site_software import Software

ASKED = "DISTLAB_BUILD_NCCL"
SECONDS_TO_LOAD = 300
PROGRAM = """
import distlab, horovod, horovod.tensorflow as hvd, tensorflow as tf
hvd.init()
print("home:", horovod.__file__)
print("built:", hvd.nccl_built(), hvd.cuda_built(), hvd.gloo_built(), hvd.mpi_built())
print("sum:", float(hvd.allreduce(tf.constant(2.0), op=hvd.Sum)))
for line in open("/proc/self/maps"):
    if "libnccl" in line or "libcudart" in line:
        print("loaded:", line.split()[-1])
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get(ASKED) != "1",
        reason="downloads 0.5 GB and compiles for minutes, unless the wheel is in the cache; to run it: "
        f"{ASKED}=1 .venv/bin/python -m pytest -n 0 tests/course_tools/setup/test_horovod_wheel_with_nccl.py",
    ),
]


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder of packages laid out as in an environment, with Horovod, NCCL, and the libraries of the packaged MPI."""
    build = HorovodBuild(Software(nvidia_packages.CUDA_VERSION), Software(nvidia_packages.NCCL.version))
    wheel = cached_wheel(horovod_wheel.wheel_name(build), partial(horovod_wheel.build_wheel, build=build))
    library = tmp_path_factory.mktemp("environment") / "lib"
    target = library / "python3" / "site-packages"
    target.mkdir(parents=True)
    for entry in (Path(sys.prefix) / "lib").glob("[!p]*"):  # all but Python's own
        (library / entry.name).symlink_to(entry)
    requirements = library / "requirements.txt"
    requirements.write_text(nvidia_packages.NCCL.requirement + "\n")
    install = [sys.executable, "-m", "uv", "pip", "install", "--no-deps", "--target", str(target)]
    subprocess.run([*install, "--require-hashes", "--requirement", str(requirements)], check=True)
    subprocess.run([*install, str(wheel)], check=True)
    yield target


def test_the_library_has_no_undefined_symbol_of_cuda(packages: Path) -> None:
    [library] = (packages / "horovod" / "tensorflow").glob(f"mpi_lib*{sysconfig.get_config_var('EXT_SUFFIX')}")
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", str(library)], capture_output=True, text=True, check=True
    ).stdout
    assert "ncclAllReduce" in symbols
    assert re.findall(r" U (_*cu(?:da)?[A-Z]\w*)", symbols) == []
    # Nor is it searched for in a folder of the build, which somebody else could make later.
    dynamic = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"(?:RUNPATH|RPATH).*\[(.*)\]", dynamic) == ["$ORIGIN/../../../..:$ORIGIN/../../nvidia/nccl/lib"]


def test_nccl_is_found_without_environment_variables_and_ranks_compute_without_a_gpu(packages: Path) -> None:
    names = [name for name in os.environ if re.search("NCCL|CUDA|LD_LIBRARY_PATH", name) and name != ASKED]
    variables = {name: value for name, value in os.environ.items() if name not in names}
    finished = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=variables | {"PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=SECONDS_TO_LOAD,
    )
    assert finished.returncode == 0, finished.stderr
    assert f"home: {packages}/horovod/__init__.py" in finished.stdout
    assert "built: 22707 True True True" in finished.stdout
    assert "sum: 2.0" in finished.stdout
    loaded = set(re.findall(r"loaded: (.*)", finished.stdout))
    assert loaded == {f"{packages}/nvidia/nccl/lib/libnccl.so.2"}
