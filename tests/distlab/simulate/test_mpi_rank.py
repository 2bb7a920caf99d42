"""The collectives over real processes: `mpirun -np 4` gives the results and byte counts of the virtual cluster.

The file is also the program that mpirun starts: `mpirun -np 4 python test_mpi_rank.py CASES FOLDER`.
"""

import importlib.util
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest

from distlab.collectives import (
    ALL_REDUCE,
    all_gather,
    all_to_all,
    barrier,
    broadcast,
    gather,
    hierarchical_all_reduce,
    parameter_server,
    reduce,
    reduce_scatter,
    scatter,
)
from distlab.simulate import Rank, World, run_over_mpi

SIZE = 4
DEADLINE = 600
LARGE = 1_000_003

ALL_SIX = {**ALL_REDUCE, "hierarchical": partial(hierarchical_all_reduce, ranks_per_host=2)}
OTHERS = {
    "broadcast": partial(broadcast, root=1),
    "reduce": partial(reduce, root=2),
    "scatter": partial(scatter, root=3),
    "gather": gather,
    "all_gather": all_gather,
    "reduce_scatter": reduce_scatter,
    "all_to_all": all_to_all,
}


async def any_order(rank: Rank, array: np.ndarray) -> list[tuple[int, float]]:
    """Rank 0 hears the others in whichever order they come; sorted, so that runs can be compared."""
    if rank.index > 0:
        await rank.send(0, array)
        return []
    received = [await rank.receive_any() for _ in range(rank.size - 1)]
    return sorted((source, float(array.sum())) for source, array in received)


async def sends_before_it_receives(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Everybody sends first: with a plain MPI_Send of this size nobody would ever receive."""
    for distance in range(1, rank.size):
        await rank.send((rank.index + distance) % rank.size, array)
    array[:] = -1
    return sum([await rank.receive((rank.index - distance) % rank.size) for distance in range(1, rank.size)])


async def any_dtype_and_shape(rank: Rank, array: np.ndarray) -> list[np.ndarray]:
    """What arrives has the dtype and the shape of what was sent, also without elements or dimensions."""
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    values = [array.astype("<f2"), array.astype(complex).reshape(1, -1, 1), array[::3], np.zeros((3, 0), bool), 7]
    return [await rank.exchange(right, value, left) for value in values]


async def waits_at_barriers(rank: Rank, array: np.ndarray) -> int:
    for _ in range(5):
        await barrier(rank)
        await rank.compute(0.001 * rank.index)
    return len(array)


async def trains(rank: Rank, array: np.ndarray) -> np.ndarray | None:
    """The weights do not depend on the order of the updates here; the staleness does, and is not compared."""
    program = partial(parameter_server, gradient=lambda weights, worker, step: np.full(3, worker), steps=3)
    training = await program(rank, np.zeros(3))
    return None if training is None else np.round(training.weights, 9)


@dataclass(frozen=True)
class Case:
    """One program and the length and dtype of the arrays it gets."""

    program: Callable
    length: int
    dtype: type = np.float64

    def inputs(self) -> list[np.ndarray]:
        """One array per rank; sums are not exact, so that another order of adding shows."""
        return [np.random.default_rng(rank).normal(0, 50, self.length).astype(self.dtype) for rank in range(SIZE)]


CASES = {
    **{
        f"{name} of {length} {dtype.__name__}": Case(program, length, dtype)
        for name, program in ALL_SIX.items()
        for length, dtype in [(0, np.float64), (3, np.float32), (50, np.int64), (LARGE, np.float64)]
    },
    **{
        f"{name} of {length}": Case(program, length) for name, program in OTHERS.items() for length in (0, 3, 50, LARGE)
    },
    "any order": Case(any_order, 10),
    "sends before it receives": Case(sends_before_it_receives, LARGE),
    "any dtype and shape": Case(any_dtype_and_shape, 10),
    "barriers": Case(waits_at_barriers, 1),
    "parameter server": Case(trains, 1),
}


async def fails_on_one_rank(rank: Rank) -> None:
    if rank.index == 2:
        raise ZeroDivisionError("on purpose")
    await rank.receive(2)


async def sends_what_nobody_receives(rank: Rank) -> None:
    if rank.index == 2:
        await rank.send(1, np.zeros(LARGE))


async def adds_what_does_not_fit(rank: Rank) -> None:
    await rank.reduce(np.zeros(3), np.zeros(2))


async def sends_an_object(rank: Rank) -> None:
    await rank.send((rank.index + 1) % rank.size, np.array([None]))


async def awaits_something_else(rank: Rank) -> None:
    import asyncio

    await asyncio.sleep(0)


FAULTS = {
    fails_on_one_rank: "ZeroDivisionError: on purpose",
    sends_what_nobody_receives: "1 message from rank 2 to rank 1",
    adds_what_does_not_fit: "cannot add float64 of shape (2,) to float64 of shape (3,)",
    sends_an_object: "sends an array of dtype object: MPI can carry numbers only",
    awaits_something_else: "awaits something that is not an operation of its own rank",
}


def run_here(what: str, folder: Path) -> None:
    """What each process does: run the cases, or one fault, and leave what came out in the folder."""
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    if what == "hangs":
        (folder / str(os.getpid())).touch()
        MPI.COMM_WORLD.recv(source=(rank + 1) % SIZE)
    for fault in FAULTS:
        if fault.__name__ == what:
            run_over_mpi(fault)
    outcomes = {}
    for name, case in CASES.items():
        run = run_over_mpi(case.program, case.inputs()[rank])
        outcomes[name] = run.result, run.bytes_sent, run.messages
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(outcomes))


def mpirun_command() -> str | None:
    own = Path(sys.executable).with_name("mpirun")
    return str(own) if own.is_file() else shutil.which("mpirun")


def mpirun(what: str, folder: Path, deadline: float = DEADLINE) -> subprocess.CompletedProcess:
    """This file under mpirun, with an end: after `deadline` seconds every process of the run is killed."""
    command = [mpirun_command(), "--oversubscribe", "-np", str(SIZE), sys.executable, __file__, what, str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=deadline)
        except subprocess.TimeoutExpired:
            output = end(process)
            pytest.fail(f"no end after {deadline} s:\n{output}")
    return subprocess.CompletedProcess(command, process.returncode, output)


def end(process: subprocess.Popen) -> str:
    """End mpirun, which ends its ranks when it is asked to; whoever is still there after that is killed."""
    process.terminate()
    try:
        output, _ = process.communicate(timeout=10)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output


pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"),
    pytest.mark.skipif(mpirun_command() is None, reason="there is no mpirun"),
    pytest.mark.slow,
]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """By rank, then by case: result, bytes sent, messages."""
    folder = tmp_path_factory.mktemp("mpi")
    done = mpirun("cases", folder)
    assert done.returncode == 0, done.stdout
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(SIZE)]


@pytest.mark.parametrize("name", CASES)
def test_results_and_bytes_are_those_of_the_virtual_cluster(name: str, outcomes: list[dict]) -> None:
    case = CASES[name]
    run = World(SIZE).run(case.program, case.inputs())
    for rank in range(SIZE):
        result, bytes_sent, messages = outcomes[rank][name]
        assert_identical(result, run.results[rank])
        assert bytes_sent == run.bytes_sent_by_rank[rank]
        assert messages == run.messages_by_rank[rank]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_ends_all_processes_and_is_named(fault: Callable, tmp_path: Path) -> None:
    done = mpirun(fault.__name__, tmp_path)
    assert done.returncode != 0
    assert "rank " in done.stdout
    assert FAULTS[fault] in done.stdout


@pytest.mark.long
def test_a_run_that_hangs_is_ended_with_its_processes(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match="no end after"):
        mpirun("hangs", tmp_path, deadline=30)
    numbers = [int(file.name) for file in tmp_path.iterdir()]
    assert numbers
    latest = time.monotonic() + 60
    while any(psutil.pid_exists(number) for number in numbers):
        assert time.monotonic() < latest, "processes are left behind"
        time.sleep(0.1)


def assert_identical(one: object, other: object) -> None:
    if isinstance(one, list):
        assert len(one) == len(other)
        for item, its_other in zip(one, other, strict=True):
            assert_identical(item, its_other)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, strict=True)
    else:
        assert one == other


if __name__ == "__main__":
    run_here(sys.argv[1], Path(sys.argv[2]))
