"""The profile's files, and what is said when the library cannot be built."""

from pathlib import Path

import pytest

from distlab.profiling import mpi_profile

WRITTEN = """routine,type,calls,bytes,seconds
MPI_Allreduce,MPI_FLOAT,3,1200,0.5
MPI_Allreduce,MPI_LONG_LONG_INT,10,80,0.25
MPI_Barrier,,2,0,0.125
"""


def test_the_rows_of_every_rank_are_read(tmp_path: Path) -> None:
    for rank in (0, 1, 10):
        (tmp_path / f"profile.{rank}.csv").write_text(WRITTEN)
    ranks = mpi_profile.read(tmp_path / "profile")
    assert list(ranks) == [0, 1, 10]
    assert ranks[10][0] == ("MPI_Allreduce", "MPI_FLOAT", 3, 1200, 0.5)
    assert ranks[0][2] == ("MPI_Barrier", "", 2, 0, 0.125)


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(mpi_profile.NoCompiler, match="There is no mpicc in this environment"):
        mpi_profile.build(Path("mpi_profile.c"), tmp_path)
    compiler = tmp_path / "mpicc"
    compiler.write_text("#!/bin/sh\necho 'the compiler gcc was not found' >&2\nexit 1\n")
    compiler.chmod(0o755)
    with pytest.raises(mpi_profile.NoCompiler, match=r"could not compile mpi_profile\.c: the compiler gcc was not"):
        mpi_profile.build(Path("mpi_profile.c"), tmp_path)
