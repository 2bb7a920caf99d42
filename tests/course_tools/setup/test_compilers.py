"""The compiler that builds Horovod is the shell's or a known one; one that the shell names has to exist."""

from pathlib import Path

import pytest

from course_tools.setup import compilers


def test_compiler_is_the_users_or_a_known_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert compilers.find() is None
    for name in ("clang++", "my-c++"):
        (tmp_path / name).touch(mode=0o755)
    assert compilers.find() == str(tmp_path / "clang++")
    monkeypatch.setenv("CXX", "my-c++ -O1")
    assert compilers.find() == str(tmp_path / "my-c++")
    monkeypatch.setenv("CXX", " ")
    assert compilers.find() == str(tmp_path / "clang++")


@pytest.mark.fault
def test_a_compiler_that_the_shell_names_has_to_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "c++").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("CXX", "c++ -O1")
    monkeypatch.setenv("CC", "")
    assert compilers.problem() is None
    monkeypatch.setenv("CC", "/opt/intel/bin/icc")
    assert compilers.problem() == "there is no compiler CC=/opt/intel/bin/icc, as your shell names it"
    assert compilers.fix() == "`unset CC`"
