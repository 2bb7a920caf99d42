"""What a student's distributed loop does, observed next to it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array

ANOTHER_STRATEGY = "`strategy` is no longer the mirrored strategy that the lab has made."
NO_LOSSES = "The second thing that `distributed` returns is not a list of numbers, one for each step."


@dataclass
class DistributedLoop:
    """What `distributed` returned and called.

    copies: of the model's variables, and of the optimizer's.  runs: calls of `strategy.run`.  undivided: some of
    them got a tensor that is the same on every replica.  first_batches: images in the first batch of each distributed
    data set, on all replicas.  differ: the copies of a variable are not equal.  updates: of the optimizer.  optimizer:
    its kind, rate and momentum as text.  from_logits: what Keras's loss was told, if there is one.
    """

    replicas: int
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
) -> DistributedLoop | str | None:
    """Call `distributed(strategy, images, labels, weights, batch_size)`.

    Runs next to the student's code, on the lab's `strategy`, or with one replica on one of its devices. A text says
    why what it gives is no model with losses; None: it gives nothing.
    """
    import tensorflow as tf

    strategy, distributed = namespace.get("strategy"), namespace.get("distributed")
    kind = tf.distribute.MirroredStrategy
    if distributed is None:
        return None
    if type(strategy) is not kind:
        return ANOTHER_STRATEGY
    if replicas < strategy.num_replicas_in_sync:
        strategy = kind(list(strategy.extended.worker_devices[:replicas]))
    seen = DistributedLoop(int(strategy.num_replicas_in_sync))
    optimizers: list[Any] = []
    data_sets: list[Any] = []

    def ran(result: Any, self: Any, fn: Any, args: Any = (), kwargs: Any = None, options: Any = None) -> None:
        seen.runs += 1
        leaves = tf.nest.flatten([args, kwargs]) if seen.replicas > 1 else []
        seen.undivided |= any(isinstance(leaf, tf.Tensor) and leaf.shape.rank != 0 for leaf in leaves)

    def distributed_data(result: Any, *arguments: Any, **options: Any) -> None:
        data_sets.append(result)

    def applied(result: Any, optimizer: Any, *arguments: Any, **options: Any) -> None:
        optimizers.append(optimizer)

    def called(result: Any, loss: Any, *arguments: Any, **options: Any) -> None:
        seen.from_logits &= bool(loss.get_config().get("from_logits", True))

    def computed(result: Any, labels: Any, outputs: Any, from_logits: bool = False, **options: Any) -> None:
        seen.from_logits &= bool(from_logits)

    def observed(owner: Any, name: str, note: Callable[..., None]) -> Any:
        usual = getattr(owner, name)

        @tf.autograph.experimental.do_not_convert
        def call(*arguments: Any, **options: Any) -> Any:
            result = usual(*arguments, **options)
            note(result, *arguments, **options)
            return result

        return mock.patch.object(owner, name, call)

    with ExitStack() as patches:
        for owner, name, note in (
            (kind, "run", ran),
            (kind, "experimental_distribute_dataset", distributed_data),
            (kind, "distribute_datasets_from_function", distributed_data),
            (tf.keras.losses, "sparse_categorical_crossentropy", computed),
            (tf.keras.losses.Loss, "__call__", called),
            (tf.keras.optimizers.Optimizer, "apply_gradients", applied),
        ):
            patches.enter_context(observed(owner, name, note))
        returned = distributed(strategy, images, labels, weights, batch_size)
    if returned is None:
        return None
    if problem := _problem(returned):
        return problem
    model, losses = returned
    try:
        seen.losses = [float(loss) for loss in losses]
    except (TypeError, ValueError):
        return NO_LOSSES

    def copies_of(variable: Any) -> Any:
        return kind.experimental_local_results(strategy, variable)

    copies = [copies_of(variable) for variable in model.trainable_variables]
    seen.copies, seen.weights = list(map(len, copies)), model.get_weights()
    seen.differ = any(not np.allclose(of_one[0], copy, atol=1e-6) for of_one in copies for copy in of_one[1:])
    for data_set in data_sets:
        for batch in islice(data_set, 1):
            parts = copies_of(tf.nest.flatten(batch)[0])
            seen.first_batches.append(sum(len(np.atleast_1d(part)) for part in parts))
    for optimizer in optimizers[:1]:
        seen.optimizer_copies = [len(copies_of(variable)) for variable in optimizer.variables]
        seen.updates = int(tf.keras.backend.get_value(optimizer.iterations))
        settings = optimizer.get_config()
        rate, momentum = float(settings.get("learning_rate", 0)), float(settings.get("momentum", 0))
        seen.optimizer = f"{type(optimizer).__name__}({rate:g}, momentum={momentum:g})"
    return seen


def _problem(returned: Any) -> str | None:
    """Why this is no model with a list of losses."""
    import tensorflow as tf

    if not (isinstance(returned, tuple) and len(returned) == 2):
        return "`distributed` returns two things: the model and the list of losses."
    model, losses = returned
    if not isinstance(model, tf.keras.Model):
        return "The first thing that `distributed` returns is not a Keras model."
    if not isinstance(losses, (Sequence, np.ndarray, tf.Tensor)):
        return NO_LOSSES
    if any(isinstance(loss, tf.distribute.DistributedValues) for loss in losses):
        return "The losses are `PerReplica` values, one part for each replica. How do parts become one loss?"
    if any(tf.is_symbolic_tensor(loss) for loss in losses if isinstance(loss, tf.Tensor)):
        return (
            "The losses are placeholders of a graph: Python's list is filled while a `tf.function` is traced, not when "
            "it runs. Where can the list be?"
        )
    if any(isinstance(loss, (str, bytes)) or getattr(loss, "dtype", None) == tf.string for loss in losses):
        return "The losses are texts, not numbers. Does a text belong in the list, or where it is printed?"
    return None
