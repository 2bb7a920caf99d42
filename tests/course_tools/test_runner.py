"""The execution pipeline on small notebooks: faults, limits, what is left alive, the report, the pages."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest

from course_tools import runner
from distlab.runtime import processes
from tests import small_disks

pytestmark = pytest.mark.slow

PARAMETERS = ("parameters", "dataset = 'digits'\nepochs = 1\nworkers = 2")
# Starts a process that would outlive the kernel, in a session of its own, and writes its number to a file.
LEAVES_A_PROCESS = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
pathlib.Path({file!r}).write_text(str(child.pid))
"""


def write_notebook(folder: Path, name: str, *cells: str | tuple[str, str]) -> Path:
    """Write a notebook of code cells; a cell is its source, or (tag, source)."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells.append(
        nbformat.v4.new_markdown_cell(
            f"# Title of {name}\n\nEuler: $e^{{i\\pi}} = -1$ ![a picture](../figures/00_picture.svg)"
        )
    )
    for cell in cells:
        tag, source = cell if isinstance(cell, tuple) else (None, cell)
        notebook.cells.append(nbformat.v4.new_code_cell(source, metadata={"tags": [tag]} if tag else {}))
    file = folder / f"{name}.ipynb"
    nbformat.write(notebook, file)
    return file


@pytest.fixture(scope="module")
def run_of_several(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, runner.NotebookOutcome], Path, Path]:
    """One run of five notebooks, two at a time: outcomes, the build folder and the notebooks' folder."""
    folder = tmp_path_factory.mktemp("notebooks")
    build = tmp_path_factory.mktemp("build")
    write_notebook(folder, "00_good", PARAMETERS, "print(dataset, epochs, workers)")
    write_notebook(
        folder,
        "01_error",
        "kept = 1",
        "# the fault\nraise ValueError('on purpose')",
        "print('not reached')",
        PARAMETERS,
    )
    write_notebook(folder, "02_endless", "while True:\n    pass", PARAMETERS)
    write_notebook(folder, "03_dies", "import os\nos._exit(3)", PARAMETERS)
    write_notebook(folder, "04_leaves", LEAVES_A_PROCESS.format(file=str(folder / "left")), PARAMETERS)
    plan = runner.ExecutionPlan(
        runner.choose(folder), build, {"epochs": 7}, seconds_per_cell=8, seconds_per_notebook=120, at_once=2
    )
    outcomes = runner.execute(plan)
    runner.write_report(outcomes, plan)
    return outcomes, build, folder


def test_one_failing_notebook_does_not_stop_the_others(run_of_several: tuple) -> None:
    outcomes, _, _ = run_of_several
    statuses = {name: outcome.status for name, outcome in outcomes.items()}
    assert statuses == {
        "00_good": "ok",
        "01_error": "failed",
        "02_endless": "failed",
        "03_dies": "failed",
        "04_leaves": "ok",
    }


def test_the_summary_names_notebook_cell_and_error(run_of_several: tuple) -> None:
    outcomes, _, _ = run_of_several
    summary = runner.summary(outcomes)
    assert "3 of 5 notebooks failed" in summary
    assert "FAILED 01_error, cell 3 (# the fault): ValueError: on purpose" in summary
    assert "FAILED 02_endless, cell 2 (while True:): the cell ran longer than 8 s" in summary
    assert "FAILED 03_dies" in summary and "kernel died" in summary


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        (["ok"], "The notebook ran without an error."),
        (["ok", "ok"], "All 2 notebooks ran without an error."),
        (["skipped"], "No notebook ran."),
        (["failed"], "The notebook failed:"),
        (["failed", "ok"], "1 of 2 notebooks failed:"),
    ],
)
def test_the_summary_counts_one_notebook_and_several(statuses: list[str], sentence: str) -> None:
    outcomes = {
        f"{number:02}_topic": runner.NotebookOutcome(status, 1.0, 1.0) for number, status in enumerate(statuses)
    }
    assert runner.summary(outcomes).splitlines()[0] == sentence


def test_parameters_reach_the_notebook(run_of_several: tuple) -> None:
    _, build, _ = run_of_several
    executed = nbformat.read(build / "executed" / "00_good.ipynb", as_version=4)
    assert executed.cells[-1].outputs[0].text == "digits 7 2\n"


def test_nothing_that_a_notebook_started_is_alive_afterwards(run_of_several: tuple) -> None:
    _, _, folder = run_of_several
    assert not psutil.pid_exists(int((folder / "left").read_text()))


def test_the_report_has_seconds_memory_status_and_fault_of_each_notebook(run_of_several: tuple) -> None:
    _, build, _ = run_of_several
    report = json.loads((build / "report.json").read_text())
    assert report["parameters"] == {"epochs": 7}
    rows = {row["notebook"]: row for row in report["notebooks"]}
    assert list(rows) == ["00_good", "01_error", "02_endless", "03_dies", "04_leaves"]
    assert all(row["seconds"] > 0 for row in rows.values())
    assert rows["00_good"]["peak_memory_mib"] > 10
    assert rows["01_error"]["failing_cell"] == 3


def test_what_ipython_is_told_for_other_notebooks_changes_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile = tmp_path / "ipython" / "profile_default"
    profile.mkdir(parents=True)
    (profile / "ipython_config.py").write_text("get_config().InteractiveShell.ast_node_interactivity = 'all'")
    monkeypatch.setenv("IPYTHONDIR", str(profile.parent))
    write_notebook(tmp_path, "00_values", "1\n2")
    plan = runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build", {}, seconds_per_cell=30)
    assert runner.execute(plan)["00_values"].status == "ok"
    [executed] = (tmp_path / "build").rglob("00_values.ipynb")
    [_, cell] = nbformat.read(executed, 4).cells
    assert [output.data["text/plain"] for output in cell.outputs] == ["2"]


def test_what_keras_is_told_for_other_notebooks_changes_no_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "home" / ".keras"
    settings.mkdir(parents=True)
    (settings / "keras.json").write_text('{"floatx": "float16"}')
    monkeypatch.setenv("HOME", str(settings.parent))
    monkeypatch.delenv("KERAS_HOME", raising=False)
    write_notebook(tmp_path, "00_kind", "import tf_keras\ntf_keras.backend.floatx()")
    plan = runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build", {}, seconds_per_cell=300)
    assert runner.execute(plan)["00_kind"].status == "ok"
    [executed] = (tmp_path / "build").rglob("00_kind.ipynb")
    [_, cell] = nbformat.read(executed, 4).cells
    assert [output.data["text/plain"] for output in cell.outputs] == ["'float32'"]


def test_a_notebook_over_its_whole_time_is_ended(tmp_path: Path) -> None:
    notebook = write_notebook(tmp_path, "00_long", "import time\ntime.sleep(300)")
    plan = runner.ExecutionPlan([notebook], tmp_path / "build", seconds_per_cell=300, seconds_per_notebook=10)
    outcome = runner.execute(plan)["00_long"]
    assert outcome.status == "failed"
    assert outcome.error == "the notebook ran longer than 10 s"


def test_a_notebook_whose_need_is_not_met_is_skipped_with_the_reason_and_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needy = write_notebook(tmp_path, "00_needy", "raise ValueError('it must not run')")
    good = write_notebook(tmp_path, "01_good", "1 + 1")
    notebook = nbformat.read(needy, as_version=4)
    notebook.cells[0].metadata["tags"] = ["needs-horovod"]
    nbformat.write(notebook, needy)
    monkeypatch.setitem(runner.REQUIREMENTS, "needs-horovod", lambda: "the reason")
    outcomes = runner.execute(runner.ExecutionPlan([needy, good], tmp_path / "build"))
    assert {name: outcome.status for name, outcome in outcomes.items()} == {"00_needy": "skipped", "01_good": "ok"}
    assert outcomes["00_needy"].error == "the reason"
    assert runner.summary(outcomes).splitlines() == [
        "The notebook ran without an error.",
        "Skipped 00_needy: the reason",
    ]
    monkeypatch.setitem(runner.REQUIREMENTS, "needs-horovod", lambda: None)
    assert runner.execute(runner.ExecutionPlan([needy], tmp_path / "build"))["00_needy"].status == "failed"


UNREADABLE = {
    "00_merge": lambda file: file.write_text("<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> theirs\n"),
    "01_empty": Path.touch,
    "02_cut": lambda file: file.write_text('{"cells": [{"cell_type": "code", "source": ["1 +'),
    "03_folder": Path.mkdir,
    "04_link": lambda file: file.symlink_to("nowhere.ipynb"),
    "05_bytes": lambda file: file.write_bytes(bytes(range(256))),
    "06_format": lambda file: file.write_text('{"nbformat": 99, "nbformat_minor": 0, "metadata": {}, "cells": []}'),
}
ODD_SOURCE = {"cell_type": "code", "id": "odd", "metadata": {}, "outputs": [], "execution_count": None, "source": 42}


def test_notebooks_that_cannot_be_read_fail_and_the_others_run(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    for name, plant in UNREADABLE.items():
        plant(folder / f"{name}.ipynb")
    write_notebook(folder, "07_good", "1 + 1")
    odd = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [ODD_SOURCE]}
    (folder / "08_odd.ipynb").write_text(json.dumps(odd))
    command = [sys.executable, "-m", "course_tools", "execute", "--at-once", "1"]
    finished = processes.run(command, 600, cwd=tmp_path)
    assert finished.status == 1
    assert "Traceback" not in finished.output
    assert "8 of 9 notebooks failed:" in finished.output
    assert "FAILED 08_odd" in finished.output
    for name in UNREADABLE:
        assert f"FAILED {name}: it cannot be read as a notebook (" in finished.output
        assert f"`git checkout notebooks/{name}.ipynb` restores it" in finished.output
    report = json.loads((tmp_path / "build" / "report.json").read_text())
    assert [row["status"] for row in report["notebooks"]] == ["failed"] * 7 + ["ok", "failed"]


@pytest.mark.parametrize(
    ("cells", "error"),
    [
        (["epochs = 1\nprint(epochs)"], "would change nothing, since no cell has the tag `parameters`"),
        (
            [("parameters", "dataset = 'digits'")],
            "would change nothing, since the cell with the tag `parameters` does not set epochs",
        ),
        (
            [("parameters", "epochs = 1\nprint(epochs)")],
            "would come too late, since the cell with the tag `parameters` does more than set values: split it",
        ),
        (
            [("parameters", "dataset = 'digits'"), ("parameters", "epochs = 1")],
            "would be set again, since 2 cells have the tag `parameters`: merge them",
        ),
    ],
)
def test_a_parameter_that_would_change_nothing_fails_the_notebook(
    tmp_path: Path, cells: list[str | tuple[str, str]], error: str
) -> None:
    write_notebook(tmp_path, "00_untagged", *cells)
    plan = runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build", {"epochs": 2})
    outcome = runner.execute(plan)["00_untagged"]
    assert outcome.status == "failed"
    assert (outcome.error or "").startswith(f"EPOCHS {error}")


def test_a_byte_order_mark_is_named(tmp_path: Path) -> None:
    file = write_notebook(tmp_path, "00_mark", "1 + 1")
    file.write_text(file.read_text(), encoding="utf-8-sig")
    outcome = runner.execute(runner.ExecutionPlan([file], tmp_path / "build"))["00_mark"]
    assert "it begins with a byte-order mark, as editors on Windows write it: save it as" in (outcome.error or "")
    assert "git checkout" not in (outcome.error or "")


def test_a_magic_that_is_missing_is_named(tmp_path: Path) -> None:
    write_notebook(tmp_path, "00_magic", "%nosuchmagic 3")
    outcome = runner.execute(runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build"))["00_magic"]
    assert outcome.status == "failed" and "nosuchmagic" in (outcome.error or "")


@pytest.mark.parametrize(
    ("cell", "error"),
    [
        ("assert 1 == 2", "AssertionError"),
        ("name = input('Name: ')", "the cell asks for input, and nobody is there to answer"),
        ("raise ExceptionGroup('both', [ValueError('a'), TypeError('b')])", "TypeError: b"),
    ],
)
def test_an_error_without_a_text_is_named(tmp_path: Path, cell: str, error: str) -> None:
    write_notebook(tmp_path, "00_fails", cell)
    outcome = runner.execute(runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build"))["00_fails"]
    assert outcome.status == "failed" and error in (outcome.error or "")


def test_a_cell_that_prints_without_end_is_interrupted_and_little_of_it_is_kept(tmp_path: Path) -> None:
    write_notebook(tmp_path, "00_prints", "while True:\n    print('x' * 1000)", "1 + 1")
    plan = runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build", seconds_per_cell=300)
    outcome = runner.execute(plan)["00_prints"]
    assert (outcome.status, outcome.failing_cell) == ("failed", 2)
    assert outcome.error == "the cell printed more than 10 MB"
    assert outcome.peak_memory_mib < 1000
    assert (tmp_path / "build" / "executed" / "00_prints.ipynb").stat().st_size < 15_000_000


def test_a_kernel_that_writes_to_the_log_without_end_does_not_fill_the_disk(tmp_path: Path) -> None:
    write_notebook(tmp_path, "00_logs", "import os\nfor _ in range(30):\n    os.write(2, b'x\\n' * 500_000)")
    plan = runner.ExecutionPlan(runner.choose(tmp_path), tmp_path / "build", seconds_per_cell=300)
    assert runner.execute(plan)["00_logs"].status == "ok"
    assert (tmp_path / "build" / "logs" / "00_logs.log").stat().st_size < 11_000_000


def test_a_file_in_the_place_of_the_results_is_named(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path / "notebooks", "00_good", "1 + 1")
    (tmp_path / "build").write_text("mine")
    finished = processes.run([sys.executable, "-m", "course_tools", "execute"], 300, cwd=tmp_path)
    assert finished.status == 2
    assert finished.output.strip() == "build is a file, and a folder of that name is needed; move or remove it."
    assert (tmp_path / "build").read_text() == "mine"


@small_disks.needs_mounts
def test_a_full_home_is_named_before_a_kernel_dies_of_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    for folder in (home, tmp_path / "notebooks"):
        folder.mkdir()
    write_notebook(tmp_path / "notebooks", "00_good", "1 + 1")
    command = small_disks.with_disk(home, "size=4k", [sys.executable, "-m", "course_tools", "execute"])
    finished = processes.run(command, 300, cwd=tmp_path, env={**os.environ, "HOME": str(home)})
    assert finished.status == 2
    assert finished.output.startswith(f"The disk of HOME={home} is full") and finished.output.count("\n") == 1


HIDES_A_PROCESS = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, env={{}})
pathlib.Path({file!r}).write_text(str(child.pid))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="such a process is found on Linux only")
@pytest.mark.parametrize(("last_cell", "status"), [("1 + 1", "ok"), ("import time\ntime.sleep(600)", "failed")])
def test_a_process_without_an_environment_does_not_outlive_its_notebook(
    tmp_path: Path, last_cell: str, status: str
) -> None:
    """It holds the pipe of the notebook's log: nothing may wait for that."""
    notebook = write_notebook(tmp_path, "00_hides", HIDES_A_PROCESS.format(file=str(tmp_path / "left")), last_cell)
    plan = runner.ExecutionPlan([notebook], tmp_path / "build", seconds_per_notebook=60)
    outcome = runner.execute(plan)["00_hides"]
    assert outcome.status == status, outcome.error
    assert not psutil.pid_exists(int((tmp_path / "left").read_text()))


def test_output_that_comes_later_than_its_cell_ends_is_waited_for(tmp_path: Path) -> None:
    """The kernel is faster than who reads its thousands of messages."""
    cell = "from IPython.display import clear_output\nfor i in range(3000):\n    clear_output(wait=True)\n    print(i)"
    notebook = write_notebook(tmp_path, "00_clears", cell)
    outcome = runner.execute(runner.ExecutionPlan([notebook], tmp_path / "build"))["00_clears"]
    assert outcome.status == "ok", outcome.error
    executed = nbformat.read(tmp_path / "build" / "executed" / "00_clears.ipynb", as_version=4)
    assert [output.text for output in executed.cells[1].outputs] == ["2999\n"]


@pytest.mark.parametrize("redirection", ["| head -1", ">&-", "> /dev/full"])
@pytest.mark.parametrize("colour", ["", "1"], ids=["", "started by a kernel"])
def test_output_that_nobody_takes_stops_nothing(
    tmp_path: Path, redirection: str, colour: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colour)
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path / "notebooks", "00_good", "1 + 1")
    write_notebook(tmp_path / "notebooks", "01_good", "1 + 1")
    command = f"'{sys.executable}' -m course_tools execute {redirection}"
    finished = processes.run(["sh", "-c", command], 600, cwd=tmp_path)
    assert "Traceback" not in finished.output
    report = json.loads((tmp_path / "build" / "report.json").read_text())
    assert [row["status"] for row in report["notebooks"]] == ["ok", "ok"]


@pytest.mark.parametrize("numbers", [[signal.SIGINT], [signal.SIGTERM], 3 * [signal.SIGTERM]])
def test_an_interrupted_run_says_what_was_finished(tmp_path: Path, numbers: list[int]) -> None:
    """`timeout` sends SIGTERM to make and to all of its processes, and make sends it on."""
    (tmp_path / "notebooks").mkdir()
    write_notebook(tmp_path / "notebooks", "00_good", "1 + 1")
    write_notebook(tmp_path / "notebooks", "01_waits", "import time\ntime.sleep(300)")
    command = [sys.executable, "-m", "course_tools", "execute", "--at-once", "1"]
    mark = processes.new_mark()
    run = processes.start(command, mark, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        while "01_waits: cell 2 of 2" not in run.stdout.readline():
            assert run.poll() is None
        for number in numbers:
            run.send_signal(number)
        output, _ = run.communicate(timeout=300)
        assert run.returncode == 128 + numbers[0]
        assert "Interrupted; everything that the notebooks had started is ended." in output
        assert "Finished: 00_good.\n" in output and "Not finished: 01_waits." in output
    finally:
        processes.end(mark)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_process(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    left = tmp_path / "left"
    write_notebook(folder, "00_waits", LEAVES_A_PROCESS.format(file=str(left)), "import time\ntime.sleep(300)")
    mark = processes.new_mark()
    run = processes.start([sys.executable, "-m", "course_tools", "execute"], mark, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        for line in run.stdout:
            if "cell 3 of 3" in line:
                break
        run.send_signal(number)
        run.communicate(timeout=300)
        assert run.returncode != 0
        assert left.exists() and not psutil.pid_exists(int(left.read_text()))
        assert processes.alive(mark) == []
    finally:
        processes.end(mark)


def test_the_command_line_ends_with_status_1_and_writes_the_pages_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "00_picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    write_notebook(folder, "00_good", "1 + 1")
    write_notebook(folder, "01_error", "raise ValueError('on purpose')")
    finished = processes.run([sys.executable, "-m", "course_tools", "execute"], 600, cwd=tmp_path)
    assert finished.status == 1, finished.output
    assert "FAILED 01_error, cell 2 (raise ValueError('on purpose')): ValueError: on purpose" in finished.output
    assert "data:image/svg+xml;base64" in (tmp_path / "build" / "html" / "00_good.html").read_text()
    page = (tmp_path / "build" / "html" / "00_good.html").read_text()
    assert "<math" in page and "$e^" not in page
    index = (tmp_path / "build" / "html" / "index.html").read_text()
    assert 'href="00_good.html">Title of 00_good</a>' in index and "ValueError: on purpose" in index


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--only", "77"], "There is no notebook '77'; there are 00_good."),
        (["--dataset", "cifar"], "There is no data set 'cifar'; there are digits, mnist, fashion_mnist."),
        (["--only", ","], "There is no notebook ','; there are 00_good."),
    ],
)
def test_a_wrong_option_ends_in_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    folder = tmp_path / "notebooks"
    folder.mkdir()
    write_notebook(folder, "00_good", "1 + 1")
    finished = processes.run([sys.executable, "-m", "course_tools", "execute", *arguments], 300, cwd=tmp_path)
    assert finished.status == 2
    assert finished.output.strip() == sentence


def test_only_chooses_by_number_and_by_name(tmp_path: Path) -> None:
    files = [write_notebook(tmp_path, name, "1") for name in ("00_a", "03_b", "10_c")]
    assert runner.choose(tmp_path) == files
    assert runner.choose(tmp_path, "3") == [files[1]]
    assert runner.choose(tmp_path, "10_c, 00") == [files[0], files[2]]


def test_an_error_without_a_message_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    notebook = write_notebook(tmp_path / "notebooks", "00_asserts", "steps = 0\nassert steps > 0  # too few")
    [outcome] = runner.execute(runner.ExecutionPlan([notebook], tmp_path / "build")).values()
    assert outcome.error == "AssertionError at `assert steps > 0  # too few`"


@pytest.mark.parametrize("cells", [["exit()", "print('below')"], ["quit(keep_kernel=False)"]])
def test_the_cell_that_asks_the_kernel_to_end_is_named_and_not_the_next(cells: list[str], tmp_path: Path) -> None:
    (tmp_path / "notebooks").mkdir()
    notebook = write_notebook(tmp_path / "notebooks", "00_exits", *cells)
    [outcome] = runner.execute(runner.ExecutionPlan([notebook], tmp_path / "build")).values()
    assert (outcome.status, outcome.failing_cell, outcome.failing_line) == (runner.FAILED, 2, cells[0])
    assert outcome.error == "exit() or quit() ends the notebook, and the cells below it did not run"


@pytest.mark.parametrize("source", ["import sys\nsys.exit(0)", "raise SystemExit"])
def test_a_cell_that_ends_the_notebook_is_a_failure(source: str, tmp_path: Path) -> None:
    """IPython takes it for no error, and the cells below would be missing without a word."""
    (tmp_path / "notebooks").mkdir()
    notebook = write_notebook(tmp_path / "notebooks", "00_leaves", source, "print('second half')")
    [outcome] = runner.execute(runner.ExecutionPlan([notebook], tmp_path / "build")).values()
    assert outcome.status == runner.FAILED
    assert outcome.error.startswith("SystemExit: the cell ends the notebook")
