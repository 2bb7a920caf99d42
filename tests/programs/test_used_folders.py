"""Programs begin in a folder with checkpoints with --resume alone."""

from pathlib import Path

import pytest

from distlab import launch
from distlab.runtime import processes
from tests.prepared_runs import PreparedRuns

pytestmark = [pytest.mark.slow]

NEEDS_HOROVOD = pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem()))
PROGRAMS = [
    pytest.param("notebooks/programs/09_horovod/train_serial.py --images 64", marks=NEEDS_HOROVOD),
    "notebooks/programs/14_other_frameworks/train_tensorflow.py START",
    "labs/16_capstone/train_serial.py --texts 500 --epochs 2",
]


def files_of(folder: Path) -> dict[str, tuple[int, int]]:
    """Each file with its size and when it was written."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
    return {str(file.relative_to(folder)): (file.stat().st_size, file.stat().st_mtime_ns) for file in files}


@pytest.mark.parametrize("line", PROGRAMS)
def test_a_program_begins_in_no_folder_that_has_checkpoints(
    runs: PreparedRuns, root: Path, tmp_path: Path, line: str
) -> None:
    name, *options = line.split()
    if "START" in options:
        start = tmp_path / "start.npz"
        assert runs.run(root / name.replace(Path(name).name, "start.py"), start, "--images", 96).status == 0
        options = [str(start) if option == "START" else option for option in options]
    folder = tmp_path / "saved"

    def started(*more: str) -> processes.Finished:
        return runs.run(root / name, *options, "--folder", folder, *more)

    first = started()
    assert first.status == 0, first.output
    before = files_of(folder)
    refused = started()
    assert refused.status == 1 and "Traceback" not in refused.output, refused.output
    last = refused.output.splitlines()[-1]
    assert last.startswith(f"{folder} holds checkpoints, the newest is ") and "add --resume to go on" in last
    again = started("--resume")  # and finds nothing left to do
    assert "Traceback" not in again.output and "--epochs can ask for more" in again.output.splitlines()[-1]
    assert files_of(folder) == before
