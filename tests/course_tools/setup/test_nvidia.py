"""CUDA and NCCL for Horovod: those of the site by their usual variables, or NVIDIA's packages."""

from pathlib import Path

import pytest

from course_tools.setup import nvidia
from course_tools.setup.horovod_source import NotBuilt
from course_tools.setup.nvidia import PACKAGES

NVCC = "#!/bin/sh\nprintf '%s\\n' sm_52 sm_60 sm_80 sm_86 sm_90\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a CUDA toolkit and NCCL, of which nothing is on PATH or named by a variable."""
    for name in (name for names in nvidia._VARIABLES for name in names):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "/bin")
    for file, text in {"cuda/bin/nvcc": NVCC, "nccl/include/nccl.h": "", "nccl/lib/libnccl.so.2": ""}.items():
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).write_text(text)
        (tmp_path / file).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("named", ["CUDA_HOME", "PATH"])
def test_what_the_usual_variables_name_is_taken(named: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cuda, nccl = str(site / "cuda"), str(site / "nccl")
    monkeypatch.setenv(named, f"{cuda}/bin" if named == "PATH" else cuda)
    assert nvidia.find(None) == (cuda, PACKAGES)
    monkeypatch.setenv("NCCL_HOME", nccl)
    assert nvidia.find("site") == (cuda, nccl) and nvidia.find("packages") == (PACKAGES, nccl)
    variables, search = nvidia.prepare(cuda, nccl, site)
    assert (variables["HOROVOD_CUDA_HOME"], variables["HOROVOD_NCCL_HOME"], search) == (cuda, nccl, f"{nccl}/lib")
    assert variables["HOROVOD_BUILD_CUDA_CC_LIST"] == "60,80,90"


def test_one_sentence_says_what_is_missing(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_HOME", str(site))
    with pytest.raises(NotBuilt, match=f"{site} has no bin/nvcc: load your site's module for CUDA"):
        nvidia.find(None)
    monkeypatch.setenv("NCCL_HOME", str(site))
    with pytest.raises(NotBuilt, match=f"{site} has no include/nccl.h"):
        nvidia.find("packages")
