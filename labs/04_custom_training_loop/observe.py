"""What a student's distributed loop does, observed next to it."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array

MISSING, NOTHING, ANOTHER_STRATEGY = "missing", "nothing", "another strategy"
NOT_TWO_THINGS, NO_MODEL, NO_LOSSES, PER_REPLICA = "not two things", "no model", "no losses", "per replica"
SYMBOLIC, TEXTS = "symbolic", "texts"


@dataclass
class DistributedLoop:
    """What `distributed` returned and called; `problem` says what is no model with losses, and then nothing is known.

    copies: of the model's variables, and of the optimizer's.  runs: calls of `strategy.run`.  undivided: some of
    them got a tensor that is the same on every replica.  first_batches: images in the first batch of each distributed
    data set, on all replicas.  differ: the copies of a variable are not equal.  updates: of the optimizer.  optimizer:
    its kind, rate and momentum as text.  from_logits: what Keras's loss was told, if there is one.
    """

    problem: str = ""
    replicas: int = 0
    copies: list[int] = field(default_factory=list)
    optimizer_copies: list[int] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    runs: int = 0
    undivided: bool = False
    first_batches: list[int] = field(default_factory=list)
    differ: bool = False
    updates: int = 0
    optimizer: str = ""
    from_logits: bool = True


def train_and_observe(
    namespace: Mapping[str, Any], images: Array, labels: Array, weights: list[Array], batch_size: int, replicas: int
) -> DistributedLoop:
    """Call `distributed(strategy, images, labels, weights, batch_size)`.

    Runs next to the student's code, on the lab's `strategy`, or with one replica on one of its devices.
    """
    import tensorflow as tf

    strategy, distributed = namespace.get("strategy"), namespace.get("distributed")
    kind = tf.distribute.MirroredStrategy
    if distributed is None:
        return DistributedLoop(MISSING)
    if type(strategy) is not kind:
        return DistributedLoop(ANOTHER_STRATEGY)
    if replicas < strategy.num_replicas_in_sync:
        strategy = kind(list(strategy.extended.worker_devices[:replicas]))
    several = strategy.num_replicas_in_sync > 1
    local, seen = kind.experimental_local_results, DistributedLoop(replicas=int(strategy.num_replicas_in_sync))
    optimizers: list[Any] = []
    data_sets: list[Any] = []
    run, apply, call = kind.run, tf.keras.optimizers.Optimizer.apply_gradients, tf.keras.losses.Loss.__call__
    cross_entropy = tf.keras.losses.sparse_categorical_crossentropy

    @tf.autograph.experimental.do_not_convert
    def observed_run(self: Any, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> Any:
        seen.runs += 1
        leaves = tf.nest.flatten([args, kwargs])
        seen.undivided |= several and any(isinstance(leaf, tf.Tensor) and leaf.shape.rank != 0 for leaf in leaves)
        return run(self, fn, args=args, kwargs=kwargs, options=options)

    @tf.autograph.experimental.do_not_convert
    def observed_apply(self: Any, *arguments: Any, **options: Any) -> Any:
        optimizers.append(self)
        return apply(self, *arguments, **options)

    @tf.autograph.experimental.do_not_convert
    def observed_call(self: Any, *arguments: Any, **options: Any) -> Any:
        seen.from_logits &= bool(self.get_config().get("from_logits", True))
        return call(self, *arguments, **options)

    @tf.autograph.experimental.do_not_convert
    def observed_function(y_true: Any, y_pred: Any, from_logits: bool = False, **options: Any) -> Any:
        seen.from_logits &= bool(from_logits)
        return cross_entropy(y_true, y_pred, from_logits, **options)

    def observed(distribute: Any) -> Any:
        def observed_distribute(self: Any, *arguments: Any, **options: Any) -> Any:
            data_sets.append(distribute(self, *arguments, **options))
            return data_sets[-1]

        return observed_distribute

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(kind, "run", observed_run))
        for name in ("experimental_distribute_dataset", "distribute_datasets_from_function"):
            patches.enter_context(mock.patch.object(kind, name, observed(getattr(kind, name))))
        patches.enter_context(mock.patch.object(tf.keras.losses, cross_entropy.__name__, observed_function))
        patches.enter_context(mock.patch.object(tf.keras.losses.Loss, "__call__", observed_call))
        patches.enter_context(mock.patch.object(tf.keras.optimizers.Optimizer, "apply_gradients", observed_apply))
        returned = distributed(strategy, images, labels, weights, batch_size)
    if returned is None:
        return DistributedLoop(NOTHING)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        return DistributedLoop(NOT_TWO_THINGS)
    model, losses = returned
    if not isinstance(model, tf.keras.Model):
        return DistributedLoop(NO_MODEL)
    if not isinstance(losses, (Sequence, np.ndarray, tf.Tensor)):
        return DistributedLoop(NO_LOSSES)
    if any(isinstance(loss, tf.distribute.DistributedValues) for loss in losses):
        return DistributedLoop(PER_REPLICA)
    if any(tf.is_symbolic_tensor(loss) for loss in losses if isinstance(loss, tf.Tensor)):
        return DistributedLoop(SYMBOLIC)
    if any(isinstance(loss, (str, bytes)) or getattr(loss, "dtype", None) == tf.string for loss in losses):
        return DistributedLoop(TEXTS)
    try:
        seen.losses = [float(loss) for loss in losses]
    except (TypeError, ValueError):
        return DistributedLoop(NO_LOSSES)
    copies = [local(strategy, variable) for variable in model.trainable_variables]
    seen.copies = [len(of_one) for of_one in copies]
    seen.differ = any(not np.allclose(of_one[0], copy, atol=1e-6) for of_one in copies for copy in of_one[1:])
    for data_set in data_sets:
        for batch in islice(data_set, 1):
            seen.first_batches.append(
                sum(len(np.atleast_1d(part)) for part in local(strategy, tf.nest.flatten(batch)[0]))
            )
    seen.weights = model.get_weights()
    for optimizer in optimizers[:1]:
        seen.optimizer_copies = [len(local(strategy, variable)) for variable in optimizer.variables]
        seen.updates = int(tf.keras.backend.get_value(optimizer.iterations))
        settings = optimizer.get_config()
        rate, momentum = float(settings.get("learning_rate", 0)), float(settings.get("momentum", 0))
        seen.optimizer = f"{type(optimizer).__name__}({rate:g}, momentum={momentum:g})"
    return seen
