"""A start that fails says why, with what the daemons have written, and leaves nothing."""

import os
from pathlib import Path

import pytest

from distlab import cluster
from tests.distlab.cluster.cluster_bench import NEEDS_CLUSTER, Bench

pytestmark = [pytest.mark.slow, NEEDS_CLUSTER]


@pytest.mark.parametrize("daemon", ["munged", "slurmctld", "sshd"])
def test_a_daemon_that_does_not_start_is_named(
    daemon: str, bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / daemon).write_text("#!/bin/sh\necho it cannot >&2\nexit 1\n")
    (tmp_path / daemon).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = bench.traces()
    with pytest.raises(cluster.ClusterError) as error:
        cluster.up()
    sentence = str(error.value).splitlines()[0]
    assert sentence.startswith("The cluster did not start: '")
    assert daemon in sentence and sentence.endswith("failed: it cannot.")
    assert bench.processes() == {}
    assert bench.traces() == before


def test_a_holder_that_cannot_start_is_explained(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unshare").write_text("#!/bin/sh\necho no namespaces here\n")
    (tmp_path / "unshare").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before = bench.traces()
    with pytest.raises(cluster.ClusterError, match="no namespaces here"):
        cluster.up()
    assert bench.traces() == before
