"""The login node of a notebook without a cluster: its record gives the same again."""

import json
from pathlib import Path

import pytest

from distlab import recorded_results
from distlab.cluster.login_node import COMMAND, RECORD, LoginNode
from distlab.recorded_results import BadRecord

VERSIONS = {"python": "3.11.7", "slurm": "22.05.8"}


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


def test_the_record_of_the_notebook_names_no_machine(root: Path) -> None:
    folder = root / "notebooks/programs/15_clusters/recorded"
    record = recorded_results.read(RECORD, folder)
    assert {"slurm", "python", "tensorflow", "horovod"} <= set(record.versions) and record.command == COMMAND
    text = json.dumps(record.result)
    assert [path for path in ("/tmp/", "/home/", "/root", "site-packages") if path in text] == []
