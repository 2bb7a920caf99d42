"""The index that pip or uv was told to use is named with the place of that setting, and without a password."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools.setup import failed_installation, package_index

ADDRESS, HOST = "http://user:secret@localhost:9/simple", "localhost"
REQUIREMENT = f"uv==0.0.1 --hash=sha256:{'0' * 64}\n"


def refusal(home: Path, *program: str, **settings: str) -> str:
    """What set-up says after the program has tried to install uv with these variables, in that home."""
    (home / "uv.txt").write_text(REQUIREMENT)
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower() and name[:3] != "UV_"}
    variables = {name: value for name, value in kept.items() if not name.startswith(("PIP_", "XDG_"))}
    variables |= {"HOME": str(home), "PIP_RETRIES": "1", "UV_HTTP_RETRIES": "0"} | settings
    ended = subprocess.run(
        [*program, "install", "--require-hashes", "-r", str(home / "uv.txt")],
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return failed_installation.cause(ended.stdout, ended.returncode, home / "log", variables)


@pytest.mark.slow
@pytest.mark.fault
def test_a_mirror_of_pip_that_is_gone_is_named_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / ".config" / "pip" / "pip.conf"
    file.parent.mkdir(parents=True)
    file.write_text(f"[global]\nindex-url = {ADDRESS}\n")
    said = refusal(tmp_path, sys.executable, "-m", "pip")
    sentence = f"was not reached for uv on {HOST}, which {file} names: correct that setting, or run `make setup` again"
    assert sentence in said
    assert "secret" not in said


@pytest.mark.slow
@pytest.mark.fault
def test_a_mirror_of_uv_that_is_gone_is_named_with_its_variable(tmp_path: Path) -> None:
    said = refusal(tmp_path, "uv", "pip", UV_DEFAULT_INDEX=ADDRESS, UV_NO_CACHE="1", VIRTUAL_ENV=sys.prefix)
    assert f"was not reached for uv on {HOST}, which UV_DEFAULT_INDEX names: correct that setting, or run" in said
    assert "secret" not in said


@pytest.mark.fault
def test_a_mirror_that_lacks_a_package_is_named() -> None:
    text = "Looking in indexes: https://a.invalid/simple, https://mirror.invalid/simple\nNo matching distribution found"
    said = failed_installation.cause(text, 1, Path("log"), {"PIP_EXTRA_INDEX_URL": "https://mirror.invalid/simple"})
    assert said.startswith("the package index on mirror.invalid, which PIP_EXTRA_INDEX_URL names was not reached, or")
    assert said.endswith(": correct that setting, or see log.")


def test_an_index_that_no_setting_names_is_not_named() -> None:
    assert package_index.chosen_index("error: Failed to fetch: `https://usual.invalid/simple/uv/`", {}) is None
    assert package_index.chosen_index("Looking in indexes: file:///opt/wheels", {}) is None
