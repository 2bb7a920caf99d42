"""NVIDIA's packages of the package index: a CUDA compiler for the build, and NCCL for the build and for the programs.

TensorFlow's packages are for CUDA 12, and NCCL is taken for CUDA 12 too: from the very package that TensorFlow needs on
GPUs, so that one process holds one NCCL. Of CUDA 12 the index has no compiler (nvidia-cuda-nvcc-cu12 holds its
assembler only). So the compiler is that of CUDA 13.0. What it compiles keeps its own runtime inside, apart from
TensorFlow's. The two meet in the driver only, whose streams and events belong to no version. Of all versions 13 the
first works with the oldest drivers, but these must be for CUDA 13 (DRIVER), while those for TensorFlow may be older.
"""

import re
import sysconfig
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from course_tools.setup.virtual_environment import missing_files

DRIVER = 580
LOADED_DRIVER = Path("/proc/driver/nvidia/version")
GB_NEEDED = 1.5
NCCL_LIBRARIES = "nvidia/nccl/lib"  # in site-packages


@dataclass(frozen=True)
class Package:
    """A version of a package, and the digests of its files for each processor."""

    name: str
    version: str
    digests: tuple[str, ...]

    @property
    def requirement(self) -> str:
        """The line of a requirements file, with which an installer checks the digest."""
        return " ".join([f"{self.name}=={self.version}", *(f"--hash=sha256:{digest}" for digest in self.digests)])


CUDA = (
    Package(
        "nvidia-cuda-nvcc",
        "13.0.88",
        (
            "56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03",
            "7c3a32c8ca9866addfd784da363ddee2f6874d560027a296f583e86a61f2d543",
            "c7ff28f86a24effdc6c034fa15230c549a273e4771b10a7fec14996f8cf3307f",
        ),
    ),
    Package(
        "nvidia-cuda-crt",
        "13.0.88",
        (
            "2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4",
            "31e02c52916804ca15e31f272a96181d8fadaf40c4c82a77a6f78071a22eccf3",
            "ee2ea2a97073e02ee62bb27841f437332be2c248e3eac013df07997ada39c003",
        ),
    ),
    Package(
        "nvidia-nvvm",
        "13.0.88",
        (
            "2ef0db7849e476d3b2fc3c09b27bdd79bd7ea8ce58cd9c86553d64ea40844ba0",
            "c4376a291d72d22a315d9d2f69bdae8f8cd83a627f75bad395cee49a0fe65dc1",
            "c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0",
        ),
    ),
    Package(
        "nvidia-cuda-runtime",
        "13.0.96",
        (
            "7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548",
            "ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55",
            "f79298c8a098cec150a597c8eba58ecdab96e3bdc4b9bc4f9983635031740492",
        ),
    ),
    Package(
        "nvidia-cuda-cccl",
        "13.0.85",
        (
            "6f0203e29fed809ee2b7fe9b1344df66ecab990c37d6a2e0e189b26d6c97ed7c",
            "e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649",
            "e160c6f031687b913fbe6e82e43f1788c3dd2a2a6378d3a8b15a31934b3ab285",
        ),
    ),
)
# The oldest version that this TensorFlow accepts: whatever newer one is installed with it has all that Horovod calls.
NCCL = Package(
    "nvidia-nccl-cu12",
    "2.27.7",
    (
        "4617839f3bb730c3845bf9adf92dbe0e009bc53ca5022ed941f2e23fb76e6f17",
        "de5ba5562f08029a19cb1cd659404b18411ed0d6c90ac5f52f30bf99ad5809aa",
    ),
)
CUDA_VERSION = "13.0"


def make_toolkit(folder: Path) -> Path:
    """Make a toolkit that CMake accepts of the packages installed in `folder`; return its place.

    The packages' programs may not be run, and the names under which linkers look for libraries are missing.
    """
    toolkit = folder / "nvidia" / "cu13"
    for program in [*toolkit.glob("bin/*"), *toolkit.glob("nvvm/bin/*")]:
        program.chmod(program.stat().st_mode | 0o755)
    (toolkit / "lib64").symlink_to("lib")
    (toolkit / "lib" / "libcudart.so").symlink_to("libcudart.so.13")
    return toolkit


def make_nccl(folder: Path) -> Path:
    """The same for NCCL's package."""
    (folder / NCCL_LIBRARIES / "libnccl.so").symlink_to("libnccl.so.2")
    return folder / NCCL_LIBRARIES.removesuffix("/lib")


def has_nccl() -> bool:
    """Whether this environment has NCCL's package whole, in this version or a newer one."""
    try:
        installed = version(NCCL.name)
    except PackageNotFoundError:
        return False
    metadata = Path(sysconfig.get_path("purelib")) / f"{NCCL.name.replace('-', '_')}-{installed}.dist-info"
    return _numbers(installed) >= _numbers(NCCL.version) and not missing_files(metadata)


def too_old_driver() -> str | None:
    """The version of this machine's NVIDIA driver if what the packages compile does not run with it."""
    try:
        driver = re.search(r"NVRM version:.*?\s((\d+)\.\d[\d.]*)", LOADED_DRIVER.read_text())
    except OSError:
        return None
    return driver[1] if driver and int(driver[2]) < DRIVER else None


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]
