"""Which Python a framework gets: the course's own, or an older one that is found, or a sentence."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from course_tools.setup import install_frameworks


def pretend(monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], uv_finds: str | None) -> list[list[str]]:
    """Let the course run on another Python, and uv find another one or none; gives the commands that are run."""
    commands = []

    def run(command: list[str], **options: object) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(returncode=0 if uv_finds else 2, stdout=f"{uv_finds}\n")

    monkeypatch.setattr(
        install_frameworks, "sys", SimpleNamespace(version_info=version, executable="/course/bin/python")
    )
    monkeypatch.setattr(install_frameworks, "subprocess", SimpleNamespace(run=run))
    return commands


@pytest.mark.parametrize("newest", [None, (3, 11), (3, 12)])
def test_the_courses_python_is_taken_if_it_is_old_enough(
    newest: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = pretend(monkeypatch, (3, 11, 7), uv_finds=None)
    assert install_frameworks.base_python(newest) == "/course/bin/python"
    assert commands == []


def test_an_older_python_is_looked_for_and_none_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = pretend(monkeypatch, (3, 13, 1), uv_finds="/usr/bin/python3.11")
    assert install_frameworks.base_python((3, 11)) == "/usr/bin/python3.11"
    assert commands == [["/course/bin/uv", "python", "find", "--no-python-downloads", ">=3.10,<3.12"]]


def test_without_an_older_python_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, (3, 13, 1), uv_finds=None)
    with pytest.raises(
        install_frameworks.SetupFailed, match=r"no newer than 3\.11, and this machine has only"
    ) as failure:
        install_frameworks.base_python((3, 11))
    assert "uv python install 3.11" in str(failure.value)


def test_uv_takes_the_options_that_it_gets() -> None:
    uv = install_frameworks.Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("uv is not in this environment")
    wanted = f"=={sys.version_info.major}.{sys.version_info.minor}.*"
    found = subprocess.run(
        [uv, "python", "find", "--no-python-downloads", wanted], capture_output=True, text=True, check=True
    )
    assert install_frameworks.version_of(found.stdout.strip()) == str(sys.version_info[:2])


def test_an_interpreter_that_does_not_start_has_no_version() -> None:
    assert install_frameworks.version_of("/no/such/python") is None
    assert install_frameworks.version_of(sys.executable) == str(sys.version_info[:2])
