"""The programs of chapter 13 refuse a fault that would never come: the job would seem to have survived it."""

import json
import os
from pathlib import Path

import pytest

from distlab import launch
from tests.prepared_runs import PreparedRuns

pytestmark = pytest.mark.slow
WORKER = json.dumps(
    {"cluster": {"worker": ["localhost:1024", "localhost:1025"]}, "task": {"type": "worker", "index": 0}}
)
REFUSED = {
    "train.py --backup b --kill-worker 1 --kill-at-step 99": "--kill-at-step is 24 at most",
    "train.py --backup b --kill-worker 2 --kill-at-step 9": "--kill-worker is 1 at most",
    "train.py --backup b --kill-worker 1": "--kill-worker and --kill-at-step need each other",
    "train.py --backup b --kill-at-step 9": "--kill-worker and --kill-at-step need each other",
    "late_worker.py --late-worker 2": "--late-worker is 1 at most",
    "find_straggler.py --slow-rank 1": "--slow-rank is 1, and the last rank is 0",
    "train_elastic.py --kill-at-step 3": "this job has one: start more by horovodrun",
    "train_elastic.py --hosts nowhere.txt": "there is no file nowhere.txt",
}


@pytest.fixture
def chapter_folder(root: Path) -> Path:
    return root / "notebooks/programs/13_fault_tolerance"


def refusal(runs: PreparedRuns, program: Path, *arguments: str, folder: Path, **variables: str) -> str:
    """What the program says before it trains."""
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"} | variables
    finished = runs.run(program, *arguments, folder=folder, variables=environment)
    assert finished.status in (1, 2) and "Traceback" not in finished.output, finished.output
    assert list(folder.iterdir()) == []
    return finished.output.splitlines()[-1]


@pytest.mark.parametrize("line", REFUSED)
def test_a_fault_that_would_never_come_is_refused(
    line: str, chapter_folder: Path, runs: PreparedRuns, tmp_path: Path
) -> None:
    if line.startswith("train_elastic"):
        launch.horovod_problem() and pytest.skip("Horovod is not installed here")
    program, *arguments = line.split()
    assert REFUSED[line] in refusal(runs, chapter_folder / program, *arguments, folder=tmp_path, TF_CONFIG=WORKER)


@pytest.mark.parametrize("line", ["train.py --backup b", "late_worker.py"])
def test_a_cluster_with_a_chief_is_refused(line: str, chapter_folder: Path, runs: PreparedRuns, tmp_path: Path) -> None:
    """The programs count from worker 0, and a chief would be another number 0."""
    cluster = {"chief": ["localhost:1024"], "worker": ["localhost:1025"]}
    config = json.dumps({"cluster": cluster, "task": {"type": "chief", "index": 0}})
    program, *arguments = line.split()
    said = refusal(runs, chapter_folder / program, *arguments, folder=tmp_path, TF_CONFIG=config)
    assert said == (
        "ClusterSpecError: cluster has chief, and every process of this program is a worker: list workers alone"
    )


def test_a_late_worker_needs_others(chapter_folder: Path, runs: PreparedRuns, tmp_path: Path) -> None:
    assert "TF_CONFIG names no other worker" in refusal(runs, chapter_folder / "late_worker.py", folder=tmp_path)


# Horovod calls `on_reset` of the state when ranks have come or gone.
THREE_RANKS = {
    "from the start": "train_elastic.hvd.size = lambda: 3\n",
    "after a change": (
        "def train(state, options):\n    train_elastic.hvd.size = lambda: 3\n    state.on_reset()\n"
        "train_elastic.train = train\n"
    ),
}


@pytest.mark.slow
@pytest.mark.skipif(launch.horovod_problem() is not None, reason="needs Horovod")
@pytest.mark.parametrize("moment", THREE_RANKS)
def test_ranks_that_cannot_share_a_batch_equally_are_refused(
    moment: str, chapter_folder: Path, runs: PreparedRuns, tmp_path: Path
) -> None:
    program, folder = tmp_path / "three.py", tmp_path / "empty"
    folder.mkdir()
    begin = f"import sys\nsys.path.insert(0, {str(chapter_folder)!r})\nimport train_elastic\n"
    program.write_text(f"{begin}{THREE_RANKS[moment]}train_elastic.main()\n")
    said = refusal(runs, program, "--result", "result.json", folder=folder)
    assert said == "A batch of 64 cannot be split into 3 equal parts: let 1, 2, 4 or 8 ranks train."
