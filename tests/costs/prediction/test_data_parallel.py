"""Prediction: networks as published, the published scaling results within five points."""

from dataclasses import replace

import numpy as np
import pytest

from distlab.costs import HARDWARE, MODELS, OVERLAPS, Assumptions, predict
from distlab.costs.prediction.data_parallel import CHOICES, expected_lateness
from distlab.costs.prediction.overlap import step
from distlab.costs.published.efficiencies import RESULTS, WITHIN, compare, implied_bandwidth_share, sensitivity

DESCRIBED = [result for result in RESULTS if result.is_described]


@pytest.mark.parametrize(
    ("name", "parameters", "multiply_adds"),
    [
        # Parameters exactly as in Keras' and PyTorch's reference models, multiply-adds to 1 % as listed for PyTorch's.
        ("mlp", 101_770, None),
        ("cnn", 347_146, None),
        ("resnet50", 25_557_032, 4.09e9),
        ("resnet101", 44_549_160, 7.80e9),
        ("inception_v3", 23_834_568, 5.71e9),
        ("vgg16", 138_357_544, 15.47e9),
    ],
)
def test_networks_have_the_published_size(name: str, parameters: int, multiply_adds: float | None) -> None:
    model = MODELS[name]
    assert model.parameters == parameters
    assert model.gradient_bytes == 4 * parameters
    if multiply_adds:
        assert model.forward_flops == pytest.approx(2 * multiply_adds, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_networks_of_the_course_are_those_of_the_notebooks(name: str) -> None:
    from distlab import models

    assert MODELS[name].parameters == getattr(models, name)().count_params()


def test_vgg16_keeps_most_parameters_in_one_layer() -> None:
    largest = max(MODELS["vgg16"].layers, key=lambda layer: layer.parameters)
    assert largest.parameters / MODELS["vgg16"].parameters == pytest.approx(0.743, abs=0.001)


@pytest.mark.parametrize("result", DESCRIBED, ids=lambda result: f"{result.model}-{result.hardware}-{result.ranks}")
def test_published_scaling_is_predicted_within_five_points(result: object) -> None:
    (comparison,) = compare(results=[result])
    assert comparison.is_within
    assert abs(comparison.difference) <= WITHIN == 5.0


def test_the_published_counts_of_gpus() -> None:
    """68 % for VGG-16 is on 128 servers with 4 GPUs; on 128 GPUs it was 79 %."""
    vgg16 = {result.ranks: result.efficiency for result in DESCRIBED if result.model == "vgg16"}
    assert vgg16[512] == 0.68
    assert vgg16[128] == 0.79
    assert vgg16[16] == pytest.approx(13.7 / 16, abs=0.004)


@pytest.mark.parametrize("result", DESCRIBED[:4], ids=lambda result: result.model)
def test_a_wrong_assumption_is_seen(result: object) -> None:
    """No overlap, or a link ten times slower: every one of the four falls out of the five points."""
    usual = Assumptions()
    slow = replace(usual, bandwidth_share=usual.bandwidth_share / 10)
    assert not compare(overlap="none", results=[result])[0].is_within
    assert not compare(slow, results=[result])[0].is_within


@pytest.mark.slow
def test_tcp_gives_less_of_its_link_than_rdma() -> None:
    by_cluster = {
        result.hardware: implied_bandwidth_share(result)
        for result in RESULTS
        if result.model == "vgg16" and result.ranks <= 64
    }
    assert by_cluster["horovod-tcp40"] < by_cluster["horovod-tcp25"] < 0.65 < by_cluster["horovod-roce25"]


@pytest.mark.slow
def test_sensitivity_has_the_right_signs() -> None:
    changes = sensitivity()
    assert np.all(changes["bandwidth_share", 0.7] <= 0)
    assert np.all(changes["variation", 0.0] > 0)
    assert np.all(changes["overlap", 0.0] < -WITHIN)
    assert np.all(changes["latency", 2.0] < 0)
    assert np.all(changes["latency", 0.5] > -0.5)


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


def test_lateness_grows_like_the_largest_of_normal_numbers() -> None:
    drawn = np.random.default_rng(0).standard_normal((4000, 512))
    for count in (2, 8, 64, 512):
        assert expected_lateness(count) == pytest.approx(drawn[:, :count].max(axis=1).mean(), abs=0.05)
    assert expected_lateness(1) == 0


def test_speeds_are_published_or_estimated_and_say_so() -> None:
    assert predict("vgg16", "horovod-roce25", 1).images_per_second == pytest.approx(130.9)
    assert predict("vgg16", "horovod-roce25", 1).speed_source.startswith("published: 130.9 images/s")
    assert predict("resnet50", "bigbasin-ethernet50", 1).speed_source.startswith("second-hand")
    estimated = predict("resnet50", "horovod-roce25", 1)
    assert estimated.speed_source.startswith("estimated")
    assert estimated.images_per_second == pytest.approx(219, rel=0.01)
    assert predict("resnet50", "horovod-roce25", 1, batch=7).batch == 7


def test_hardware_gives_a_network_for_the_virtual_cluster() -> None:
    network = HARDWARE["bigbasin-ethernet50"].network()
    assert network.link(0, 7) == HARDWARE["bigbasin-ethernet50"].inside
    assert network.link(0, 8).seconds_per_byte == pytest.approx(8 * 8e-9 / 50)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "alexnet"}, "no model 'alexnet'; there are mlp, cnn, resnet50"),
        ({"hardware": "abacus"}, "no hardware 'abacus'; there are laptop"),
        ({"algorithm": "rings"}, "no algorithm 'rings'; there are naive"),
        ({"overlap": "much"}, "no overlap 'much'; there are fusion, layers, none"),
        ({"ranks": 0}, "number of ranks"),
        ({"batch": 0}, "batch per rank"),
        ({"baseline_ranks": [1, 2]}, "baseline_ranks is one number"),
    ],
)
def test_impossible_predictions_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        predict(**({"model": "cnn", "hardware": "laptop", "ranks": 2} | arguments))


@pytest.mark.parametrize(
    "wrong", [{"bandwidth_share": 0}, {"backward_share": 1.5}, {"variation": -1}, {"slowdown": float("nan")}]
)
def test_impossible_assumptions_are_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Assumptions(**wrong)
