"""Libraries of another MPI in LD_LIBRARY_PATH: what the doctor says."""

import sys
from pathlib import Path

import pytest

from course_tools.setup import doctor
from distlab.runtime import environment, other_mpi

OWN = Path(sys.prefix) / "lib"


@pytest.mark.skipif(not (OWN / "libmpi.so.40").exists(), reason="needs the packaged Open MPI")
@pytest.mark.skipif(environment.site_mpi_folder().is_dir(), reason="Horovod was built with the site's MPI")
def test_the_folder_that_comes_first_counts_and_the_doctor_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libmpi.so.40").write_text("no library")
    for path in (f"{OWN}:{tmp_path}", ""):
        monkeypatch.setenv("LD_LIBRARY_PATH", path)
        assert other_mpi.other_mpi_fix() is None
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere:{tmp_path}")
    monkeypatch.setenv("PATH", "/nowhere")  # as if its mpirun did not start
    (row,) = doctor._mpi()
    assert not row.ok and f"another MPI, in {tmp_path}: run `unset LD_LIBRARY_PATH`" in row.fix
