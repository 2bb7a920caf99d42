"""Chapter 15 without a cluster: a serial training, the report, the table of a scaling study, recorded measurements."""

import json
from pathlib import Path

import numpy as np
import pytest

from distlab import checks, costs, programs
from tests.prepared_runs import PreparedRuns
from tests.programs.test_clusters import serial_weights

CHAPTER = Path(__file__).parents[2] / "notebooks/programs/15_clusters"
network = programs.module(CHAPTER / "network.py")
table = programs.module(CHAPTER / "scaling_table.py")


def report(folder: Path, steps_done: int, weight: float = 1.0) -> dict:
    """What rank 0 of two writes after five steps, of which so many were done before."""
    options = network.parser("").parse_args(["--batch", "2", "--steps", "5", "--result", str(folder / "result.json")])
    batches = network.Batches(options, 0, ranks=2, steps_done=steps_done)
    assert len(list(batches)) == 5 - steps_done
    loss = 0.5 if steps_done < 5 else float("nan")
    network.report(batches, "Horovod", loss, [np.array([weight], np.float32)])
    return json.loads((folder / "result.json").read_text(), parse_constant=pytest.fail)


def test_a_job_that_has_nothing_left_to_do_writes_json_without_a_loss(tmp_path: Path) -> None:
    result = report(tmp_path, steps_done=5)
    assert (result["steps"], result["loss"], result["step_seconds"], result["norm"]) == (5, None, None, 1.0)


def test_speedup_and_efficiency_refer_to_the_smallest_job_and_what_is_no_result_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for ranks, rate in ((4, 3000.0), (2, 2000.0)):
        measured = {"ranks": ranks, "step_seconds": 64 / rate, "images_per_second": rate}
        (tmp_path / f"{ranks}.json").write_text(json.dumps(measured))
    (tmp_path / "8.json").write_text('{"ranks": 8')  # of a job that was killed
    assert [row[3:] for row in table.rows(table.read(tmp_path))] == [["1.00", "100%"], ["1.50", "75%"]]
    assert capsys.readouterr().err == f"{tmp_path / '8.json'} holds no result of a job, and is left out.\n"


def test_on_the_slow_network_the_prediction_for_three_hosts_holds() -> None:
    two, three = (costs.read_measurement(CHAPTER / f"recorded/measured_{hosts}_hosts_100mbit.json") for hosts in (2, 3))
    [row] = costs.measured_residuals(costs.predict_measured(two, [3]), [three])
    assert abs(row["residual"]) < 0.15
    assert two.step.median < 0.85 * three.step.median  # to change nothing is no prediction
    # No faster than the link, whose bucket lets 62,500 bytes pass at once, there and back.
    assert two.all_reduces[-1].median > (two.sizes[-1] - 125_000) * 8 / 100e6


@pytest.mark.slow
def test_the_serial_program_trains_what_the_derivatives_say(runs: PreparedRuns, tmp_path: Path) -> None:
    finished = runs.run(CHAPTER / "train_serial.py", "--weights", tmp_path / "weights.npz")
    assert finished.status == 0, finished.output
    assert checks.largest_difference(network.read(tmp_path / "weights.npz"), serial_weights()) < checks.TOLERANCE
