"""The same programs over real processes: a rank of MPI with the interface of the virtual cluster's ranks.

    from distlab.simulate import run_over_mpi
    from distlab.collectives import ring_all_reduce

    run = run_over_mpi(ring_all_reduce, array)      # in a program started with: mpirun -np 4 python program.py
    run.result, run.bytes_sent, run.messages, run.elapsed

mpi4py is imported when a rank is made, not before.
"""

import sys
import time
import traceback
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import numpy as np

from distlab.simulate.errors import (
    ProgramError,
    UnreceivedMessageError,
    check_addable,
    check_peer,
    check_seconds,
    copy_message,
    is_of_asyncio,
    no_operation,
)
from distlab.simulate.rank import NumberedRank
from distlab.simulate.world import Program

_HEADER_BYTES = 64  # in front of a message's data, which so begin where an array of any dtype may


@dataclass(frozen=True)
class MpiRun:
    """What a program gave on this rank.

    result: what it returned.  elapsed: its seconds of wall-clock time.  bytes_sent, messages: what this rank sent,
    counted as on the virtual cluster: the arrays' bytes, without what MPI or this module adds.
    """

    result: object
    elapsed: float
    bytes_sent: int
    messages: int


class MpiRank(NumberedRank):
    """This process as a rank: `index`, `size`, `now` in seconds, and the operations of `distlab.simulate.Rank`.

    As on the virtual cluster sending never waits for the receiver, so that no order of sends can deadlock. A message
    may have up to 2 GiB.
    """

    def __init__(self) -> None:
        """A rank of MPI's world; every process must make its own at the same point."""
        from mpi4py import MPI

        self._mpi = MPI
        # Its own communicator, so that its messages do not meet those of the program around it.
        self.communicator = MPI.COMM_WORLD.Dup()
        self.index = self.communicator.rank
        self.size = self.communicator.size
        self.bytes_sent = 0
        self.messages = 0
        self._sent_to = [0] * self.size
        self._received_from = [0] * self.size
        # Messages on their way, with the memory that MPI reads them from.
        self._under_way: list[tuple[MPI.Request, np.ndarray]] = []
        self.communicator.Barrier()
        self._start = MPI.Wtime()

    @property
    def now(self) -> float:
        """Seconds since the rank was made."""
        return self._mpi.Wtime() - self._start

    async def send(self, to: int, array: np.ndarray) -> None:
        """Send a copy of `array` to rank `to`; returns at once."""
        to = check_peer(self.index, self.size, to, "sends to")
        array = array if isinstance(array, np.ndarray) else copy_message(self.index, array)
        packed = _packed(array)
        self._under_way = [(request, memory) for request, memory in self._under_way if not request.Test()]
        self._under_way.append((self.communicator.Isend([packed, self._mpi.BYTE], dest=to), packed))
        self._sent_to[to] += 1
        self.messages += 1
        self.bytes_sent += array.nbytes

    async def receive(self, source: int) -> np.ndarray:
        """The next message of rank `source`; waits for it."""
        _, array = self._receive(check_peer(self.index, self.size, source, "receives from"))
        return array

    async def receive_any(self) -> tuple[int, np.ndarray]:
        """The message that arrives first, from whichever rank, as (source, array)."""
        return self._receive(self._mpi.ANY_SOURCE)

    async def exchange(self, to: int, array: np.ndarray, source: int) -> np.ndarray:
        """Send `array` to rank `to` and receive from rank `source` at the same time."""
        await self.send(to, array)
        return await self.receive(source)

    async def reduce(self, array: np.ndarray, addend: np.ndarray) -> np.ndarray:
        """Add `addend` to `array` in place, and give `array`; MismatchError unless shapes and dtypes are equal."""
        check_addable(self.index, array, addend)
        np.add(array, addend, array)
        return array

    async def compute(self, seconds: float) -> None:
        """Let `seconds` pass."""
        check_seconds(self.index, seconds)
        time.sleep(seconds)

    def finish(self) -> None:
        """Wait until everything that this rank sent has arrived; every rank must call it, after its program.

        Raises UnreceivedMessageError if ranks sent messages to this one that it has not received.
        """
        sent_here = self.communicator.alltoall(self._sent_to)
        unreceived = {
            (source, self.index): sent - received
            for source, (sent, received) in enumerate(zip(sent_here, self._received_from, strict=True))
            if sent > received
        }
        if unreceived:
            raise UnreceivedMessageError(unreceived)
        self._mpi.Request.Waitall([request for request, _ in self._under_way])
        self.communicator.Free()

    def _receive(self, source: int) -> tuple[int, np.ndarray]:
        status = self._mpi.Status()
        message = self.communicator.Mprobe(source=source, status=status)
        packed = np.empty(status.Get_count(self._mpi.BYTE), np.uint8)
        message.Recv([packed, self._mpi.BYTE])
        self._received_from[status.source] += 1
        dtype, *shape = packed[:_HEADER_BYTES].tobytes().decode().split()
        return status.source, packed[_HEADER_BYTES:].view(dtype).reshape(list(map(int, shape)))


def _packed(array: np.ndarray) -> np.ndarray:
    """The array with its dtype and shape in front, as bytes in new memory.

    Pickling the data too, as mpi4py's own `isend` does, takes more than twice as long for large arrays.
    """
    header = " ".join(map(str, [array.dtype.str, *array.shape])).encode().ljust(_HEADER_BYTES)
    packed = np.empty(_HEADER_BYTES + array.nbytes, np.uint8)
    packed[:_HEADER_BYTES] = np.frombuffer(header, np.uint8)
    packed[_HEADER_BYTES:].view(array.dtype).reshape(array.shape)[...] = array
    return packed


def run_over_mpi(program: Program, *inputs: object) -> MpiRun:
    """Run `program(rank, *inputs)` with this process as one of the ranks; every process must call it.

    If the program fails on one of several ranks, the exception is printed with the rank's number and every rank's
    process is ended, since the others would wait forever; a rank that is alone raises the exception.
    """
    rank = MpiRank()
    try:
        result = _completed(program(rank, *inputs), rank)
        elapsed = rank.now
        rank.finish()
    except Exception:
        if rank.size > 1:
            print(f"rank {rank.index} failed:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            rank.communicator.Abort(1)
        raise
    return MpiRun(result, elapsed, rank.bytes_sent, rank.messages)


def _completed(coroutine: Coroutine[Any, Any, object], rank: MpiRank) -> object:
    """What the coroutine returns; it never pauses, since every operation of the rank waits inside MPI."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    except RuntimeError as error:
        if is_of_asyncio(error):
            raise ProgramError(no_operation(rank.index)) from error
        raise
    coroutine.close()
    raise ProgramError(no_operation(rank.index))
