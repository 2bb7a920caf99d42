"""The committed support table: whole, of today's versions, and in agreement with cells that are run again here."""

import re
from pathlib import Path
from types import ModuleType

import pytest
from packaging.utils import canonicalize_name

from distlab import programs, strategy_support
from distlab.strategy_support.table import NOTEBOOK, SECTION

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]

FOLDER = Path(__file__).parents[2] / "notebooks/programs/08_other_strategies"
TABLE = FOLDER / "support_table.json"

# Adds 400 equal gradients to the weights, from two workers at once: how many arrive does not depend on their order.


@pytest.fixture(scope="module")
def measure_support() -> ModuleType:
    """The program, loaded by its path."""
    return programs.module(FOLDER / "measure_support.py")


@pytest.fixture(scope="module")
def table() -> dict:
    """The committed table."""
    return strategy_support.read(TABLE)


@pytest.fixture(scope="module")
def serial(measure_support: ModuleType) -> dict[str, list]:
    """The weights after `Model.fit` under the default strategy, by Keras."""
    return {keras: measure_support.run("default", "fit", keras).result["weights"] for keras in measure_support.KERASES}


def test_every_row_and_column_is_there(measure_support: ModuleType, table: dict) -> None:
    assert list(table["strategies"]) == list(table["cells"]) == list(measure_support.ROWS)
    for name, row in measure_support.ROWS.items():
        assert table["strategies"][name] == {"name": row.name, "set_up": row.set_up}
        assert {api: list(cells) for api, cells in table["cells"][name].items()} == {
            api: list(measure_support.KERASES) for api in measure_support.APIS
        }


def test_the_table_was_measured_with_the_locked_versions(root: Path, table: dict) -> None:
    lock = (root / "requirements.lock").read_text()
    for package in ("tensorflow", "tf-keras", "keras"):
        pins = {pin for name, pin in re.findall(r"^([\w.-]+)==([^ ;\\]+)", lock, re.MULTILINE)
                if canonicalize_name(name) == package}  # fmt: skip
        assert table["versions"][package] in pins, (
            f"The support table was measured with {package} {table['versions'][package]} and the lock has {pins}: "
            "measure it again by `make support-table`."
        )
    assert re.fullmatch(r"3\.1[1-3]\.\d+", table["versions"]["python"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", table["measured"])


def test_the_markdown_next_to_it_is_the_same_table(table: dict) -> None:
    markdown = strategy_support.markdown(table, NOTEBOOK + SECTION)
    assert markdown in TABLE.with_suffix(".md").read_text(), "write both again by strategy_support.write(table, TABLE)"


@pytest.mark.parametrize("keras", ["legacy", "keras-3"])
def test_mirrored_fit_is_as_in_the_table(
    measure_support: ModuleType, table: dict, serial: dict[str, list], keras: str
) -> None:
    cell, _ = measure_support.cell("mirrored", "fit", keras, serial[keras])
    assert cell == table["cells"]["mirrored"]["fit"][keras]
    assert cell["state"] == "works"


def test_two_workers_with_the_fit_of_keras_3_fail_as_in_the_table(
    measure_support: ModuleType, table: dict, serial: dict[str, list]
) -> None:
    cell, _ = measure_support.cell("multi-worker-2", "fit", "keras-3", serial["keras-3"])
    assert cell == table["cells"]["multi-worker-2"]["fit"]["keras-3"]


@pytest.mark.slow
def test_a_tpu_is_missing_as_in_the_table(measure_support: ModuleType, table: dict) -> None:
    cell, _ = measure_support.cell("tpu", "custom", "legacy", None)
    assert cell == table["cells"]["tpu"]["custom"]["legacy"]


@pytest.mark.slow
def test_a_doubled_gradient_is_found(
    measure_support: ModuleType, serial: dict[str, list], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistake that people bring to Keras 3: a custom all-reduce before the optimizer's."""
    source = (FOLDER / "support_cell.py").read_text()
    line = "        gradients = tape.gradient(loss, model.trainable_variables)\n"
    assert source.count(line) == 1
    own = '        gradients = tf.distribute.get_replica_context().all_reduce("SUM", gradients)\n'
    (tmp_path / "support_cell.py").write_text(source.replace(line, line + own))
    monkeypatch.setattr(measure_support, "FOLDER", tmp_path)
    cell, _ = measure_support.cell("mirrored", "custom", "keras-3", serial["keras-3"])
    assert cell["state"] == "wrong result"
    assert cell["detail"].startswith("weights differ from the serial run's by up to")
