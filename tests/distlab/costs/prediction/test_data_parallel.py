"""Steps of data-parallel training: by hand, for every model on every machine; what TCP costs a machine."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from distlab.costs import HARDWARE, MODELS, OVERLAPS, predict
from distlab.costs.prediction import data_parallel
from distlab.costs.prediction.data_parallel import step, straggler_delay
from distlab.costs.prediction.presets import ASSUMED, Layer, Measurement
from distlab.simulate import Link


@pytest.mark.slow
def test_every_model_on_every_hardware() -> None:
    for model, hardware in {*product(MODELS, ["horovod-roce25"]), *product(["cnn"], HARDWARE)}:
        fused, layers, after = (predict(model, hardware, [1, 8, 1024], overlap=overlap) for overlap in OVERLAPS)
        assert fused.efficiency[0] == layers.efficiency[0] == after.efficiency[0] == 1
        assert fused.communication_seconds[0] == 0
        assert np.all(fused.exposed_seconds[1:] > 0)
        # With nothing hidden a step is computing, then waiting for the first cycle, then all-reduces.
        expected = after.compute_seconds + after.communication_seconds + ASSUMED.cycle_seconds / 2
        assert np.all(after.step_seconds[1:] >= expected[1:] * (1 - 1e-12))
        assert np.all(layers.communication_seconds >= fused.communication_seconds)


@pytest.mark.parametrize("algorithm", ["ring", "hierarchical"])
def test_without_overlap_more_ranks_never_make_a_step_faster(algorithm: str) -> None:
    prediction = predict("resnet101", "horovod-roce25", 4 * 2 ** np.arange(10), algorithm, "none")
    assert np.all(np.diff(prediction.step_seconds) > 0)
    fastest = predict("resnet101", "horovod-roce25", prediction.ranks, "fastest", "none")
    assert np.all(fastest.step_seconds <= prediction.step_seconds * (1 + 1e-12))


def test_the_steps_of_one_overlapped_step_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers with 1 and 3 parts of the work; an all-reduce takes 1 s, waiting only."""
    layers = (Layer("first", 100, 3), Layer("last", 100, 1))
    simple = replace(ASSUMED, backward_share=0.5, cycle_seconds=0.0, slowdown=0.0)
    monkeypatch.setattr(data_parallel, "ASSUMED", simple)

    def all_reduce(array_bytes: float) -> tuple[float, float]:
        return 1.0, 0.0

    # 8 s of computing: forward 4 s, the last layer's gradient after 5 s, the first layer's after 8 s.
    assert step(layers, 8.0, all_reduce, "fusion") == (9.0, 2.0)
    # 0.8 s of computing: the first gradient after 0.5 s; the other waits from 0.8 s until 1.5 s.
    assert step(layers, 0.8, all_reduce, "fusion") == (pytest.approx(2.5), 2.0)
    assert step(layers, 8.0, all_reduce, "none") == (9.0, 1.0)


def test_straggler_delay_grows_like_the_largest_of_normal_numbers() -> None:
    drawn = np.random.default_rng(0).standard_normal((4000, 512))
    for count in (2, 8, 64, 512):
        assert straggler_delay(count) == pytest.approx(drawn[:, :count].max(axis=1).mean(), abs=0.05)
    assert straggler_delay(1) == 0


def test_speeds_are_published_or_estimated_or_given_and_say_so() -> None:
    assert predict("vgg16", "horovod-roce25", 1).images_per_second == pytest.approx(130.9)
    assert predict("vgg16", "horovod-roce25", 1).speed_source.startswith("published: 130.9 images/s")
    assert predict("resnet50", "bigbasin-ethernet50", 1).speed_source.startswith("second-hand")
    estimated = predict("resnet50", "horovod-roce25", 1, batch=7)
    assert estimated.speed_source.startswith("estimated") and estimated.batch == 7
    assert predict("resnet50", "horovod-roce25", 1).images_per_second == pytest.approx(219, rel=0.01)
    own = predict("vgg16", "horovod-roce25", 1, speed=Measurement(200.0, 16, "this test"))
    assert (own.images_per_second, own.batch) == (pytest.approx(200), 16)


def test_over_tcp_a_byte_takes_its_time_on_the_wire_and_in_a_processor() -> None:
    """Of 100 Gbit/s little more than a quarter is left; Horovod reached about 32 there (arXiv:2006.10103)."""
    fast = replace(HARDWARE["horovod-tcp40"], between=Link(0, 8e-9 / 100))
    inside, between = fast.reached_links()
    assert 8e-9 / between.seconds_per_byte == pytest.approx(1 / (1 / 82 + 1 / 42))
    assert 8e-9 / between.seconds_per_byte == pytest.approx(32, rel=0.15)
    assert 1e-9 / inside.seconds_per_byte == pytest.approx(0.82 * 15.75)
    _, rdma = replace(fast, uses_tcp=False).reached_links()
    assert 8e-9 / rdma.seconds_per_byte == pytest.approx(82)
