"""What a user of chapter 15's scripts sees of a fault: a job that ends with a clear line, and never one that hangs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER
from tests.programs.job_bench import CHAPTER, Jobs, running_jobs

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER, pytest.mark.usefixtures("one_job")]

SECONDS_TO_END = 900.0
ENDLESS = ("--steps", "100000000", "--log-every", "5")


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    """A cluster for each fault: most leave it damaged."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    with running_jobs(tmp_path) as jobs:
        yield jobs


def test_a_node_that_dies_ends_the_job(jobs: Jobs) -> None:
    options = ("--nodelist=node1,node2", "--no-requeue")
    job = jobs.submit("batch.sbatch", CHAPTER / "train_multi_worker.py", *ENDLESS, options=options)
    jobs.wait_for_line(job, "step 5 of")
    # The first process of the node: with it all others end.
    assert jobs.cluster.run(["pkill", "-KILL", "--full", " /run node2$"]).status == 0
    output = jobs.wait(job, "NODE_FAIL", "FAILED", seconds=SECONDS_TO_END)
    assert "node2" in output
