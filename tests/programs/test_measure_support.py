"""The committed support table: whole, of today's versions, and in agreement with cells that are run again here."""

import json
import re
from pathlib import Path

import pytest

from distlab import programs, strategy_support

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

FOLDER = programs.FOLDER / "08b_keras_3"
measure_support = programs.module(FOLDER / "measure_support.py")
table = strategy_support.read(FOLDER / "support_table.json")


def test_the_table_has_every_cell_and_was_measured_with_the_locked_versions(root: Path) -> None:
    assert list(table["strategies"]) == list(table["cells"]) == list(measure_support.ROWS)
    for by_api in table["cells"].values():
        assert list(by_api) == list(measure_support.APIS)
        assert all(list(cells) == list(measure_support.KERASES) for cells in by_api.values())
    on_jax = json.loads((FOLDER / "keras_distribution_jax.json").read_text())
    assert on_jax["versions"]["keras"] == table["versions"]["keras"], "measure it again on JAX"
    lock = (root / "requirements.lock").read_text()
    for package in ("tensorflow", "tf-keras", "keras"):
        pins = re.findall(rf"^{package}==([^ ;\\]+)", lock, re.MULTILINE)
        assert table["versions"][package] in pins, "measure it again by `make support-table`"


def test_the_fit_of_keras_3_works_on_two_devices_and_fails_on_two_workers_as_in_the_table() -> None:
    for strategy, state in (("mirrored", "works"), ("multi-worker-2", "fails")):
        cell = measure_support.cell(strategy, "fit", "keras-3")
        assert cell == table["cells"][strategy]["fit"]["keras-3"]
        assert cell["state"] == state
