"""The audit in notebook 11 gives the numbers that were recomputed from the published times."""

import ast
from pathlib import Path

import pytest

# Steps, images and true efficiency in %, recomputed from the times that the bootcamp prints.
PUBLISHED = {
    ("V100", 2048): {2: (14, 57_344, 85), 4: (7, 57_344, 86), 8: (3, 49_152, 71)},
    ("A100", 8192): {2: (3, 49_152, 66), 4: (1, 32_768, 34), 8: (0, 0, None)},
}


def test_every_row_has_the_recomputed_images_and_efficiency(root: Path) -> None:
    tree = ast.parse((root / "notebooks" / "src" / "11_scaling_and_profiling.py").read_text())
    wanted = [node for node in tree.body if getattr(node, "name", None) == "images_in"]
    wanted += [node for node in tree.body if ast.unparse(node).startswith("claims = ")]
    names: dict = {}
    exec(compile(ast.Module(wanted, type_ignores=[]), "notebook 11", "exec"), names)
    images_in, claims = names["images_in"], names["claims"]
    assert {key: list(claimed) for key, claimed in claims.items()} == {key: list(PUBLISHED[key]) for key in PUBLISHED}
    differences = []
    for (gpu, batch), rows in PUBLISHED.items():
        for gpus, (steps, images, true) in rows.items():
            assert images_in(batch, gpus) == images == steps * batch * gpus
            if true is not None:
                claimed = 100 * claims[gpu, batch][gpus]
                # The claims are rounded to a percent.
                assert claimed * images / images_in(batch, 1) == pytest.approx(true, abs=1.5)
                differences.append(abs(claimed - true))
    assert max(differences) > 10  # what is claimed is not what is true
