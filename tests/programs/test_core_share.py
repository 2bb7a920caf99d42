"""The callback of notebook 11's programs that lets all processes begin an epoch together."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from distlab import programs

pytestmark = pytest.mark.slow


def test_every_epoch_begins_when_all_are_there_and_has_a_share(root: Path) -> None:
    program = programs.module(root / "notebooks/programs/11_scaling_and_profiling/core_share.py")
    meetings: list[int] = []
    share = program.CoreShare(lambda: meetings.append(len(share.epochs)))
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(3)])
    model.compile("sgd", "mse")
    model.fit(np.zeros((8, 4)), np.zeros((8, 3)), epochs=3, verbose=0, callbacks=[share])
    assert meetings == [0, 1, 2]
    assert len(share.epochs) == 3 and min(share.epochs) > 0
