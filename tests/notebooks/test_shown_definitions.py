"""What a notebook defines to show it, and `distlab` offers for later use, is the same."""

import ast
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import collectives, models
from distlab.simulate import Network, World

pytestmark = pytest.mark.slow


def shown(source: Path, name: str) -> Callable:
    """The function `name` as the notebook's source defines it, and nothing else of the notebook."""
    [definition] = [node for node in ast.parse(source.read_text()).body if getattr(node, "name", None) == name]
    names: dict[str, object] = {"tf": tf, "np": np}
    exec(compile(ast.Module([definition], type_ignores=[]), str(source), "exec"), names)
    return names[name]


def test_the_network_of_notebook_02_is_the_course_s_mlp(root: Path) -> None:
    built = []
    for build in (shown(root / "notebooks" / "src" / "02_single_device_baseline.py", "mlp"), models.mlp):
        tf.keras.utils.set_random_seed(1)
        model = build()
        # Every layer's settings, without the names that Keras counts up.
        settings = [{**layer.get_config(), "name": None} for layer in model.layers]
        built.append((settings, [weight.tolist() for weight in model.get_weights()]))
    assert built[0] == built[1]


def test_the_ring_of_notebook_06_is_the_course_s_ring_all_reduce(root: Path) -> None:
    ring = shown(root / "notebooks" / "src" / "06_collectives_and_ring_all_reduce.py", "ring_all_reduce")
    for size in range(1, 10):
        for length in (0, 1, 7, 24):
            inputs = list(np.random.default_rng(size).normal(size=(size, length)))
            world = World(size, Network(seconds_per_byte_reduced=1e-9))
            first, second = (world.run(program, inputs) for program in (ring, collectives.ring_all_reduce))
            np.testing.assert_array_equal(first.results, second.results)
            np.testing.assert_array_equal(first.events.columns, second.events.columns)
