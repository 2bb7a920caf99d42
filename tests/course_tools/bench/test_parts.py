"""A run of the benchmark: what it prints, writes and keeps of an earlier run; the release's figures and tables."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import pytest

from course_tools import chapters
from course_tools.bench import parts
from course_tools.bench.measures import Measure
from distlab.runtime.errors import PlainError

ALONE = [
    Measure("notebook", "00_a", "s", [70.0], 60.0),
    Measure("notebook", "00_a: longest cell", "s", [9.6], 20.0),
    Measure("notebook", "00_a: memory", "MiB", [1234.4], 2560.0),
]
OTHER = [
    Measure("training", "2 ranks, to 1 rank", "", [1.8, 1.6, 1.9], 1.7, at_least=True),
    Measure("training", "2 workers, to 1 worker", "", [1.4], 1.5, at_least=True),
    Measure("doctor", "distlab doctor", "s", [6.0], 10.0),
    Measure("training", "2 ranks", "", [], 4.0, at_least=True, skipped="there is no Horovod"),
]
OF_LABS = [Measure("grading", f"lab {lab}, 30 notebooks", "s", [s], 60.0) for lab, s in (("02", 42.1), ("03", 31.6))]


def test_a_row_says_median_spread_and_whether_the_goal_is_reached() -> None:
    assert [measure.row()[2:] for measure in (*ALONE, *OTHER)] == [
        ("70 s", "", "≤ 60", "no"),
        ("9.6 s", "", "≤ 20", "yes"),
        ("1,234 MiB", "", "≤ 2,560", "yes"),
        ("1.8", "1.6 to 1.9", "≥ 1.7", "yes"),
        ("1.4", "", "≥ 1.5", "no"),
        ("6 s", "", "≤ 10", "yes"),
        ("skipped: there is no Horovod", "", "≥ 4", ""),
    ]


def test_a_run_writes_figures_and_a_page_and_keeps_the_other_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(parts, "PARTS", {"notebooks": lambda: ALONE, "other": lambda: OTHER})
    parts.run(["notebooks"], tmp_path)
    assert "| notebook | 00_a | 70 s |  | ≤ 60 | no |" in capsys.readouterr().out
    parts.run(["other"], tmp_path)
    assert parts.read(tmp_path / "bench.json") == [*ALONE, *OTHER]
    page = (tmp_path / "bench.html").read_text()
    assert "<td>70 s</td><td></td><td>≤ 60</td><td>no</td>" in page and "http" not in page


def test_the_figures_are_taken_over_with_the_tables(root: Path, tmp_path: Path) -> None:
    page, bench = tmp_path / "performance.md", tmp_path / "bench.json"
    with pytest.raises(PlainError, match="run `make bench` first"):
        parts.release(bench, tmp_path)
    page.write_text((root / "docs" / "performance.md").read_text())
    measures = list(map(asdict, [*ALONE, *OTHER, *OF_LABS]))
    bench.write_text(json.dumps({"about": {"cores": 2}, "measures": measures}))
    assert parts.release(bench, tmp_path) == page
    lines = page.read_text().splitlines()
    assert "| 00 | 70 | 10 | 1,234 |" in lines
    assert "| training | 2 ranks, to 1 rank | 1.8 | 1.6 to 1.9 | ≥ 1.7 | yes |" in lines
    assert [line for line in lines if "30 notebooks" in line] == [
        "| grading | lab 02, 30 notebooks | 42.1 s |  | ≤ 60 | yes |"
    ]


def test_the_release_has_figures_of_every_chapter(root: Path) -> None:
    rows = re.findall(r"^\| (\d\d[a-z]?) \|", (root / "docs" / "performance.md").read_text(), re.MULTILINE)
    assert rows == [chapters.number_of(file.stem) for file in chapters.chapter_notebooks(root / "notebooks")]
