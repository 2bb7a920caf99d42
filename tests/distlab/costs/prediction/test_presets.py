"""Networks and transformers have their published sizes; a preset written into a file predicts what the preset does."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from distlab.costs import HARDWARE, MODELS, TRANSFORMERS, predict
from distlab.costs.prediction.presets import hardware_of, model_of


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


def network(name: str, **more: float) -> str:
    entries = {"batch": MODELS[name].batch, **more}
    layers = [
        f'[[layers]]\nname = "{layer.name}"\nparameters = {layer.parameters}\nflops = {2 * layer.multiply_adds}\n'
        for layer in MODELS[name].layers
    ]
    return "".join([*(f"{entry} = {value}\n" for entry, value in entries.items()), *layers])


@pytest.mark.parametrize("speed", [None, 300.0])
def test_a_network_of_a_file_is_predicted_as_the_same_preset(tmp_path: Path, speed: float | None) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(network("resnet50", **({"images_per_second": speed} if speed else {})))
    mine = model_of(str(file))
    assert [layer[1:] for layer in mine.layers] == [layer[1:] for layer in MODELS["resnet50"].layers]
    own = predict(mine, "dgx-a100", [1, 8, 64])
    if speed:
        np.testing.assert_allclose(own.images_per_second[0], 300.0)
        assert own.speed_source.startswith("given: 300 images/s")
    else:  # by FLOPs, as the preset for a machine without a published speed
        preset = predict("resnet50", "horovod-roce25", [1, 8])
        np.testing.assert_array_equal(predict(mine, "horovod-roce25", [1, 8]).step_seconds, preset.step_seconds)


def test_the_mark_of_notepad_and_a_rounded_number_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('batch = 3\n[[layers]]\nname = "all"\nparameters = 25.6e6\nflops = 8e9\n', encoding="utf-8-sig")
    [layer] = model_of(str(file)).layers
    assert str(layer.parameters) == "25600000"


def test_a_machine_of_a_file_takes_from_a_preset_what_it_does_not_say(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('like = "dgx-a100"\nranks_per_host = 4\n[between]\nlatency = 9.6e-6\ngigabits_per_second = 100\n')
    ours, preset = hardware_of(str(file)), HARDWARE["dgx-a100"]
    assert (ours.ranks_per_host, ours.inside, ours.flops) == (4, preset.inside, preset.flops)
    assert (ours.between.latency, 8e-9 / ours.between.seconds_per_byte) == (9.6e-6, pytest.approx(100))


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (model_of, "batch = 3", "missing 1 required positional argument: 'layers'"),
        (model_of, 'batch = 3\n[[layers]]\nname = "a"\nweights = 3', "unexpected keyword argument 'weights'"),
        (hardware_of, "ranks_per_host = 4", "there is no 'inside'"),
        (hardware_of, 'like = "dgx-a100"\n[between]\nlatency = 1e-6', "a link needs gigabits_per_second or"),
    ],
)
def test_a_mistake_names_the_file_and_the_entry(
    read: Callable[[str], object], text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"mine\.toml: .*{said}"):
        read(str(file))


def test_a_file_that_is_missing_is_named_once() -> None:
    with pytest.raises(ValueError, match=r"^There is no file /nowhere/mine\.toml\.$"):
        model_of("/nowhere/mine.toml")
