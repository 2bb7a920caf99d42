"""What a student's mended parts of the lecture's program do, looked at from beside them; in plain data."""

import time
from collections.abc import Callable, Mapping

import numpy as np

from distlab.labs.lab_02 import stopwatch

Namespace = Mapping[str, object]

MOST_BATCHES = 200


def evaluate(namespace: Namespace, images: np.ndarray, labels: np.ndarray, weights: list[np.ndarray]) -> dict:
    """The loss of `make_model()` untrained and with `weights`, and what it gives for the images.

    `problem` says what is not a model.
    """
    import tensorflow as tf

    make_model = namespace.get("make_model")
    if make_model is None:
        return {"problem": "missing"}
    model = make_model()
    if model is None:
        return {"problem": "nothing"}
    if not isinstance(model, tf.keras.Model):
        return {"problem": f"`make_model` gives {type(model).__name__}, not a Keras model."}
    seen = {"problem": "", "shapes": [one.shape.as_list() for one in model.weights]}
    seen["untrained"] = _loss(model, images, labels)
    if [tuple(shape) for shape in seen["shapes"]] == [one.shape for one in weights]:
        model.set_weights(weights)
    loss = model.loss
    seen["from_logits"] = bool(loss.get_config().get("from_logits")) if hasattr(loss, "get_config") else False
    return seen | {"loss": _loss(model, images, labels), "output": model.predict(images, verbose=0)}


def _loss(model: object, images: np.ndarray, labels: np.ndarray) -> float:
    found = model.evaluate(images, labels, batch_size=len(images), verbose=0)
    return float(np.ravel(found)[0])


def time_work(namespace: Namespace, ask: Callable[[str], float]) -> dict[str, object]:
    """What `elapsed_seconds(work)` gives for work that waits, and for work that computes; {} without such a function.

    The time is taken by a `stopwatch.Stopwatch`, which is asked.
    """
    elapsed_seconds = namespace.get("elapsed_seconds")
    if elapsed_seconds is None:
        return {}

    def work() -> None:
        _compute(ask(stopwatch.WORK))
        ask(stopwatch.WORKED)

    given = {}
    for kind in (stopwatch.WAITING, stopwatch.COMPUTING):
        ask(kind)
        given[kind] = elapsed_seconds(work)
        ask(stopwatch.END)
    return given


def _compute(seconds: float) -> None:
    """Keep a core busy for so many seconds of its time."""
    start = time.process_time()
    while time.process_time() - start < seconds:
        sum(range(1000))


def take_batches(namespace: Namespace, labels: np.ndarray, per_replica: int, replicas: int) -> dict:
    """The batches of `make_batches(images, labels, per_replica, replicas)`; each pixel of an image is its label."""
    import tensorflow as tf

    make_batches = namespace.get("make_batches")
    if make_batches is None:
        return {"problem": "missing"}
    images = np.repeat(labels.astype(np.float32), 4).reshape(-1, 2, 2)
    batches = make_batches(images, labels, per_replica, replicas)
    if batches is None:
        return {"problem": "nothing"}
    if not isinstance(batches, tf.data.Dataset):
        return {"problem": f"`make_batches` gives {type(batches).__name__}, not a tf.data.Dataset."}
    if not (isinstance(batches.element_spec, tuple) and len(batches.element_spec) == 2):
        return {"problem": "The data set has to give pairs, images and labels."}
    taken = [(one.numpy(), other.numpy()) for one, other in batches.take(MOST_BATCHES)]
    if any(np.ndim(other) != 1 for _, other in taken):
        return {"problem": "The data set gives single images, not batches."}
    return {
        "problem": "",
        "sizes": [len(other) for _, other in taken],
        "labels": [int(label) for _, other in taken for label in other],
        "of_images": [int(image[0, 0]) for one, _ in taken for image in one],
        "endless": len(taken) == MOST_BATCHES,
    }
