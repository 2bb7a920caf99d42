"""The process that failed first is named, whatever the order in which processes end and their ends are reported."""

from itertools import permutations
from pathlib import Path

import pytest

from distlab import launch
from distlab.launch.first_failure import in_order
from distlab.launch.reports import Ended
from tests.distlab.launch.test_starters import LIMITS, needs_horovod

RAISED = ["Traceback (most recent call last):", '  File "program.py", line 3', "ValueError: the shapes do not fit"]
LOST = ["Traceback (most recent call last):", '  File "program.py", line 9']
LOST_BY_HOROVOD = [*LOST, "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down."]
LOST_BY_GLOO = [*LOST, "RuntimeError: [gloo/pair.cc:589] Read error [127.0.0.1]:5: Connection reset by peer"]
LOST_BY_TENSORFLOW = [
    *LOST,
    "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by",
]
NOTE = "2026-11-23 10:00:00.123456: E external/tsl/rpc.cc:7] UNAVAILABLE: Socket closed"


@pytest.mark.parametrize(
    ("ends", "lines"),
    [
        ([(1, 5.0), (-15, 4.0)], {}),
        ([(-15, 5.0), (-15, 4.0)], {"rank 1": RAISED}),
        ([(1, 5.0), (1, 4.0)], {"rank 1": RAISED, "rank 0": LOST_BY_HOROVOD}),
        ([(-15, 5.0), (1, 4.0)], {"rank 1": RAISED, "rank 0": LOST_BY_GLOO}),
        ([(1, 5.0), (1, 4.0)], {"rank 1": [*RAISED, NOTE], "rank 0": LOST_BY_TENSORFLOW}),
        ([(1, 4.0), (1, 5.0)], {"rank 1": RAISED, "rank 0": RAISED}),
    ],
)
def test_the_cause_decides_and_the_moment_between_equal_causes(
    ends: list[tuple[int | None, float]], lines: dict[str, list[str]]
) -> None:
    failed = [Ended(name, *end) for name, end in zip(("rank 1", "rank 0"), ends, strict=True)]
    for reported in permutations(failed):
        assert [end.name for _, end in in_order(reported, lines, "mpirun")] == ["rank 1", "rank 0"]


HOROVOD = """
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
hvd.allreduce(tf.zeros(1))
if hvd.rank() == 1:
    raise ValueError("the shapes do not fit")
hvd.allreduce(tf.zeros(1))
"""
TENSORFLOW = """
import distlab
import json, os
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()

@tf.function
def total():
    return strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("sum", tf.ones(1)))

total()
if json.loads(os.environ["TF_CONFIG"])["task"]["index"] == 1:
    raise ValueError("the shapes do not fit")
total()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("start", "program"),
    [(launch.tensorflow, TENSORFLOW), pytest.param(launch.horovodrun, HOROVOD, marks=needs_horovod)],
    ids=["TensorFlow", "Horovod"],
)
def test_what_a_framework_says_of_a_lost_rank_is_no_reason(tmp_path: Path, start: object, program: str) -> None:
    file = tmp_path / "program.py"
    file.write_text(program)
    with pytest.raises(launch.WorkerFailed, match="the shapes do not fit") as caught:
        start(file, **LIMITS)
    assert caught.value.rank[-1] == "1"
