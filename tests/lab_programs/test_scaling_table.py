"""The table of a scaling study in chapter 15, from results that are whole, damaged, foreign or there twice."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def table(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("table", root / "labs" / "15_clusters" / "scaling_table.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def result(folder: Path, ranks: int, rate: float, name: str = "") -> None:
    measured = {"ranks": ranks, "step_seconds": 64 / rate, "images_per_second": rate}
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
