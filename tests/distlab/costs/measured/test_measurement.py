"""A measurement in a file: read as it was written; measurements that do not belong together are refused."""

from pathlib import Path

import pytest

from distlab.costs.measured.measurement import WrongMeasurement, read, require_same_set_up, write
from tests.distlab.costs.measured.synthetic import exactly, measurement


def test_it_is_read_as_it_was_written_and_nothing_else_is(tmp_path: Path) -> None:
    file = tmp_path / "three.json"
    write(measurement(3), file)
    assert read(file) == measurement(3)
    file.write_text(file.read_text().replace('"cores"', '"kernels"'))
    with pytest.raises(WrongMeasurement, match="is no measurement"):
        read(file)


def test_only_measurements_of_one_set_up_belong_together() -> None:
    require_same_set_up([measurement(2), measurement(3, date="2026-12-24", step=exactly(1.0))])
    for name, value in {"model": "mlp", "batch": 32, "communication": "Horovod over MPI", "machines": 1}.items():
        with pytest.raises(WrongMeasurement, match="do not belong together"):
            require_same_set_up([measurement(2), measurement(3, **{name: value})])
