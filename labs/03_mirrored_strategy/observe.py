"""What a student's mirrored program does, observed next to it, and what it has to compute."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array
from distlab.labs.reference_mlp import Batch, Weights, trained

RATE = 0.1
MISSING, NOTHING, ANOTHER_STRATEGY = "missing", "nothing", "another strategy"
NOT_TWO_THINGS, NO_MODEL, NO_BATCHES = "not two things", "no model", "no batches"


@dataclass
class MirroredTraining:
    """What `mirrored` returned; `problem` says what is not a model with its batches, and then nothing else is known.

    copies: of each variable.  parts: images by step and replica.  labels: of all images in order.  updates: -1 if the
    model has no optimizer that counts them.
    """

    problem: str = ""
    replicas: int = 0
    copies: list[int] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    parts: list[list[int]] = field(default_factory=list)
    labels: Array = field(default_factory=lambda: np.empty(0))
    updates: int = -1
    optimizer: str = ""
    from_logits: bool = True
    dropout: float = 0.0
    is_endless: bool = False
    fits_arrays: bool = False


def train_and_observe(
    namespace: Mapping[str, Any], images: Array, labels: Array, weights: Weights, per_replica: int, replicas: int
) -> dict[str, Any]:
    """Call `mirrored(strategy, images, labels, weights, per_replica)`; the fields of a MirroredTraining.

    Runs next to the student's code, on the lab's `strategy`, or with one replica on one of its devices.
    """
    return asdict(_training(namespace, images, labels, weights, per_replica, replicas))


def _training(
    namespace: Mapping[str, Any], images: Array, labels: Array, weights: Weights, per_replica: int, replicas: int
) -> MirroredTraining:
    import tensorflow as tf

    strategy, mirrored = namespace.get("strategy"), namespace.get("mirrored")
    kind = tf.distribute.MirroredStrategy
    is_the_labs = type(strategy) is kind
    if mirrored is None:
        return MirroredTraining(MISSING)
    if strategy is None or not is_the_labs:
        return MirroredTraining(ANOTHER_STRATEGY)
    if replicas < strategy.num_replicas_in_sync:
        strategy = kind(list(strategy.extended.worker_devices[:replicas]))
    arrays_fitted: list[bool] = []
    fit = tf.keras.Model.fit

    def observed_fit(model: Any, x: Any = None, *arguments: Any, **options: Any) -> Any:
        arrays_fitted.append(isinstance(x, (np.ndarray, tf.Tensor)) and options.get("shuffle", True) is not False)
        return fit(model, x, *arguments, **options)

    with mock.patch.object(tf.keras.Model, "fit", observed_fit):
        returned = mirrored(strategy, images, labels, weights, per_replica)
    if returned is None:
        return MirroredTraining(NOTHING)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        return MirroredTraining(NOT_TWO_THINGS)
    model, batches = returned
    if not isinstance(model, tf.keras.Model):
        return MirroredTraining(NO_MODEL)
    cardinality = getattr(batches, "cardinality", -2)  # a method of a Dataset, a property of a distributed one
    cardinality = cardinality() if callable(cardinality) else cardinality
    if isinstance(batches, tf.data.Dataset):
        batches = kind.experimental_distribute_dataset(strategy, batches)
    elif not isinstance(batches, tf.distribute.DistributedDataset):
        return MirroredTraining(NO_BATCHES)
    whole_pass = -(-len(images) // (per_replica * strategy.num_replicas_in_sync))
    taken = list(islice(batches, max(whole_pass * strategy.num_replicas_in_sync, whole_pass + 1) + 1))
    is_endless = int(cardinality) == int(tf.data.INFINITE_CARDINALITY)
    if is_endless:
        taken = taken[:whole_pass]
    parts = [[part.numpy() for part in kind.experimental_local_results(strategy, batch[1])] for batch in taken]
    optimizer, loss = getattr(model, "optimizer", None), getattr(model, "loss", None)
    iterations = getattr(optimizer, "iterations", None)
    config = loss.get_config() if isinstance(loss, tf.keras.losses.Loss) else {}
    rates = [layer.rate for layer in model.layers if isinstance(layer, tf.keras.layers.Dropout)]
    return MirroredTraining(
        replicas=int(strategy.num_replicas_in_sync),
        copies=[len(kind.experimental_local_results(strategy, variable)) for variable in model.trainable_variables],
        weights=model.get_weights(),
        parts=[[len(part) for part in of_step] for of_step in parts],
        labels=np.concatenate([part for of_step in parts for part in of_step]) if parts else np.empty(0),
        updates=-1 if iterations is None else int(iterations.numpy()),
        optimizer=type(optimizer).__name__,
        from_logits=bool(config.get("from_logits", not isinstance(loss, str))),
        dropout=float(max(rates, default=0)),
        is_endless=is_endless,
        fits_arrays=any(arrays_fitted),
    )


def global_batches(images: Array, labels: Array, size: int) -> list[Batch]:
    """The data in batches, in order; the last one may be smaller."""
    return [(images[at : at + size], labels[at : at + size]) for at in range(0, len(images), size)]


def split(batch: Batch, replicas: int) -> list[Batch]:
    """A global batch as a strategy divides it: each part has n/replicas images, rounded up, until none are left."""
    images, labels = batch
    return global_batches(images, labels, -(-len(images) // replicas))


def by_fit(weights: Weights, batches: list[Batch], replicas: int, rate: float = RATE) -> Weights:
    """As `Model.fit` under a strategy: each replica takes the mean over its part, then the replicas are averaged."""
    steps = [
        [(part, 1 / (replicas * len(part[1]))) for part in split(batch, replicas) if len(part[1])] for batch in batches
    ]
    return trained(weights, steps, rate)


def serially(weights: Weights, batches: list[Batch], rate: float = RATE) -> Weights:
    """As on one device: the mean over each batch."""
    return trained(weights, [[(batch, 1 / len(batch[1]))] for batch in batches], rate)


def by_constant(weights: Weights, batches: list[Batch], size: int) -> Weights:
    """As a custom loop that divides by the size of a full batch, also the last and smaller one."""
    return trained(weights, [[(batch, 1 / size)] for batch in batches], RATE)
