"""What tensor fusion, compression and accumulation do, as measured by a program of notebook 09."""

import os
from pathlib import Path
from unittest import mock

import pytest

from distlab import checks, launch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_job"),
    pytest.mark.skipif(launch.horovod_problem() is not None, reason=str(launch.horovod_problem())),
]


@pytest.fixture(scope="module")
def options(root: Path) -> dict:
    with mock.patch.dict(os.environ):
        os.environ.pop("HOROVOD_TIMELINE", None)
        return launch.mpirun(
            root / "notebooks/programs/09_horovod/measure_options.py",
            echo=False,
            result=True,
            seconds=900,
            start_seconds=600,
        ).result


def test_without_fusion_each_gradient_is_all_reduced_alone(options: dict) -> None:
    fused, alone = options["fusion"]["fused"], options["fusion"]["not fused"]
    assert alone["all-reduces"] == 40 > 2 * fused["all-reduces"]
    assert alone["bytes"] == fused["bytes"] == 40 * 500 * 4


def test_half_precision_halves_the_bytes_and_loses_precision_and_range(options: dict) -> None:
    none, fp16 = options["compression"]["none"], options["compression"]["fp16"]
    assert (none["bytes"], fp16["bytes"]) == (40_000, 20_000)
    assert none["error"] < 1e-6 < fp16["error"] < 2**-10
    assert none["special"] == ["40000.0", "1.0", "1e-08"]
    assert fp16["special"] == ["inf", "1.0", "0.0"]  # 40,000 + 40,000 is more than a 16-bit float can hold


def test_accumulated_gradients_are_those_of_a_larger_batch_with_fewer_bytes(options: dict) -> None:
    names = ("16, each batch", "16, every 4th batch", "64, each batch")
    each, accumulated, large = (options["accumulation"][name] for name in names)
    assert each["batches"] == accumulated["batches"] == 4 * large["batches"] == 32
    assert accumulated["bytes"] == large["bytes"] == each["bytes"] // 4 == 8 * 101_770 * 4
    assert accumulated["from 64, each"] < checks.TOLERANCE < 1e-3 < each["from 64, each"]
