"""The start of ranks is measured both ways, in turns."""

import shutil

import pytest

from course_tools.bench import start_up


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("mpirun"), reason="no mpirun on this machine")
def test_forked_ranks_are_compared_with_those_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start_up, "ROUNDS", 1)
    own, forked = start_up.measure_start()
    assert own.ratios == [1.0]
    assert forked.ratios == [forked.values[0] / own.values[0]]
