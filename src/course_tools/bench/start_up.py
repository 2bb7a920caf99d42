"""How long a rank takes from its launch to the end of its first training step."""

import tempfile
from pathlib import Path

from course_tools.bench.measures import Measure
from distlab import launch

PART = "start of a rank"
ROUNDS = 3

PROGRAM = """
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(10)])
optimizer = tf.keras.optimizers.SGD(0.1)

@tf.function
def step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(images) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

step(tf.ones((32, 64)))
"""


def measure_start(ranks: int = 2) -> list[Measure]:
    """Elapsed seconds of a job whose ranks take one step: with interpreters of their own, and forked, in turns.

    The forked ones' ratio is to the others of the same round; the fork server is running when they are timed.
    """
    with tempfile.TemporaryDirectory(prefix="distlab-") as folder:
        program = Path(folder) / "one_step.py"
        program.write_text(PROGRAM)

        def seconds(prepared: bool) -> float:
            return launch.mpirun(program, ranks=ranks, echo=False, prepared=prepared).seconds

        seconds(prepared=True)
        rounds = [(seconds(prepared=False), seconds(prepared=True)) for _ in range(ROUNDS)]
    own, forked = map(list, zip(*rounds, strict=True))
    ratios = [fast / slow for slow, fast in rounds]
    reference = "those with interpreters of their own"
    return [
        Measure(PART, f"{ranks} ranks, interpreters of their own", "s", own, [1.0] * ROUNDS, reference),
        Measure(PART, f"{ranks} ranks, forked", "s", forked, ratios, reference),
    ]
