"""Reports in the forms of mpiP 3 (github.com/LLNL/mpiP, doc) and mpitrace (github.com/IBM/mpitrace)."""

from pathlib import Path

import pytest

from distlab.profiling.mpi_reports import read_mpip, read_mpitrace

LINE = "-" * 75
MPIP = f"""\
@ mpiP
@--- Aggregate Point-To-Point Sent (top twenty, descending) ---------------
Call                 MPI Sent %             Comm Size             Data Size
Isend                        10         16 -       31       8192 -    16383
@--- Aggregate Time (top twenty, descending, milliseconds) ----------------
Call                 Site       Time    App%    MPI%   Count     COV
Allreduce               1         20    2.00   60.00      20    0.10
{LINE}
@--- Callsite Time statistics (all, milliseconds): 6 ----------------------
{LINE}
Name              Site Rank  Count      Max     Mean      Min   App%   MPI%
Allreduce            1    0     10     1.25     1.05    0.972   2.00  60.00
Allreduce            1    1     10      1.2     1.02     0.95   2.00  60.00
Allreduce            1    *     20     1.25    1.035     0.95   2.00  60.00

Allreduce            3    0      5        2      1.1        1   1.10  33.00
Allreduce            3    *      5        2      1.1        1   1.10  33.00
Barrier              2    0      2    0.107    0.107    0.107   0.00   1.00
Barrier              2    *      2    0.107    0.107    0.107   0.00   1.00
{LINE}
@--- Callsite Message Sent statistics (all, sent bytes) -------------------
{LINE}
Name              Site Rank   Count       Max      Mean       Min       Sum
Allreduce            1    0      10      4096      4096      4096 4.096e+04
Allreduce            1    1      10      4096      4096      4096 4.096e+04
Allreduce            3    0       5         8         8         8        40
{LINE}
@--- End of Report --------------------------------------------------------
"""
MPITRACE = f"""\
Data for MPI rank 3 of 8:
Times from MPI_Init() to MPI_Finalize().
{LINE}
MPI Routine                        #calls     avg. bytes      time(sec)
{LINE}
MPI_Comm_rank                           3            0.0          0.000
MPI_Bcast                               2           16.5          0.001
MPI_Allreduce                        1440        26112.4         12.345
{LINE}
total communication time = 12.346 seconds.

Message size distributions:

MPI_Bcast                 #calls    avg. bytes      time(sec)
                               1           1.0          0.000
"""


def test_call_sites_of_mpip_are_summed_by_rank_and_routine(tmp_path: Path) -> None:
    file = tmp_path / "ring.2.mpiP"
    file.write_text(MPIP)
    profile = read_mpip(file)
    assert {rank: [row[:4] for row in rows] for rank, rows in profile.items()} == {
        0: [("MPI_Allreduce", "", 15, 41_000), ("MPI_Barrier", "", 2, 0)],
        1: [("MPI_Allreduce", "", 10, 40_960)],
    }
    assert sum(row.seconds for row in profile[0]) == pytest.approx((10 * 1.05 + 5 * 1.1 + 2 * 0.107) / 1000)
    # As the manual of mpiP shows it for a threshold: what is left out would be missing in the sums.
    file.write_text(MPIP.replace("Allreduce            1    1     10      1.2", "-"))
    with pytest.raises(ValueError, match="not of each rank"):
        read_mpip(file)


def test_mpitrace_s_table_is_read_without_the_distributions_below_it(tmp_path: Path) -> None:
    file = tmp_path / "mpi_profile.123.3"
    file.write_text(MPITRACE)
    rank, rows = read_mpitrace(file)
    assert rank == 3
    assert [row[:4] for row in rows] == [
        ("MPI_Comm_rank", "", 3, 0),
        ("MPI_Bcast", "", 2, 33),
        ("MPI_Allreduce", "", 1440, round(1440 * 26112.4)),
    ]
    assert sum(row.seconds for row in rows) == pytest.approx(12.346)


@pytest.mark.parametrize("read", [read_mpip, read_mpitrace])
def test_another_file_is_refused(tmp_path: Path, read: object) -> None:
    (tmp_path / "log").write_text("Data for nobody\n")
    with pytest.raises(ValueError, match=r"log (has no statistics|is no profile)"):
        read(tmp_path / "log")  # type: ignore[operator]
