"""A run of the benchmark: what it writes and keeps of an earlier run; the release's figures and their tables."""

import json
from dataclasses import asdict
from pathlib import Path

import nbformat
import pytest

from course_tools import runner
from course_tools.bench import parts
from course_tools.bench.measures import Measure, plain, skipped
from course_tools.course_map import CannotWriteTables

MEASURES = [
    Measure("notebook", "07_multi_worker", "s", [41.0], [10.0], "import", goal=60.0),
    Measure("notebook", "07_multi_worker: processor", "s", [52.0], [13.0], "import"),
    Measure("notebook", "07_multi_worker: longest cell", "s", [9.6], [2.4], "import", goal=20.0),
    plain("notebook", "07_multi_worker: memory", "MiB", [1234.0], 2560.0),
    Measure("training", "2 ranks, to 1 rank", "", [1.8, 1.7, 1.9], [1.8, 1.7, 1.9], less_is_better=False, goal=1.7),
    Measure("doctor", "distlab doctor", "s", [6.0], [1.5], "the import", goal=10.0),
    skipped("training", "2 ranks", "there is no Horovod"),
]


def alone(name: str, seconds: float, mib: float) -> list[Measure]:
    return [
        Measure("notebook", name, "s", [seconds], [seconds / 4], "import", goal=60.0),
        plain("notebook", f"{name}: memory", "MiB", [mib], 2560.0),
    ]


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A course of one notebook, and figures of the last release."""
    folder = tmp_path / "notebooks"
    folder.mkdir()
    nbformat.write(nbformat.v4.new_notebook(), folder / "00_a.ipynb")
    figures = tmp_path / "performance.json"
    rows = [*alone("00_a", 20.0, 500.0), plain("other", "kept", "MiB", [1.0])]
    figures.write_text(json.dumps({"notebooks": {}, "measures": list(map(asdict, rows))}))
    monkeypatch.setattr(runner, "FIGURES", figures)
    given = {
        "notebooks": lambda files, labs: alone(files[0].stem, 70.0, 400.0),
        "other": lambda files, labs: [plain("other", "kept", "MiB", [1.0])],
    }
    monkeypatch.setattr(parts, "PARTS", given)
    return folder


def test_a_run_writes_figures_for_the_scheduler_and_a_page(course: Path, tmp_path: Path) -> None:
    worse = parts.run(["notebooks"], course, tmp_path / "labs", tmp_path / "build", say=lambda line: None)
    assert worse == ["notebook, 00_a became worse: 17.5 instead of 5 (times import)."]
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert report["notebooks"] == {"00_a": {"seconds": 70.0, "memory_mib": 400}}
    assert runner.needs([course / "00_a.ipynb"], tmp_path / "build" / "bench.json")[
        course / "00_a.ipynb"
    ] == runner.Need(70.0, 400, False)
    page = (tmp_path / "build" / "bench.html").read_text()
    assert "00_a became worse" in page and "goal at most 60" in page
    assert "http" not in page


def test_a_part_that_is_not_run_again_keeps_its_figures(course: Path, tmp_path: Path) -> None:
    for names in (["notebooks"], ["other"]):
        parts.run(names, course, tmp_path / "labs", tmp_path / "build", say=lambda line: None)
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert [row["name"] for row in report["measures"]] == ["00_a", "00_a: memory", "kept"]


def test_an_unknown_part_is_named_with_those_there_are() -> None:
    with pytest.raises(parts.NoSuchPart, match=r"no part of the benchmark 'speed'.*training"):
        parts.chosen("speed")
    assert parts.chosen("training, start") == ["training", "start"]
    assert parts.chosen(None) == [*parts.PARTS]


def test_what_was_measured_before_an_interrupt_is_kept(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(files: object, labs: object) -> list[Measure]:
        raise KeyboardInterrupt

    monkeypatch.setitem(parts.PARTS, "other", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parts.run(["notebooks", "other"], course, tmp_path / "labs", tmp_path / "build", say=lambda line: None)
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert [row["name"] for row in report["measures"]] == ["00_a", "00_a: memory"]


def test_the_chapters_table_has_seconds_and_memory() -> None:
    row = parts.chapters_table(MEASURES).splitlines()[-1]
    assert [cell.strip() for cell in row.strip("|").split("|")] == ["07", "41", "10", "1,234", "52"]


def test_the_figures_are_taken_over_with_the_tables(root: Path, tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text((root / "docs" / "performance.md").read_text())
    bench = tmp_path / "bench.json"
    report = {"about": {"cores": 2}, "notebooks": {}, "measures": list(map(asdict, MEASURES))}
    bench.write_text(json.dumps(report))
    assert parts.release(bench, tmp_path) == page
    assert json.loads((tmp_path / "performance.json").read_text()) == report
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in page.read_text().splitlines()]
    assert ["07", "41", "10", "1,234", "52"] in lines
    assert ["training", "2 ranks, to 1 rank", "1.8", "1.7 to 1.9", "≥ 1.7"] in lines
    assert ["doctor", "distlab doctor", "6 s; 1.5 × the import", "", "≤ 10"] in lines
    assert ["training", "2 ranks", "skipped: there is no Horovod", "", ""] in lines
    page.write_text("without marks")
    with pytest.raises(CannotWriteTables):
        parts.release(bench, tmp_path)


def test_without_a_run_there_is_nothing_to_take_over(tmp_path: Path) -> None:
    with pytest.raises(parts.NothingMeasured, match="run `make bench` first"):
        parts.release(tmp_path / "bench.json", tmp_path)
