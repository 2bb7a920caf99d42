"""A two-layer network split with DTensor: by data, inside its layers, and both ways at once.

On a laptop, on logical devices of the processor, or with a GPU for each device; under Slurm it is one task:

    python tensor_split.py --devices 8 --result result.json
    srun --ntasks=1 --gpus=8 python tensor_split.py --devices 8 --result result.json

DTensor can span hosts, with a process on each and meshes by `create_distributed_mesh`; this program stays on one.

The devices form a mesh with the dimensions data × model. A layout says along which mesh dimension each dimension of a
tensor is cut. Each split trains as many steps as a plain run on one device, from the same start, on the same batches.
The result has for every split the largest difference of any weight from the plain run, and the shapes on one device.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, data  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

BATCH, UNITS, RATE = 64, 80, 0.1
CLASSES = 16
"""The ten digits, and six that no image has, so that columns of the second weights can be cut as well."""

SPLITS = {
    # images, first weights, second weights: which mesh dimension cuts each dimension
    "data": (("data", None), (None, None), (None, None)),
    "column, row": ((None, None), (None, "model"), ("model", None)),
    "column, column": ((None, None), (None, "model"), (None, "model")),
    "data × model": (("data", None), (None, "model"), ("model", None)),
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Split a network with DTensor and compare with one device.")
    parser.add_argument("--devices", type=int, default=8, help="of each mesh, 8 or 16 (default: 8)")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file with the differences, losses and shapes")
    return parser.parse_args()


def meshes(count: int) -> list[tuple[str, int, int]]:
    """Split, data and model: every run with `count` devices."""
    single = [("data", count, 1), ("column, row", 1, count), ("column, column", 1, count)]
    return [*single, ("data × model", 2, count // 2), ("data × model", count // 2, 2)]


def start_devices(count: int) -> list[str]:
    """Names of `count` devices for DTensor: GPUs where there are enough, else logical devices of the processor."""
    kind = "GPU" if len(tf.config.list_physical_devices("GPU")) >= count else "CPU"
    # DTensor makes the logical devices itself, and nothing may have used TensorFlow before.
    dtensor.initialize_accelerator_system(kind, num_logical_cpu_devices=count if kind == "CPU" else None)
    return [f"{kind}:{index}" for index in range(count)]


def start_weights() -> list[np.ndarray]:
    """Both layers' weights, the same for every run."""
    numbers = np.random.default_rng(12)
    shapes = ((28 * 28, UNITS), (UNITS, CLASSES))
    return [numbers.normal(scale=rows**-0.5, size=(rows, columns)).astype(np.float32) for rows, columns in shapes]


def batches(options: argparse.Namespace) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images (batch, 784) and labels (batch,) of every step."""
    images, labels = data.load(options.dataset).train
    taken = (np.arange(options.steps * BATCH) % len(images)).reshape(-1, BATCH)
    return [(images[part].reshape(BATCH, -1), labels[part].astype(np.int32)) for part in taken]


@tf.function
def step(weights: list, images: tf.Tensor, labels: tf.Tensor, rate: tf.Tensor) -> tf.Tensor:
    """One step of SGD; nothing in it says how anything is split."""
    with tf.GradientTape() as tape:
        logits = tf.nn.relu(images @ weights[0]) @ weights[1]
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
        loss = tf.reduce_mean(losses)
    for variable, gradient in zip(weights, tape.gradient(loss, weights), strict=True):
        variable.assign_sub(rate * gradient)
    return loss


def train(options: argparse.Namespace) -> list[np.ndarray]:
    """The plain run on one device: final weights."""
    with tf.device("CPU:0"):
        weights = [tf.Variable(values) for values in start_weights()]
        for images, labels in batches(options):
            step(weights, images, labels, RATE)
    return [variable.numpy() for variable in weights]


def train_split(options: argparse.Namespace, split: str, names: list[str], shape: tuple[int, int]) -> dict:
    """The same with layouts: final weights, and the shapes that one device has of everything."""
    mesh = dtensor.create_mesh([("data", shape[0]), ("model", shape[1])], devices=names)
    layouts = [
        dtensor.Layout([dtensor.UNSHARDED if cut is None else cut for cut in cuts], mesh) for cuts in SPLITS[split]
    ]
    of_labels = dtensor.Layout([layouts[0].sharding_specs[0]], mesh)
    weights = [
        dtensor.DVariable(place(values, layout)) for values, layout in zip(start_weights(), layouts[1:], strict=True)
    ]
    rate = place(np.float32(RATE), dtensor.Layout.replicated(mesh, rank=0))
    for images, labels in batches(options):
        step(weights, place(images, layouts[0]), place(labels, of_labels), rate)
    shapes = [list(dtensor.unpack(tensor.read_value())[0].shape) for tensor in weights]
    return {
        "weights": [whole(variable.read_value(), mesh) for variable in weights],
        "shapes": {"images": list(dtensor.unpack(place(images, layouts[0]))[0].shape), "weights": shapes},
    }


def place(values: np.ndarray, layout: dtensor.Layout) -> tf.Tensor:
    """`values` on the mesh, cut as the layout says."""
    return dtensor.relayout(dtensor.copy_to_mesh(values, dtensor.Layout.replicated(layout.mesh, values.ndim)), layout)


def whole(tensor: tf.Tensor, mesh: dtensor.Mesh) -> np.ndarray:
    """The whole value of a tensor on the mesh, from whichever devices have its parts."""
    gathered = dtensor.relayout(tensor, dtensor.Layout.replicated(mesh, tensor.shape.rank))
    return dtensor.unpack(gathered)[0].numpy()


def main() -> None:
    """Train in every way, compare, write the result."""
    options = parse()
    names = start_devices(options.devices)
    plain = train(options)
    runs = []
    for split, *shape in meshes(options.devices):
        run = train_split(options, split, names, tuple(shape))
        far = checks.largest_difference(run.pop("weights"), plain)
        runs.append({"split": split, "data": shape[0], "model": shape[1], "difference": far, **run})
        print(f"{split}, {shape[0]} × {shape[1]} devices: weights differ by {far:.1e}", flush=True)
    moved = checks.largest_difference(plain, start_weights())
    if options.result:
        options.result.write_text(json.dumps({"moved": moved, "runs": runs}) + "\n")


if __name__ == "__main__":
    main()
