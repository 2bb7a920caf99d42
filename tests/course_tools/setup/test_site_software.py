"""The site's CUDA, NCCL and MPI: where they are looked for, and what is said about incomplete ones."""

import os
import sys
from pathlib import Path

import pytest

from course_tools.setup import site_software
from course_tools.setup.site_software import Software, SoftwareMissing
from tests.course_tools.setup.site import Site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


def test_where_nothing_is_installed_nothing_is_found(site: Site) -> None:
    assert site_software.find_cuda() is None
    assert site_software.find_nccl(None) is None


def test_the_named_toolkit_comes_before_the_one_on_path_and_that_before_the_usual_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, module, named = site.cuda("usual", "12.0"), site.cuda("module", "12.6"), site.cuda("named", "13.0")
    assert site_software.find_cuda() == Software("12.0", str(usual))
    site.program(site.bin / "nvcc", f'#!/bin/sh\nexec {module}/bin/nvcc "$@"\n')  # as some sites have it
    assert site_software.find_cuda() == Software("12.6", str(module))
    (site.bin / "nvcc").unlink()
    (site.bin / "nvcc").symlink_to(module / "bin" / "nvcc")
    monkeypatch.setenv("PATH", f"{module}/bin:/usr/bin:/bin")
    assert site_software.find_cuda() == Software("12.6", str(module))
    monkeypatch.setenv("CUDA_PATH", str(module))
    monkeypatch.setenv("CUDA_HOME", str(named))
    assert site_software.find_cuda() == Software("13.0", str(named))


@pytest.mark.parametrize("libraries", ["lib", "lib64", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"])
def test_the_libraries_may_be_in_any_of_the_usual_places(site: Site, libraries: str) -> None:
    toolkit, nccl = site.cuda("usual", libraries=libraries), site.nccl("system", libraries)
    assert site_software.find_cuda() == Software("12.4", str(toolkit))
    assert site_software.find_nccl(None) == Software("2.21.5", str(nccl))
    assert site_software.library_folder(nccl, "libnccl.so*") == nccl / libraries


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ("bin/nvcc", "where there is no program bin/nvcc"),
        ("include/cuda_runtime.h", "where include/cuda_runtime.h or the library"),
        ("lib64/libcudart_static.a", "libcudart_static.a is missing"),
    ],
)
def test_an_incomplete_toolkit_is_passed_over_and_is_an_error_where_the_user_names_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, damage: str, reason: str
) -> None:
    toolkit = site.cuda("usual")
    (toolkit / damage).unlink()
    assert site_software.find_cuda() is None
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    with pytest.raises(SoftwareMissing, match=rf"^CUDA_HOME is {toolkit}, .*{reason}.* CUDA=packages "):
        site_software.find_cuda()


@pytest.mark.parametrize(("version", "reason"), [("11.8", "CUDA 11.8, older than 12.0"), ("x", "not say its version")])
def test_a_toolkit_that_is_too_old_or_says_nothing_does_not_count(
    site: Site, monkeypatch: pytest.MonkeyPatch, version: str, reason: str
) -> None:
    toolkit = site.cuda("usual", version)
    assert site_software.find_cuda() is None
    monkeypatch.setenv("CUDA_HOME", str(toolkit))
    with pytest.raises(SoftwareMissing, match=reason):
        site_software.find_cuda()


def test_nccl_is_the_named_one_or_the_one_in_cudas_folder(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = site.cuda("usual")
    cuda = Software("12.4", str(toolkit))
    assert site_software.find_nccl(cuda) is None
    site.nccl("usual", "lib64")
    assert site_software.find_nccl(cuda) == Software("2.21.5", str(toolkit))
    named = site.nccl("named")
    monkeypatch.setenv("NCCL_HOME", str(named))
    assert site_software.find_nccl(cuda) == Software("2.21.5", str(named))
    (named / "lib" / "libnccl.so").unlink()
    with pytest.raises(SoftwareMissing, match=rf"^NCCL_HOME is {named}, where include/nccl\.h or the library"):
        site_software.find_nccl(cuda)


def test_this_environments_mpi_is_not_the_sites(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path(sys.prefix) / "bin"
    monkeypatch.setenv("PATH", f"{own}:{site.bin}")
    with pytest.raises(SoftwareMissing, match="there is no mpicc on PATH"):
        site_software.find_mpi()
    site.mpi()
    assert site_software.find_mpi() == Software("Open MPI 4.1.4", str(site.bin))
    (site.bin / "mpicxx").unlink()
    with pytest.raises(SoftwareMissing, match="has mpicc but no mpicxx;"):
        site_software.find_mpi()


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("mpirun (Open MPI) 5.0.7", "Open MPI 5.0.7"),
        ("HYDRA build details:\n    Version:                                 4.2.1", "MPICH 4.2.1"),
        ("Intel(R) MPI Library for Linux* OS", "Intel(R) MPI Library for Linux* OS"),
        ("", "MPI"),
    ],
)
def test_the_version_of_an_mpi_is_what_its_mpirun_says(site: Site, said: str, version: str) -> None:
    site.mpi(said)
    assert site_software.find_mpi().version == version


def test_the_folders_of_an_mpi_are_those_its_compiler_links_from(site: Site) -> None:
    mpi = Software("Open MPI 4.1.4", str(site.mpi()))
    assert site_software.library_folders_of_mpi(mpi) == [f"{site.folder}/mpi/lib"]
    assert site_software.library_of_mpi(mpi) == f"{site.folder}/mpi/lib/libmpi.so"
    site.file(site.folder / "mpi" / "lib" / "libmpi.so", "INPUT(libmpi.so.40)")
    site.file(site.folder / "mpi" / "lib" / "libmpi.so.40")
    assert site_software.library_of_mpi(mpi) == f"{site.folder}/mpi/lib/libmpi.so.40"


def test_only_the_folders_of_the_packaged_mpi_are_left_out() -> None:
    variables = {"OPAL_PREFIX": sys.prefix, "OPAL_LIBDIR": f"{sys.prefix}/lib", "HOME": "/root"}
    assert site_software.without_packaged_mpi(variables) == {"HOME": "/root"}
    variables = {"OPAL_PREFIX": "/opt/mpi"}
    assert site_software.without_packaged_mpi(variables) == variables


def test_a_program_that_hangs_says_nothing(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    toolkit = site.cuda("usual")
    monkeypatch.setattr(site_software, "SECONDS_TO_ANSWER", 0.2)
    site.program(toolkit / "bin" / "nvcc", "#!/bin/sh\nexec sleep 600\n")
    assert os.access(toolkit / "bin" / "nvcc", os.X_OK)
    assert site_software.find_cuda() is None
