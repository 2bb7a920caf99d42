"""Programs with Horovod that srun has started without MPI end with the option that is missing."""

import os
import sys
from pathlib import Path
from unittest import mock

import pytest

from distlab import launch, programs
from distlab.cluster_spec import ClusterSpecError
from tests.prepared_runs import PreparedRuns
from tests.programs.chapter_programs import chapter

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]
FOLDER = Path(__file__).parents[2] / "notebooks/programs"
TASK = {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2"}
FIX = "do not know of each other: add --mpi=pmix to srun"
LINES = [
    "09_horovod/equal_to_one_process.py",
    "09_horovod/forgotten_steps.py",
    "09_horovod/train_keras.py",
    "09_horovod/train_keras3.py",
    "10_large_batch_and_warmup/batch_norm.py",
    "10_large_batch_and_warmup/noise_scale.py",
    "10_large_batch_and_warmup/train.py",
    "10_large_batch_and_warmup/warm_up_callback.py",
    "11_scaling_and_profiling/measure_throughput.py --way horovod",
    "11_scaling_and_profiling/train.py",
]


def test_an_srun_without_pmix_is_named_in_one_sentence(runs: PreparedRuns, tmp_path: Path) -> None:
    program = FOLDER / "09_horovod" / "train_tape.py"
    finished = runs.run(program, folder=tmp_path, variables=dict(os.environ) | TASK)
    assert finished.status == 1 and "Traceback" not in finished.output, finished.output
    assert finished.output.splitlines()[-1].endswith(FIX)


@pytest.mark.parametrize("line", LINES)
def test_each_program_looks_before_horovod_starts(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, *words = line.split()
    with chapter((FOLDER / name).parent):
        module = programs.module(FOLDER / name)
    for variable, value in TASK.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(sys, "argv", [name, *words])
    # Should Horovod start, MPI would end these tests.
    for package in ("horovod.tensorflow", "horovod.tensorflow.keras"):
        monkeypatch.setattr(f"{package}.init", mock.Mock(side_effect=AssertionError("Horovod starts")))
    with pytest.raises(ClusterSpecError, match=FIX):
        module.main()
