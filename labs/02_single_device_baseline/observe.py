"""What a student's fixed parts of the lecture's program do, observed next to them; and a clock of the judge's own."""

import hashlib
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from distlab.labs.plain_data import Array, Plain
from distlab.labs.reference_mlp import Weights

Namespace = Mapping[str, Any]
MISSING, NOTHING, ANOTHER_TYPE = "missing", "nothing", "another type"
NO_PAIRS, NO_BATCHES = "no pairs", "no batches"
MOST_BATCHES = 200
WAITING, COMPUTING, BOTH = "waiting", "computing", "computing, then waiting"
WORK, WORKED, END = "work", "worked", "end"


@dataclass
class Evaluation:
    """Losses of `make_model()`, untrained and with the judge's weights, and its outputs for the judge's images.

    `problem` says what is not a model, and then nothing else is known but the type.
    """

    problem: str = ""
    kind: str = ""
    shapes: list[list[int]] = field(default_factory=list)
    untrained: float = 0.0
    loss: float = 0.0
    from_logits: bool = False
    outputs: Array = field(default_factory=lambda: np.empty(0))
    is_of_keras_3: bool = False
    dropout: list[float] = field(default_factory=list)
    optimizer: str = ""
    rate: float = 0.0


def evaluate(namespace: Namespace, images: Array, labels: Array, weights: Weights) -> dict[str, Any]:
    """The fields of an Evaluation."""
    return asdict(_evaluation(namespace, images, labels, weights))


def _evaluation(namespace: Namespace, images: Array, labels: Array, weights: Weights) -> Evaluation:
    import tensorflow as tf

    make_model = namespace.get("make_model")
    if make_model is None:
        return Evaluation(MISSING)
    model = make_model()
    if model is None:
        return Evaluation(NOTHING)
    if not isinstance(model, tf.keras.Model):
        is_of_keras_3 = type(model).__module__.partition(".")[0] == "keras"
        return Evaluation(ANOTHER_TYPE, type(model).__name__, is_of_keras_3=is_of_keras_3)

    def loss_now() -> float:
        return float(np.ravel(model.evaluate(images, labels, batch_size=len(images), verbose=0))[0])

    shapes, untrained = [variable.shape.as_list() for variable in model.weights], loss_now()
    if [tuple(shape) for shape in shapes] == [array.shape for array in weights]:
        model.set_weights(weights)
    config = model.loss.get_config() if hasattr(model.loss, "get_config") else {}
    outputs = model.predict(images, verbose=0)
    layers = [layer for layer in model.submodules if isinstance(layer, tf.keras.layers.Layer)]
    return Evaluation(
        shapes=shapes,
        untrained=untrained,
        loss=loss_now(),
        from_logits=bool(config.get("from_logits")),
        outputs=outputs,
        dropout=[float(layer.rate) for layer in layers if isinstance(layer, tf.keras.layers.Dropout)],
        optimizer=type(model.optimizer).__name__,
        rate=float(np.asarray(getattr(model.optimizer, "learning_rate", 0.0))),
    )


@dataclass
class WorkTiming:
    """Seconds of the work itself and of the whole call that times it; how often the work was done."""

    inside: float = 0.0
    outside: float = 0.0
    calls: int = 0


class WorkTimer:
    """In the judge's process: lets the work wait, or tells it how long to compute; `timings` by kind of work."""

    def __init__(self, waits: float, computes: float) -> None:
        """Seconds of each."""
        self._waits, self._computes = waits, computes
        self.timings = {WAITING: WorkTiming(), COMPUTING: WorkTiming(), BOTH: WorkTiming()}
        self._kind, self._began, self._work_began = WAITING, 0.0, 0.0

    def __call__(self, event: Plain) -> float:
        """How long to compute now; `event` is a kind of work at the start of a call, or WORK, WORKED, END.

        The moments are taken here, so that those of WORK and WORKED are between a student's looks at the clock, and
        those of the call around them.
        """
        now = time.perf_counter()
        if not isinstance(event, str):  # an array has no answer to ==
            return 0.0
        timing = self.timings[self._kind]
        if event in self.timings:
            self._kind, self._began = event, now
        elif event == WORK:
            self._work_began = now
            if self._kind != WAITING:
                return self._computes
            time.sleep(self._waits)
        elif event == WORKED:
            if self._kind == BOTH:
                time.sleep(self._waits)
                now = time.perf_counter()
            timing.inside += now - self._work_began
            timing.calls += 1
        elif event == END:
            timing.outside = now - self._began
        return 0.0


def time_work(namespace: Namespace, ask: Callable[[str], float]) -> dict[str, object]:
    """What `elapsed_seconds(work)` gives by kind of work; {} without such a function. A WorkTimer answers `ask`."""
    elapsed_seconds = namespace.get("elapsed_seconds")
    if elapsed_seconds is None:
        return {}

    def work() -> None:
        _compute(ask(WORK))
        ask(WORKED)

    seconds = {}
    for kind in (WAITING, COMPUTING, BOTH):
        ask(kind)
        seconds[kind] = elapsed_seconds(work)
        ask(END)
    return seconds


def _compute(seconds: float) -> None:
    """Keep two cores busy for so many seconds each, so that processor time runs faster than elapsed time."""
    data = bytes(1 << 16)

    def hash_for(seconds: float) -> None:
        start = time.thread_time()
        while time.thread_time() - start < seconds:
            hashlib.sha256(data)  # other threads run meanwhile

    if seconds > 0:
        threads = [threading.Thread(target=hash_for, args=(seconds,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@dataclass
class Batches:
    """The batches of `make_batches`: their sizes, and the labels of all images by label and by what the image shows.

    `problem` says what is not such a data set, and then nothing else is known but the type.
    """

    problem: str = ""
    kind: str = ""
    sizes: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    labels_of_images: list[int] = field(default_factory=list)
    is_endless: bool = False


def take_batches(namespace: Namespace, labels: Array, per_replica: int, replicas: int) -> dict[str, Any]:
    """The fields of Batches for `make_batches(images, labels, per_replica, replicas)`.

    Each pixel of an image is its label.
    """
    return asdict(_batches(namespace, labels, per_replica, replicas))


def _batches(namespace: Namespace, labels: Array, per_replica: int, replicas: int) -> Batches:
    import tensorflow as tf

    make_batches = namespace.get("make_batches")
    if make_batches is None:
        return Batches(MISSING)
    images = np.repeat(labels.astype(np.float32), 4).reshape(-1, 2, 2)
    dataset = make_batches(images, labels, per_replica, replicas)
    if dataset is None:
        return Batches(NOTHING)
    if not isinstance(dataset, tf.data.Dataset):
        return Batches(ANOTHER_TYPE, type(dataset).__name__)
    if not (isinstance(dataset.element_spec, tuple) and len(dataset.element_spec) == 2):
        return Batches(NO_PAIRS)
    pairs = [(batch.numpy(), batch_labels.numpy()) for batch, batch_labels in dataset.take(MOST_BATCHES)]
    if any(np.ndim(batch_labels) != 1 for _, batch_labels in pairs):
        return Batches(NO_BATCHES)
    return Batches(
        sizes=[len(batch_labels) for _, batch_labels in pairs],
        labels=[int(label) for _, batch_labels in pairs for label in batch_labels],
        labels_of_images=[
            int(image.min()) if image.shape == (2, 2) and image.min() == image.max() else -1
            for batch, _ in pairs
            for image in np.asarray(batch)
        ],
        is_endless=len(pairs) == MOST_BATCHES,
    )
