"""The published scaling efficiencies are those in print."""

import pytest

from distlab.costs import HARDWARE, MODELS
from distlab.costs.published.results import RESULTS, PublishedResult

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


def test_blind_rows_have_the_efficiencies_in_print() -> None:
    for where, printed in IN_PRINT.items():
        efficiencies = [100 * result.efficiency for result in BLIND if place(result) == where]
        assert efficiencies == pytest.approx(list(printed) if isinstance(printed, tuple) else [printed], abs=0.06)
    assert {place(result) for result in BLIND} == set(IN_PRINT)


def test_every_row_is_about_a_known_model_and_machine_and_names_its_source() -> None:
    for result in RESULTS:
        assert result.model in MODELS and result.hardware in HARDWARE and result.source
        assert 0 < result.efficiency < 1.005  # PaddlePaddle's README has 8.01 times the speed on 8 GPUs
        assert 1 <= result.baseline_ranks < result.ranks
        assert result.speed or result.hardware in MODELS[result.model].measured
