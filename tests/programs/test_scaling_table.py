"""The table of a scaling study in chapter 15, from results that are whole, damaged, foreign, twice there or mixed."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from distlab import programs


@pytest.fixture
def table(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("table", root / "notebooks/programs/15_clusters/scaling_table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(folder: Path, ranks: int, rate: float, name: str = "", **options: object) -> None:
    measured = {"ranks": ranks, "step_seconds": 64 / rate, "images_per_second": rate} | options
    (folder / f"{name or ranks}.json").write_text(json.dumps(measured))


def test_speedup_and_efficiency_refer_to_the_smallest_job(table: ModuleType, tmp_path: Path) -> None:
    for ranks, rate in ((4, 3000.0), (2, 2000.0)):
        result(tmp_path, ranks, rate)
    assert [row[3:] for row in table.rows(table.read(tmp_path))] == [["1.00", "100%"], ["1.50", "75%"]]


@pytest.mark.parametrize("text", ["", '{"ranks": 2', "[1, 2]", "{}", '{"ranks": 2, "step_seconds": 1}', "7", "\0"])
def test_what_is_no_result_is_named_and_the_others_stand(
    text: str, table: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result(tmp_path, 1, 1000.0)
    (tmp_path / "2.json").write_text(text)
    assert [row[0] for row in table.rows(table.read(tmp_path))] == ["1"]
    assert capsys.readouterr().err == f"{tmp_path / '2.json'} holds no result of a job, and is left out.\n"


def test_a_rate_of_zero_is_no_result(table: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text('{"ranks": 1, "step_seconds": 1, "images_per_second": 0}')
    assert table.read(tmp_path) == []


def test_two_results_for_one_size_end_it(table: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result(tmp_path, 2, 1000.0, "first")
    result(tmp_path, 2, 2000.0, "second")
    monkeypatch.setattr(sys, "argv", ["scaling_table.py", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"two results for 2 ranks; .*second.json is the second: remove one"):
        table.main()


@pytest.mark.parametrize(
    ("former", "sentence"),
    [
        ({"batch": 48, "units": 512}, "batch is 480 in {}/1.json and 48 in {}/3.json"),
        ({"batch": 480, "units": 64}, "units is 512 in {}/1.json and 64 in {}/3.json"),
        ({}, "batch is 480 in {}/1.json and missing in {}/3.json"),
    ],
)
def test_results_of_an_earlier_study_are_named(
    former: dict[str, object], sentence: str, table: ModuleType, tmp_path: Path
) -> None:
    """A new cluster counts its jobs from 1 again, so that its first study has the folder of the former cluster's."""
    for ranks, options in ((1, {"batch": 480, "units": 512}), (2, {"batch": 480, "units": 512}), (3, former)):
        result(tmp_path, ranks, 1000.0, **options)
    with pytest.raises(SystemExit) as stopped:
        table.read(tmp_path)
    assert sentence.format(tmp_path, tmp_path) in str(stopped.value)


def test_the_trainings_of_the_chapter_write_what_their_table_compares(
    root: Path, table: ModuleType, tmp_path: Path
) -> None:
    network = programs.module(root / "notebooks/programs/15_clusters/network.py")
    for ranks, batch in ((1, "4"), (2, "2")):
        words = ["--batch", batch, "--steps", "2", "--result", str(tmp_path / f"{ranks}.json")]
        batches = network.Batches(network.parser("").parse_args(words), 0, ranks)
        assert len(list(batches)) == 2
        network.report(batches, "Horovod", 0.5, [np.ones(1, np.float32)])
    with pytest.raises(SystemExit, match=r"different studies: batch is 4 in .*1\.json and 2 in .*2\.json"):
        table.read(tmp_path)
