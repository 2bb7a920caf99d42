"""Does `keras.distribution` distribute? Which devices hold a kernel and which compute, measured.

On a laptop, on the backend that the course has, TensorFlow:

    python keras_distribution.py --result tensorflow.json

On JAX, which the course does not install, in an environment with `pip install jax` too; this wrote the file next to it:

    KERAS_BACKEND=jax JAX_NUM_CPU_DEVICES=4 python keras_distribution.py --result keras_distribution_jax.json

One process drives several devices, so mpirun has no part in it. Under Slurm, on a machine with four GPUs:

    srun --ntasks=1 --gpus=4 python keras_distribution.py --result result.json

Each run trains the same network from the same first weights, by `Model.fit`:

| run | what distributes |
|---|---|
| no distribution | nothing: what the others are compared with |
| DataParallel | `keras.distribution`: each device a part of the batch |
| ModelParallel | `keras.distribution`: each device a part of the first kernel's columns |
| ModelParallel, part of the path | the same, by a LayoutMap key that is a part of the kernel's path only |
| MirroredStrategy | `tf.distribute`, on TensorFlow: it shows that the probe works |

`import keras` is Keras 3, whatever TF_USE_LEGACY_KERAS says about `tf.keras`.
"""

import argparse
import contextlib
import json
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from distlab import checks, data, devices  # before TensorFlow

import keras
from keras.distribution import DataParallel, DeviceMesh, LayoutMap, ModelParallel, list_devices

BACKEND = keras.backend.backend()
if BACKEND == "jax":
    import jax
else:
    import tensorflow as tf

BATCH, STEPS, UNITS, SEED = 64, 5, 16, 8
Parts = list[tuple[str, tuple[int, ...]]]  # devices, and the shape of what each has


def find_devices(count: int) -> list[str]:
    """`count` devices, as `keras.distribution` calls them."""
    if BACKEND == "tensorflow":
        return [name.lower() for name in devices.at_least(count)]
    return list_devices()[:count]


class Probe(keras.layers.Layer):
    """Passes its inputs on, and notes which device does so, and the shape of that device's part."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[tuple[str, tuple[int, ...]]] = set()

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """The inputs; not noted while Keras builds the network."""
        if BACKEND == "jax":
            jax.debug.inspect_array_sharding(inputs, callback=lambda sharding: self.note(sharding, inputs.shape))
        elif tf.executing_eagerly():
            self.parts.add((short((inputs + 0.0).device), tuple(inputs.shape)))
        return inputs

    def note(self, sharding: object, shape: tuple[int, ...]) -> None:
        """What JAX's compiler says of a tensor of this shape."""
        self.parts |= {(short(device), sharding.shard_shape(shape)) for device in sharding.device_set}


def short(device: object) -> str:
    """A device's name without job and task, such as cpu:0."""
    return str(device).rpartition("device:")[2].lower()


def parts_of(variable: keras.Variable) -> Parts:
    """The devices that hold the variable, and the shape of what each holds."""
    if BACKEND == "jax":
        return sorted((short(shard.device), shard.data.shape) for shard in variable.value.addressable_shards)
    copies = getattr(variable.value, "values", [variable.value])  # a mirrored variable has several
    return sorted((short(copy.device), tuple(copy.shape)) for copy in copies)


def train(scope: contextlib.AbstractContextManager) -> dict:
    """Train in this scope: the parts of the first kernel and of a batch, and the weights."""
    images, labels = (part[: STEPS * BATCH] for part in data.load("digits").train)
    keras.utils.set_random_seed(SEED)
    with scope:
        probe, layers = Probe(), keras.layers
        hidden = layers.Dense(UNITS, activation="relu", name="hidden")
        model = keras.Sequential([layers.Input((28, 28)), layers.Flatten(), probe, hidden, layers.Dense(10)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # TensorFlow's tensors know their device where each operation runs by itself; JAX's compiler can be asked.
        model.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=BACKEND == "tensorflow")
        model.fit(images, labels, batch_size=BATCH, shuffle=False, verbose=0)
    parts = {"kernel": parts_of(hidden.kernel), "batch": sorted(probe.parts)}
    return {"path": hidden.kernel.path, **parts, "weights": model.get_weights()}


def split(names: list[str], key: str) -> ModelParallel:
    """What a LayoutMap key names is split along its last axis."""
    layouts = LayoutMap(DeviceMesh((1, len(names)), ("batch", "model"), names))
    layouts[key] = (None, "model")
    return ModelParallel(layout_map=layouts, batch_dim_name="batch")


def runs(names: list[str]) -> dict[str, dict]:
    """All runs; of the weights only the largest difference from those without a distribution."""
    scopes = {
        "no distribution": contextlib.nullcontext(),
        "DataParallel": DataParallel(devices=names).scope(),
        "ModelParallel": split(names, ".*hidden/kernel").scope(),
        "ModelParallel, part of the path": split(names, "hidden/kernel").scope(),
    }
    if BACKEND == "tensorflow":
        tf.get_logger().setLevel("ERROR")  # else it says that a strategy is slow where operations run one by one
        scopes["MirroredStrategy"] = tf.distribute.MirroredStrategy(names).scope()
    runs = {name: train(scope) for name, scope in scopes.items()}
    serial = runs["no distribution"]["weights"]
    for run in runs.values():
        run["differs"] = checks.largest_difference(run.pop("weights"), serial)
    return runs


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description="Measure which devices a distribution of Keras uses.")
    parser.add_argument("--devices", type=int, default=4, help="how many (default: 4)")
    parser.add_argument("--result", type=Path, help="JSON file for the measurements")
    options = parser.parse_args()
    names = find_devices(options.devices)
    versions = {name: version(name) for name in ("keras", BACKEND)}
    result = {"measured": datetime.now(UTC).date().isoformat(), "versions": versions, "runs": runs(names)}
    for name, run in result["runs"].items():
        print(f"{BACKEND}, {name}: kernel {run['kernel']}, batch {run['batch']}")
    if options.result:
        options.result.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
