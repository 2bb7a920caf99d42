"""Transformers on tensor × pipeline × data ranks, each part of a prediction by hand."""

import pytest

from distlab.costs import HARDWARE, TRANSFORMERS, Split, predict_split
from distlab.model_parallel.pipelines import simulate
from distlab.model_parallel.sharded_optimizers import model_state_bytes


def test_one_device_only_computes() -> None:
    prediction = predict_split("gpt-1.7b", "selene", 1)
    model = TRANSFORMERS["gpt-1.7b"]
    assert prediction.sequences == 4
    assert prediction.seconds["matrices"] == pytest.approx(model.training_flops(4) / (0.63 * 312e12))
    assert prediction.seconds["other"] == pytest.approx(4 * 24 * 8 * model.layer_activation_bytes(1) / 2039e9)
    assert [prediction.seconds[part] for part in ("tensor", "pipeline", "bubble", "data")] == [0, 0, 0, 0]


def test_tensor_ranks_all_reduce_six_times_a_layer() -> None:
    prediction = predict_split("gpt-3.6b", "selene", 2, Split(tensor=2), sequences=4)
    link = HARDWARE["selene"].inside
    all_reduce = 2 * link.latency + 2 * 2048 * 3072 * link.seconds_per_byte / 0.82
    assert prediction.seconds["tensor"] == pytest.approx(4 * 30 * 6 * all_reduce)


@pytest.mark.parametrize(("stages", "sequences", "chunks"), [(4, 16, 1), (8, 64, 5)])
def test_the_bubble_is_that_of_the_virtual_cluster(stages: int, sequences: int, chunks: int) -> None:
    prediction = predict_split("gpt-146b", "selene", 8 * stages, Split(8, stages, chunks=chunks), sequences=sequences)
    computing = prediction.seconds["matrices"] + prediction.seconds["other"] + prediction.seconds["tensor"]
    run = simulate("interleaved" if chunks > 1 else "1f1b", stages, sequences, chunks)
    assert prediction.micro_batches == sequences
    assert prediction.seconds["bubble"] / (computing + prediction.seconds["bubble"]) == pytest.approx(
        run.bubble_fraction
    )
    assert prediction.bubble_fraction == pytest.approx(run.bubble_fraction)


def test_zero_3_sends_half_as_much_again_and_more_with_each_micro_batch() -> None:
    def data_seconds(zero: int, sequences: int) -> float:
        return predict_split("gpt-7.5b", "selene", 64, Split(zero=zero), sequences=sequences).seconds["data"]

    usual = data_seconds(0, 64)
    assert data_seconds(1, 64) == data_seconds(2, 64) == data_seconds(0, 256) == usual
    assert data_seconds(3, 64) == pytest.approx(1.5 * usual)
    assert data_seconds(3, 256) == pytest.approx(6 * usual)
    assert data_seconds(2, 256) == pytest.approx(2.5 * usual)


def test_memory_is_that_of_a_share_of_the_model() -> None:
    for zero in range(4):
        prediction = predict_split("gpt-175b", "selene", 384, Split(8, 12, zero))
        share = TRANSFORMERS["gpt-175b"].parameters / 96
        assert prediction.state_bytes == pytest.approx(model_state_bytes(share, 4, zero))
    assert not predict_split("palm-540b", "selene", 8, Split(8)).fits
    assert predict_split("palm-540b", "selene", 1024, Split(8, zero=3)).fits


@pytest.mark.parametrize(
    ("arguments", "sequences", "message"),
    [
        (("gpt-175b", "selene", 9, Split(2, 2)), None, "9 ranks are no multiple of tensor × pipeline = 4"),
        (("gpt-175b", "selene", 7, Split(1, 7)), None, "96 layers of gpt-175b are no multiple of stages × chunks = 7"),
        (("gpt-175b", "selene", 16, Split(8)), 3, "3 sequences are no multiple of replicas × micro-batch = 2"),
    ],
)
def test_what_does_not_divide_is_refused(arguments: tuple, sequences: int | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict_split(*arguments, sequences=sequences)
