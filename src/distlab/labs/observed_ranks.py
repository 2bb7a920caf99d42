"""What a student's program does on the ranks of the fake Horovod; observed in the process of the student's code."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any
from unittest import mock

from distlab.labs.fake_horovod import hvd

_NEEDED = {"the weights": "model/", "the momentum": "optimizer/_variables/", "epochs_done": "epochs_done/"}


class GaveNothing(Exception):
    """A function that must return something returned None: it is not written yet."""


def missing_in(checkpoint: str) -> list[str]:
    """What of the state of a training is not in a checkpoint: weights, momentum, epochs_done."""
    import tensorflow as tf

    names = [name for name, _ in tf.train.list_variables(checkpoint)]
    return [what for what, start in _NEEDED.items() if not any(name.startswith(start) for name in names)]


@contextmanager
def eagerly() -> Iterator[None]:
    """Without graphs, in which ranks that wait would take the threads of ranks that are waited for."""
    import tensorflow as tf

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(before)


def fake_hvd_in(namespace: Mapping[str, Any]) -> AbstractContextManager[Any]:
    """The fake Horovod as `hvd`, also for a student who has imported Horovod itself or made another fake."""
    return nullcontext() if namespace.get("hvd") is hvd else mock.patch.dict(namespace, {"hvd": hvd})
