"""`distlab map`: what is missing is said in one sentence."""

import json
import shutil
from pathlib import Path

import pytest

from course_tools import __main__ as cli
from course_tools import readme_tables


def test_without_a_report_the_fix_is_said_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "README.md").write_text("as it was")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["map"]) == 2
    assert capsys.readouterr().err == "There is no build/report.json; run `make execute` for all notebooks first.\n"
    assert (tmp_path / "README.md").read_text() == "as it was"


@pytest.mark.parametrize("content", ["", '{"a":', "{}", "[]", '{"notebooks": [1]}'])
def test_a_damaged_report_is_said_to_be_damaged(tmp_path: Path, content: str) -> None:
    (tmp_path / "report.json").write_text(content)
    with pytest.raises(readme_tables.CannotWriteTables, match="is damaged; run `make execute`"):
        readme_tables.write(tmp_path / "README.md", tmp_path / "teaching.md", tmp_path / "report.json")


@pytest.mark.parametrize(
    ("parameters", "status", "sentence"),
    [
        ({}, "failed", "has no complete run of 01_why_distribute; run `make execute` for all"),
        ({"epochs": 1}, "ok", "is of a run with EPOCHS=1; run `make execute` without options"),
    ],
)
def test_a_report_of_another_run_changes_no_table(
    root: Path, tmp_path: Path, parameters: dict[str, int], status: str, sentence: str
) -> None:
    shutil.copytree(root / "notebooks", tmp_path / "notebooks", ignore=shutil.ignore_patterns("src"))
    (tmp_path / "README.md").write_text("as it was")
    rows = [
        {"notebook": file.stem, "seconds": 3.0, "status": status if file.stem == "01_why_distribute" else "ok"}
        for file in (tmp_path / "notebooks").glob("*.ipynb")
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"parameters": parameters, "notebooks": rows}))
    with pytest.raises(readme_tables.CannotWriteTables, match=sentence):
        readme_tables.write(tmp_path / "README.md", tmp_path / "teaching.md", report)
    assert (tmp_path / "README.md").read_text() == "as it was"


def test_with_one_mark_missing_no_table_is_written(root: Path, tmp_path: Path) -> None:
    for folder in ("notebooks", "labs"):
        (tmp_path / folder).symlink_to(root / folder)
    readme, teaching = tmp_path / "README.md", tmp_path / "teaching.md"
    text = (root / "README.md").read_text().replace(readme_tables.END_LABS, "").replace("| 01 |", "| 99 |")
    readme.write_text(text)
    shutil.copy(root / "docs" / "teaching.md", teaching)
    rows = [{"notebook": file.stem, "seconds": 3.0, "status": "ok"} for file in (root / "notebooks").glob("*.ipynb")]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"parameters": {}, "notebooks": rows}))
    with pytest.raises(readme_tables.CannotWriteTables, match=r"README\.md lacks one of the marks .*labs"):
        readme_tables.write(readme, teaching, report)
    assert readme.read_text() == text
