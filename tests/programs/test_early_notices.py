"""A notice that the time is nearly over may come while a program of chapter 13 or 15 still begins."""

import os
import sys
from pathlib import Path

import pytest

from distlab.runtime import processes
from tests.programs.job_bench import CHAPTER, ROOT

pytestmark = [pytest.mark.slow]


@pytest.mark.parametrize("program", ["13_fault_tolerance/train.py", "15_clusters/train_resumable.py"])
def test_a_notice_while_modules_are_imported_does_not_end_the_program(program: str, tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\nos._exit(7)\n")
    variables = {**os.environ, "PYTHONPATH": str(tmp_path)}
    finished = processes.run([sys.executable, str(ROOT / "notebooks/programs" / program)], 300, env=variables)
    assert finished.status == 7, finished.output


def test_a_rank_that_the_notice_ended_before_it_began_is_explained(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGUSR1)\n")
    for name, text in {"srun": 'shift 2\n"$@"', "python": f'exec "{sys.executable}" "$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    variables = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    finished = processes.run(["bash", str(CHAPTER / "slurm" / "requeue.sbatch"), str(program)], 300, env=variables)
    assert finished.status == 138
    assert finished.output.endswith("\nThe signal came before the program was ready for it: ask for more --time.\n")
