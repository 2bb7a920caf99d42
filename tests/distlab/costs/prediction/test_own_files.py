"""A preset that is written into files predicts what the preset does; a mistake names its file and the entry."""

from pathlib import Path

import numpy as np
import pytest
from distlab.costs.prediction.own_files import own_machine, own_network

from distlab.costs import HARDWARE, MODELS, predict


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
    mine, given = own_network(file)
    assert mine.layers == MODELS["resnet50"].layers
    own = predict(mine, "dgx-a100", [1, 8, 64], speed=given)
    if speed:
        np.testing.assert_allclose(own.images_per_second[0], 300.0)
        assert own.speed_source.startswith("given: 300 images/s")
    else:  # by FLOPs, as the preset for a machine without a published speed
        preset = predict("resnet50", "horovod-roce25", [1, 8])
        np.testing.assert_array_equal(predict(mine, "horovod-roce25", [1, 8]).step_seconds, preset.step_seconds)


def test_the_mark_of_notepad_and_a_rounded_number_are_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('batch = 3\n[[layers]]\nname = "all"\nparameters = 25.6e6\nflops = 8e9\n', encoding="utf-8-sig")
    [layer] = own_network(file)[0].layers
    assert str(layer.parameters) == "25600000"


def test_a_machine_of_a_file_takes_from_a_preset_what_it_does_not_say(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text('like = "dgx-a100"\nranks_per_host = 4\n[between]\nlatency = 9.6e-6\ngigabits_per_second = 100\n')
    ours, preset = own_machine(file), HARDWARE["dgx-a100"]
    assert (ours.ranks_per_host, ours.inside, ours.flops) == (4, preset.inside, preset.flops)
    assert (ours.between.latency, 8e-9 / ours.between.seconds_per_byte) == (9.6e-6, pytest.approx(100))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("batch = 3", "missing 1 required positional argument: 'layers'"),
        ('batch = 3\n[[layers]]\nname = "a"\nweights = 3', "unexpected keyword argument 'weights'"),
    ],
)
def test_a_mistake_names_the_file_and_the_entry(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"mine\.toml: .*{said}"):
        own_network(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ranks_per_host = 4", "there is no 'inside'"),
        ('like = "dgx-a100"\n[between]\nlatency = 1e-6', "a link needs gigabits_per_second or"),
    ],
)
def test_a_machine_without_its_links_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"ours\.toml: {said}"):
        own_machine(file)
