"""`tf.distribute.MultiWorkerMirroredStrategy` without other processes: its workers are the ranks of the fake Horovod.

A real TensorFlow strategy with one replica, whose collectives are those of `distlab.labs.fake_horovod`. As with the
real one, variables made in its scope get the first worker's values, an optimizer sums gradients over the replicas, and
a worker that has run out of data goes on with empty batches as long as another has some.
"""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python.distribute.one_device_strategy import OneDeviceExtended

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

    def _experimental_distribute_dataset(self, dataset: Any, options: Any) -> "_Parts":
        return _Parts(dataset)

    def _distribute_datasets_from_function(self, dataset_fn: Callable[[Any], Any], options: Any) -> "_OwnBatches":
        return _OwnBatches(dataset_fn(tf.distribute.InputContext(hvd.size(), hvd.rank(), hvd.size())))


class _ReplicaContext(tf.distribute.ReplicaContext):  # type: ignore[misc]
    def __init__(self, strategy: tf.distribute.Strategy, rank: int) -> None:
        super().__init__(strategy, replica_id_in_sync_group=rank)

    @property
    def devices(self) -> tuple[str, ...]:
        return ("/cpu:0",)


class _Parts:
    """This worker's part of each global batch: the first worker has the first ones; a last batch fills them in turn."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        share = None
        for batch in self._dataset:
            if share is None:
                share = -(-len(tf.nest.flatten(batch)[0]) // hvd.size())
            first = hvd.rank() * share
            part = slice(first, first + share)
            yield tf.nest.map_structure(lambda tensor, part=part: tensor[part], batch)


class _OwnBatches:
    """This worker's own batches, and then empty ones until no worker has any more."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        own = iter(self._dataset)
        while True:
            batch = next(own, None)
            if not any(hvd.allgather_object(batch is not None)):
                return
            yield _empty(self._dataset.element_spec) if batch is None else batch


def _empty(element: Any) -> Any:
    return tf.nest.map_structure(lambda spec: tf.zeros([0, *spec.shape[1:]], spec.dtype), element)


def _operation(reduce_op: Any) -> str:
    return hvd.Sum if "SUM" in str(reduce_op).upper() else hvd.Average
