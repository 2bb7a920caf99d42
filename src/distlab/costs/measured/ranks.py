"""The ranks of a run and how they communicate: by Horovod over MPI, Gloo or NCCL, or by MPI alone with mpi4py."""

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from distlab.costs.measured.measurement import WrongMeasurement

_FUSION_MEBIBYTES = 128
"""Horovod's default since release 0.21 (docs/tensor-fusion.md)."""


class Communicator(Protocol):
    """One rank's view of all ranks."""

    name: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    in_graph: bool
    """whether `average` can be part of a `tf.function`"""

    def versions(self) -> dict[str, str]:
        """Of the packages that communicate."""

    def fusion_bytes(self, gradient_bytes: int) -> int:
        """How many bytes of gradients one all-reduce holds at most; `gradient_bytes` are all of them."""

    def gather(self, value: object) -> list[Any]:
        """The values of all ranks by rank, on each rank."""

    def barrier(self) -> None:
        """Wait until all ranks are here."""

    def all_reduce(self, array: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """The sum of the arrays of all ranks."""

    def average(self, gradients: Sequence[Any]) -> list[Any]:
        """The mean of each gradient over all ranks; tensors in, tensors out."""

    def give_up(self) -> None:
        """This rank has failed by itself: let the others end, too."""


class HorovodRanks:
    """Ranks that horovodrun, mpirun or srun has started, with Horovod between them."""

    in_graph = True

    def __init__(self) -> None:
        """Raises WrongMeasurement where Horovod is not installed."""
        try:
            import horovod.tensorflow as hvd
        except ImportError:
            raise WrongMeasurement(
                "Horovod is not installed for this Python; run `make setup`, or choose --with mpi."
            ) from None
        hvd.init()
        self._hvd = hvd
        self.rank, self.size = int(hvd.rank()), int(hvd.size())
        self.local_rank, self.local_size = int(hvd.local_rank()), int(hvd.local_size())
        controller = "Gloo" if hvd.gloo_enabled() else "MPI"
        self.name = f"Horovod over {controller}"

    def versions(self) -> dict[str, str]:
        """Horovod's; for MPI its library's as well, for NCCL the number that it was built with."""
        versions = {"horovod": version("horovod")}
        if self._hvd.mpi_enabled():
            versions |= _mpi_library()
        if nccl := self._hvd.nccl_built():
            versions["nccl"] = str(nccl)
        return versions

    def fusion_bytes(self, gradient_bytes: int) -> int:
        """The fusion threshold; 0, no fusion, counts as 1 byte: each gradient by itself."""
        threshold = os.environ.get("HOROVOD_FUSION_THRESHOLD", "")
        return max(1, int(threshold)) if threshold.isdigit() else _FUSION_MEBIBYTES * 2**20

    def gather(self, value: object) -> list[Any]:
        """By `allgather_object`."""
        gathered: list[Any] = self._hvd.allgather_object(value, name="gather")
        return gathered

    def barrier(self) -> None:
        """An all-reduce of one number, as Horovod's versions have no barrier in common."""
        self.all_reduce(np.zeros(1, np.float32), "barrier")

    def all_reduce(self, array: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """Under one name for all repeats: Horovod remembers what the ranks agreed on for a name, as for gradients."""
        import tensorflow as tf

        total: NDArray[np.float32] = self._hvd.allreduce(tf.constant(array), op=self._hvd.Sum, name=name).numpy()
        return total

    def average(self, gradients: Sequence[Any]) -> list[Any]:
        """One all-reduce for each gradient, which Horovod fuses, as its DistributedGradientTape does."""
        return [self._hvd.allreduce(gradient, name=f"gradient.{n}") for n, gradient in enumerate(gradients)]

    def give_up(self) -> None:
        """Horovod tells the others when this process ends."""


class MpiRanks:
    """Ranks that mpirun or srun has started, with mpi4py between them."""

    name = "MPI by mpi4py"
    in_graph = False

    def __init__(self) -> None:
        from mpi4py import MPI

        self._world, self._sum = MPI.COMM_WORLD, MPI.SUM
        self.rank, self.size = self._world.rank, self._world.size
        own_host = self._world.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank, self.local_size = own_host.rank, own_host.size

    def versions(self) -> dict[str, str]:
        """Those of mpi4py and of the MPI library."""
        return {"mpi4py": version("mpi4py")} | _mpi_library()

    def fusion_bytes(self, gradient_bytes: int) -> int:
        """All gradients are one array."""
        return gradient_bytes

    def gather(self, value: object) -> list[Any]:
        """By pickle."""
        gathered: list[Any] = self._world.allgather(value)
        return gathered

    def barrier(self) -> None:
        """MPI's own."""
        self._world.Barrier()

    def all_reduce(self, array: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """MPI chooses the algorithm."""
        total = np.empty_like(array)
        self._world.Allreduce(array, total, self._sum)
        return total

    def average(self, gradients: Sequence[Any]) -> list[Any]:
        """One all-reduce of all gradients in one array, after the backward pass."""
        import tensorflow as tf

        flat = np.concatenate([np.ravel(gradient) for gradient in gradients])
        mean = self.all_reduce(flat, "") / np.float32(self.size)
        ends = np.cumsum([np.size(gradient) for gradient in gradients])
        parts = np.split(mean, ends[:-1])
        return [tf.constant(part.reshape(gradient.shape)) for part, gradient in zip(parts, gradients, strict=True)]

    def give_up(self) -> None:
        """At the end of this process; otherwise MPI would wait for the others, and they for this rank."""
        from mpi4py import run

        run.set_abort_status(1)


RANKS: dict[str, type[HorovodRanks] | type[MpiRanks]] = {"horovod": HorovodRanks, "mpi": MpiRanks}


def _mpi_library() -> dict[str, str]:
    from mpi4py import MPI

    return {"mpi": MPI.Get_library_version().split(",")[0].strip()}
