"""Steps of data-parallel training: by hand, for arrays, for every model on every machine."""

from dataclasses import replace

import numpy as np
import pytest

from distlab.costs import HARDWARE, MODELS, OVERLAPS, Assumptions, predict
from distlab.costs.prediction.data_parallel import CHOICES, step, straggler_delay
from distlab.costs.prediction.networks import Measurement


@pytest.mark.slow
@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("algorithm", CHOICES)
def test_arrays_equal_numbers(algorithm: str, overlap: str) -> None:
    ranks = np.array([[1, 2, 3, 4], [5, 16, 127, 1024]])
    together = predict("inception_v3", "dgx1-v100", ranks, algorithm, overlap)
    assert together.efficiency.shape == ranks.shape
    for place in np.ndindex(ranks.shape):
        alone = predict("inception_v3", "dgx1-v100", ranks[place], algorithm, overlap)
        for name in ("step_seconds", "compute_seconds", "communication_seconds", "all_reduces", "efficiency"):
            assert getattr(alone, name) == getattr(together, name)[place]


def test_a_hundred_thousand_ranks_at_once() -> None:
    prediction = predict("resnet50", "dgx-h100", np.arange(1, 100_001), "ring")
    for name in ("step_seconds", "communication_seconds", "efficiency", "images_per_second"):
        values = getattr(prediction, name)
        assert values.shape == (100_000,)
        assert np.all(np.isfinite(values))
    assert np.all((prediction.efficiency > 0) & (prediction.efficiency <= 1))


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("hardware", HARDWARE)
def test_every_model_on_every_hardware(model: str, hardware: str) -> None:
    ranks = 2 ** np.arange(11)
    fused, layers, after = (predict(model, hardware, ranks, overlap=overlap) for overlap in OVERLAPS)
    assert fused.efficiency[0] == layers.efficiency[0] == after.efficiency[0] == 1
    assert fused.communication_seconds[0] == fused.all_reduces[0] == 0
    assert np.all(fused.exposed_seconds[1:] > 0)
    # With nothing hidden a step is computing, then waiting for the first cycle, then all-reduces.
    expected = after.compute_seconds + after.communication_seconds + Assumptions().cycle_seconds / 2
    assert np.all(after.step_seconds[1:] >= expected[1:] * (1 - 1e-12))
    assert np.all(layers.all_reduces[1:] == len(MODELS[model].layers))


@pytest.mark.parametrize("algorithm", ["ring", "tree", "halving_doubling", "hierarchical"])
def test_without_overlap_more_ranks_never_make_a_step_faster(algorithm: str) -> None:
    prediction = predict("resnet101", "horovod-roce25", 4 * 2 ** np.arange(10), algorithm, "none")
    assert np.all(np.diff(prediction.step_seconds) > 0)
    assert np.all(np.diff(prediction.efficiency) < 0)


def test_fusion_wobbles_by_about_a_point_at_most() -> None:
    prediction = predict("resnet101", "horovod-roce25", np.arange(4, 1025, 4))
    assert np.max(np.diff(prediction.efficiency)) < 0.015


def test_fastest_is_never_slower_without_overlap() -> None:
    ranks = np.array([2, 8, 64, 512, 4096])
    fastest = predict("vgg16", "dgx1-v100", ranks, "fastest", "none").step_seconds
    for algorithm in CHOICES:
        assert np.all(fastest <= predict("vgg16", "dgx1-v100", ranks, algorithm, "none").step_seconds * (1 + 1e-12))


def test_fusion_beats_one_all_reduce_per_layer_where_latency_counts() -> None:
    fused, layers = (predict("resnet101", "horovod-roce25", 512, overlap=overlap) for overlap in ("fusion", "layers"))
    assert layers.step_seconds > 1.65 * fused.step_seconds
    assert layers.all_reduces > fused.all_reduces


def test_the_steps_of_one_overlapped_step_by_hand() -> None:
    """Two layers with 1 and 3 parts of the work; an all-reduce takes 1 s, waiting only."""
    layers = tuple(type(MODELS["mlp"].layers[0])(name, 100, work) for name, work in (("first", 3), ("last", 1)))
    assumptions = Assumptions(backward_share=0.5, cycle_seconds=0.0, slowdown=0.0)

    def all_reduce(entries: np.ndarray, array_bytes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.ones(len(entries)), np.zeros(len(entries))

    # 8 s of computing: forward 4 s, the last layer's gradient after 5 s, the first layer's after 8 s.
    fused = step(layers, np.array([8.0]), all_reduce, "fusion", assumptions)
    assert (fused.seconds[0], fused.all_reduces[0]) == (9.0, 2)
    # 0.8 s of computing: the first gradient after 0.5 s; the other waits from 0.8 s until 1.5 s.
    late = step(layers, np.array([0.8]), all_reduce, "fusion", assumptions)
    assert (late.seconds[0], late.all_reduces[0]) == (pytest.approx(2.5), 2)
    after = step(layers, np.array([8.0]), all_reduce, "none", assumptions)
    assert (after.seconds[0], after.all_reduces[0]) == (9.0, 1)


def test_moving_bytes_slow_the_computing() -> None:
    layers = MODELS["mlp"].layers
    times = [
        step(
            layers,
            np.array([1.0]),
            lambda entries, array_bytes: (0 * array_bytes, 1e-6 * array_bytes),
            "layers",
            Assumptions(slowdown=slowdown, cycle_seconds=0.0),
        ).seconds[0]
        for slowdown in (0.0, 0.5)
    ]
    # The output layer's 5,160 bytes move for 5.16 ms while the other layer computes.
    assert times[1] - times[0] == pytest.approx(5.16e-3 * (1 - 1 / 1.5), rel=1e-9)


def test_straggler_delay_grows_like_the_largest_of_normal_numbers() -> None:
    drawn = np.random.default_rng(0).standard_normal((4000, 512))
    for count in (2, 8, 64, 512):
        assert straggler_delay(count) == pytest.approx(drawn[:, :count].max(axis=1).mean(), abs=0.05)
    assert straggler_delay(1) == 0


def test_speeds_are_published_or_estimated_and_say_so() -> None:
    assert predict("vgg16", "horovod-roce25", 1).images_per_second == pytest.approx(130.9)
    assert predict("vgg16", "horovod-roce25", 1).speed_source.startswith("published: 130.9 images/s")
    assert predict("resnet50", "bigbasin-ethernet50", 1).speed_source.startswith("second-hand")
    estimated = predict("resnet50", "horovod-roce25", 1)
    assert estimated.speed_source.startswith("estimated")
    assert estimated.images_per_second == pytest.approx(219, rel=0.01)
    assert predict("resnet50", "horovod-roce25", 1, batch=7).batch == 7


def test_half_precision_on_the_way_halves_the_bytes() -> None:
    machine = HARDWARE["horovod-roce25"]
    no_latency = replace(
        machine, inside=replace(machine.inside, latency=0), between=replace(machine.between, latency=0)
    )
    full, half = (
        predict("vgg16", no_latency, 64, "ring", "none", bytes_per_parameter=size).communication_seconds
        for size in (4, 2)
    )
    assert half == pytest.approx(full / 2, rel=1e-12)


def test_another_speed_takes_the_place_of_the_published_one() -> None:
    own = predict("vgg16", "horovod-roce25", 1, speed=Measurement(200.0, 16, "this test"))
    assert own.images_per_second == pytest.approx(200)
    assert own.batch == 16
    assert own.speed_source == "published: 200 images/s, this test"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "alexnet"}, "no model 'alexnet'; there are mlp, cnn, resnet50"),
        ({"hardware": "abacus"}, "no hardware 'abacus'; there are laptop"),
        ({"algorithm": "rings"}, "no algorithm 'rings'; there are naive"),
        ({"overlap": "much"}, "no overlap 'much'; there are fusion, layers, none"),
        ({"ranks": 0}, "number of ranks"),
        ({"batch": 0}, "batch per rank"),
        ({"bytes_per_parameter": 0}, "at least 1 byte, not 0"),
        ({"baseline_ranks": [1, 2]}, "baseline_ranks is one number"),
    ],
)
def test_impossible_predictions_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict(**({"model": "cnn", "hardware": "laptop", "ranks": 2} | arguments))


def test_a_model_that_must_be_split_is_named_with_its_function() -> None:
    with pytest.raises(ValueError, match=r"^gpt-175b does not fit on one device; costs\.predict_split splits it"):
        predict("gpt-175b", "selene", [8])
