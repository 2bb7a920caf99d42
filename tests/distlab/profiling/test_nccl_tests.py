"""Published output of nccl-tests: its bus bandwidth is that of our formula, and α and β fit it."""

from pathlib import Path

import numpy as np
import pytest

from distlab import costs
from distlab.profiling import nccl_tests

# 8 GPUs: github.com/kvcache-ai/Mooncake/pull/3484. 72 GPUs: github.com/coreweave/nccl-tests/pull/43.
EIGHT = """\
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
      131072         32768     float     sum      -1    19.25    6.81   11.91       0    18.43    7.11   12.44       0
     1048576        262144     float     sum      -1    27.76   37.78   66.11       0    27.49   38.15   66.76       0
     8388608       2097152     float     sum      -1    81.16  103.36  180.88       0    80.46  104.26  182.45       0
    33554432       8388608     float     sum      -1   195.40  171.72  300.51       0   195.40  171.73  300.52       0
# Avg bus bandwidth    : 140.3
"""
RACK = """\
 4294967296    1073741824     float     sum      -1    10094  425.49  839.16      0    10141  423.54  835.32      0
 8589934592    2147483648     float     sum      -1    20299  423.16  834.57    N/A    20006  429.37  846.82    N/A
"""
OLD = """\
      131072         32768   float     sum    19.25    6.81   11.91  2e-07    18.43    7.11   12.44  2e-07
   536870912     134217728   float    63950    8.40   14.70  0e+00    64006    8.39   14.68  0e+00
"""
ROW = EIGHT.splitlines()[2]
# Ranks in front, as `mpirun --tag-output` and `srun --label` write them and many published logs have them; the
# columns of nccl-tests 2.18 for the time of day, and those for single iterations.
LABELLED = f"[1,0]<stdout>:{ROW}\n 0: {ROW}\n{ROW}  2025-06-03 12:34:56\n"
ITERATIONS = ROW.replace("    27.49", "    25.00    31.00    30.50     4.20    27.49") + "  25.1  31.1  30.6  4.3\n"


@pytest.mark.parametrize(("text", "ranks"), [(EIGHT, 8), (RACK, 72), (OLD, 8), (LABELLED, 8), (ITERATIONS, 8)])
def test_bandwidths_are_those_of_the_formulas(tmp_path: Path, text: str, ranks: int) -> None:
    file = tmp_path / "nccl.txt"
    file.write_text("worker-1:23 [0] NCCL INFO 24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p\n" + text)
    rows = nccl_tests.read(file)
    assert len(rows) == text.count("float")
    for row in rows:
        assert row.algorithm_bandwidth == pytest.approx(row.bytes / row.seconds, rel=2e-3)
        assert row.bus_bandwidth == pytest.approx(row.algorithm_bandwidth * 2 * (ranks - 1) / ranks, rel=2e-3)
        assert row.wrong == 0


def test_many_wrong_values_are_printed_as_a_power(tmp_path: Path) -> None:
    file = tmp_path / "nccl.txt"
    file.write_text(ROW.replace("66.11       0", "66.11 1.5e+06"))
    assert nccl_tests.read(file)[0].wrong == 1_500_000


def test_a_latency_and_a_bandwidth_predict_the_middle(tmp_path: Path) -> None:
    file = tmp_path / "nccl.txt"
    file.write_text(EIGHT)
    sizes, seconds = np.array([(row.bytes, row.seconds) for row in nccl_tests.read(file)]).T
    fitted = costs.fit(sizes[[0, -1]], seconds[[0, -1]], lambda n: costs.all_reduce("ring", 8, n))
    assert fitted.seconds(costs.all_reduce("ring", 8, sizes[1])) == pytest.approx(seconds[1], rel=0.15)
