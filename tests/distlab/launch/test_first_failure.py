"""The process that failed first is named, whatever the order in which processes end and their ends are reported."""

import queue
import signal
import threading
from collections.abc import Callable, Collection, Mapping
from itertools import permutations
from pathlib import Path

import pytest

from distlab import launch
from distlab.launch import launched_program, supervisor
from distlab.launch.first_failure import in_order
from distlab.launch.job import Job
from distlab.launch.last_lines import LastLines
from distlab.launch.reports import Ended, Event, Reports
from tests.distlab.launch.launched_program import Launched
from tests.distlab.launch.test_starters_ranks import LIMITS, needs_horovod, needs_mpi

RAISED = ["Traceback (most recent call last):", '  File "program.py", line 3', "ValueError: the shapes do not fit"]
LOST = ["Traceback (most recent call last):", '  File "program.py", line 9']
LOST_BY_HOROVOD = [*LOST, "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down."]
LOST_BY_GLOO = [*LOST, "RuntimeError: [gloo/pair.cc:589] Read error [127.0.0.1]:5: Connection reset by peer"]
LOST_BY_TENSORFLOW = [
    *LOST,
    "tensorflow.python.framework.errors_impl.UnavailableError: Collective ops is aborted by: …",
]
NOTE = "2026-11-23 10:00:00.123456: E external/tsl/rpc.cc:7] UNAVAILABLE: Socket closed"
ABORT = ["MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", "with errorcode 7."]


def printed(lines: Mapping[str, list[str]]) -> dict[str, LastLines]:
    kept = {name: LastLines() for name in lines}
    for name, texts in lines.items():
        for text in texts:
            kept[name].append(text)
    return kept


@pytest.mark.parametrize(
    ("ends", "lines"),
    [
        ([(1, 5.0, False), (-15, 4.0, True)], {}),
        ([(-9, 5.0, False), (-15, 4.0, True)], {}),
        ([(3, 5.0, True), (-15, 4.0, True)], {}),
        ([(3, 5.0, False), (143, 4.0, True)], {}),
        ([(-15, 5.0, True), (-15, 4.0, True)], {"rank 1": RAISED}),
        ([(1, 5.0, True), (1, 4.0, False)], {"rank 1": RAISED, "rank 0": LOST_BY_HOROVOD}),
        ([(-15, 5.0, True), (1, 4.0, False)], {"rank 1": RAISED, "rank 0": LOST_BY_GLOO}),
        ([(1, 5.0, False), (1, 4.0, False)], {"rank 1": [*RAISED, NOTE], "rank 0": LOST_BY_TENSORFLOW}),
        ([(-9, 5.0, False), (-6, 4.0, False)], {"rank 0": [NOTE]}),
        ([(None, 5.0, False), (-15, 4.0, True)], {}),
        ([(1, 4.0, False), (1, 5.0, False)], {"rank 1": RAISED, "rank 0": RAISED}),
        ([(-15, 4.0, True), (-15, 5.0, True)], {}),
        ([(1, 4.0, False), (1, 5.0, False)], {"rank 1": LOST_BY_GLOO, "rank 0": LOST_BY_GLOO}),
    ],
)
def test_the_cause_decides_and_the_moment_between_equal_causes(
    ends: list[tuple[int | None, float, bool]], lines: dict[str, list[str]]
) -> None:
    failed = [Ended(name, *end) for name, end in zip(("rank 1", "rank 0"), ends, strict=True)]
    for reported in permutations(failed):
        assert [end.name for end in in_order(reported, printed(lines), "mpirun")] == ["rank 1", "rank 0"]


def test_a_rank_that_is_ended_while_it_aborts_has_the_code_that_mpirun_tells() -> None:
    ends = [Ended("rank 0", -signal.SIGTERM, 1.0, True), Ended("rank 1", -signal.SIGTERM, 2.0, True)]
    first = in_order(ends, printed({"mpirun": ABORT}), "mpirun")[0]
    assert (first.name, first.status) == ("rank 1", 7)


class LateEnds(queue.Queue[Event]):
    """Holds the ends of some processes back until that of any other has arrived, and `seconds` longer."""

    def __init__(self, late: Collection[str], seconds: float) -> None:
        super().__init__()
        self._late, self._seconds = late, seconds
        self._order = threading.Lock()
        self._held: list[Event] = []
        self._is_open = False

    def put(self, event: Event, block: bool = True, timeout: float | None = None) -> None:
        with self._order:
            if isinstance(event, Ended) and event.name in self._late and not self._is_open:
                self._held.append(event)
                return
            super().put(event, block, timeout)
        if isinstance(event, Ended):
            threading.Timer(self._seconds, self._release).start()

    def _release(self) -> None:
        with self._order:
            self._is_open = True
            while self._held:
                super().put(self._held.pop(0))


def hold_back(patch: pytest.MonkeyPatch, late: Callable[[Job], Collection[str]], seconds: float = 0.0) -> None:
    """Let the ends of the processes that `late` names, of each job, arrive late (`LateEnds`)."""

    class LateReports(Reports):
        def __init__(self, job: Job) -> None:
            super().__init__()
            self.events = LateEnds(late(job), seconds)

    class SupervisorOfLate(supervisor.Supervisor):
        def __init__(self, job: Job, *settings: object) -> None:
            super().__init__(job, *settings)
            self._reports = LateReports(job)

    patch.setattr(launched_program, "Supervisor", SupervisorOfLate)


@pytest.fixture
def rank_1_arrives_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """In jobs of two ranks or workers."""
    hold_back(monkeypatch, lambda job: [f"{job.ranks[0].split()[0]} 1"])


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize(("act", "code"), [("exit3", 3), ("raise", 1), ("kill", -9)])
def test_a_rank_of_mpirun_whose_end_arrives_last_is_named(
    launched: Launched, rank_1_arrives_last: None, act: str, code: int
) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.mpirun(launched.program, f"1=mpi,{act}", "0=mpi,mpi", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("rank 1", code)


@pytest.mark.slow
@pytest.mark.parametrize(("act", "code"), [("exit3", 3), ("raise", 1), ("kill", -9)])
def test_a_worker_of_tensorflow_whose_end_arrives_last_is_named(
    launched: Launched, rank_1_arrives_last: None, act: str, code: int
) -> None:
    """The other ends by itself, since it has lost its peer."""
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.tensorflow(launched.program, f"1=listen,meet,{act}", "0=listen,lose1", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("worker 1", code)
    assert "After it ended: worker 0 (exit code 1)" in str(caught.value)


def test_a_worker_that_left_the_others_is_named_though_it_ended_well(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.tensorflow(launched.program, "1=listen,meet", "0=listen,lose1", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("worker 0", 1)
    assert str(caught.value).startswith(
        "worker 1 had ended, with exit code 0, while worker 0 waited for it: probably it made fewer steps. Then "
        "worker 0 failed, exit code 1; the job was ended."
    )


def test_workers_that_ended_well_are_no_reason_for_a_worker_that_fails_by_itself(launched: Launched) -> None:
    with pytest.raises(launch.WorkerFailed, match=r"^worker 0 failed, exit code 1; the job was ended\.\nThe last"):
        launch.tensorflow(launched.program, "all=listen", "1=exit0", "0=raise", **LIMITS)


@needs_horovod
@pytest.mark.slow
@pytest.mark.parametrize(("act", "code"), [("exit3", 3), ("raise", 1), ("kill", -9)])
def test_a_rank_of_horovodrun_whose_end_arrives_last_is_named(
    launched: Launched, rank_1_arrives_last: None, act: str, code: int
) -> None:
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.horovodrun(launched.program, "0=wait", f"1={act}", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("rank 1", code)


@needs_horovod
@pytest.mark.slow
def test_a_rank_is_named_though_horovodrun_s_end_is_told_before_those_of_all_ranks(
    launched: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold_back(monkeypatch, lambda job: job.ranks, seconds=0.3)
    monkeypatch.setattr(supervisor, "_SECONDS_TO_END_RANKS", 0.0)
    with pytest.raises(launch.WorkerFailed) as caught:
        launch.horovodrun(launched.program, "0=wait", "1=exit3", **LIMITS)
    assert (caught.value.rank, caught.value.exit_code) == ("rank 1", 3)


HOROVOD = """
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
hvd.allreduce(tf.zeros(1))
if hvd.rank() == 1:
    raise ValueError("the shapes do not fit")
hvd.allreduce(tf.zeros(1))
"""


@needs_horovod
@pytest.mark.slow
def test_a_rank_that_raises_is_named_before_the_rank_of_horovod_that_loses_it(
    tmp_path: Path, rank_1_arrives_last: None
) -> None:
    program = tmp_path / "program.py"
    program.write_text(HOROVOD)
    with pytest.raises(launch.WorkerFailed, match="the shapes do not fit") as caught:
        launch.horovodrun(program, **LIMITS)
    assert caught.value.rank == "rank 1"
    assert "Horovod has been shut down" in caught.value.run.output["rank 0"]


FEWER_STEPS = """
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
for step in range(2 - hvd.rank()):
    hvd.allreduce(tf.zeros(1))
"""


@needs_horovod
@pytest.mark.slow
def test_a_rank_of_horovod_that_made_fewer_steps_is_named(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(FEWER_STEPS)
    reason = "^rank 1 had ended, with exit code 0, while rank 0 waited for it: probably it made fewer steps"
    with pytest.raises(launch.WorkerFailed, match=reason):
        launch.horovodrun(program, **LIMITS)


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
def test_a_worker_that_raises_is_named_before_the_worker_of_tensorflow_that_loses_it(
    tmp_path: Path, rank_1_arrives_last: None
) -> None:
    program = tmp_path / "program.py"
    program.write_text(TENSORFLOW)
    with pytest.raises(launch.WorkerFailed, match="the shapes do not fit") as caught:
        launch.tensorflow(program, **LIMITS)
    assert caught.value.rank == "worker 1"
    assert "worker 0" in str(caught.value)
