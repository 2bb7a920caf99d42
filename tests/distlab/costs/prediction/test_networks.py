"""Networks have the sizes that were published for them."""

import pytest

from distlab.costs import MODELS


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
