"""What a notebook defines to show it: the same as `distlab` offers for later use, or right by other numbers."""

import ast
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from distlab import collectives, models
from distlab.simulate import Network, World
from tests.conftest import ROOT

pytestmark = pytest.mark.slow


def shown(notebook: str, *names: str) -> list[Any]:
    """What the notebook's source defines under these names, and nothing else of it."""
    wanted = []
    for node in ast.parse((ROOT / "notebooks" / "src" / f"{notebook}.py").read_text()).body:
        defined = [target.id for target in getattr(node, "targets", []) if isinstance(target, ast.Name)]
        if {getattr(node, "name", None), *defined} & {*names}:
            wanted.append(node)
    found: dict[str, Any] = {"tf": tf, "np": np}
    exec(compile(ast.Module(wanted, type_ignores=[]), notebook, "exec"), found)
    return [found[name] for name in names]


def test_the_network_of_notebook_02_is_the_course_s_mlp() -> None:
    built = []
    for build in (*shown("02_single_device_baseline", "mlp"), models.mlp):
        tf.keras.utils.set_random_seed(1)
        model = build()
        # Every layer's settings, without the names that Keras counts up.
        settings = [{**layer.get_config(), "name": None} for layer in model.layers]
        built.append((settings, [weight.tolist() for weight in model.get_weights()]))
    assert built[0] == built[1]


def test_the_ring_of_notebook_06_is_the_course_s_ring_all_reduce() -> None:
    [ring] = shown("06_collectives_and_ring_all_reduce", "ring_all_reduce")
    for size in range(1, 10):
        for length in (0, 1, 7, 24):
            inputs = list(np.random.default_rng(size).normal(size=(size, length)))
            world = World(size, Network(seconds_per_byte_reduced=1e-9))
            first, second = (world.run(program, inputs) for program in (ring, collectives.ring_all_reduce))
            np.testing.assert_array_equal(first.results, second.results)
            np.testing.assert_array_equal(first.events.columns, second.events.columns)


# Steps, images and true efficiency in %, recomputed from the images/s that the bootcamp prints.
PUBLISHED = {
    ("V100", 2048): {2: (14, 57_344, 85), 4: (7, 57_344, 86), 8: (3, 49_152, 71)},
    ("A100", 8192): {2: (3, 49_152, 66), 4: (1, 32_768, 34), 8: (0, 0, None)},
}


def test_every_row_of_the_audit_in_notebook_11_has_the_recomputed_images_and_efficiency() -> None:
    images_in, table = shown("11_scaling_and_profiling", "images_in", "lab_table")
    assert {key[:2]: list(rows) for key, rows in table.items()} == {key: list(PUBLISHED[key]) for key in PUBLISHED}
    differences = []
    for (gpu, batch, one), rows in table.items():
        for gpus, (rate, claimed) in rows.items():
            steps, images, true = PUBLISHED[gpu, batch][gpus]
            assert images_in(batch, gpus) == images == steps * batch * gpus
            if true is not None:
                printed = 100 * rate / gpus / one
                assert printed == pytest.approx(100 * claimed, abs=1.5)  # the claims are rounded
                assert printed * images / images_in(batch, 1) == pytest.approx(true, abs=0.5)
                differences.append(abs(printed - true))
    assert max(differences) > 10  # what is claimed is not what is true
