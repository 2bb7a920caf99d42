"""`distlab measure` under the launchers; two hosts with slow links are measured, and three are predicted."""

import os
import sys
from pathlib import Path

import pytest

from course_tools.__main__ import main
from distlab import launch
from distlab.costs.measured.measurement import read
from distlab.models import mlp

DISTLAB = Path(sys.executable).with_name("distlab")
pytestmark = pytest.mark.usefixtures("one_job")


@pytest.mark.slow
def test_it_measures_and_what_it_measured_predicts(tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    options = ["--model", "mlp", "--output", file, "--batch", "4", "--repeats", "5", "--warm-up", "1", "--threads", "1"]
    launch.mpirun(DISTLAB, "measure", *options, echo=False, prepared=False)
    result = read(file)
    assert (result.communication, result.ranks_per_host, result.machines) == ("Horovod over MPI", (2,), 1)
    assert (result.batch, result.repeats, result.threads) == (4, 5, 1)
    assert result.gradient_bytes == tuple(4 * each.shape.num_elements() for each in mlp().trainable_variables)
    assert result.sizes[0] == 1024 and result.sizes[-1] >= sum(result.gradient_bytes) > result.sizes[-2]
    text = file.read_text()
    assert os.uname().nodename not in text and str(Path.home()) not in text and str(tmp_path) not in text
    assert main(["predict", "--measured", str(file), "--ranks", "1,2"]) == 0
