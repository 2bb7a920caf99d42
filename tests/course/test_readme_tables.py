"""`distlab map`: what is missing is said in one sentence."""

from pathlib import Path

import pytest

from distlab import cli


def test_without_a_report_the_fix_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("as it was")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["map"]) == 2
    assert capsys.readouterr().err == "There is no build/report.json; run `make execute` for all notebooks first.\n"
    assert (tmp_path / "README.md").read_text() == "as it was"
