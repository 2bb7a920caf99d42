"""What a student's mirrored program does, looked at from beside it, and what it must come to."""

from collections.abc import Mapping

import numpy as np

from distlab.labs.reference_mlp import Batch, Weights, trained

RATE = 0.1


def train_and_look(
    namespace: Mapping[str, object], images: np.ndarray, labels: np.ndarray, weights: Weights, per_replica: int
) -> dict:
    """Call `mirrored(strategy, images, labels, weights, per_replica)` and describe what it returned, in plain data.

    Runs beside the student's code, on the lab's `strategy`. `problem` says what is not a model with its batches.
    """
    import tensorflow as tf

    strategy, mirrored, kind = namespace.get("strategy"), namespace.get("mirrored"), tf.distribute.MirroredStrategy
    if mirrored is None:
        return {"problem": "missing"}
    if type(strategy) is not kind:
        return {"problem": "another strategy"}
    returned = mirrored(strategy, images, labels, weights, per_replica)
    if returned is None:
        return {"problem": "nothing"}
    if not (isinstance(returned, tuple) and len(returned) == 2):
        return {"problem": "not a pair"}
    model, batches = returned
    if not isinstance(model, tf.keras.Model):
        return {"problem": "no model"}
    if isinstance(batches, tf.data.Dataset):
        batches = kind.experimental_distribute_dataset(strategy, batches)
    elif not isinstance(batches, tf.distribute.DistributedDataset):
        return {"problem": "no batches"}
    parts = [[part.numpy() for part in kind.experimental_local_results(strategy, batch[1])] for batch in batches]
    iterations = getattr(getattr(model, "optimizer", None), "iterations", None)
    config = model.loss.get_config() if isinstance(getattr(model, "loss", None), tf.keras.losses.Loss) else {}
    return {
        "problem": "",
        "replicas": strategy.num_replicas_in_sync,
        "copies": [len(kind.experimental_local_results(strategy, one)) for one in model.trainable_variables],
        "weights": model.get_weights(),
        "parts": [[len(part) for part in of_step] for of_step in parts],
        "labels": np.concatenate([part for of_step in parts for part in of_step]) if parts else np.empty(0),
        "updates": -1 if iterations is None else int(iterations.numpy()),
        "optimizer": type(getattr(model, "optimizer", None)).__name__,
        "from_logits": config.get("from_logits", not isinstance(getattr(model, "loss", None), str)),
        "dropout": max([layer.rate for layer in model.layers if isinstance(layer, tf.keras.layers.Dropout)], default=0),
    }


def global_batches(images: np.ndarray, labels: np.ndarray, size: int) -> list[Batch]:
    """The data in batches, in order; the last one may be smaller."""
    return [(images[at : at + size], labels[at : at + size]) for at in range(0, len(images), size)]


def split(batch: Batch, replicas: int) -> list[Batch]:
    """A global batch as a strategy cuts it: each part has n/replicas images, rounded up, as long as there are some."""
    images, labels = batch
    size = -(-len(images) // replicas)
    return [(images[at : at + size], labels[at : at + size]) for at in range(0, len(images), size)]


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
    """As a loop of one's own that divides by the size of a full batch, also the last and smaller one."""
    return trained(weights, [[(batch, 1 / size)] for batch in batches], RATE)
