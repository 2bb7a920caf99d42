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


@pytest.mark.parametrize("text", ["{", "[]", "{}", "7", '{"format": "distlab measurement 2"}'])
def test_a_file_that_is_no_measurement_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    with pytest.raises(WrongMeasurement, match=r"There is no file .*; `mpirun -np 2 distlab measure .*` writes one"):
        read(file)
    file.write_text(text)
    with pytest.raises(WrongMeasurement, match="no measurement of this version of `distlab measure`; measure again"):
        read(file)


def test_a_measurement_without_a_field_is_refused_and_one_with_another_is_read(tmp_path: Path) -> None:
    file = tmp_path / "file.json"
    write(measurement(), file)
    content = json.loads(file.read_text())
    file.write_text(json.dumps(content | {"of an earlier version": 1}))
    assert read(file) == measurement()
    del content["cores"]
    file.write_text(json.dumps(content))
    with pytest.raises(WrongMeasurement, match="no measurement of this version"):
        read(file)


def test_measurements_of_other_hosts_and_times_belong_together() -> None:
    require_same_set_up([measurement(2), measurement(3, date="2026-12-24", step=exactly(1.0))])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": "mlp"}, "model is cnn and mlp"),
        ({"batch": 32}, "batch is 16 and 32"),
        ({"gradient_bytes": (4, 8)}, r"gradient_bytes is \(1200000, 800000\) and \(4, 8\)"),
        ({"communication": "Horovod over MPI"}, "communication is Horovod over Gloo and Horovod over MPI"),
        ({"versions": {"python": "3.11.7", "tensorflow": "2.22.0"}}, "versions is"),
        ({"machines": 1}, "shares_cores is False and True"),
    ],
)
def test_measurements_that_do_not_belong_together_are_refused(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(WrongMeasurement, match=f"do not belong together: {sentence}"):
        require_same_set_up([measurement(2), measurement(3, **changes)])
