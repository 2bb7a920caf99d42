"""A measurement in a file: read as it was written; anything else is refused with one sentence."""

import json
from pathlib import Path

import numpy as np
import pytest

from distlab.costs.measured.measurement import Spread, WrongMeasurement, read, require_same_set_up, write
from tests.distlab.costs.measured.synthetic import exactly, measurement


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(measurement(3), tmp_path / "three.json")
    assert read(tmp_path / "three.json") == measurement(3)


def test_the_spread_of_normal_times_is_their_deviation() -> None:
    seconds = np.random.default_rng(1).normal(0.2, 0.01, 100_000)
    spread = Spread.of(seconds.tolist())
    assert spread.median == pytest.approx(0.2, rel=0.01)
    assert spread.relative == pytest.approx(0.05, rel=0.02)


def test_a_file_that_is_no_measurement_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    with pytest.raises(
        WrongMeasurement, match=r"There is no file .*; `mpirun -np 2 distlab measure --output .*` writes one"
    ):
        read(file)
    file.write_text("{")
    with pytest.raises(WrongMeasurement, match="is no JSON file"):
        read(file)
    for text in ("[]", "{}", '{"format": "distlab measurement 2"}', "7"):
        file.write_text(text)
        with pytest.raises(WrongMeasurement, match="no measurement of this version"):
            read(file)
    with pytest.raises(WrongMeasurement, match=r"cannot be read: Is a directory\.$"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("field", "wrong"),
    [
        ("batch", 0),
        ("batch", True),
        ("batch", "16"),
        ("gradient_bytes", []),
        ("ranks_per_host", [1, -1]),
        ("gpus", -1),
        ("threads", 1.5),
        ("step", {"median": float("nan"), "lower_quartile": 0.1, "upper_quartile": 0.3}),
        ("date", "yesterday"),
        ("versions", ["python"]),
        ("versions", {"python": 3}),
        ("step", 0.1),
        ("step", {"median": 0.1, "lower_quartile": 0.2, "upper_quartile": 0.3}),
        ("step", {"median": 0.1}),
        ("step_alone", {"median": -0.1, "lower_quartile": -0.1, "upper_quartile": -0.1}),
        ("all_reduces", []),
        ("model", None),
        ("cores_taken", 1.5),
    ],
)
def test_a_wrong_field_is_named(field: str, wrong: object, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    write(measurement(), file)
    file.write_text(json.dumps(json.loads(file.read_text()) | {field: wrong}))
    with pytest.raises(WrongMeasurement, match=f"no whole measurement: {field} is missing or wrong; measure again"):
        read(file)


def written_without(field: str, folder: Path) -> Path:
    file = folder / "file.json"
    write(measurement(), file)
    content = json.loads(file.read_text())
    del content[field]
    file.write_text(json.dumps(content))
    return file


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    file = written_without("cores", tmp_path)
    with pytest.raises(WrongMeasurement, match="cores is missing"):
        read(file)


def test_a_measurement_that_does_not_say_what_other_programs_took_is_read(tmp_path: Path) -> None:
    file = written_without("cores_taken", tmp_path)
    assert read(file) == measurement()


def test_measurements_of_other_hosts_and_times_belong_together() -> None:
    require_same_set_up([measurement(2), measurement(3, date="2026-12-24", step=exactly(1.0))])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "mlp"}, "model is cnn and mlp"),
        ({"batch": 32}, "batch is 16 and 32"),
        ({"gradient_bytes": (4, 8)}, "gradient_bytes is 2,000,000 in 2 and 12 in 2"),
        ({"communication": "MPI by mpi4py"}, "communication is Horovod over Gloo and MPI by mpi4py"),
        ({"versions": {"python": "3.11.7", "tensorflow": "2.22.0"}}, "the version of horovod is 0.28.1 and missing"),
        ({"machines": 1}, "in one of them the hosts share the cores of one machine"),
    ],
)
def test_measurements_that_do_not_belong_together_are_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(WrongMeasurement, match=f"do not belong together: {sentence}"):
        require_same_set_up([measurement(2), measurement(3, **changes)])
