"""The tables of the second blind test are those in print, complete, and apart from the first test."""

from collections import Counter

import pytest

from distlab.costs.published.benchmark_tables import RESULTS
from distlab.costs.published.scaling_results import RESULTS as ALL

# The speed-ups that the authors print beside their speeds, by machine, batch, program and GPUs. DLPerf's are from the
# READMEs of its programs; TensorFlow's page of 2017 prints none.
SPEEDUPS = {
    ("dgx1-v100", 112, "PyTorch", 8): 7.75,
    ("dgx-a100", 256, "MXNet", 2): 1.98,
    ("dgx-a100", 256, "MXNet", 4): 3.94,
    ("dgx-a100", 256, "MXNet", 8): 7.82,
    ("dgx1-v100", 96, "MXNet", 2): 1.98,
    ("dgx1-v100", 96, "MXNet", 4): 3.94,
    ("dgx1-v100", 96, "MXNet", 8): 7.82,
    ("dgx2", 128, "MXNet", 2): 1.96,
    ("dgx2", 128, "MXNet", 4): 3.92,
    ("dgx2", 128, "MXNet", 8): 7.72,
    ("dgx-a100", 256, "TensorFlow 1", 8): 7.70,
    ("dgx1-v100", 128, "TensorFlow 1", 8): 7.69,
    ("dgx2", 128, "TensorFlow 1", 16): 15.05,
    ("dgx-a100", 256, "PaddlePaddle", 8): 8.01,
    ("v100-edr100", 128, "MXNet", 8): 6.65,
    ("v100-edr100", 128, "MXNet", 16): 12.64,
    ("v100-edr100", 128, "MXNet", 32): 24.93,
    ("v100-edr100", 128, "PaddlePaddle", 8): 7.44,
    ("v100-edr100", 128, "PaddlePaddle", 16): 13.88,
    ("v100-edr100", 128, "PaddlePaddle", 32): 26.50,
}


@pytest.mark.parametrize("row", SPEEDUPS, ids=str)
def test_rows_have_the_speedups_in_print(row: tuple[str, int, str, int]) -> None:
    """Within 0.8 %: NVIDIA's are not all the quotient of the printed speeds."""
    machine, batch, program, gpus = row
    (result,) = (
        result
        for result in RESULTS
        if (result.hardware, result.program, result.ranks) == (machine, program, gpus)
        and result.speed
        and result.speed.batch == batch
    )
    assert result.efficiency * gpus == pytest.approx(SPEEDUPS[row], rel=0.008)


def test_every_table_is_complete() -> None:
    """With the rows that the first test took: DLPerf's 8 programs on 3 sizes, NVIDIA's 14 rows, VGG-16's 12."""
    both = [result for result in ALL if result.blind_test]
    dlperf = Counter(result.program for result in both if result.hardware == "v100-edr100")
    assert len(dlperf) == 8
    assert set(dlperf.values()) == {3}
    assert sum("NVIDIA DeepLearningExamples" in result.source for result in RESULTS) == 14
    assert sum(result.model == "vgg16" for result in both) == 12


def test_no_row_is_in_both_tests() -> None:
    first = {(result.hardware, result.ranks, result.efficiency) for result in ALL if result.blind_test == 1}
    assert not first & {(result.hardware, result.ranks, result.efficiency) for result in RESULTS}
    assert all(result.blind_test == 2 for result in RESULTS)
    assert [result for result in ALL if result.blind_test == 2] == list(RESULTS)
