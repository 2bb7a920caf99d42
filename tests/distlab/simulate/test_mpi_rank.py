"""The collectives over real processes: `mpirun -np 4` gives the results and byte counts of the virtual cluster.

The file is also the program that mpirun starts: `mpirun -np 4 python test_mpi_rank.py PROGRAM FOLDER`.
"""

import itertools
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from distlab import collectives
from distlab.simulate import Rank, World, run_over_mpi

SIZE = 4


async def any_order(rank: Rank, array: np.ndarray) -> list[tuple[int, float]]:
    """Rank 0 hears the others in whichever order they come; sorted, so that runs can be compared."""
    if rank.index > 0:
        await rank.send(0, array)
        return []
    received = [await rank.receive_any() for _ in range(rank.size - 1)]
    return sorted((source, float(array.sum())) for source, array in received)


async def sends_before_it_receives(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Everybody sends first: with a plain MPI_Send of a large array nobody would ever receive."""
    for distance in range(1, rank.size):
        await rank.send((rank.index + distance) % rank.size, array)
    array[:] = -1
    return sum([await rank.receive((rank.index - distance) % rank.size) for distance in range(1, rank.size)])


async def any_dtype_and_shape(rank: Rank, array: np.ndarray) -> list[tuple]:
    """What arrives has the dtype and the shape of what was sent, also without elements or dimensions."""
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    values = [array.astype("<f2"), array.astype(complex).reshape(1, -1, 1), array[::3], np.zeros((3, 0), bool), 7]
    received = [await rank.exchange(right, value, left) for value in values]
    return [(array.dtype.str, array.shape, array.tobytes()) for array in received]


PROGRAMS = {
    **collectives.ALL_REDUCE,
    "hierarchical": partial(collectives.hierarchical_all_reduce, ranks_per_host=2),
    "broadcast": collectives.broadcast,
    "any order": any_order,
    "sends before it receives": sends_before_it_receives,
    "any dtype and shape": any_dtype_and_shape,
}
# Sums are not exact, so that another order of adding shows; the longest array waits for its receiver.
LENGTHS = (0, 50, 1_000_003)


def inputs(length: int) -> list[np.ndarray]:
    return [np.random.default_rng(rank).normal(0, 50, length) for rank in range(SIZE)]


async def fails_on_one_rank(rank: Rank) -> None:
    if rank.index == 2:
        raise ZeroDivisionError("on purpose")
    await rank.receive(2)


async def sends_what_nobody_receives(rank: Rank) -> None:
    if rank.index == 2:
        await rank.send(1, np.zeros(1_000_003))


FAULTS = {
    fails_on_one_rank: "ZeroDivisionError: on purpose",
    sends_what_nobody_receives: "1 message from rank 2 to rank 1",
}


def run_here(what: str, folder: Path) -> None:
    """What each process does: run one fault, or the cases and leave in the folder what came out."""
    from mpi4py import MPI

    rank = MPI.COMM_WORLD.rank
    for fault in FAULTS:
        if fault.__name__ == what:
            run_over_mpi(fault)
    outcomes = {}
    for name, length in itertools.product(PROGRAMS, LENGTHS):
        run = run_over_mpi(PROGRAMS[name], inputs(length)[rank])
        outcomes[name, length] = run.result, run.bytes_sent, run.messages
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(outcomes))


def mpirun(what: str, folder: Path) -> subprocess.CompletedProcess:
    starter = str(Path(sys.executable).with_name("mpirun"))
    command = [starter, "--oversubscribe", "-np", str(SIZE), sys.executable, __file__, what, str(folder)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_job")]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """By rank, then by case: result, bytes sent, messages."""
    folder = tmp_path_factory.mktemp("mpi")
    done = mpirun("cases", folder)
    assert done.returncode == 0, done.stderr
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(SIZE)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_and_bytes_are_those_of_the_virtual_cluster(name: str, outcomes: list[dict]) -> None:
    for length in LENGTHS:
        run = World(SIZE).run(PROGRAMS[name], inputs(length))
        for rank in range(SIZE):
            result, bytes_sent, messages = outcomes[rank][name, length]
            np.testing.assert_equal(result, run.results[rank])
            assert (bytes_sent, messages) == (run.bytes_sent_by_rank[rank], run.messages_by_rank[rank])


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_ends_all_processes_and_is_named(fault: Callable, tmp_path: Path) -> None:
    done = mpirun(fault.__name__, tmp_path)
    assert done.returncode != 0
    assert "rank " in done.stderr and FAULTS[fault] in done.stderr


if __name__ == "__main__":
    run_here(sys.argv[1], Path(sys.argv[2]))
