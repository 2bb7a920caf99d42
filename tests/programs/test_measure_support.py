"""The committed support table: whole, of today's versions, and in agreement with cells that are run again here."""

import re
import socket
from pathlib import Path
from types import ModuleType

import pytest
from packaging.utils import canonicalize_name

from distlab import launch, programs, strategy_support
from distlab.strategy_support.table import NOTEBOOK, PUBLISHED, SECTION

FOLDER = Path(__file__).parents[2] / "notebooks/programs/08_other_strategies"
TABLE = FOLDER / "support_table.json"

# Adds 400 equal gradients to the weights, from two workers at once: how many arrive does not depend on their order.
COUNT_UPDATES = """
import argparse, json
from pathlib import Path
import distlab
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--result", type=Path)
options = parser.parse_args()
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if resolver.task_type in ("worker", "ps"):
    spec = resolver.cluster_spec()
    tf.distribute.Server(spec, job_name=resolver.task_type, task_index=resolver.task_id).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    optimizer = tf.keras.optimizers.SGD(2.0**-10)

def on_replica(inputs):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(inputs))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

@tf.function
def step(batches):
    strategy.run(on_replica, args=(next(batches),))

coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
batches = iter(coordinator.create_per_worker_dataset(tf.data.Dataset.from_tensors(tf.ones((1, 4))).repeat()))
for _ in range(400):
    coordinator.schedule(step, args=(batches,))
coordinator.join()
bias = model.get_weights()[1]
result = {"reached": [float(-value * 2**10) for value in bias], "counted": int(optimizer.iterations.numpy())}
options.result.write_text(json.dumps(result))
"""


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


def test_a_state_without_a_reason_is_only_works_or_does_not_end(table: dict) -> None:
    for strategy, by_api in table["cells"].items():
        for api, by_keras in by_api.items():
            for keras, cell in by_keras.items():
                is_plain = cell["state"] in ("works", "does not end")
                assert is_plain != bool(cell["detail"]), (strategy, api, keras)
    assert {keras["state"] for api in table["cells"]["default"].values() for keras in api.values()} == {"works"}


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


def test_what_fails_with_keras_3_leads_to_a_section_that_is_there(root: Path, table: dict) -> None:
    broken = [
        (strategy, api)
        for strategy, by_api in table["cells"].items()
        for api, by_keras in by_api.items()
        if by_keras["keras-3"]["state"] in ("fails", "wrong result", "does not end")
    ]
    link = NOTEBOOK + SECTION
    assert TABLE.with_suffix(".md").read_text().count(f"]({link})") == len(broken) >= 5
    notebook = (TABLE.parent / NOTEBOOK).resolve()
    assert notebook.is_relative_to(root)
    headings = re.findall(r"^# (?:#+) (.+)$", (notebook.parent / "src" / f"{notebook.stem}.py").read_text(), re.M)
    assert SECTION in [f"#{heading.replace(' ', '-')}" for heading in headings]


def test_the_table_names_no_machine() -> None:
    text = TABLE.read_text()
    assert socket.gethostname() not in text
    assert not re.search(r"127\.0\.0\.1|localhost|:\d{4,5}\b|0x[0-9a-f]|site-packages", text)


def test_the_guides_rows_are_rows_of_the_table(table: dict) -> None:
    assert set(PUBLISHED[0].says) <= set(table["strategies"])


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["default", "multi-worker-2"])
def test_a_run_that_is_not_over_in_time_does_not_end(measure_support: ModuleType, strategy: str) -> None:
    row = measure_support.ROWS[strategy]
    outcome = measure_support.run(strategy, "fit", "legacy", seconds=0.2)
    assert strategy_support.judge(outcome, row.replicas, row.updates, None).state == "does not end"


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
def test_asynchronous_updates_all_reach_the_weights_though_keras_3_counts_fewer(tmp_path: Path) -> None:
    program = tmp_path / "count_updates.py"
    program.write_text(COUNT_UPDATES)
    keras_3 = {"TF_USE_LEGACY_KERAS": "0"}
    options = {"seconds": 900, "start_seconds": 600, "echo": False, "result": True, "environment": keras_3}
    result = launch.tensorflow(program, workers=2, parameter_servers=1, **options).result
    assert result["reached"] == [400.0] * 3
    assert result["counted"] <= 400


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
