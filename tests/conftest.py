"""Places that tests of every kind look at, and how the tests share a machine (see `make test`)."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from itertools import chain, groupby
from pathlib import Path

import pytest
from filelock import FileLock
from playwright.sync_api import Browser, sync_playwright

from tests.prepared_runs import PreparedRuns

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9][0-9]*_*.ipynb"))


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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Quick files last, the smallest at the end, so that no worker has a long one left when the others have ended.

    Those that take the lock of `one_job` are spread over the first three quarters of the others: a worker that waits
    for it does nothing else.
    """
    kinds: dict[str, list[list[pytest.Item]]] = {"jobs": [], "long": [], "quick": []}
    for _, tests in groupby(items, key=lambda item: item.path):
        file = list(tests)
        is_job = "one_job" in getattr(file[0], "fixturenames", ())
        is_long = any(item.get_closest_marker("slow") for item in file)
        kinds["jobs" if is_job else "long" if is_long else "quick"].append(file)
    shares = (("jobs", 0.75), ("long", 1.0))
    places = [(share * at / len(kinds[kind]), file) for kind, share in shares for at, file in enumerate(kinds[kind])]
    first = [file for _, file in sorted(places, key=lambda place: place[0])]
    items[:] = chain(*first, *sorted(kinds["quick"], key=len, reverse=True))


@pytest.fixture(scope="module")
def one_job(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Iterator[None]:
    """For files of tests that start several training processes: no two of them run at the same time.

    Their ranks would fight for the cores and the memory. A file says `usefixtures("one_job")` in its `pytestmark`. (The
    marker xdist_group of pytest-xdist 3.8 has no effect with pytest 9.2, which no longer reads a test's `_nodeid`.)
    """
    of_this_run = tmp_path_factory.getbasetemp() if worker_id == "master" else tmp_path_factory.getbasetemp().parent
    with FileLock(of_this_run / "one_job.lock"):
        yield


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; without it a test is skipped."""
    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, names)), None)
    if chromium is None:
        pytest.skip("there is no chromium, chromium-browser or google-chrome on PATH")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts an `nvidia-smi` of these shell commands before everything else on PATH."""
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def write(script: str) -> None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return write


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="session")
def runs() -> Iterator[PreparedRuns]:
    """Runs of programs that share one import of TensorFlow and Horovod."""
    runs = PreparedRuns()
    yield runs
    runs.close()
