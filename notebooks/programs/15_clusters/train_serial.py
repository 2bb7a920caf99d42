"""Train the network of this folder in one process: the run whose weights all others must have.

On a laptop, on the cluster of this machine, and as a job under Slurm:

    python train_serial.py --weights serial.npz
    distlab cluster run -- srun python train_serial.py --weights serial.npz
    sbatch --ntasks=1 --wrap "srun python train_serial.py --weights serial.npz"
"""

import distlab  # noqa: F401 - before TensorFlow: it selects tf-keras

import network
import tensorflow as tf


def main() -> None:
    """Train and report."""
    options = network.parser("Train in one process.").parse_args()
    hidden = tf.keras.layers.Dense(options.units, activation="relu")
    layers = [hidden, tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.Input((network.INPUTS,)), *layers])
    model.set_weights(network.first_weights(options.units))
    optimizer = tf.keras.optimizers.SGD(options.learning_rate, momentum=network.MOMENTUM)
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    batches = network.Batches(options, rank=0, ranks=1)
    for images, labels in batches:
        loss = model.train_on_batch(images, labels)
    network.report(batches, "serial", loss, model.get_weights())


if __name__ == "__main__":
    main()
