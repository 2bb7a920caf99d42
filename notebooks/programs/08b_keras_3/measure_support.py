"""Measure the table "strategy × training API": run every cell in separate processes and judge what it computed.

    python measure_support.py    all cells; writes support_table.json and support_table.md here

`make support-table` does the same. Each cell is a run of `support_cell.py` or `horovod_cell.py`, which say how to
start them by hand, with mpirun and under Slurm; here `distlab.launch` starts them. "works" means that the run computed
what the default strategy computes under the same Keras: the same weights where updates are synchronous; every update
made and a smaller loss where they are not.
"""

import platform
import sys
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from distlab import checks, devices, launch, strategy_support
from distlab.strategy_support import MeasuredRun, judge

FOLDER = Path(__file__).parent
TABLE = FOLDER / "support_table.json"
SECONDS_PER_CELL = 900


class Row(NamedTuple):
    """A row of the table: how its cells are started, the replicas that must train, and the updates that they make."""

    name: str
    set_up: str
    starter: str = "alone"
    replicas: int = 1
    updates: int = 20
    is_synchronous: bool = True


DEFAULT = "default"
ROWS = {
    DEFAULT: Row("default strategy", "1 process"),
    "one-device": Row("OneDeviceStrategy", "1 process"),
    "mirrored": Row("MirroredStrategy", "1 process, 2 devices", replicas=2),
    "central-storage": Row("CentralStorageStrategy", "1 process, 2 devices", replicas=2),
    "multi-worker-1": Row("MultiWorkerMirroredStrategy", "1 process"),
    "multi-worker-2": Row("MultiWorkerMirroredStrategy", "2 workers", "TF_CONFIG", replicas=2),
    "parameter-server": Row("ParameterServerStrategy", "chief, 2 workers, 1 ps", "chief", 2, 200, False),
    "tpu": Row("TPUStrategy", "1 process"),
    "horovod": Row("Horovod", "2 ranks", "horovodrun", replicas=2),
}
APIS = {"fit": "Model.fit", "custom": "custom loop"}
KERASES = {"legacy": "legacy Keras", "keras-3": "Keras 3"}
SWITCH = {"legacy": {"TF_USE_LEGACY_KERAS": "1"}, "keras-3": {"TF_USE_LEGACY_KERAS": "0"}}
CHANGED = "With an optimizer that averages by itself (`horovod_cell.py`):"
NOTES = {  # what is said below the table, in markdown, of a row's cell in this state and with this in its detail
    ("parameter-server", "works", ""): "Asynchronous: judged by the updates counted and the fall of the loss.",
    ("parameter-server", "wrong result", "counted fewer"): (
        "Every update reaches the weights, but Keras 3 reads `optimizer.iterations` and writes it back, without a "
        "lock against the other workers. What uses it (a learning-rate schedule, Adam's bias correction) goes wrong."
    ),
    ("parameter-server", "fails", "this dataset"): "`fit` of Keras 3 knows no coordinator.",
    ("tpu", "no such device", ""): "What a TPU would do is not known here.",
}


def run(strategy: str, api: str, keras: str, changed: bool = False, seconds: float = SECONDS_PER_CELL) -> MeasuredRun:
    """Run one cell to its end, or to its deadline."""
    row = ROWS[strategy]
    arguments = ["--api", api, "--steps", str(row.updates), *(["--changed"] if changed else [])]
    how = {"seconds": seconds, "start_seconds": seconds, "echo": False, "result": True, "environment": SWITCH[keras]}
    program = FOLDER / ("horovod_cell.py" if row.starter == "horovodrun" else "support_cell.py")
    if row.starter != "horovodrun":
        arguments += ["--strategy", "multi-worker" if strategy.startswith("multi-worker") else strategy]
    try:
        if row.starter == "alone":
            done = launch.alone(program, *arguments, **how)
        elif row.starter == "horovodrun":
            done = launch.horovodrun(program, *arguments, ranks=row.replicas, **how)
        else:
            servers = 1 if row.starter == "chief" else 0
            done = launch.tensorflow(program, *arguments, workers=row.replicas, parameter_servers=servers, **how)
        return MeasuredRun(done.result, list(done.output.values()))
    except launch.WorkerFailed as failed:
        return MeasuredRun(None, list(failed.run.output.values()))
    except (launch.DeadlinePassed, launch.WorkerMissing) as late:
        return MeasuredRun(None, list(late.run.output.values()), has_ended=False)


def cell(strategy: str, api: str, keras: str, weights: list | None) -> tuple[dict[str, Any], MeasuredRun | None]:
    """One cell as the table's file holds it, and the run; `weights`: those of the default strategy."""
    if strategy == "horovod" and (problem := launch.horovod_problem()):
        return {"state": "skipped", "detail": problem, "notes": []}, None
    row = ROWS[strategy]
    expected = weights if row.is_synchronous else None
    outcome = run(strategy, api, keras)
    verdict = judge(outcome, row.replicas, row.updates, expected)
    own = (strategy, verdict.state)
    notes = [text for (*key, part), text in NOTES.items() if tuple(key) == own and part in verdict.detail]
    if strategy == "horovod" and verdict.state == "fails":
        changed = judge(run(strategy, api, keras, changed=True), row.replicas, row.updates, expected)
        notes.append(f"{CHANGED} {changed.state}. {changed.detail}".strip())
    return {**verdict._asdict(), "notes": notes}, outcome


def measure() -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """The cells by strategy, API and Keras; the default strategy's, with which the others are compared, first."""
    cells: dict = {}
    serial: dict[tuple[str, str], list] = {}
    for strategy in ROWS:
        for api in APIS:
            for keras in KERASES:
                # The default strategy's custom loop is compared with its `fit`.
                reference = serial.get(("fit" if strategy == DEFAULT else api, keras))
                measured, outcome = cell(strategy, api, keras, reference)
                print(f"{strategy}, {api}, {keras}: {measured['state']} {measured['detail']}", flush=True)
                if strategy == DEFAULT:
                    if measured["state"] != "works":
                        sys.exit("The default strategy must work: the others are compared with it.")
                    serial[api, keras] = outcome.result["weights"]
                cells.setdefault(strategy, {}).setdefault(api, {})[keras] = measured
    return cells


def surroundings() -> dict[str, Any]:
    """What the table was measured with: day, versions, kind of machine, what was asked of a run."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for package in ("tensorflow", "keras", "tf-keras", "horovod"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = None
    gpus = len(devices.gpu_names())
    machine = {"system": f"{platform.system()} {platform.machine()}", "cores": devices.cores(), "gpus": gpus}
    day = datetime.now(UTC).date().isoformat()
    return {"measured": day, "versions": versions, "machine": machine, "tolerance": checks.TOLERANCE}


if __name__ == "__main__":
    table = surroundings()
    table["strategies"] = {name: {"name": row.name, "set_up": row.set_up} for name, row in ROWS.items()}
    table |= {"apis": APIS, "kerases": KERASES}
    table["cells"] = measure()
    strategy_support.write(table, TABLE)
    print(f"{TABLE.name} and {TABLE.with_suffix('.md').name} are written.")
