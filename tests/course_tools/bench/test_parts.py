"""A run of the benchmark: what it writes, what it keeps of an earlier run, what it says became worse."""

import json
from pathlib import Path

import nbformat
import pytest

from course_tools import schedule
from course_tools.bench import parts
from course_tools.bench.measures import Measure, plain


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
    figures.write_text(json.dumps({"notebooks": {}, "measures": parts.as_rows(rows)}))
    monkeypatch.setattr(schedule, "FIGURES", figures)
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
    assert schedule.needs([course / "00_a.ipynb"], tmp_path / "build" / "bench.json")[
        course / "00_a.ipynb"
    ] == schedule.Need(70.0, 400, False)
    page = (tmp_path / "build" / "bench.html").read_text()
    assert "00_a became worse" in page and "goal at most 60" in page and page.count("<svg") == 2
    assert "http" not in page.replace("http://www.w3.org", "").replace("https://matplotlib.org", "").replace(
        "http://purl.org", ""
    ).replace("http://creativecommons.org", "")


def test_a_part_that_is_not_run_again_keeps_its_figures(course: Path, tmp_path: Path) -> None:
    for names in (["notebooks"], ["other"]):
        parts.run(names, course, tmp_path / "labs", tmp_path / "build", say=lambda line: None)
    report = json.loads((tmp_path / "build" / "bench.json").read_text())
    assert [row["name"] for row in report["measures"]] == ["00_a", "00_a: memory", "kept"]


def test_an_unknown_part_is_named_with_those_there_are() -> None:
    with pytest.raises(parts.NoSuchPart, match=r"no part of the benchmark 'speed'.*training"):
        parts.chosen("speed")
    assert parts.chosen("training, start") == ["training", "start"]
    assert parts.chosen(None) == [*parts.PARTS, parts.ACCOUNT]


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
