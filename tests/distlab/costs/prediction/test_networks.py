"""Networks and transformers have the sizes, operations and activations that were published for them."""

import pytest

from distlab.costs import MODELS, TRANSFORMERS


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
        assert model.training_flops == pytest.approx(3 * 2 * multiply_adds, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "cnn"])
def test_networks_of_the_course_are_those_of_the_notebooks(name: str) -> None:
    from distlab import models

    assert MODELS[name].parameters == getattr(models, name)().count_params()


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        # Narayanan et al., tables 1 and 2; Chowdhery et al., table 1.
        ("gpt-1.7b", 1.7),
        ("gpt-18b", 18.4),
        ("gpt-175b", 174.6),
        ("gpt-1t", 1008.0),
        ("palm-540b", 540.35),
    ],
)
def test_transformers_have_the_published_number_of_parameters(name: str, billions: float) -> None:
    digits = len(str(billions).partition(".")[2])
    assert round(TRANSFORMERS[name].parameters / 1e9, digits) == billions


@pytest.mark.parametrize("name", ["gpt-1.7b", "gpt-175b"])
def test_operations_are_those_of_equation_3(name: str) -> None:
    model = TRANSFORMERS[name]
    B, s, h, l, V = 512, model.sequence, model.hidden, model.layers, model.vocabulary  # noqa: E741, N806
    expected = 96 * B * s * l * h**2 * (1 + s / (6 * h) + V / (16 * l * h))
    assert model.training_flops(B) == pytest.approx(expected, rel=1e-12)


def test_activations_are_those_of_korthikanti_s_equation_1() -> None:
    """sbh(34 + 5as/h) on one rank; for GPT-3 and micro-batches of one 2.7 GiB a layer."""
    model = TRANSFORMERS["gpt-175b"]
    assert model.layer_activation_bytes(1) == 2048 * 12288 * (34 + 5 * 96 * 2048 / 12288)
    assert model.layer_activation_bytes(1) / 2**30 == pytest.approx(2.67, abs=0.01)
