"""Recorded results say what they are of, and those in the repository can be made again by the command they name."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from distlab import frameworks, recorded_results

NAMES = sorted(file.stem for file in recorded_results.FOLDER.glob("*.json"))
MINE = {
    "framework": "PyTorch",
    "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "command": "make record-frameworks ONLY=ddp",
    "program": "train_ddp.py",
    "arguments": [],
    "result": {"losses": [1.0]},
}


@pytest.fixture
def record(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The program that makes the records."""
    monkeypatch.setattr(sys, "path", [str(frameworks.PROGRAMS), *sys.path])
    specification = importlib.util.spec_from_file_location("record", frameworks.PROGRAMS / "record.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_there_is_a_record_of_every_run_and_no_other(record: ModuleType) -> None:
    assert sorted(record.RUNS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_record_names_versions_machine_date_and_a_command_that_makes_it_again(
    name: str, record: ModuleType, root: Path
) -> None:
    found, run = recorded_results.read(name), record.RUNS[name]
    assert found.command == f"make record-frameworks ONLY={name}"
    assert re.search(
        r"^record-frameworks:.*\n\t.*record\.py .*\$\(ONLY\)", (root / "Makefile").read_text(), re.MULTILINE
    )
    assert (found.framework, found.program, found.arguments) == (run.framework, run.program, list(run.arguments))
    assert (frameworks.PROGRAMS / run.program).is_file()
    assert set(found.versions) == {"python", *run.packages}
    if run.part:
        for package in set(found.versions) & {run.part}:
            pins = [*frameworks.lock(run.part).read_text().splitlines(), *frameworks.PARTS[run.part].packages]
            version = found.versions[package].partition("+")[0]
            assert any(line.startswith(f"{package}=={version}") for line in pins)


@pytest.mark.parametrize("name", NAMES)
def test_recorded_weights_are_the_serial_runs_unless_the_run_shows_what_changes_them(name: str) -> None:
    differences = recorded_results.read(name).result["differences"].values()
    assert differences
    if name == "deepspeed_clipped":
        assert min(differences) > 1e-2
    elif name == "ddp_mixed":
        assert 1e-5 < max(differences) < 0.1
    else:
        assert 0 <= max(differences) < 1e-5


def test_what_was_written_is_read_and_says_where_it_comes_from(tmp_path: Path) -> None:
    recorded_results.write("mine", **MINE, folder=tmp_path)
    found = recorded_results.read("mine", tmp_path)
    assert found.result == MINE["result"]
    assert re.fullmatch(
        r"recorded on \d{4}-\d\d-\d\d \(.+ cores, .+GPU.*; python 3.11.7, torch 2.13.0\) by `make .+`", found.source()
    )
