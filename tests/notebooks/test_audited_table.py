"""The audit in notebook 11 gives the numbers that were recomputed from the published images/s."""

import ast
from pathlib import Path

import pytest

# Steps, images and true efficiency in %, recomputed from the images/s that the bootcamp prints.
PUBLISHED = {
    ("V100", 2048): {2: (14, 57_344, 85), 4: (7, 57_344, 86), 8: (3, 49_152, 71)},
    ("A100", 8192): {2: (3, 49_152, 66), 4: (1, 32_768, 34), 8: (0, 0, None)},
}


def test_every_row_has_the_recomputed_images_and_efficiency(root: Path) -> None:
    tree = ast.parse((root / "notebooks" / "src" / "11_scaling_and_profiling.py").read_text())
    wanted = [node for node in tree.body if getattr(node, "name", None) == "images_in"]
    wanted += [node for node in tree.body if ast.unparse(node).startswith("lab_table = ")]
    names: dict = {}
    exec(compile(ast.Module(wanted, type_ignores=[]), "notebook 11", "exec"), names)
    images_in, table = names["images_in"], names["lab_table"]
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
