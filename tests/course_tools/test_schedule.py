"""The order in which notebooks run: the longest first, one with several processes at a time, within the memory."""

import json
from pathlib import Path

import nbformat
import pytest

from course_tools import schedule
from course_tools.schedule import Need, chooser
from distlab.runtime.worker_pool import run_all

A, B, C, D = (Path(f"0{number}_{name}.ipynb") for number, name in enumerate("abcd"))


def test_of_notebooks_with_several_processes_one_runs_at_a_time() -> None:
    need_of = {A: Need(10, 100, True), B: Need(20, 100, True), C: Need(5, 100, False)}
    choose = chooser(need_of, 4000)
    assert choose([A, B, C], []) == B
    assert choose([A, C], [B]) == C
    assert choose([A], [B, C]) is None
    assert choose([A], [C]) == A


def test_the_longest_comes_first() -> None:
    need_of = {A: Need(10, 100, False), B: Need(20, 100, False), C: Need(15, 100, False)}
    assert chooser(need_of, 4000)([A, B, C], []) == B
    assert chooser(need_of, 4000)([A, C], [B]) == C


def test_a_notebook_waits_for_memory_and_one_that_needs_more_than_there_is_runs_alone() -> None:
    need_of = {A: Need(10, 2500, False), B: Need(20, 1000, False), C: Need(5, 900, False), D: Need(50, 9000, False)}
    choose = chooser(need_of, 3000)
    assert choose([A, C], [B]) == C
    assert choose([A], [B]) is None
    assert choose([D, A], [B]) is None
    assert choose([D], []) == D


def test_everything_runs_once_and_two_with_several_processes_never_at_once() -> None:
    need_of = {Path(f"{number:02d}_x.ipynb"): Need(number, 700, number % 2 == 0) for number in range(10)}
    running: list[Path] = []
    together: list[set[Path]] = []

    def work(notebook: Path) -> Path:
        running.append(notebook)
        together.append(set(running))
        running.remove(notebook)
        return notebook

    assert run_all(need_of, work, 3, choose=chooser(need_of, 1500)) == list(need_of)
    for group in together:
        assert sum(need_of[notebook].several_processes for notebook in group) <= 1
        assert len(group) <= 2


def test_needs_are_those_of_the_last_measurement(tmp_path: Path) -> None:
    for file, source in [(A, "run = launch.tensorflow(program)"), (B, "print('launch')")]:
        nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)]), tmp_path / file)
    figures = tmp_path / "performance.json"
    figures.write_text(json.dumps({"notebooks": {"00_a": {"seconds": 12.5, "memory_mib": 800}}}))
    assert schedule.needs([tmp_path / A, tmp_path / B], figures) == {
        tmp_path / A: Need(12.5, 800, True),
        tmp_path / B: Need(schedule.UNKNOWN_SECONDS, schedule.UNKNOWN_MIB, False),
    }
    assert schedule.needs([tmp_path / A], tmp_path / "missing.json")[tmp_path / A].seconds == schedule.UNKNOWN_SECONDS


def test_a_file_that_is_no_notebook_is_scheduled_all_the_same(tmp_path: Path) -> None:
    (tmp_path / A).write_text("{")
    assert not schedule.starts_processes(tmp_path / A)


@pytest.mark.parametrize(
    ("name", "several"), [("01_why_distribute", False), ("07_multi_worker", True), ("09_horovod", True)]
)
def test_the_launcher_is_seen_in_the_courses_notebooks(root: Path, name: str, several: bool) -> None:
    assert schedule.starts_processes(root / "notebooks" / f"{name}.ipynb") is several


def test_two_side_by_side_get_four_gib_and_never_more_than_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    assert schedule.memory_for(2) <= 4096
    monkeypatch.setattr(schedule, "SHARE_OF_FREE_MEMORY", 0.0)
    assert schedule.memory_for(2) == 0
