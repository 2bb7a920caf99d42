"""A site with a CUDA toolkit, NCCL and MPI that are small scripts and empty libraries, in a temporary folder."""

from pathlib import Path

import pytest

from course_tools.setup import nvidia_packages, site_software

NVCC = """#!/bin/sh
case "$1" in
--version) echo "Cuda compilation tools, release {version}, V{version}.131" ;;
--list-gpu-code) printf '%s\\n' sm_52 sm_60 sm_80 sm_86 sm_90 ;;
-v) echo "#$ _SPACE_=" >&2; echo "#$ TOP=$(dirname "$0")/.." >&2; exit 1 ;;
esac
"""


class Site:
    """Nothing is installed at first; `bin` is first on PATH."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.bin = folder / "site", folder / "site" / "path"
        self.bin.mkdir(parents=True)
        for name in (*site_software.CUDA_VARIABLES, *site_software.NCCL_VARIABLES):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("PATH", f"{self.bin}:/usr/bin:/bin")
        monkeypatch.setattr(site_software, "USUAL_CUDA", self.folder / "usual")
        monkeypatch.setattr(site_software, "SYSTEM", self.folder / "system")
        monkeypatch.setattr(nvidia_packages, "LOADED_DRIVER", self.folder / "driver")

    def cuda(self, name: str, version: str = "12.4", libraries: str = "lib64") -> Path:
        """A complete toolkit."""
        toolkit = self.folder / name
        self.program(toolkit / "bin" / "nvcc", NVCC.replace("{version}", version))
        self.file(toolkit / "include" / "cuda_runtime.h")
        self.file(toolkit / libraries / "libcudart_static.a")
        return toolkit

    def nccl(self, name: str, libraries: str = "lib") -> Path:
        """NCCL 2.21.5."""
        place = self.folder / name
        self.file(place / "include" / "nccl.h", "#define NCCL_MAJOR 2\n#define NCCL_MINOR 21\n#define NCCL_PATCH 5\n")
        self.file(place / libraries / "libnccl.so")
        return place

    def mpi(self, version: str = "mpirun (Open MPI) 4.1.4") -> Path:
        """An MPI on PATH."""
        for name in ("mpicc", "mpicxx"):
            self.program(self.bin / name, f"#!/bin/sh\necho c++ -L{self.folder}/mpi/lib -L/usr/lib -lmpi\n")
        self.program(self.bin / "mpirun", f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}" || echo "site: $@"\n')
        self.file(self.folder / "mpi" / "lib" / "libmpi.so")
        return self.bin

    def driver(self, version: str) -> None:
        """A loaded driver."""
        self.file(
            nvidia_packages.LOADED_DRIVER, f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {version}  Tue Jan 1\n"
        )

    @staticmethod
    def program(path: Path, text: str) -> None:
        """A script that may be run."""
        Site.file(path, text)
        path.chmod(0o755)

    @staticmethod
    def file(path: Path, text: str = "") -> None:
        """A file in a folder that may not exist yet."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
