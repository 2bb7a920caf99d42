"""The committed support table: whole, of today's versions, and in agreement with cells that are run again here."""

import json
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from distlab import programs, strategy_support

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

FOLDER = Path(__file__).parents[2] / "notebooks/programs/08b_keras_3"
TABLE = FOLDER / "support_table.json"


@pytest.fixture(scope="module")
def measure_support() -> ModuleType:
    """The program, loaded by its path."""
    return programs.module(FOLDER / "measure_support.py")


@pytest.fixture(scope="module")
def table() -> dict:
    """The committed table."""
    return strategy_support.read(TABLE)


def test_the_table_has_every_cell_and_was_measured_with_the_locked_versions(
    root: Path, measure_support: ModuleType, table: dict
) -> None:
    assert list(table["strategies"]) == list(table["cells"]) == list(measure_support.ROWS)
    for by_api in table["cells"].values():
        assert {api: list(cells) for api, cells in by_api.items()} == {
            api: list(measure_support.KERASES) for api in measure_support.APIS
        }
    lock = (root / "requirements.lock").read_text()
    for package in ("tensorflow", "tf-keras", "keras"):
        pins = re.findall(rf"^{package}==([^ ;\\]+)", lock, re.MULTILINE)
        assert table["versions"][package] in pins, "measure it again by `make support-table`"


def test_the_markdown_next_to_it_is_the_same_table(table: dict) -> None:
    markdown = strategy_support.markdown(table)
    assert markdown in TABLE.with_suffix(".md").read_text(), "write both again by strategy_support.write(table, TABLE)"


def test_two_devices_under_the_fit_of_keras_3_work_as_in_the_table(measure_support: ModuleType, table: dict) -> None:
    serial = measure_support.run("default", "fit", "keras-3").result["weights"]
    cell, _ = measure_support.cell("mirrored", "fit", "keras-3", serial)
    assert cell == table["cells"]["mirrored"]["fit"]["keras-3"]
    assert cell["state"] == "works"


def test_two_workers_with_the_fit_of_keras_3_fail_as_in_the_table(measure_support: ModuleType, table: dict) -> None:
    cell, _ = measure_support.cell("multi-worker-2", "fit", "keras-3", None)
    assert cell == table["cells"]["multi-worker-2"]["fit"]["keras-3"]


def test_on_jax_the_program_for_keras_distribution_saw_the_batch_and_the_kernel_split() -> None:
    on_jax = json.loads((FOLDER / "keras_distribution_jax.json").read_text())
    shapes = {
        name: [sorted(shape for _, shape in run[what]) for what in ("kernel", "batch")]
        for name, run in on_jax["runs"].items()
    }
    assert shapes == {
        "no distribution": [[[784, 16]], [[64, 784]]],
        "DataParallel": [[[784, 16]] * 4, [[16, 784]] * 4],
        "ModelParallel": [[[784, 4]] * 4, [[64, 784]] * 4],
        "ModelParallel, part of the path": [[[784, 16]] * 4, [[64, 784]] * 4],
    }
    assert on_jax["versions"]["keras"] == version("keras"), "measure it again on JAX, with the Keras of the lock"
