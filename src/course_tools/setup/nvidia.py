"""Horovod with NCCL, for NVIDIA GPUs: CUDA and NCCL of the site or of NVIDIA's packages.

TensorFlow's packages are for CUDA 12, and NCCL is the very package that TensorFlow needs on GPUs, so that one process
holds one NCCL. Of CUDA 12 the index has no compiler (nvidia-cuda-nvcc-cu12 is its assembler only): it is that of 13.0,
the CUDA 13 for the oldest drivers, from 580 on. What it compiles keeps its own runtime inside; the two meet in the
driver only, whose streams and events belong to no version.
"""

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

from course_tools.setup.horovod_source import NotBuilt

PACKAGES = "NVIDIA's packages"  # in the place of a folder of the site
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
_VARIABLES = ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"), ("HOROVOD_NCCL_HOME", "NCCL_HOME", "NCCL_ROOT")
# From Pascal to Blackwell; code for one of them also runs on the others of its generation.
_COMPUTE_CAPABILITIES = ("60", "70", "75", "80", "90", "100", "120")
_CUDA_13 = Path(__file__).with_name("cuda13.txt").read_text()
# The oldest version that this TensorFlow accepts: whatever newer one comes with it has all that Horovod calls.
NCCL = Path(__file__).with_name("nccl.txt").read_text()


def find(wanted: str | None) -> tuple[str, str]:
    """Where CUDA and NCCL are taken from: two folders of the site, or PACKAGES in their place.

    wanted: "site" or "packages" for CUDA; None for the site's where there is one. Raises NotBuilt.
    """
    named_cuda, named_nccl = (next(filter(None, map(os.environ.get, names)), None) for names in _VARIABLES)
    program = shutil.which("nvcc")
    cuda = named_cuda or (str(Path(program).resolve().parents[1]) if program else "/usr/local/cuda")
    if wanted == "packages" or not (Path(cuda) / "bin" / "nvcc").exists():
        if wanted != "packages" and (named_cuda or wanted):
            raise NotBuilt(f"{cuda} has no bin/nvcc: load your site's module for CUDA, or add CUDA=packages.")
        cuda = PACKAGES
    nccl = next(
        (place for place in [named_nccl or cuda, "/usr"] if (Path(place) / "include/nccl.h").exists()), PACKAGES
    )
    if named_nccl and nccl != named_nccl:
        raise NotBuilt(f"{named_nccl} has no include/nccl.h: correct NCCL_HOME, or unset it for NVIDIA's package.")
    return cuda, nccl


def install(packages: str, *options: str) -> None:
    """Install packages by uv, their digests checked. Raises CalledProcessError."""
    print(f"Fetching {', '.join(re.findall(r'^[a-z0-9-]+', packages, re.MULTILINE))}", flush=True)
    # Copies: the rights of files that share their content with uv's cache could not be changed.
    command = [*UV, "--link-mode", "copy", "--require-hashes", *options, "--requirement", "-"]
    subprocess.run(command, input=packages, text=True, check=True)


def install_nccl() -> None:
    """NCCL's package for the programs, unless TensorFlow has brought one, which is newer."""
    if not any(distributions(name="nvidia-nccl-cu12")):
        install(NCCL)


def prepare(cuda: str, nccl: str, folder: Path) -> tuple[dict[str, str], str]:
    """The variables by which the build finds CUDA and NCCL, and where its library then looks for NCCL.

    NVIDIA's packages go into `folder`. Raises CalledProcessError.
    """
    search = "$ORIGIN/../../nvidia/nccl/lib"  # from site-packages/horovod/tensorflow: the wheel goes elsewhere
    if cuda == PACKAGES:
        install(_CUDA_13, "--target", str(folder / "cuda"))
        toolkit = folder / "cuda" / "nvidia" / "cu13"
        # The packages' programs may not be run, and the names under which linkers look for libraries are missing.
        for file in [*toolkit.glob("bin/*"), *toolkit.glob("nvvm/bin/*")]:
            file.chmod(0o755)
        (toolkit / "lib64").symlink_to("lib")
        (toolkit / "lib" / "libcudart.so").symlink_to("libcudart.so.13")
        cuda = str(toolkit)
    if nccl == PACKAGES:
        install(NCCL, "--target", str(folder / "nccl"))
        nccl = str(folder / "nccl" / "nvidia" / "nccl")
        (Path(nccl) / "lib" / "libnccl.so").symlink_to("libnccl.so.2")
    else:
        libraries = [file for place in ("lib*", "lib/*-linux-gnu") for file in Path(nccl).glob(f"{place}/libnccl.so*")]
        search = str(libraries[0].parent) if libraries else nccl
    nvcc = f"{cuda}/bin/nvcc"
    known = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True).stdout.split()
    variables = {
        "HOROVOD_GPU": "CUDA",
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_NCCL_LINK": "SHARED",
        "HOROVOD_NCCL_HOME": nccl,
        "HOROVOD_BUILD_CUDA_CC_LIST": ",".join(number for number in _COMPUTE_CAPABILITIES if f"sm_{number}" in known),
        "CUDACXX": nvcc,
    }
    return variables | dict.fromkeys(("HOROVOD_CUDA_HOME", "CUDAToolkit_ROOT", "CUDA_HOME", "CUDA_PATH"), cuda), search
