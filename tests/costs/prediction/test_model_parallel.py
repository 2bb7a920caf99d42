"""Transformers on tensor × pipeline × data ranks: sizes as published, parts by hand, figures in print."""

from dataclasses import replace

import pytest

from distlab.costs import HARDWARE, TRANSFORMERS, Assumptions, Split, predict_split
from distlab.costs.prediction.model_parallel import activation_bytes
from distlab.costs.published.split_figures import FIGURES, TOLERANCES, FigureComparison, compare_figures, figures_table
from distlab.model_parallel.pipelines import simulate
from distlab.model_parallel.sharded_optimizers import model_state_bytes

DESCRIBED = [figure for figure in FIGURES if figure.is_described]
NAMES = [f"{figure.kind}-{figure.what}" for figure in DESCRIBED]


# Transformers -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        # Narayanan et al., tables 1 and 2; Chowdhery et al., table 1.
        ("gpt-1.7b", 1.7),
        ("gpt-3.6b", 3.6),
        ("gpt-7.5b", 7.5),
        ("gpt-18b", 18.4),
        ("gpt-39b", 39.1),
        ("gpt-76b", 76.1),
        ("gpt-146b", 145.6),
        ("gpt-175b", 174.6),
        ("gpt-310b", 310.1),
        ("gpt-530b", 529.6),
        ("gpt-1t", 1008.0),
        ("palm-540b", 540.35),
    ],
)
def test_transformers_have_the_published_number_of_parameters(name: str, billions: float) -> None:
    digits = len(str(billions).partition(".")[2])
    assert round(TRANSFORMERS[name].parameters / 1e9, digits) == billions


def test_every_transformer_is_checked_against_print() -> None:
    assert len(TRANSFORMERS) == 12


@pytest.mark.parametrize("name", ["gpt-1.7b", "gpt-175b", "gpt-1t"])
def test_operations_are_those_of_equation_3(name: str) -> None:
    model = TRANSFORMERS[name]
    B, s, h, l, V = 512, model.sequence, model.hidden, model.layers, model.vocabulary  # noqa: E741, N806
    expected = 96 * B * s * l * h**2 * (1 + s / (6 * h) + V / (16 * l * h))
    assert model.training_flops(B) == pytest.approx(expected, rel=1e-12)


def test_training_times_of_equation_4() -> None:
    """GPT-3: 300 billion tokens on 1024 GPUs at 140 teraFLOP/s take 34 days; a trillion parameters 84 days."""
    for name, tokens, gpus, flops, days in (("gpt-175b", 300e9, 1024, 140e12, 34), ("gpt-1t", 450e9, 3072, 163e12, 84)):
        model = TRANSFORMERS[name]
        seconds = tokens / model.sequence * model.training_flops(1) / (gpus * flops)
        assert seconds / 86400 == pytest.approx(days, rel=0.03)


def test_activations_are_those_of_korthikanti_s_equation_1() -> None:
    """sbh(34 + 5as/h) on one rank; for GPT-3 and micro-batches of one 2.7 GiB a layer."""
    model = TRANSFORMERS["gpt-175b"]
    assert model.layer_activation_bytes(1) == 2048 * 12288 * (34 + 5 * 96 * 2048 / 12288)
    assert model.layer_activation_bytes(1) / 2**30 == pytest.approx(2.67, abs=0.01)


# One prediction by its parts ----------------------------------------------------------------------------------------


def test_one_device_only_computes() -> None:
    found = predict_split("gpt-1.7b", "selene", 1)
    model = TRANSFORMERS["gpt-1.7b"]
    assert found.sequences == 4
    assert found.matrix_seconds == pytest.approx(model.training_flops(4) / (0.63 * 312e12))
    assert found.memory_seconds == pytest.approx(4 * 24 * 8 * model.layer_activation_bytes(1) / 2039e9)
    rest = (found.tensor_seconds, found.pipeline_seconds, found.bubble_seconds, found.data_seconds)
    assert rest == (0, 0, 0, 0)


def test_tensor_ranks_all_reduce_six_times_a_layer() -> None:
    found = predict_split("gpt-3.6b", "selene", 2, Split(tensor=2), sequences=4)
    link = HARDWARE["selene"].inside
    one = 2 * link.latency + 2 * 2048 * 3072 * link.seconds_per_byte / 0.82
    assert found.tensor_seconds == pytest.approx(4 * 30 * 6 * one)


@pytest.mark.parametrize(("stages", "sequences", "chunks"), [(2, 8, 1), (4, 16, 1), (8, 16, 2), (8, 64, 5)])
def test_the_bubble_is_that_of_the_virtual_cluster(stages: int, sequences: int, chunks: int) -> None:
    found = predict_split("gpt-146b", "selene", 8 * stages, Split(8, stages, chunks=chunks), sequences=sequences)
    computing = found.matrix_seconds + found.memory_seconds + found.tensor_seconds
    run = simulate("interleaved" if chunks > 1 else "1f1b", stages, sequences, chunks)
    assert found.micro_batches == sequences
    assert found.bubble_seconds / (computing + found.bubble_seconds) == pytest.approx(run.bubble_fraction)
    assert found.bubble_fraction == pytest.approx(run.bubble_fraction)


def test_stages_on_other_hosts_share_their_host_s_connection() -> None:
    near, far = (
        predict_split("gpt-18b", replace(HARDWARE["selene"], ranks_per_host=hosts), 4, Split(1, 4), sequences=8)
        for hosts in (4, 1)
    )
    machine, part = HARDWARE["selene"], 2 * 2048 * 6144 / 0.82
    assert near.pipeline_seconds == pytest.approx(
        16 * (machine.inside.latency + part * machine.inside.seconds_per_byte)
    )
    assert far.pipeline_seconds == pytest.approx(
        16 * (machine.between.latency + part * machine.between.seconds_per_byte)
    )


def test_zero_3_sends_half_as_much_again_and_more_with_each_micro_batch() -> None:
    def data_seconds(zero: int, sequences: int) -> float:
        return predict_split("gpt-7.5b", "selene", 64, Split(zero=zero), sequences=sequences).data_seconds

    usual = data_seconds(0, 64)
    assert data_seconds(1, 64) == data_seconds(2, 64) == data_seconds(0, 256) == usual
    assert data_seconds(3, 64) == pytest.approx(1.5 * usual)
    assert data_seconds(3, 256) == pytest.approx(6 * usual)
    assert data_seconds(2, 256) == pytest.approx(2.5 * usual)


@pytest.mark.parametrize("zero", range(4))
def test_memory_is_that_of_a_share_of_the_model(zero: int) -> None:
    found = predict_split("gpt-175b", "selene", 384, Split(8, 12, zero))
    assert found.data == 4
    assert found.state_bytes == pytest.approx(model_state_bytes(TRANSFORMERS["gpt-175b"].parameters / 96, 4, zero))


def test_more_micro_batches_take_no_more_memory_than_stages_ask_for() -> None:
    model, split = TRANSFORMERS["gpt-175b"], Split(8, 12)
    assert activation_bytes(model, split, 12) == activation_bytes(model, split, 400)
    layer = 2048 * 12288 * (10 + 24 / 8 + 5 * 96 * 2048 / (12288 * 8))
    assert activation_bytes(model, split, 12) == pytest.approx(12 * 8 * 2 * 2048 * 12288 + layer)
    assert activation_bytes(model, Split(8, 12, chunks=2), 24) > activation_bytes(model, split, 24)


def test_what_does_not_fit_says_so() -> None:
    assert not predict_split("palm-540b", "selene", 8, Split(8)).fits
    assert predict_split("palm-540b", "selene", 1024, Split(8, zero=3)).fits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpt-9", "selene", 8), "no transformer 'gpt-9'; there are gpt-1.7b"),
        (("gpt-175b", "abacus", 8), "no hardware 'abacus'"),
        (("gpt-175b", "laptop", 8), "laptop has no matrix units .* there are dgx1-v100"),
        (("gpt-175b", "selene", 9, Split(2, 2)), "9 ranks are no multiple of tensor × pipeline = 2 × 2 = 4"),
        (("gpt-175b", "selene", 7, Split(1, 7)), "96 layers of gpt-175b cannot be cut into 7"),
        (("gpt-175b", "selene", 7, Split(7)), "96 attention heads of gpt-175b cannot be shared by 7"),
        (("gpt-175b", "selene", 16, Split(8), 3), "3 sequences are no multiple of 2 replicas × 1"),
        (("gpt-175b", "selene", 4, Split(1, 4, chunks=2), 6), "a multiple of 4 micro-batches"),
    ],
)
def test_impossible_splits_are_refused(arguments: tuple, message: str) -> None:
    positional, sequences = arguments[:4], dict(zip(["sequences"], arguments[4:], strict=False))
    with pytest.raises(ValueError, match=message):
        predict_split(*positional, **sequences)


@pytest.mark.parametrize("wrong", [{"tensor": 0}, {"zero": 4}, {"micro_batch": 1.5}, {"chunks": 2}])
def test_splits_that_make_no_sense_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"tensor|ZeRO|micro_batch|chunks"):
        Split(**wrong)


# Figures in print ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("figure", DESCRIBED, ids=NAMES)
def test_published_figures_come_out_within_their_tolerance(figure: object) -> None:
    (comparison,) = compare_figures([figure])
    assert abs(comparison.difference) <= TOLERANCES[figure.kind].within
    assert comparison.is_within


def test_each_kind_of_figure_is_there() -> None:
    for kind, least in (("bubble", 24), ("memory", 24), ("throughput", 16)):
        assert sum(figure.kind == kind for figure in DESCRIBED) >= least
    assert {figure.what.partition("ZeRO ")[2][0] for figure in DESCRIBED if figure.kind == "memory"} == {"1", "2", "3"}


def test_a_wrong_assumption_is_seen() -> None:
    """Links ten times slower, or matrix products at half their speed: none of the throughputs comes out."""
    runs = [figure for figure in DESCRIBED if figure.kind == "throughput"]
    for wrong in ({"matrix_share": 0.32}, {"matrix_share": 1.0}):
        assert not any(each.is_within for each in compare_figures(runs, replace(Assumptions(), **wrong)))
    slow = compare_figures(runs[3:], replace(Assumptions(), bandwidth_share=0.082))
    assert not any(each.is_within for each in slow)


def test_a_wrong_figure_is_seen() -> None:
    for figure in (DESCRIBED[0], DESCRIBED[30], DESCRIBED[-1]):
        off = replace(figure, published=1.5 * figure.published)
        assert not FigureComparison(off, figure.predicted(None)).is_within


def test_no_bubble_at_all_would_not_do() -> None:
    """The bubble is what makes the shares come out, not a wide tolerance."""
    missed = [not FigureComparison(figure, 0.0).is_within for figure in DESCRIBED if figure.kind == "bubble"]
    assert all(missed)


def test_the_misses_are_those_that_the_report_speaks_of() -> None:
    """Bubbles too small; ZeRO 3 alone too fast, the more so the more devices share a batch."""
    bubbles = [each.difference for each in compare_figures() if each.figure.kind == "bubble"]
    assert max(bubbles) < 0
    zero = [each for each in compare_figures() if each.figure.kind == "throughput" and not each.figure.is_described]
    for model in ("gpt-175b", "gpt-530b"):
        misses = [each.difference for each in zero if each.figure.what.startswith(model)]
        assert len(misses) == 3 and misses == sorted(misses) and misses[0] > 10


def test_the_table_has_every_figure() -> None:
    comparisons = compare_figures()
    lines = figures_table(comparisons).splitlines()
    assert len(lines) == len(FIGURES) + 1
    assert sum("not described" in line for line in lines) == len(FIGURES) - len(DESCRIBED)
