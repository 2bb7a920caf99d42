"""Which processes a test takes for those of its program: those that it ends."""

import os
import subprocess
import sys

import psutil
import pytest

from tests.distlab.launch.launched_program import NUMBERED_BY, Launched


@pytest.mark.skipif(not NUMBERED_BY.exists(), reason="only Linux has numbers of processes for each namespace")
def test_a_process_that_only_has_the_number_of_one_on_a_node_is_left_alone(launched: Launched) -> None:
    own, elsewhere = NUMBERED_BY.stat().st_ino, NUMBERED_BY.stat().st_ino + 1
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        (launched.folder / f"worker0.{stranger.pid}.{elsewhere}.pid").touch()
        assert launched.left() == []
        (launched.folder / f"worker0.{stranger.pid}.{own}.pid").touch()
        assert launched.left() == [stranger.pid]
        stranger.communicate(b"\n")
    assert launched.left() == []


def test_a_number_that_the_system_has_given_away_since_names_nobody(launched: Launched) -> None:
    own = NUMBERED_BY.stat().st_ino if NUMBERED_BY.exists() else 0
    noted = launched.folder / f"worker0.{psutil.Process().pid}.{own}.pid"
    noted.touch()
    assert launched.left() == [psutil.Process().pid]
    before = psutil.Process().create_time() - 60
    os.utime(noted, (before, before))
    assert launched.left() == []
