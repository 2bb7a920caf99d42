"""What a notebook defines to show it is the same as `distlab` offers for later use."""

import ast
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf

from distlab import collectives, models
from distlab.simulate import Network, World
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def shown(notebook: str, name: str) -> Callable:
    """The function of this name in the notebook's source, and nothing else of it."""
    source = ast.parse((ROOT / "notebooks" / "src" / f"{notebook}.py").read_text())
    source.body = [node for node in source.body if getattr(node, "name", None) == name]
    found = {"tf": tf, "np": np}
    exec(compile(source, notebook, "exec"), found)
    return found[name]


def test_the_network_of_notebook_02_is_the_course_s_mlp() -> None:
    built = []
    for build in (shown("02_single_device_baseline", "mlp"), models.mlp):
        tf.keras.utils.set_random_seed(1)
        model = build()
        # Every layer's settings, without the names that Keras counts up.
        settings = [{**layer.get_config(), "name": None} for layer in model.layers]
        built.append((settings, [weight.tolist() for weight in model.get_weights()]))
    assert built[0] == built[1]


def test_the_ring_of_notebook_06_is_the_course_s_ring_all_reduce() -> None:
    ring = shown("06_collectives_and_ring_all_reduce", "ring_all_reduce")
    for size in range(1, 10):
        for length in (0, 1, 7, 24):
            inputs = list(np.random.default_rng(size).normal(size=(size, length)))
            world = World(size, Network(seconds_per_byte_reduced=1e-9))
            first, second = (world.run(program, inputs) for program in (ring, collectives.ring_all_reduce))
            np.testing.assert_array_equal(first.results, second.results)
            np.testing.assert_array_equal(first.events.columns, second.events.columns)
