"""Train with JAX: a program for one device, and shardings that divide its arrays.

On a laptop, with the interpreter that has JAX, on two CPU devices; on a host with GPUs, on all
of them; and with several processes, by mpirun or under Slurm:

    XLA_FLAGS=--xla_force_host_platform_device_count=2 python train_jax.py start.npz
    python train_jax.py start.npz --result result.json
    mpirun -np 2 python train_jax.py start.npz --distributed
    srun --ntasks=2 --gpus-per-task=1 python train_jax.py start.npz --distributed

It needs JAX and NumPy alone. `start.py`, which the course's Python runs, writes start.npz. The
words Step N in comments are the eight steps of notebook 09.
"""

import argparse
import re

import jax
import jax.numpy as jnp
import layouts
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS, GLOBAL_BATCH, LEARNING_RATE, MOMENTUM = 20, 48, 0.02, 0.9
COLLECTIVE = re.compile(r" (all-reduce|all-gather|all-to-all|reduce-scatter)(?:-start)?\(")


def mean_loss(weights: list[jax.Array], images: jax.Array, labels: jax.Array) -> jax.Array:
    """The mean loss of the whole batch; the weights are as Keras has them."""
    kernel, bias, dense, dense_bias, head, head_bias = weights
    layout = {"dimension_numbers": ("NHWC", "HWIO", "NHWC")}  # channels last
    x = jax.lax.conv_general_dilated(images[..., None], kernel, (1, 1), "VALID", **layout)
    x = jax.nn.relu(x + bias)
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(x.reshape(len(images), -1) @ dense + dense_bias)
    logarithms = jax.nn.log_softmax(x @ head + head_bias)
    return -jnp.take_along_axis(logarithms, labels[:, None], axis=1).mean()


@jax.jit
def step(weights: list, momentum: list, images: jax.Array, labels: jax.Array) -> tuple:
    """One step of SGD with momentum, written for one device."""
    loss, gradients = jax.value_and_grad(mean_loss)(weights, images, labels)
    momentum = jax.tree.map(lambda m, g: MOMENTUM * m + g, momentum, gradients)
    weights = jax.tree.map(lambda w, m: w - LEARNING_RATE * m, weights, momentum)
    return weights, momentum, loss


def place(weight: np.ndarray, mesh: Mesh, is_divided: bool) -> jax.Array:
    """Put a weight whole on every device, or divide its last dimension where that can be."""
    can_be = weight.shape[-1] % mesh.size == 0
    names = [None] * (weight.ndim - 1) + ["data"] if is_divided and can_be else []
    return jax.device_put(weight, NamedSharding(mesh, PartitionSpec(*names)))


def train(options: argparse.Namespace) -> tuple[list[float], tuple]:
    """Train on all devices; the losses, and the arguments of the last step."""
    mesh = Mesh(jax.devices(), ("data",))  # all devices in one row, named "data"
    by_rows = NamedSharding(mesh, PartitionSpec("data"))
    # Step 5, broadcast: `device_put` copies the weights to all devices.
    first_weights = layouts.read(options.start)
    weights = [place(weight, mesh, options.shard_weights) for weight in first_weights]
    momentum = jax.tree.map(jnp.zeros_like, weights)
    with np.load(options.start) as arrays:
        images, labels = arrays["images"], arrays["labels"]
    losses = []
    for first in range(0, STEPS * GLOBAL_BATCH, GLOBAL_BATCH):
        rows = slice(first, first + GLOBAL_BATCH)
        # Step 7, shard the data: each device gets its rows of the global batch.
        batch = jax.device_put((images[rows], labels[rows]), by_rows)
        weights, momentum, loss = step(weights, momentum, *batch)
        losses.append(float(loss))
    return losses, (weights, momentum, *batch)


def collectives(*arguments: list[jax.Array] | jax.Array) -> list[str]:
    """The collectives that the compiler has put into a step with these arguments."""
    return COLLECTIVE.findall(step.lower(*arguments).compile().as_text())


def whole(weights: list[jax.Array]) -> list[np.ndarray]:
    """Step 6, checkpoint: all processes call this, since each may have a part of a weight."""
    everywhere = NamedSharding(weights[0].sharding.mesh, PartitionSpec())
    return [np.asarray(weight) for weight in jax.device_put(weights, everywhere)]


def bytes_on_a_device(arrays: list[jax.Array]) -> int:
    """Of these arrays' parts on the first device of this process."""
    return sum(array.addressable_shards[0].data.nbytes for array in arrays)


def main() -> None:
    """Train; process 0 says how it went and writes losses and weights."""
    parser = layouts.parser("Train with JAX on all devices.")
    parser.add_argument("--shard-weights", action="store_true", help="divide them, too")
    parser.add_argument("--distributed", action="store_true", help="one of several processes")
    options = parser.parse_args()
    if options.distributed:
        jax.distributed.initialize()  # Step 1, initialise: only if there are several processes
    losses, last = train(options)
    weights, momentum, *_ = last
    trained = whole(weights)
    if jax.process_index() == 0:
        devices = jax.device_count()
        held = {
            "parameters": bytes_on_a_device(weights),
            "optimizer": bytes_on_a_device(momentum),
        }
        result = {"ranks": devices, "losses": losses, "held": [held] * devices}
        result["collectives"] = collectives(*last)
        layouts.report(options, f"{devices} devices,", result, trained)


if __name__ == "__main__":
    main()
