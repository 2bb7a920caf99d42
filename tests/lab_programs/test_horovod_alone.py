"""The programs of chapter 09 that compare ranks say so when they are started alone, or with a file that is missing."""

import sys
from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import processes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.fault,
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["forgotten_steps.py"], "one rank notices nothing: start two, as by mpirun -np 2 python forgotten_steps.py"),
        (["measure_options.py"], "there is one rank alone: start two, as by mpirun -np 2 python measure_options.py"),
        (["two_ranks.py", "nowhere.py"], "there is no file nowhere.py"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_it_ends_in_a_sentence(arguments: list[str], sentence: str, root: Path, tmp_path: Path) -> None:
    program, *more = arguments
    command = [sys.executable, str(root / "labs" / "09_horovod" / program), *more]
    finished = processes.run(command, 200, cwd=tmp_path)
    assert finished.status == 2 and "Traceback" not in finished.output
    assert sentence in finished.output
