"""Recording notebook 15: the cell that is added uses what the notebook has, and without a cluster nothing starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools import cluster_record, notebooks
from distlab.cluster.login_node import LoginNode


def test_the_added_cell_calls_what_the_notebook_defines(root: Path) -> None:
    name, _, method = cluster_record.WRITE.partition(".")
    source = (root / "notebooks" / "src" / "15_clusters.py").read_text()
    assert f"\n{name} = cluster.LoginNode(cluster.find()," in source
    assert callable(getattr(LoginNode, method.removesuffix("()")))


@pytest.mark.slow
def test_without_a_cluster_one_sentence_says_what_to_do(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "course_tools", "record-cluster", "--force"]
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path)}
    finished = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=600)
    assert finished.returncode != 0
    assert "No cluster runs; start one with 'make cluster'." in finished.stdout + finished.stderr
    assert "Traceback" not in finished.stderr


def test_the_notebook_s_number_is_that_of_the_chapter(root: Path) -> None:
    assert [source.stem for source in notebooks.sources(root / "notebooks", "15")] == ["15_clusters"]
