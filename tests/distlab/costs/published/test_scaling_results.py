"""The published scaling efficiencies are those in print."""

import pytest

from distlab.costs import HARDWARE, MODELS
from distlab.costs.published.result import PublishedResult
from distlab.costs.published.scaling_results import RESULTS

BLIND = [result for result in RESULTS if result.blind_test == 1]

# By machine, GPUs and batch, in %: as printed (Akiba, ChainerMN, Mikami), or the speed-up divided by the GPUs.
IN_PRINT = {
    ("dgx1-v100", 1, 8, None): 97.2,
    ("dgx-a100", 1, 8, None): 96.6,
    ("dgx1-p100", 1, 8, 64): 100 * 7.02 / 8,
    ("dgx1-p100", 1, 8, 32): 100 * 5.69 / 8,
    ("dgx2", 1, 16, 128): 100 * 15.19 / 16,
    ("v100-edr100", 1, 32, 128): (100 * 26.25 / 32, 100 * 29.72 / 32, 100 * 28.89 / 32),
    ("p100-fdr", 8, 1024, 32): 80,
    ("p100-fdr", 1, 1024, 32): 70,
    ("titanx-fdr", 1, 128, 32): 90,
    ("abci", 4, 1024, 32): 84.75,
    ("abci", 4, 2048, 32): 83.10,
    ("abci", 4, 3456, 32): 74.08,
}


def place(result: PublishedResult) -> tuple[str, int, int, int | None]:
    return result.hardware, result.baseline_ranks, result.ranks, result.speed.batch if result.speed else None


def test_the_rows_of_the_first_blind_test_are_those_below() -> None:
    assert len(BLIND) == sum(len(printed) if isinstance(printed, tuple) else 1 for printed in IN_PRINT.values())


@pytest.mark.parametrize("where", IN_PRINT, ids=str)
def test_blind_rows_have_the_efficiencies_in_print(where: tuple[str, int, int, int | None]) -> None:
    printed = IN_PRINT[where]
    efficiencies = [100 * result.efficiency for result in BLIND if place(result) == where]
    assert efficiencies == pytest.approx(list(printed) if isinstance(printed, tuple) else [printed], abs=0.06)


def test_the_published_counts_of_gpus() -> None:
    """68 % for VGG-16 is on 128 servers with 4 GPUs; on 128 GPUs it was 79 %."""
    vgg16 = {
        result.ranks: result.efficiency
        for result in RESULTS
        if (result.model, result.hardware) == ("vgg16", "horovod-roce25")
    }
    assert vgg16[512] == 0.68
    assert vgg16[128] == 0.79
    assert vgg16[16] == pytest.approx(13.7 / 16, abs=0.004)


def test_the_largest_run_of_goyal_took_an_eighth_more_time_per_iteration() -> None:
    """44 times the batch of 8 × 32 images are 352 GPUs; 12 % more time."""
    (largest,) = (result for result in RESULTS if result.ranks == 44 * 8)
    assert largest.efficiency == pytest.approx(1 / 1.12)
    assert not largest.blind_test


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: f"{result.model}-{result.hardware}-{result.ranks}")
def test_every_row_is_about_a_known_model_and_machine_and_names_its_source(result: PublishedResult) -> None:
    assert result.model in MODELS
    assert result.hardware in HARDWARE
    assert result.source
    assert 0 < result.efficiency < 1.005  # PaddlePaddle's README has 8.01 times the speed on 8 GPUs
    assert 1 <= result.baseline_ranks < result.ranks
    assert result.bytes_per_parameter in (2, 4)
    assert result.speed or result.hardware in MODELS[result.model].measured
