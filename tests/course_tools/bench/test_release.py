"""The release's figures: its tables, and what the scheduler and the next comparison read."""

import json
from pathlib import Path

import pytest

from course_tools.bench import release
from course_tools.bench.measures import Measure, as_rows, plain, skipped
from course_tools.bench.time_account import KINDS
from course_tools.readme_tables import CannotWriteTables

MEASURES = [
    Measure("notebook", "07_multi_worker", "s", [41.0], [10.0], "import", goal=60.0),
    Measure("notebook", "07_multi_worker: processor", "s", [52.0], [13.0], "import"),
    Measure("notebook", "07_multi_worker: longest cell", "s", [9.6], [2.4], "import", goal=20.0),
    plain("notebook", "07_multi_worker: memory", "MiB", [1234.0], 2560.0),
    Measure("training", "2 ranks, to 1 rank", "", [1.8, 1.7, 1.9], [1.8, 1.7, 1.9], less_is_better=False, goal=1.7),
    Measure("doctor", "distlab doctor", "s", [6.0], [1.5], "the import", goal=10.0),
    skipped("all-reduce", "horovod over mpi", "there is no Horovod"),
]


def test_the_chapters_table_has_seconds_memory_and_what_they_were_spent_on() -> None:
    accounts = {"07_multi_worker": {kind: 1.0 + position for position, kind in enumerate(KINDS)} | {"idle": 30.0}}
    row = release.chapters_table(MEASURES, accounts).splitlines()[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == [
        *("07", "41", "10", "1,234", "52"),
        *("1", "2", "3", "4", "5"),
        "30",
    ]
    without = release.chapters_table(MEASURES, {}).splitlines()[-1]
    assert without.count("–") == len(KINDS) + 1


def test_the_other_table_has_medians_spreads_and_goals() -> None:
    lines = release.measures_table(MEASURES).splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert rows == [
        ["training", "2 ranks, to 1 rank", "1.8", "1.7 to 1.9", "≥ 1.7"],
        ["doctor", "distlab doctor", "6 s; 1.5 × the import", "", "≤ 10"],
        ["all-reduce", "horovod over mpi", "skipped: there is no Horovod", "", ""],
    ]


def test_the_figures_are_taken_over_with_the_tables(root: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((root / "docs" / "performance.md").read_text())
    bench = tmp_path / "bench.json"
    report = {"about": {"cores": 2}, "notebooks": {}, "accounts": {}, "measures": as_rows(MEASURES)}
    bench.write_text(json.dumps(report))
    assert release.write(bench, tmp_path) == page
    assert json.loads((tmp_path / "performance.json").read_text()) == report
    assert "| 07 " in page.read_text() and "there is no Horovod" in page.read_text()
    page.write_text("without marks")
    with pytest.raises(CannotWriteTables):
        release.write(bench, tmp_path)


def test_without_a_run_there_is_nothing_to_take_over(tmp_path: Path) -> None:
    with pytest.raises(release.NothingMeasured, match="run `make bench` first"):
        release.write(tmp_path / "bench.json", tmp_path)
