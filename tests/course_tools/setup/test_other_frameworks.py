"""The environments of the other frameworks: what is missing is said with its fix, and nothing is done twice."""

import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_tools.setup import other_frameworks
from distlab import frameworks
from distlab.frameworks import PARTS


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is run for a project with the locks and without any environment; PyTorch is the one for GPUs."""
    commands: list[str] = []

    def run(command: list[str], **options: object) -> SimpleNamespace:
        commands.append(" ".join(command))
        if any(word.endswith("ray.lock") for word in command):
            raise subprocess.CalledProcessError(1, command)
        return SimpleNamespace(stdout=b'{"install": [{"metadata": {"name": "nvidia-nccl"}}]}')

    monkeypatch.setattr(frameworks, "PROJECT", tmp_path)
    monkeypatch.setattr(other_frameworks.subprocess, "run", run)
    monkeypatch.setattr(other_frameworks.devices, "gpu_names", list)
    monkeypatch.setattr(other_frameworks.sysconfig, "get_path", lambda *of: str(tmp_path))
    return commands


def pretend_installed(part: str) -> None:
    frameworks.interpreter(PARTS[part].folder).parent.mkdir(parents=True, exist_ok=True)
    frameworks.interpreter(PARTS[part].folder).touch()
    frameworks.record(part).write_text(frameworks.recipe(part))


def test_a_part_comes_after_what_it_needs_and_is_not_installed_again_until_its_lock_changes(
    commands: list[str],
) -> None:
    lock = frameworks.PROJECT / frameworks.FRAMEWORKS / "extensions" / "deepspeed_shm_comm" / "lock"
    lock.parent.mkdir(parents=True)  # as a killed build leaves it
    other_frameworks.install("deepspeed", any_torch=True)
    parts = [part for line in commands for part in frameworks.PARTS if str(frameworks.lock(part)) in line]
    assert parts == ["torch", "deepspeed"] and not lock.parent.exists()
    pretend_installed("torch")  # nothing has made an interpreter
    commands.clear()
    other_frameworks.install("deepspeed")
    assert commands == [] and frameworks.problem("deepspeed") is None
    frameworks.record("torch").write_text(frameworks.recipe("torch").replace(" ", " 0", 1))
    assert "up to date" in str(frameworks.problem("deepspeed"))


@pytest.mark.parametrize("part", PARTS)
def test_a_lock_pins_every_package_with_hashes_and_to_the_courses_versions(part: str, root: Path) -> None:
    entry = r"^([\w.-]+)(?:\[[\w,-]+\])?==([^ ;\\]+).*\\\n {4}--hash=sha256:"
    course, own = (root / "requirements.lock").read_text(), frameworks.lock(part).read_text()
    pins, of_course = (re.findall(entry, text, re.MULTILINE) for text in (own, course))
    assert len(pins) == len(re.findall(r"^[\w.-]+", own, re.MULTILINE)) > 0
    assert not re.search(r"https?://|--find-links|^(torch|nvidia-[\w-]+|triton)==", own, re.MULTILINE)
    if PARTS[part].is_over_the_course:
        assert [pin for pin in pins if pin not in of_course and pin[0] in dict(of_course)] == []
