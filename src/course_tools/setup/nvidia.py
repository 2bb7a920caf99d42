"""Horovod with NCCL, for NVIDIA GPUs: more edits of its source, and CUDA and NCCL of the site or of NVIDIA's packages.

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

from course_tools.setup.horovod_source import Edit, NotBuilt

PACKAGES = "NVIDIA's packages"  # in the place of a folder of the site
UV = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--python", sys.executable]
DRIVER = Path("/proc/driver/nvidia/version")
_VARIABLES = ("HOROVOD_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"), ("HOROVOD_NCCL_HOME", "NCCL_HOME", "NCCL_ROOT")
# From Pascal to Blackwell; code for one of them also runs on the others of its generation.
_COMPUTE_CAPABILITIES = ("60", "70", "75", "80", "90", "100", "120")
_CUDA_13 = """\
nvidia-cuda-nvcc==13.0.88 \\
    --hash=sha256:56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03 \\
    --hash=sha256:7c3a32c8ca9866addfd784da363ddee2f6874d560027a296f583e86a61f2d543 \\
    --hash=sha256:c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f
nvidia-cuda-crt==13.0.88 \\
    --hash=sha256:2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4 \\
    --hash=sha256:31e02c52916804ca15e31f272a96181d8fadaf40c4c82a77a6f78071a22eccf3 \\
    --hash=sha256:ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003
nvidia-nvvm==13.0.88 \\
    --hash=sha256:2ef0db7849e476d3b2fc3c09b27bdd79bd7ea8ce58cd9c86553d64ea40844ba0 \\
    --hash=sha256:c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1 \\
    --hash=sha256:c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-runtime==13.0.96 \\
    --hash=sha256:7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548 \\
    --hash=sha256:ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55 \\
    --hash=sha256:f79298c8a098cec150a597c8eba58ecdab96e3bdc4b9bc4f9983635031740492
nvidia-cuda-cccl==13.0.85 \\
    --hash=sha256:6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c \\
    --hash=sha256:e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649 \\
    --hash=sha256:e160c6f031687b913fbe6e82e43f1788c3dd2a2a6378d3a8b15a31934b3ab285
"""
# The oldest version that this TensorFlow accepts: whatever newer one comes with it has all that Horovod calls.
NCCL = """\
nvidia-nccl-cu12==2.27.7 \\
    --hash=sha256:4617839f3bb730c3845bf9adf92dbe0e009bc53ca5022ed941f2e23fb76e6f17 \\
    --hash=sha256:de5ba5562f08029a19cb1cd659404b18411ed0d6c90ac5f52f30bf99ad5809aa
"""

_KERNELS, _OPERATIONS = "horovod/common/ops/cuda/CMakeLists.txt", "horovod/tensorflow/mpi_ops.cc"
EDITS = (
    # The headers of today's CUDA need C++17.
    Edit(_KERNELS, "set(CMAKE_CUDA_STANDARD 11)\n", "set(CMAKE_CUDA_STANDARD 17)\n"),
    # Kernels for the C++ library of before 2015, which this TensorFlow does not use, take as long again to compile.
    Edit(_KERNELS, "compatible_horovod_cuda_kernels cuda_k", "compatible_horovod_cuda_kernels EXCLUDE_FROM_ALL cuda_k"),
    # TensorFlow exports this function no longer; a stream says itself which handle CUDA knows it by.
    Edit(_OPERATIONS, "// Forward declaration of AsGpuStreamValue\n", '#include "xla/stream_executor/stream.h"\n'),
    Edit(_OPERATIONS, '#include "tensorflow/compiler/xla/stream_executor/stream.h"\n', ""),
    Edit(
        _OPERATIONS,
        "GpuStreamHandle AsGpuStreamValue(Stream* stream);\n",
        "inline GpuStreamHandle AsGpuStreamValue(Stream* stream) {\n"
        "  return reinterpret_cast<GpuStreamHandle>(stream->platform_specific_handle().stream);\n}\n",
    ),
    # The whole CUDA runtime must be inside: TensorFlow's libraries export stubs of the same names, of another CUDA,
    # which win over an archive that is taken in parts.
    Edit(
        "horovod/tensorflow/CMakeLists.txt",
        "target_link_libraries(${TF_TARGET_LIB} ${LINKER_LIBS} ${TF_LINKER_LIBS})\n",
        "target_link_libraries(${TF_TARGET_LIB} -Wl,--whole-archive ${CUDA_cudart_static_LIBRARY}\n"
        "    -Wl,--no-whole-archive ${CMAKE_DL_LIBS} rt ${LINKER_LIBS} ${TF_LINKER_LIBS})\n",
    ),
)


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
        driver = re.search(r"NVRM version:.*?\s(\d+)\.\d", DRIVER.read_text() if DRIVER.exists() else "")
        if driver and int(driver[1]) < 580:
            raise NotBuilt(f"The NVIDIA driver {driver[1]} is older than the 580 of NVIDIA's packages: set CUDA_HOME.")
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
