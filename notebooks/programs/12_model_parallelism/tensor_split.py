"""A two-layer network split with DTensor: by data, inside its layers, and both ways at once.

On a laptop, on logical devices of the processor, or with a GPU for each device; under Slurm it
is one task:

    python tensor_split.py --result result.json
    srun --ntasks=1 --gpus=8 python tensor_split.py --result result.json

The devices form a mesh with the dimensions data × model. A layout says along which mesh
dimension each dimension of a tensor is cut. Each split trains as many steps as a plain run on
one device, from the same start, on the same batches. The result has for every split the
largest difference of any weight from the plain run, and the shapes on one device.
"""

import argparse
import json
from pathlib import Path

from distlab import checks, data  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf
from tensorflow.experimental import dtensor

DEVICES, BATCH, STEPS, UNITS, RATE = 8, 64, 10, 80, 0.1
MESHES = [  # what is split, and the mesh's rows and columns: data and model
    ("data", 8, 1),
    ("column, row", 1, 8),
    ("column, column", 1, 8),
    ("data × model", 2, 4),
    ("data × model", 4, 2),
]
CLASSES = 16  # ten digits, and six that no image has: then columns can be cut here as well

SPLITS = {
    # images, first weights, second weights: which mesh dimension cuts each dimension
    "data": (("data", None), (None, None), (None, None)),
    "column, row": ((None, None), (None, "model"), ("model", None)),
    "column, column": ((None, None), (None, "model"), (None, "model")),
    "data × model": (("data", None), (None, "model"), ("model", None)),
}


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Split a network with DTensor.")
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file to write")
    return parser.parse_args()


def start_devices() -> list[str]:
    """Names of the devices: GPUs where there are enough, else parts of the processor."""
    kind = "GPU" if len(tf.config.list_physical_devices("GPU")) >= DEVICES else "CPU"
    # DTensor makes the logical devices itself, and nothing may have used TensorFlow before.
    parts = DEVICES if kind == "CPU" else None
    dtensor.initialize_accelerator_system(kind, num_logical_cpu_devices=parts)
    return [f"{kind}:{index}" for index in range(DEVICES)]


def start_weights() -> list[np.ndarray]:
    """Both layers' weights, the same for every run."""
    numbers = np.random.default_rng(12)
    first = numbers.normal(scale=(28 * 28) ** -0.5, size=(28 * 28, UNITS))
    second = numbers.normal(scale=UNITS**-0.5, size=(UNITS, CLASSES))
    return [first.astype(np.float32), second.astype(np.float32)]


def batches(dataset: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images (batch, 784) and labels (batch,) of every step."""
    images, labels = data.load(dataset).train
    taken = (np.arange(STEPS * BATCH) % len(images)).reshape(-1, BATCH)
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


def train(todo: list) -> list[np.ndarray]:
    """The plain run on one device: final weights."""
    with tf.device("CPU:0"):
        weights = [tf.Variable(values) for values in start_weights()]
        for images, labels in todo:
            step(weights, images, labels, RATE)
    return [variable.numpy() for variable in weights]


def train_split(todo: list, split: str, mesh: dtensor.Mesh) -> dict:
    """The same with layouts: final weights, and the shapes that one device has of them."""
    of_images, *of_weights = (
        dtensor.Layout([dtensor.UNSHARDED if cut is None else cut for cut in cuts], mesh)
        for cuts in SPLITS[split]
    )
    of_labels = dtensor.Layout([of_images.sharding_specs[0]], mesh)
    placed = map(place, start_weights(), of_weights)
    weights = [dtensor.DVariable(values) for values in placed]
    rate = place(np.float32(RATE), dtensor.Layout.replicated(mesh, rank=0))
    for images, labels in todo:
        step(weights, place(images, of_images), place(labels, of_labels), rate)
    values = [variable.read_value() for variable in weights]
    shapes = [list(dtensor.unpack(value)[0].shape) for value in values]
    return {"weights": [whole(value, mesh) for value in values], "shapes": shapes}


def place(values: np.ndarray, layout: dtensor.Layout) -> tf.Tensor:
    """`values` on the mesh, cut as the layout says."""
    everywhere = dtensor.Layout.replicated(layout.mesh, values.ndim)
    return dtensor.relayout(dtensor.copy_to_mesh(values, everywhere), layout)


def whole(tensor: tf.Tensor, mesh: dtensor.Mesh) -> np.ndarray:
    """The whole value of a tensor on the mesh, from whichever devices have its parts."""
    gathered = dtensor.relayout(tensor, dtensor.Layout.replicated(mesh, tensor.shape.rank))
    return dtensor.unpack(gathered)[0].numpy()


def main() -> None:
    """Train in every way, compare, write the result."""
    options = parse()
    names, todo = start_devices(), batches(options.dataset)
    plain = train(todo)
    runs = []
    for split, rows, columns in MESHES:
        mesh = dtensor.create_mesh([("data", rows), ("model", columns)], devices=names)
        run = train_split(todo, split, mesh)
        run["difference"] = far = checks.largest_difference(run.pop("weights"), plain)
        runs.append({"split": split, "data": rows, "model": columns, **run})
        print(f"{split}, {rows} × {columns} devices: weights differ by {far:.1e}", flush=True)
    if options.result:
        options.result.write_text(json.dumps({"runs": runs}) + "\n")


if __name__ == "__main__":
    main()
