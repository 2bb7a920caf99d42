"""The published scaling results are rows that can be predicted."""

from distlab.costs import HARDWARE, MODELS
from distlab.costs.published.results import RESULTS


def test_every_row_is_about_a_known_model_and_machine_and_names_its_source() -> None:
    for result in RESULTS:
        assert result.model in MODELS and result.hardware in HARDWARE and result.source
        assert 0 < result.efficiency < 1.005  # PaddlePaddle's README has 8.01 times the speed on 8 GPUs
        assert 1 <= result.baseline_ranks < result.ranks
        assert result.speed or result.hardware in MODELS[result.model].measured
