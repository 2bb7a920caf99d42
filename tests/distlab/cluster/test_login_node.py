"""The login node of a notebook: on a real cluster it runs commands, and its record gives the same again."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from distlab import cluster, recorded_results
from distlab.cluster.login_node import COMMAND, RECORD, LoginNode
from distlab.recorded_results import BadRecord
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, until

VERSIONS = {"python": "3.11.7", "slurm": "22.05.8"}


@pytest.fixture
def live(running: cluster.Cluster, tmp_path: Path) -> Iterator[LoginNode]:
    """A login node whose folder and lab are those of the test."""
    login = LoginNode(running, tmp_path, tmp_path / "lab")
    yield login
    login.close()


def recorded(folder: Path, result: dict[str, list[object]]) -> LoginNode:
    """A login node without a cluster that was told `result`."""
    recorded_results.write(RECORD, "Slurm", VERSIONS, COMMAND, "notebook", [], result, folder / "lab" / "recorded")
    return LoginNode(None, folder, folder / "lab")


def test_the_record_gives_what_was_kept_in_the_same_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    login = recorded(tmp_path, {"squeue": ["waits", "runs"], "wait 7 end": ["COMPLETED"]})
    for _ in range(3):
        login.run("squeue")
    assert capsys.readouterr().out == "$ squeue\nwaits\n$ squeue\nruns\n$ squeue\nruns\n"
    assert login.wait(7) == "COMPLETED"


def test_without_a_cluster_one_sentence_says_what_is_shown_and_how_to_measure(tmp_path: Path) -> None:
    sentence = recorded(tmp_path, {"sinfo": [""]}).source()
    assert sentence.startswith("Recorded results: recorded on 20") and "slurm 22.05.8" in sentence
    assert "make cluster" in sentence or "The cluster needs" in sentence


def test_what_was_not_recorded_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRecord, match=r"does not have .sbatch other\.sbatch"):
        recorded(tmp_path, {"sinfo": [""]}).submit("sbatch other.sbatch")


@pytest.mark.slow
@NEEDS_CLUSTER
def test_a_record_of_real_jobs_gives_the_same_again(
    live: LoginNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=1 --output=%x.out\nsrun hostname\npwd\n"

    def use(login: LoginNode) -> list[object]:
        login.write("pair.sbatch", script)
        login.run("srun --nodes=3 --label hostname | sort")
        job = login.submit("sbatch pair.sbatch")
        state = login.wait(job)
        word = login.wait_for(job, "pair.sbatch.out", "^node(2)$")
        return [state, word, sorted(login.read("pair.sbatch.out").split()), login.measure("sum", lambda: 1 + 1)]

    measured = use(live)
    printed = capsys.readouterr().out
    assert "0: node1\n1: node2\n2: node3" in printed
    assert measured == ["COMPLETED", "2", ["node1", "node2", "~/jobs"], 2]
    assert "measured here" in live.source().lower()

    record = live.record()
    assert str(tmp_path) not in record.read_text()
    again = LoginNode(None, tmp_path, tmp_path / "lab")
    assert use(again) == measured
    assert capsys.readouterr().out == printed


@pytest.mark.slow
@NEEDS_CLUSTER
def test_jobs_and_limits_end_with_the_login_node(live: LoginNode, running: cluster.Cluster) -> None:
    job = live.submit("sbatch --output=/dev/null --wrap 'srun sleep 600'")
    assert live.wait(job, until="RUNNING") == "RUNNING"
    live.link(rate="100mbit", latency="1ms")
    assert {link.rate for link in running.links().values()} == {100e6}
    live.close()
    assert {link.rate for link in running.links().values()} == {None}
    show = ["scontrol", "show", "job", str(job)]
    until(lambda: "JobState=COMPLETING" not in running.run(show).output, "the job is never over")
    assert running.run(show).output.count("JobState=CANCELLED") == 1


def test_the_record_of_the_notebook_names_no_machine(root: Path) -> None:
    folder = root / "notebooks/programs/15_clusters/recorded"
    record = recorded_results.read(RECORD, folder)
    assert {"slurm", "python", "tensorflow", "horovod"} <= set(record.versions) and record.command == COMMAND
    text = json.dumps(record.result)
    assert [path for path in ("/tmp/", "/home/", "/root", "site-packages") if path in text] == []
