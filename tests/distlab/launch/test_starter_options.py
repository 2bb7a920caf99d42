"""Options of mpirun and its like that contradict the launcher, are refused in a sentence."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from distlab import launch
from distlab.launch import starter_options


@pytest.mark.parametrize(
    ("starter", "options", "refused"),
    [
        (launch.mpirun, ["--mca", "btl", "self,vader", "-n", "4"], "-n"),
        (launch.horovodrun, ["--gloo", "--num-proc=4"], "--num-proc"),
        (launch.torchrun, ["--nproc_per_node=4"], "--nproc_per_node"),
    ],
)
def test_a_second_number_of_processes_is_refused(
    starter: Callable, options: list[str], refused: str, tmp_path: Path
) -> None:
    (tmp_path / "program.py").touch()
    with pytest.raises(launch.LaunchError, match=f"Leave {refused} out of the options of {starter.__name__}"):
        starter(tmp_path / "program.py", options=options)


def test_other_options_are_let_through() -> None:
    starter_options.check("mpirun", ["--mca", "btl_base_verbose", "1", "--report-bindings"])


def test_a_text_in_the_place_of_a_list_is_refused_with_the_list_that_is_meant() -> None:
    with pytest.raises(launch.LaunchError, match=r"give a list, such as \['--mca', 'btl', 'self'\]"):
        starter_options.check("mpirun", "--mca btl self")


def test_ranks_of_horovod_wait_for_each_other_as_long_as_the_job_may_take() -> None:
    assert starter_options.waiting("horovodrun", ["--gloo"], 599.5) == ["--gloo-timeout-seconds", "600"]
    assert starter_options.waiting("horovodrun", ["--gloo"], math.inf) == ["--gloo-timeout-seconds", "604800"]
    for own in (["--gloo-timeout-seconds", "5"], ["--gloo-timeout-seconds=5"]):
        assert starter_options.waiting("horovodrun", own, 600) == []
    assert starter_options.waiting("mpirun", [], 600) == []
