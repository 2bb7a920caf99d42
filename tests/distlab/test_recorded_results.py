"""Recorded results say what they are of, and those in the repository can be made again by the command they name."""

import re
from pathlib import Path

import pytest

from distlab import frameworks, programs, recorded_results

NAMES = sorted(file.stem for file in recorded_results.FOLDER.glob("*.json"))

with pytest.MonkeyPatch.context() as path:
    path.syspath_prepend(frameworks.PROGRAMS)
    record = programs.module(frameworks.PROGRAMS / "record.py")


def test_there_is_a_record_of_every_run_and_no_other() -> None:
    assert sorted(record.RUNS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_record_names_versions_machine_date_and_a_command_that_makes_it_again(name: str, root: Path) -> None:
    found, run = recorded_results.read(name), record.RUNS[name]
    assert found.command == f"make record-frameworks ONLY={name}"
    assert re.search(r"(?m)^record-frameworks:.*\n\t.*record\.py .*\$\(ONLY\)", (root / "Makefile").read_text())
    assert (found.framework, found.program, found.arguments) == (run.framework, run.program, list(run.arguments))
    assert (frameworks.PROGRAMS / run.program).is_file()
    assert set(found.versions) == {"python", *run.packages}
    if run.part:
        for package in set(found.versions) & {run.part}:
            pins = [*frameworks.lock(run.part).read_text().splitlines(), *frameworks.PARTS[run.part].packages]
            version = found.versions[package].partition("+")[0]
            assert any(line.startswith(f"{package}=={version}") for line in pins)


def test_recorded_weights_are_the_serial_runs_unless_the_run_shows_what_changes_them() -> None:
    found = {name: recorded_results.read(name).result["differences"].values() for name in NAMES}
    assert min(found.pop("deepspeed_clipped")) > 1e-2
    assert 1e-5 < max(found.pop("ddp_mixed")) < 0.1
    assert {name: differences for name, differences in found.items() if not 0 <= max(differences) < 1e-5} == {}


def test_what_was_written_is_read_and_says_where_it_comes_from(tmp_path: Path) -> None:
    of_run = ("PyTorch", {"python": "3.11.7", "torch": "2.13.0"}, "make it", "train_ddp.py", [], {"losses": [1.0]})
    recorded_results.write("mine", *of_run, folder=tmp_path)
    found = recorded_results.read("mine", tmp_path)
    assert found.result == {"losses": [1.0]}
    source = r"recorded on \d{4}-\d\d-\d\d \(.+ cores, .+GPU.*; python 3.11.7, torch 2.13.0\) by `make it`"
    assert re.fullmatch(source, found.source())


def test_where_the_framework_is_there_the_program_runs_and_else_the_record_is_given_with_what_gets_it() -> None:
    assert recorded_results.measured_or_recorded("ddp", None, lambda: "run") == ("run", "measured here")
    result, source = recorded_results.measured_or_recorded("ddp", "`make it` installs it.", lambda: 1 / 0)
    assert result == recorded_results.read("ddp").result
    assert source.startswith("recorded on ") and source.endswith("`make it` installs it.")
