"""`hvd` without Horovod: ranks are threads of this process, and what they compute together is computed with NumPy.

    program = lambda: hvd.allreduce(tf.constant(float(hvd.rank()))).numpy()
    seen = run_ranks(FakeJob(size=4, per_host=2), program)

It has the calls of `horovod.tensorflow` that a training program makes, with the same names, arguments and defaults. A
collective ends when every rank has made the same call. Where real ranks would wait for ever, here one ends with an
error: a peer has ended, or makes another call. Outside `run_ranks` there is one rank, as without a launcher.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distlab.labs import fake_job
from distlab.labs.fake_job import FakeJob, Observation, Stalled

_REDUCTIONS: dict[str, Callable[..., Any]] = {"Average": np.mean, "Sum": np.sum, "Min": np.min, "Max": np.max}


class _Here(threading.local):
    """What the thread of a rank knows of itself; outside `run_ranks` there is one rank."""

    def __init__(self) -> None:
        self.job, self.rank, self.initialised, self.tapes = FakeJob(1, 1, float("inf")), 0, False, 0


_here = _Here()


def run_ranks(job: FakeJob, program: Callable[[], Any], initialised: bool = True) -> Observation:
    """Call `program()` on every rank of a new job, as `fake_job.run_ranks` does.

    With `initialised` hvd.init() has been called already.
    """

    def begun(rank: int) -> Any:
        _here.job, _here.rank, _here.initialised = job, rank, initialised
        return program()

    return fake_job.run_ranks(job, begun)


def rank_here() -> int:
    """The rank whose thread this is, also before hvd.init()."""
    return _here.rank


def tapes_wrapped() -> int:
    """How many tapes this rank has wrapped."""
    return _here.tapes


class _Tape:
    """A gradient tape whose gradients are averages over the ranks."""

    def __init__(self, tape: Any, op: str) -> None:
        self._tape, self._op = tape, op

    def __enter__(self) -> "_Tape":
        self._tape.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)

    def gradient(self, target: Any, sources: Any, output_gradients: Any = None) -> Any:
        """As tf.GradientTape's."""
        gradients = self._tape.gradient(target, sources, output_gradients)
        if not isinstance(sources, (list, tuple)):
            raise TypeError("hvd.DistributedGradientTape takes a list of variables")
        kept = [gradient for gradient in gradients if gradient is not None]
        averages = iter(hvd.grouped_allreduce(kept, op=self._op))
        return [None if gradient is None else next(averages) for gradient in gradients]


class FakeHorovod:
    """What `import horovod.tensorflow as hvd` gives, as far as a training program needs it."""

    Average, Sum, Min, Max = _REDUCTIONS

    def init(self) -> None:
        """Let the processes meet; before that every other call is an error."""
        _here.initialised = True

    def is_initialized(self) -> bool:
        """Whether this rank has called init."""
        return _here.initialised

    def shutdown(self) -> None:
        """Undo init."""
        _here.initialised = False

    def size(self) -> int:
        """How many ranks there are."""
        return self._place().job.size

    def rank(self) -> int:
        """The number of this rank among all."""
        return self._place().rank

    def local_size(self) -> int:
        """How many ranks this host has."""
        return self._place().job.per_host

    def local_rank(self) -> int:
        """The number of this rank on its host."""
        place = self._place()
        return place.rank // self.cross_size() if place.job.by_node else place.rank % self.local_size()

    def cross_size(self) -> int:
        """How many hosts there are."""
        return self.size() // self.local_size()

    def cross_rank(self) -> int:
        """The number of this rank's host."""
        place = self._place()
        return place.rank % self.cross_size() if place.job.by_node else place.rank // self.local_size()

    def allreduce(self, tensor: Any, average: Any = None, name: Any = None, op: Any = None, **ignored: Any) -> Any:
        """The average of the ranks' tensors, or what `op` says."""
        return self.grouped_allreduce([tensor], average, op=op)[0]

    def grouped_allreduce(
        self, tensors: Sequence[Any], average: Any = None, op: Any = None, **ignored: Any
    ) -> list[Any]:
        """The same for several tensors at once."""
        import tensorflow as tf

        op = op or (self.Sum if average is False else self.Average)
        tensors = [tf.convert_to_tensor(tensor) for tensor in tensors]
        if self.size() == 1:
            return tensors
        of_ranks = self._meet(f"allreduce ({op})", [tensor.numpy() for tensor in tensors])
        if len({tuple(array.shape for array in arrays) for arrays in of_ranks}) > 1:
            raise ValueError("Mismatched allreduce tensor shapes: the ranks give tensors of different shapes.")
        return [
            tf.constant(_REDUCTIONS[op](np.stack(arrays), axis=0), tensor.dtype)
            for tensor, arrays in zip(tensors, zip(*of_ranks, strict=True), strict=True)
        ]

    def broadcast(self, tensor: Any, root_rank: int, name: Any = None, **ignored: Any) -> Any:
        """The tensor of rank `root_rank`."""
        import tensorflow as tf

        tensor = tf.convert_to_tensor(tensor)
        return tf.constant(self._meet(f"broadcast from rank {root_rank}", tensor.numpy())[root_rank], tensor.dtype)

    def broadcast_variables(self, variables: Any, root_rank: int, **ignored: Any) -> None:
        """Give every rank's variables the values of rank `root_rank`."""
        variables = list(variables)
        values = [variable.numpy() for variable in variables]
        of_ranks = self._meet(f"broadcast_variables from rank {root_rank}", values)
        shapes = [[np.shape(value) for value in values] for values in of_ranks]
        if any(of_rank != shapes[root_rank] for of_rank in shapes):
            counts = ", ".join(str(len(of_rank)) for of_rank in shapes)
            raise Stalled(f"the ranks broadcast different variables ({counts} of them by rank)")
        for variable, value in zip(variables, of_ranks[root_rank], strict=True):
            variable.assign(value)

    def broadcast_object(self, value: Any, root_rank: int = 0, **ignored: Any) -> Any:
        """The object of rank `root_rank`."""
        return self._meet(f"broadcast_object from rank {root_rank}", value)[root_rank]

    def allgather(self, tensor: Any, name: Any = None, **ignored: Any) -> Any:
        """The rows of all ranks, by rank."""
        import tensorflow as tf

        return tf.concat(self._meet("allgather", tf.convert_to_tensor(tensor).numpy()), axis=0)

    def allgather_object(self, value: Any, **ignored: Any) -> list[Any]:
        """The objects of all ranks, by rank."""
        return self._meet("allgather_object", value)

    def DistributedGradientTape(self, gradtape: Any, *, op: Any = "Average", **ignored: Any) -> _Tape:  # noqa: N802
        """A tape like `gradtape` that averages its gradients."""
        self._place().tapes += 1
        return _Tape(gradtape, op)

    def DistributedOptimizer(self, optimizer: Any, **ignored: Any) -> Any:  # noqa: N802
        """An optimizer that averages gradients which it computes itself; `apply_gradients` takes them as they are."""
        self._place()
        return type(optimizer).from_config(optimizer.get_config())

    def _place(self) -> _Here:
        if not _here.initialised:
            raise ValueError("Horovod has not been initialized; use hvd.init().")
        return _here

    def _meet(self, call: str, value: Any) -> list[Any]:
        place = self._place()
        return place.job.meet(place.rank, call, value)


hvd = FakeHorovod()
"""Give this to programs instead of `horovod.tensorflow`."""
