"""The execution pipeline on small notebooks: faults, limits, what is left alive, the report, the pages, the order."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import psutil
import pytest

from course_tools import runner
from course_tools.chapters import chapter_notebooks
from distlab.runtime import processes

pytestmark = pytest.mark.slow

EXECUTE = [sys.executable, "-m", "course_tools", "execute"]
PARAMETERS = ("parameters", "dataset = 'digits'\nepochs = 1\nworkers = 2")
# Starts a process that would outlive the kernel, in a session of its own, and writes its number to a file.
LEAVES_A_PROCESS = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path({file!r}).write_text(str(child.pid))
"""


def write_notebook(folder: Path, name: str, *cells: str | tuple[str, str], needs: str = "") -> Path:
    """Write a notebook of a heading and code cells; a cell is its source, or (tag, source)."""
    heading = nbformat.v4.new_markdown_cell(f"# Title of {name}", metadata={"tags": [needs]} if needs else {})
    notebook = nbformat.v4.new_notebook(cells=[heading])
    for cell in cells:
        tag, source = cell if isinstance(cell, tuple) else (None, cell)
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": [tag]} if tag else {}))
    folder.mkdir(exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    return folder / f"{name}.ipynb"


def test_a_run_names_notebook_cell_and_error_and_keeps_what_the_others_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, build = tmp_path / "notebooks", tmp_path / "build"
    write_notebook(folder, "00_good", PARAMETERS, "print(dataset, epochs, workers)")
    write_notebook(folder, "01_error", "1", "# the fault\nraise ValueError('on purpose')", "print('below')", PARAMETERS)
    write_notebook(folder, "02_endless", "while True:\n    pass", PARAMETERS)
    write_notebook(folder, "03_dies", "import os\nos._exit(3)", PARAMETERS)
    write_notebook(folder, "04_leaves", LEAVES_A_PROCESS.format(file=str(tmp_path / "left")), PARAMETERS)
    write_notebook(folder, "05_exits", "raise SystemExit", PARAMETERS)
    write_notebook(folder, "06_needy", "raise ValueError('it must not run')", PARAMETERS, needs="needs-horovod")
    monkeypatch.setattr(runner.launch, "horovod_problem", lambda: "the reason")
    plan = runner.ExecutionPlan(chapter_notebooks(folder), build, {"epochs": 7}, seconds_per_cell=8, at_once=2)
    outcomes = runner.run(plan)
    runner.write_report(outcomes, plan)

    assert [name for name, outcome in outcomes.items() if outcome.status == runner.OK] == ["00_good", "04_leaves"]
    assert runner.summary(outcomes).splitlines() == [
        "4 of 7 notebooks failed:",
        "FAILED 01_error, cell 3 (# the fault): ValueError: on purpose",
        "FAILED 02_endless, cell 2 (while True:): the cell ran longer than 8 s",
        "FAILED 03_dies, cell 2 (import os): nbclient.exceptions.DeadKernelError: Kernel died",
        "FAILED 05_exits, cell 2 (raise SystemExit): SystemExit",
        "Skipped 06_needy: the reason",
    ]
    last = nbformat.read(build / "executed" / "00_good.ipynb", as_version=4).cells[-1]
    assert [output.text for output in last.outputs] == ["digits 7 2\n"]
    assert not psutil.pid_exists(int((tmp_path / "left").read_text()))
    report = json.loads((build / "report.json").read_text())
    assert report["parameters"] == {"epochs": 7}
    rows = {row["notebook"]: row for row in report["notebooks"]}
    assert list(rows) == list(outcomes)
    good = rows["00_good"]
    assert good["seconds"] > 0 and rows["02_endless"]["peak_memory_mib"] > 10  # which lives for more than one reading
    assert len(good["cell_seconds"]) >= 3 and rows["01_error"]["failing_cell"] == 3


def test_of_endless_output_little_is_kept_and_output_that_comes_later_than_its_cell_ends_is_waited_for(
    tmp_path: Path,
) -> None:
    """The kernel is faster than who reads its thousands of messages."""
    clears = "from IPython.display import clear_output\nfor i in range(3000):\n    clear_output(True)\n    print(i)"
    prints = write_notebook(tmp_path, "00_prints", "while True:\n    print('x' * 1000)", "1 + 1")
    plan = runner.ExecutionPlan([prints, write_notebook(tmp_path, "01_clears", clears)], tmp_path / "build", at_once=2)
    outcomes = runner.run(plan)
    endless, late = outcomes.values()
    assert (endless.status, endless.failing_cell) == (runner.FAILED, 2)
    assert endless.error == "the cell printed more than 10 MB" and endless.peak_memory_mib < 1000
    assert late.status == runner.OK, late.error
    last = nbformat.read(tmp_path / "build" / "executed" / "01_clears.ipynb", as_version=4).cells[-1]
    assert [output.text for output in last.outputs] == ["2999\n"]


def test_notebooks_that_cannot_be_read_fail_and_the_others_run(tmp_path: Path) -> None:
    good = write_notebook(tmp_path / "notebooks", "07_good", "1 + 1")
    good.with_name("00_merge.ipynb").write_text("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n")
    good.with_name("03_link.ipynb").symlink_to("nowhere.ipynb")
    finished = processes.run([*EXECUTE, "--at-once", "1"], 600, cwd=tmp_path)
    assert finished.status == 1 and "Traceback" not in finished.output
    assert "2 of 3 notebooks failed:" in finished.output
    for name in ("00_merge", "03_link"):
        assert f"FAILED {name}: it cannot be read as a notebook (" in finished.output
    report = json.loads((tmp_path / "build" / "report.json").read_text())
    assert [row["status"] for row in report["notebooks"]] == ["failed", "failed", "ok"]


def test_an_interrupted_run_says_what_was_finished_and_leaves_no_process(tmp_path: Path) -> None:
    left = tmp_path / "left"
    write_notebook(tmp_path / "notebooks", "00_good", "1 + 1")
    waits = write_notebook(tmp_path / "notebooks", "01_waits", LEAVES_A_PROCESS.format(file=str(left)), "1")
    waits.write_text(waits.read_text().replace('"1"', '"import time\\n", "time.sleep(300)"'))
    mark = processes.new_mark()
    run = processes.start([*EXECUTE, "--at-once", "1"], mark, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        while not left.exists() or not left.read_text():
            assert run.poll() is None
            time.sleep(0.1)
        run.send_signal(signal.SIGINT)
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 130
        assert "Not finished: 01_waits.\nFinished: 00_good.\n" in output
        assert not psutil.pid_exists(int(left.read_text()))
        assert processes.alive(mark) == []
    finally:
        processes.end(mark)


def test_every_notebook_runs_once_and_two_with_several_processes_never_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebooks = [write_notebook(tmp_path, f"0{number}_starts", "launch.mpirun('a.py')") for number in range(3)]
    notebooks += [write_notebook(tmp_path, f"1{number}_alone", "1") for number in range(3)]
    running: list[str] = []
    seen: list[list[str]] = []

    def run_one(notebook: Path, *others: object) -> runner.NotebookOutcome:
        running.append(notebook.stem)
        seen.append([*running])
        time.sleep(0.05)
        running.remove(notebook.stem)
        return runner.NotebookOutcome(runner.OK)

    monkeypatch.setattr(runner, "run_one", run_one)
    outcomes = runner.run(runner.ExecutionPlan(notebooks, tmp_path / "build", at_once=3))
    assert list(outcomes) == [notebook.stem for notebook in notebooks]
    assert len(seen) == 6 and max(map(len, seen)) == 3
    assert all(sum(name.endswith("starts") for name in names) <= 1 for names in seen)
