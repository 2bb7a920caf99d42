"""What a notebook defines to show it, and `distlab` offers for later use, is the same."""

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.slow


def shown(source: Path, name: str) -> Callable:
    """The function `name` as the notebook's source defines it, and nothing else of the notebook."""
    definitions = [node for node in ast.parse(source.read_text()).body if getattr(node, "name", None) == name]
    assert len(definitions) == 1, f"{source.name} defines {name} {len(definitions)} times"
    import tensorflow as tf  # here, since it takes seconds to start and a run without slow tests does not need it

    names: dict[str, object] = {"tf": tf, "np": np}
    exec(compile(ast.Module(definitions, type_ignores=[]), str(source), "exec"), names)
    return names[name]


def layers(model: Any) -> list[dict]:
    """Every layer's settings, without the names that Keras counts up."""
    return [{key: value for key, value in layer.get_config().items() if key != "name"} for layer in model.layers]


def same(first: Callable, second: Callable) -> bool:
    """Whether two functions build the same layers and, from the same seed, the same weights."""
    import tensorflow as tf

    built = []
    for build in (first, second):
        tf.keras.utils.set_random_seed(1)
        built.append(build())
    weights = zip(*(model.get_weights() for model in built), strict=True)
    return layers(built[0]) == layers(built[1]) and all(np.array_equal(*pair) for pair in weights)


def test_the_network_of_notebook_02_is_the_course_s_mlp(root: Path) -> None:
    from distlab import models

    assert same(shown(root / "notebooks" / "src" / "02_single_device_baseline.py", "mlp"), models.mlp)


def test_another_dropout_is_seen_as_a_difference() -> None:
    from distlab import models

    assert not same(models.mlp, lambda: models.mlp(dropout=0.3))


def test_the_ring_of_notebook_06_is_the_course_s_ring_all_reduce(root: Path) -> None:
    from distlab import collectives
    from distlab.simulate import Network, World

    ring = shown(root / "notebooks" / "src" / "06_collectives_and_ring_all_reduce.py", "ring_all_reduce")
    for size in range(1, 10):
        for length in (0, 1, 7, 24):
            inputs = list(np.random.default_rng(size).normal(size=(size, length)))
            first, second = (
                World(size, Network(seconds_per_byte_reduced=1e-9)).run(program, inputs)
                for program in (ring, collectives.ring_all_reduce)
            )
            for one, other in zip(first.results, second.results, strict=True):
                np.testing.assert_array_equal(one, other)
            np.testing.assert_array_equal(first.events.columns, second.events.columns)
