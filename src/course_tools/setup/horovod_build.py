"""What a Horovod is built with: NCCL or none, the packaged MPI or the site's; chosen once, then kept."""

import json
import platform
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from course_tools.setup import nvidia_packages, site_software
from course_tools.setup.site_software import Software, SoftwareMissing

GPUS, MPIS, CUDAS = ("nccl",), ("packaged", "system"), ("site", "packages")
# From Pascal to Blackwell; code for one of them also runs on the others of its generation.
COMPUTE_CAPABILITIES = (60, 70, 75, 80, 90, 100, 120)


@dataclass(frozen=True)
class HorovodBuild:
    """What is built in besides Gloo. cuda and nccl: both or none.  mpi: the site's, None for the packaged Open MPI."""

    cuda: Software | None = None
    nccl: Software | None = None
    mpi: Software | None = None

    @property
    def kind(self) -> str:
        """The part of a wheel's name that says what it is; empty for the default."""
        return "".join(["nccl-" if self.nccl else "", "system_mpi-" if self.mpi else ""])

    @property
    def command(self) -> str:
        """The command that builds it."""
        taken = ["CUDA=packages"] if self.cuda and not self.cuda.folder else []
        gpu, mpi = ["GPU=nccl", *taken] if self.nccl else [], ["MPI=system"] if self.mpi else []
        return " ".join(["make horovod", *gpu, *mpi])

    def sentence(self) -> str:
        """What it is made of, as one sentence."""
        mpi = _named(self.mpi) if self.mpi else "the packaged Open MPI"
        if not self.nccl or not self.cuda:
            return f"Horovod without NCCL, with Gloo and {mpi}."
        nccl = _named(Software(f"NCCL {self.nccl.version}", self.nccl.folder))
        cuda = _named(Software(f"CUDA {self.cuda.version}", self.cuda.folder))
        driver = "" if self.cuda.folder else f"; it needs an NVIDIA driver of version {nvidia_packages.DRIVER} or newer"
        return f"Horovod with {nccl}, {cuda}, Gloo and {mpi}{driver}."

    def missing_folder(self) -> str | None:
        """A folder that it was chosen with and that is gone."""
        folders = [part.folder for part in (self.cuda, self.nccl, self.mpi) if part and part.folder]
        return next((folder for folder in folders if not Path(folder).is_dir()), None)


DEFAULT = HorovodBuild()


def choose(gpu: str | None, mpi: str | None, cuda: str | None) -> HorovodBuild:
    """The build that was asked for, with what this machine has. Raises SoftwareMissing, with one sentence.

    gpu: one of GPUS.  mpi: one of MPIS.  cuda: one of CUDAS, which overrides what is found. Each may be None.
    """
    site_mpi = site_software.find_mpi() if mpi == "system" else None
    if not gpu:
        if cuda:
            raise SoftwareMissing(f"CUDA={cuda} says what NCCL is built with; add GPU=nccl.")
        return HorovodBuild(mpi=site_mpi)
    if sys.platform != "linux":
        raise SoftwareMissing(f"NCCL is for Linux, and this is {platform.system()}; Horovod works here without it.")
    toolkit = None if cuda == "packages" else site_software.find_cuda()
    if not toolkit:
        if cuda == "site":
            raise SoftwareMissing(
                "CUDA=site needs the site's CUDA toolkit, and there is none in $CUDA_HOME, on PATH or in "
                f"{site_software.USUAL_CUDA}; load your site's module for CUDA, or leave CUDA=site out."
            )
        if old := nvidia_packages.too_old_driver():
            raise SoftwareMissing(
                f"The NVIDIA driver here is {old}, older than the {nvidia_packages.DRIVER} that NVIDIA's packages "
                "need; load your site's module for a CUDA toolkit, or set CUDA_HOME."
            )
        toolkit = Software(nvidia_packages.CUDA_VERSION)
    nccl = site_software.find_nccl(toolkit) or Software(nvidia_packages.NCCL.version)
    return HorovodBuild(toolkit, nccl, site_mpi)


def compute_capabilities(nvcc: Path) -> list[int]:
    """Those of COMPUTE_CAPABILITIES for which this compiler makes code."""
    said = subprocess.run([str(nvcc), "--list-gpu-code"], capture_output=True, text=True).stdout
    known = {int(number) for number in re.findall(r"sm_(\d+)", said)}
    return [number for number in COMPUTE_CAPABILITIES if number in known]


def chosen() -> HorovodBuild:
    """What `remember` has written for this environment; the default if nothing is written."""
    try:
        parts = json.loads(_record().read_text())
        return HorovodBuild(**{name: Software(**part) if part else None for name, part in parts.items()})
    except (OSError, ValueError, TypeError, AttributeError):
        return DEFAULT


def remember(build: HorovodBuild) -> None:
    """Let this environment keep to a build."""
    if build == DEFAULT:
        _record().unlink(missing_ok=True)
        return
    new = _record().with_suffix(".new")
    new.write_text(json.dumps(asdict(build), indent=1) + "\n")
    new.replace(_record())


def _record() -> Path:
    return Path(sys.prefix) / "horovod-build.json"


def _named(software: Software) -> str:
    return f"{software.version} of {software.folder or 'the package index'}"
