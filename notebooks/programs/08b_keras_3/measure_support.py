"""Measure the table "strategy × training API": run every cell, and judge what it computed.

    python measure_support.py    # writes support_table.json here

`make support-table` does the same. `support_cell.py` and `horovod_cell.py` say how to start a
cell by hand, with mpirun and under Slurm. "works" means that a run computed what the default
strategy computes under the same Keras: the same weights where updates are synchronous; every
update made and a smaller loss where they are not.
"""

import json
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from distlab import checks, devices, launch
from distlab.strategy_support import MeasuredRun, judge

FOLDER = Path(__file__).parent
TABLE = FOLDER / "support_table.json"
SECONDS_PER_CELL = 900


class Row(NamedTuple):
    """How a row's cells are started, the replicas that must train, and their updates."""

    name: str
    set_up: str
    start: Callable[..., launch.LaunchedRun] = launch.alone
    replicas: int = 1
    updates: int = 20


MULTI_WORKER, PARAMETER_SERVER = "MultiWorkerMirroredStrategy", "ParameterServerStrategy"
DEFAULT = "default"
workers, ranks = partial(launch.tensorflow, workers=2), partial(launch.horovodrun, ranks=2)
with_server = partial(workers, parameter_servers=1)
ROWS = {
    DEFAULT: Row("default strategy", "1 process"),
    "one-device": Row("OneDeviceStrategy", "1 process"),
    "mirrored": Row("MirroredStrategy", "1 process, 2 devices", replicas=2),
    "central-storage": Row("CentralStorageStrategy", "1 process, 2 devices", replicas=2),
    "multi-worker-1": Row(MULTI_WORKER, "1 process"),
    "multi-worker-2": Row(MULTI_WORKER, "2 workers", workers, 2),
    "parameter-server": Row(PARAMETER_SERVER, "chief, 2 workers, 1 ps", with_server, 2, 200),
    "tpu": Row("TPUStrategy", "1 process"),
    "horovod": Row("Horovod", "2 ranks", ranks, 2),
}
APIS = {"fit": "Model.fit", "custom": "custom loop"}
KERASES = {"legacy": "legacy Keras", "keras-3": "Keras 3"}
CHANGED = "With an optimizer that averages by itself (`horovod_cell.py`):"
COUNTED_FEWER = (
    "Every update reaches the weights, but Keras 3 reads `optimizer.iterations` and writes it "
    "back, without a lock against the other workers. What uses it (a learning-rate schedule, "
    "Adam's bias correction) goes wrong."
)
ASYNCHRONOUS = "Asynchronous: judged by the updates counted and the fall of the loss."
NO_COORDINATOR = "`fit` of Keras 3 knows no coordinator."
NO_TPU = "What a TPU would do is not known here."
NOTES = [  # below the table: a row, the state of its cell, a part of its detail, what is said
    ("parameter-server", "works", "", ASYNCHRONOUS),
    ("parameter-server", "wrong result", "counted fewer", COUNTED_FEWER),
    ("parameter-server", "fails", "this dataset", NO_COORDINATOR),
    ("tpu", "no such device", "", NO_TPU),
]


@cache
def run(strategy: str, api: str, keras: str, *more: str) -> MeasuredRun:
    """Run one cell to its end, or to its deadline, once."""
    row = ROWS[strategy]
    program = FOLDER / ("horovod_cell.py" if strategy == "horovod" else "support_cell.py")
    arguments: list = ["--api", api, "--steps", row.updates, *more]
    if strategy != "horovod":
        arguments += ["--strategy", strategy.removesuffix("-1").removesuffix("-2")]
    switch = {"TF_USE_LEGACY_KERAS": "1" if keras == "legacy" else "0"}
    limits = {"seconds": SECONDS_PER_CELL, "start_seconds": SECONDS_PER_CELL}
    how: dict[str, Any] = {"echo": False, "result": True, "environment": switch, **limits}
    try:
        done = row.start(program, *arguments, **how)
        return MeasuredRun(done.result, list(done.output.values()))
    except launch.WorkerFailed as failed:
        return MeasuredRun(None, list(failed.run.output.values()))
    except (launch.DeadlinePassed, launch.WorkerMissing) as late:
        return MeasuredRun(None, list(late.run.output.values()), has_ended=False)


def cell(strategy: str, api: str, keras: str) -> dict[str, Any]:
    """A cell as the file holds it."""
    if strategy == "horovod" and (problem := launch.horovod_problem()):
        return {"state": "skipped", "detail": problem, "notes": []}
    row, reference = ROWS[strategy], "fit" if strategy == DEFAULT else api
    # What is asynchronous is compared with nothing, nor is the first of all.
    is_compared = row.start != with_server and (strategy, api) != (DEFAULT, "fit")
    expected = run(DEFAULT, reference, keras).result["weights"] if is_compared else None
    state, detail = judge(run(strategy, api, keras), row.replicas, row.updates, expected)
    notes = [note[3] for note in NOTES if note[:2] == (strategy, state) and note[2] in detail]
    if strategy == "horovod" and state == "fails":
        changed = run(strategy, api, keras, "--changed")
        verdict = judge(changed, row.replicas, row.updates, expected)
        notes.append(f"{CHANGED} {verdict.state}. {verdict.detail}".strip())
    print(strategy, api, keras, state, detail, flush=True)
    return {"state": state, "detail": detail, "notes": notes}


def measured_with() -> dict[str, Any]:
    """The day, the versions, the kind of machine, and what was asked of a run."""
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in ("tensorflow", "keras", "tf-keras")}
    versions["horovod"] = None if launch.horovod_problem() else version("horovod")
    machine = {"system": f"{platform.system()} {platform.machine()}"}
    machine |= {"cores": devices.cores(), "gpus": len(devices.gpu_names())}
    table = {"measured": str(datetime.now(UTC).date()), "versions": versions}
    return table | {"machine": machine, "tolerance": checks.TOLERANCE}


if __name__ == "__main__":
    cells: dict = {strategy: {api: {} for api in APIS} for strategy in ROWS}
    for strategy, api, keras in product(ROWS, APIS, KERASES):  # the default strategy's first
        cells[strategy][api][keras] = cell(strategy, api, keras)
    titles = {name: {"name": row.name, "set_up": row.set_up} for name, row in ROWS.items()}
    names = {"strategies": titles, "apis": APIS, "kerases": KERASES}
    TABLE.write_text(
        json.dumps(measured_with() | names | {"cells": cells}, indent=1, ensure_ascii=False)
        + "\n"
    )
