"""Programs that take two ranks, or a file, say so when they are started without: one sentence and exit status 2."""

from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import environment
from tests.prepared_runs import PreparedRuns

environment.apply()  # Open MPI finds its files

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["forgotten_steps.py"], "one rank notices nothing: start two, mpirun -np 2 python forgotten_steps.py"),
        (["measure_options.py"], "it takes two ranks that MPI connects: mpirun -np 2 python measure_options.py"),
        (["two_ranks.py", "missing.py"], "there is no Python program missing.py"),
        (["two_ranks.py", "."], "there is no Python program ."),
    ],
)
def test_what_is_missing_is_named(runs: PreparedRuns, root: Path, words: list[str], sentence: str) -> None:
    program, *more = words
    finished = runs.run(root / "notebooks/programs/09_horovod" / program, *more)
    assert finished.status == 2, finished.output
    assert finished.output.splitlines()[-1] == f"{program}: error: {sentence}"
