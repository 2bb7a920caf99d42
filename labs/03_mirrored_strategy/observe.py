"""What a student's mirrored training does, observed next to it, and what it has to compute."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any
from unittest import mock

import numpy as np

from distlab.labs.plain_data import Array
from distlab.labs.reference_mlp import Batch, Weights


@dataclass
class MirroredTraining:
    """What `mirrored` did.

    copies: of each variable.  parts: images by step and replica, of one epoch.  labels: of all images of an epoch, in
    order.  rates: the learning rate of each step.  losses: of the validation images, after each epoch.  after_epochs:
    the weights after the first epoch, then those after the next one.
    """

    replicas: int = 0
    copies: list[int] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    after_epochs: list[Array] = field(default_factory=list)
    parts: list[list[int]] = field(default_factory=list)
    labels: Array = field(default_factory=lambda: np.empty(0))
    rates: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    optimizer: str = ""
    from_logits: bool = True
    reduction: str = ""
    dropout: float = 0.0
    is_endless: bool = False
    fits_arrays: bool = False


def train_and_observe(
    namespace: Mapping[str, Any],
    train: Batch,
    validation: Batch,
    weights: Weights,
    per_replica: int,
    rate: float,
    epochs: int,
    replicas: int,
) -> MirroredTraining | str | None:
    """Call `mirrored(strategy, train, validation, weights, per_replica, rate, epochs)`.

    Runs next to the student's code, on the lab's `strategy`, or with one replica on one of its devices. A text says
    why what it gives is no model with its history; None: it gives nothing.
    """
    import tensorflow as tf

    strategy, mirrored = namespace.get("strategy"), namespace.get("mirrored")
    kind = tf.distribute.MirroredStrategy
    if mirrored is None:
        return None
    if type(strategy) is not kind:
        return "`strategy` is no longer the mirrored strategy that the lab has made."
    if replicas < strategy.num_replicas_in_sync:
        strategy = kind(list(strategy.extended.worker_devices[:replicas]))
    fitted: list[Any] = []
    rates: list[float] = []
    after_epochs: list[Array] = []
    fit = tf.keras.Model.fit

    class Rates(tf.keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types
        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            rates.append(float(tf.keras.backend.get_value(self.model.optimizer.learning_rate)))

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            after_epochs.extend(self.model.get_weights())

    def observed_fit(model: Any, x: Any = None, y: Any = None, batch_size: Any = None, **options: Any) -> Any:
        in_order = y is not None and options.get("shuffle") is False
        fitted.append(tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size or 32) if in_order else x)
        options["callbacks"] = [*(options.get("callbacks") or []), Rates()]
        return fit(model, x, y, batch_size, **options)

    with mock.patch.object(tf.keras.Model, "fit", observed_fit):
        returned = mirrored(strategy, tuple(train), tuple(validation), weights, per_replica, rate, epochs)
    if returned is None:
        return None
    if problem := _problem(returned, fitted):
        return problem
    model, history = returned
    batches = fitted[0]
    is_array = isinstance(batches, (np.ndarray, tf.Tensor))
    seen = _seen(strategy, batches, len(train[1]), per_replica) if not is_array else MirroredTraining()
    if seen is None:
        return "`fit` gets neither arrays nor a tf.data.Dataset to train on."
    loss, iterations = model.loss, getattr(model.optimizer, "iterations", None)
    config = loss.get_config() if isinstance(loss, tf.keras.losses.Loss) else {}
    dropped = [layer.rate for layer in model.layers if isinstance(layer, tf.keras.layers.Dropout)]
    variables = [*model.variables, *([] if iterations is None else [iterations])]
    seen.replicas = int(strategy.num_replicas_in_sync)
    seen.copies = [len(kind.experimental_local_results(strategy, variable)) for variable in variables]
    seen.weights, seen.after_epochs, seen.rates = model.get_weights(), after_epochs, rates
    seen.losses = [float(value) for value in history.history.get("val_loss", [])]
    seen.optimizer = type(model.optimizer).__name__
    seen.from_logits = bool(config.get("from_logits", not isinstance(loss, str)))
    seen.reduction = str(config.get("reduction", ""))
    seen.dropout = float(max(dropped, default=0))
    seen.fits_arrays = is_array
    return seen


def _problem(returned: Any, fitted: list[Any]) -> str | None:
    """Why this is no model with the history of its training."""
    import tensorflow as tf

    if not (isinstance(returned, tuple) and len(returned) == 2):
        return "`mirrored` returns two things, the model and the history that `fit` returns."
    if not isinstance(returned[0], tf.keras.Model):
        return "The first thing that `mirrored` returns is not a Keras model."
    if not fitted:
        return "`mirrored` never calls `fit`, which runs the callback and the evaluation."
    if not isinstance(returned[1], tf.keras.callbacks.History):
        return "The second thing that `mirrored` returns is not what `fit` returns."
    return None


def _seen(strategy: Any, batches: Any, images: int, per_replica: int) -> MirroredTraining | None:
    """The parts and labels of one pass over what `fit` got; None if it is no data set."""
    import tensorflow as tf

    kind = tf.distribute.MirroredStrategy
    cardinality = getattr(batches, "cardinality", -2)  # a method of a Dataset, a property of a distributed one
    cardinality = cardinality() if callable(cardinality) else cardinality
    if isinstance(batches, tf.data.Dataset):
        batches = kind.experimental_distribute_dataset(strategy, batches)
    elif not isinstance(batches, tf.distribute.DistributedDataset):
        return None
    whole_pass = -(-images // (per_replica * strategy.num_replicas_in_sync))
    taken = list(islice(batches, max(whole_pass * strategy.num_replicas_in_sync, whole_pass + 1) + 1))
    is_endless = int(cardinality) == int(tf.data.INFINITE_CARDINALITY)
    if is_endless:
        taken = taken[:whole_pass]
    parts = [[part.numpy() for part in kind.experimental_local_results(strategy, batch[1])] for batch in taken]
    return MirroredTraining(
        parts=[[len(part) for part in of_step] for of_step in parts],
        labels=np.concatenate([part for of_step in parts for part in of_step]) if parts else np.empty(0),
        is_endless=is_endless,
    )


def global_batches(images: Array, labels: Array, size: int) -> list[Batch]:
    """The data in batches, in order; the last one may be smaller."""
    return [(images[at : at + size], labels[at : at + size]) for at in range(0, len(images), size)]
