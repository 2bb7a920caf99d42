"""Places that tests of every kind look at, and which tests run at the same time (see `make test`)."""

import math
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.long_tests import waits_for_one
from tests.prepared_runs import PreparedRuns, prepared_runs

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))

# Where tests start several training processes.
SEVERAL_PROCESSES = (
    "tests/programs/",
    "tests/distlab/costs/measured/test_measure_cluster.py",
    "tests/distlab/costs/measured/test_prediction_hosts.py",
    "tests/course_tools/bench/",
    "tests/distlab/launch/test_engines.py",
    "tests/distlab/launch/test_prepared_interpreter.py",
    "tests/distlab/launch/test_starters_tensorflow.py",
    "tests/notebooks/test_auto_shard.py",
    "tests/distlab/simulate/test_mpi_rank.py",
)
ONE_PROCESS = (
    "test_faults_that_cannot_come.py",
    "test_model_parallelism.py",
    "test_resuming.py",
    "test_scaling_table.py",
    "test_start_file.py",
    "test_throughput.py",
    "test_used_folders.py",
    "test_whole_checkpoints.py",
)
# Where tests mostly wait and share no fixture, so that those of a file can run side by side.
WAITING = "tests/distlab/launch/"
# Where tests go through all labs; the first of their parameters is the number of the lab.
EVERY_LAB = "tests/distlab/labs/test_labs_"
# Where tests start programs on a Slurm cluster, and wait for it as much as they compute.
ON_A_CLUSTER = (
    "test_cluster_faults.py",
    "test_cluster_launchers.py",
    "test_clusters.py",
    "test_pbs_scripts.py",
    "test_slow_network.py",
)
OUTPUTS = "tests/notebooks/test_outputs.py"
# Every page in a browser, several times: ten minutes, which must not begin when the others are nearly done.
LONGEST_FILE = "tests/course_tools/site/test_build_browser.py"
# Last by name, and its first test waits for Keras: no file for the end, when the other workers have nothing left.
WAITS_FOR_KERAS = "tests/distlab/test_models.py"
NOTEBOOKS_WITH_SEVERAL, PROGRAMS_WITH_SEVERAL = "notebooks with several processes", "programs with several processes"
PROGRAMS_ON_CLUSTER = "programs on a cluster"


def pytest_configure() -> None:
    """Let the programs that tests interrupt see it, also if this run is in a shell's background or under nohup.

    Kernels that tests start in this process set FORCE_COLOR; Python 3.13 must not take it for tracebacks.
    """
    os.environ["PYTHON_COLORS"] = "0"
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with an argument `notebook` runs once for each committed notebook."""
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", NOTEBOOKS, ids=[file.stem for file in NOTEBOOKS])


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """One worker per core, at most four; one more where one of them waits for the processes that its tests start."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, 4) + ("not slow" not in config.option.markexpr)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Workers take whole groups of tests, in the order in which the tests were collected."""
    return GroupScheduling(config, log)


class GroupScheduling(LoadScopeScheduling):
    """The tests of a group run in one worker. (The marker xdist_group has no effect with pytest 9.2.)"""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests with several processes; with pytest-xdist put the longest groups first."""
    for item in items:
        if group(item.nodeid) in (NOTEBOOKS_WITH_SEVERAL, PROGRAMS_WITH_SEVERAL, PROGRAMS_ON_CLUSTER):
            item.add_marker(pytest.mark.several_processes)
    if config.getoption("numprocesses", None) or hasattr(config, "workerinput"):
        items.sort(key=order)


def group(nodeid: str) -> str:
    """Which tests one worker runs together.

    Three groups start several processes: one executes the notebooks that do, one after the other, one runs the programs
    of the labs, and one those on a cluster, which often waits. A further job's ranks would only fight for the cores.
    What goes through all labs is a group for each lab. Otherwise a group holds the tests of one file, which share
    fixtures.
    """
    file, _, test = nodeid.partition("::")
    if file == OUTPUTS:
        notebook = executed_notebook(nodeid)
        if notebook is None:
            return file
        return NOTEBOOKS_WITH_SEVERAL if needs()[notebook].several_processes else notebook.stem
    if file.startswith(EVERY_LAB):
        return f"{file} {test.partition('[')[2][:2]}"
    if Path(file).name in ON_A_CLUSTER:
        return PROGRAMS_ON_CLUSTER
    if Path(file).name not in ONE_PROCESS and file.startswith(SEVERAL_PROCESSES):
        return PROGRAMS_WITH_SEVERAL
    return nodeid if file.startswith(WAITING) else file


def executed_notebook(nodeid: str) -> Path | None:
    """The notebook that a test executes, if it does."""
    file, _, test = nodeid.partition("::")
    if file != OUTPUTS or not test.startswith("test_a_notebook_gives_its_committed_outputs"):
        return None
    return next((notebook for notebook in NOTEBOOKS if test.endswith(f"[{notebook.stem}]")), None)


@cache
def needs() -> dict:
    """What each notebook takes; read once."""
    from course_tools import schedule  # here, since tests that execute no notebook do without its packages

    return schedule.needs(NOTEBOOKS)


def pytest_itemcollected(item: pytest.Item) -> None:
    """What waits for a long fixture is long, and what is long is slow."""
    if waits_for_one(item):
        item.add_marker(pytest.mark.long)
    if item.get_closest_marker("long"):
        item.add_marker(pytest.mark.slow)


def order(item: pytest.Item) -> tuple[int, float]:
    """First several processes, then the longest file and the notebooks by their length, what is slow, the others."""
    if item.get_closest_marker("several_processes"):
        return 0, 0
    if item.nodeid.startswith(LONGEST_FILE):
        return 1, -math.inf
    if notebook := executed_notebook(item.nodeid):
        return 1, -needs()[notebook].seconds
    return (2 if item.get_closest_marker("slow") or item.nodeid.startswith(WAITS_FOR_KERAS) else 3), 0


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def runs() -> Iterator[PreparedRuns]:
    """Runs of programs that share one import of TensorFlow and Horovod."""
    with prepared_runs() as runs:
        yield runs
