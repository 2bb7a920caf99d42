"""Libraries of another MPI in LD_LIBRARY_PATH, made for real: what the doctor says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from course_tools.setup import doctor
from distlab import launch
from distlab.runtime import environment, other_mpi

OWN = Path(sys.prefix) / "lib"
NAMES = ("libmpi.so.40", "libopen-pal.so.40", "libopen-rte.so.40")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("gcc") or not all((OWN / name).exists() for name in NAMES),
        reason="needs gcc and the packaged Open MPI",
    ),
    pytest.mark.skipif(environment.site_mpi_folder().is_dir(), reason="Horovod was built with the site's MPI"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder, first in LD_LIBRARY_PATH, with libraries of the names of Open MPI's and with other contents."""
    environment.apply()
    folder = tmp_path / "other mpi"
    folder.mkdir()
    (tmp_path / "other.c").write_text("int other(void) { return 1; }\n")
    for name in NAMES:
        command = ["gcc", "-shared", "-fPIC", "-o", str(folder / name), f"-Wl,-soname,{name}", "other.c"]
        subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{folder}")
    return folder


def test_the_folder_that_comes_first_counts(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"another MPI, in {folder}:" in (other_mpi.other_mpi_fix() or "")
    for path in (f"{OWN}:{folder}", ""):
        monkeypatch.setenv("LD_LIBRARY_PATH", path)
        assert other_mpi.other_mpi_fix() is None


def test_the_doctor_names_another_mpi(folder: Path) -> None:
    rows = [*doctor._mpi(), *([] if launch.horovod_problem() else doctor._horovod())]
    assert not any(row.ok for row in rows)
    assert all(f"another MPI, in {folder}: run `unset LD_LIBRARY_PATH`" in row.fix for row in rows)
