"""What a student's distributed loop does, observed next to it."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array

MISSING, NOTHING, ANOTHER_STRATEGY = "missing", "nothing", "another strategy"
NOT_TWO_THINGS, NO_MODEL, NO_LOSSES, PER_REPLICA = "not two things", "no model", "no losses", "per replica"
SYMBOLIC = "symbolic"


@dataclass
class DistributedLoop:
    """What `distributed` returned and called; `problem` says what is no model with losses, and then nothing is known.

    copies: of the model's variables, and of the optimizer's.  runs: calls of `strategy.run`.  undivided: some of
    them got a tensor that is the same on every replica.  optimizer: its kind, rate and momentum as text.
    """

    problem: str = ""
    replicas: int = 0
    copies: list[int] = field(default_factory=list)
    optimizer_copies: list[int] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    runs: int = 0
    undivided: bool = False
    optimizer: str = ""


def train_and_observe(
    namespace: Mapping[str, Any], images: Array, labels: Array, weights: list[Array], batch_size: int, replicas: int
) -> dict[str, Any]:
    """Call `distributed(strategy, images, labels, weights, batch_size)`; the fields of a DistributedLoop.

    Runs next to the student's code, on the lab's `strategy`, or with one replica on one of its devices.
    """
    return asdict(_loop(namespace, images, labels, weights, batch_size, replicas))


def _loop(
    namespace: Mapping[str, Any], images: Array, labels: Array, weights: list[Array], batch_size: int, replicas: int
) -> DistributedLoop:
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
    run, apply = kind.run, tf.keras.optimizers.Optimizer.apply_gradients

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

    with ExitStack() as patches:
        patches.enter_context(mock.patch.object(kind, "run", observed_run))
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
    try:
        seen.losses = [float(loss) for loss in losses]
    except (TypeError, ValueError):
        return DistributedLoop(NO_LOSSES)
    seen.copies = [len(local(strategy, variable)) for variable in model.trainable_variables]
    seen.weights = model.get_weights()
    for optimizer in optimizers[:1]:
        seen.optimizer_copies = [len(local(strategy, variable)) for variable in optimizer.variables]
        settings = optimizer.get_config()
        rate, momentum = float(settings.get("learning_rate", 0)), float(settings.get("momentum", 0))
        seen.optimizer = f"{type(optimizer).__name__}({rate:g}, momentum={momentum:g})"
    return seen
