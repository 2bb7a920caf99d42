"""`tf.distribute.MultiWorkerMirroredStrategy` without other processes: its workers are the ranks of the fake Horovod.

A real TensorFlow strategy with one replica, whose collectives are those of `distlab.labs.fake_horovod`. As with the
real one, variables made in its scope get the first worker's values, an optimizer sums gradients over the replicas, and
a worker that has run out of data goes on with empty batches as long as another has some. Each worker gets ⌈n/W⌉ of a
batch of n texts for W workers, until none are left.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from distlab.labs.fake_horovod import hvd


class FakeMultiWorkerStrategy(tf.distribute.Strategy):  # type: ignore[misc]  # TensorFlow has no types
    """One worker's strategy; takes and ignores the arguments of the real one."""

    def __init__(self, *arguments: object, **keywords: object) -> None:
        hvd.init()
        super().__init__(_Extended(self))


class _Extended(OneDeviceExtended):  # type: ignore[misc]
    def __init__(self, strategy: FakeMultiWorkerStrategy) -> None:
        super().__init__(strategy, "/cpu:0")
        self._cluster_resolver = SimpleNamespace(task_type="worker", task_id=hvd.rank())

    @property
    def _num_replicas_in_sync(self) -> int:
        return hvd.size()

    def _use_merge_call(self) -> bool:
        return False

    def _in_multi_worker_mode(self) -> bool:
        return True

    def _create_variable(self, next_creator: Callable[..., Any], **keywords: Any) -> Any:
        variable = super()._create_variable(next_creator, **keywords)
        variable.assign(hvd.broadcast(variable, root_rank=0))
        on_read = keywords.get("synchronization") == tf.VariableSynchronization.ON_READ
        variable.__class__ = _SyncOnReadVariable if on_read else _MirroredVariable
        if on_read:
            variable.operation = _operation(keywords.get("aggregation"))
        return variable

    def _call_for_each_replica(self, function: Callable[..., Any], arguments: Any, keywords: Any) -> Any:
        with _ReplicaContext(self._container_strategy(), hvd.rank()):
            return function(*arguments, **keywords)

    def _replica_ctx_all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> list[Any]:
        return hvd.grouped_allreduce(tf.nest.flatten(value), op=_operation(reduce_op))

    def _reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any) -> Any:
        return hvd.allreduce(value, op=_operation(reduce_op))

    def _gather_to_implementation(self, value: Any, destinations: Any, axis: int, options: Any) -> Any:
        return tf.concat([tf.constant(part) for part in hvd.allgather_object(value.numpy())], axis)

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> "_Together":
        return _Together(lambda: _parts(dataset), dataset.element_spec)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any) -> "_Together":
        dataset = dataset_fn(tf.distribute.InputContext(hvd.size(), hvd.rank(), hvd.size()))
        return _Together(lambda: iter(dataset), dataset.element_spec)


class _MirroredVariable(ResourceVariable):  # type: ignore[misc]
    """A variable of the strategy's scope, which Python's numbers cannot be made of."""

    def __int__(self) -> int:
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'MirroredVariable'")

    def __float__(self) -> float:
        raise TypeError("float() argument must be a string or a real number, not 'MirroredVariable'")


class _SyncOnReadVariable(_MirroredVariable):
    """Each worker's own number, as a metric has it; outside a replica it is read as their sum or mean."""

    operation: str

    def read_value(self) -> Any:
        own = super().read_value()
        inside = isinstance(tf.distribute.get_replica_context(), _ReplicaContext)
        return own if inside else hvd.allreduce(own, op=self.operation)

    def value(self) -> Any:
        return self.read_value()


class _ReplicaContext(tf.distribute.ReplicaContext):  # type: ignore[misc]
    def __init__(self, strategy: tf.distribute.Strategy, rank: int) -> None:
        super().__init__(strategy, replica_id_in_sync_group=rank)

    @property
    def devices(self) -> tuple[str, ...]:
        return ("/cpu:0",)


class _Together:
    """This worker's batches, and then empty ones until no worker has any more."""

    def __init__(self, batches: Callable[[], Iterator[Any]], element: Any) -> None:
        self._batches, self._element = batches, element

    def __iter__(self) -> Iterator[Any]:
        own = self._batches()
        while True:
            batch = next(own, None)
            if not any(hvd.allgather_object(batch is not None)):
                return
            yield _empty(self._element) if batch is None else batch


def _parts(dataset: Any) -> Iterator[Any]:
    """This worker's part of each batch, by the dataset's policy: with OFF all parts, one after the other."""
    policy = dataset.options().experimental_distribute.auto_shard_policy
    if policy == tf.data.experimental.AutoShardPolicy.FILE:
        raise ValueError("Found an unshardable source dataset: AutoShardPolicy.FILE needs a dataset of files.")
    is_off = policy == tf.data.experimental.AutoShardPolicy.OFF
    for batch in dataset:
        share = -(-len(tf.nest.flatten(batch)[0]) // hvd.size())
        for rank in range(hvd.size()) if is_off else [hvd.rank()]:
            part = slice(rank * share, (rank + 1) * share)
            yield tf.nest.map_structure(lambda tensor, part=part: tensor[part], batch)


def _empty(element: Any) -> Any:
    return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), element)


def _operation(reduce_op: Any) -> str:
    return hvd.Sum if "SUM" in str(reduce_op).upper() else hvd.Average
