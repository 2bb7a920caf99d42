"""Does `keras.distribution` distribute? Which devices hold a kernel, and which compute?

One process drives several devices. On TensorFlow, under Slurm, and on JAX, which needs `pip
install jax`:

    python keras_distribution.py --result tensorflow.json
    srun --ntasks=1 --gpus=4 python keras_distribution.py --result result.json
    KERAS_BACKEND=jax JAX_NUM_CPU_DEVICES=4 python keras_distribution.py --result jax.json

Each run trains the same network from the same first weights, by `Model.fit`:

| run | what distributes |
|---|---|
| no distribution | nothing: what the others are compared with |
| DataParallel | `keras.distribution`: each device a part of the batch |
| ModelParallel | `keras.distribution`: each device a part of the first kernel's columns |
| ModelParallel, part of the path | the same, by a key that is a part of the kernel's path |
| MirroredStrategy | `tf.distribute`, on TensorFlow: it shows that the probe works |
"""

import argparse
import contextlib
import functools
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

BATCH, STEPS, UNITS, SEED, DEVICES = 64, 5, 16, 8, 4
Parts = list[tuple[str, tuple[int, ...]]]  # devices, and the shape of what each has


class Probe(keras.layers.Layer):
    """Passes its inputs on, and notes which devices do so, and the shapes of their parts."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: set[tuple[str, tuple[int, ...]]] = set()

    def call(self, inputs: keras.KerasTensor) -> keras.KerasTensor:
        """The inputs; not noted while Keras builds the network."""
        if BACKEND == "jax":
            note = functools.partial(self.note, inputs.shape)
            jax.debug.inspect_array_sharding(inputs, callback=note)
        elif tf.executing_eagerly():
            self.parts.add((short((inputs + 0.0).device), tuple(inputs.shape)))
        return inputs

    def note(self, shape: tuple[int, ...], sharding: object) -> None:
        """What JAX's compiler says of a tensor of this shape."""
        part = sharding.shard_shape(shape)
        self.parts |= {(short(device), part) for device in sharding.device_set}


def short(device: object) -> str:
    """A device's name without job and task, such as cpu:0."""
    return str(device).rpartition("device:")[2].lower()


def parts_of(variable: keras.Variable) -> Parts:
    """The devices that hold the variable, and the shape of what each holds."""
    if BACKEND == "jax":
        shards = variable.value.addressable_shards
        return sorted((short(shard.device), shard.data.shape) for shard in shards)
    copies = getattr(variable.value, "values", [variable.value])  # several if mirrored
    return sorted((short(copy.device), tuple(copy.shape)) for copy in copies)


def train(scope: contextlib.AbstractContextManager) -> dict:
    """Train in this scope: the parts of the first kernel and of a batch, and the weights."""
    images, labels = (part[: STEPS * BATCH] for part in data.load("digits").train)
    keras.utils.set_random_seed(SEED)
    with scope:
        probe, layers = Probe(), keras.layers
        hidden = layers.Dense(UNITS, activation="relu", name="hidden")
        image = [layers.Input((28, 28)), layers.Flatten()]
        model = keras.Sequential([*image, probe, hidden, layers.Dense(10)])
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        # Only eagerly do TensorFlow's tensors know their device; JAX's compiler can be asked.
        model.compile(keras.optimizers.SGD(0.1), loss, run_eagerly=BACKEND == "tensorflow")
        model.fit(images, labels, batch_size=BATCH, shuffle=False, verbose=0)
    parts = {"kernel": parts_of(hidden.kernel), "batch": sorted(probe.parts)}
    return {**parts, "weights": model.get_weights()}


def split(names: list[str], key: str) -> ModelParallel:
    """What a LayoutMap key names is split along its last axis."""
    layouts = LayoutMap(DeviceMesh((1, len(names)), ("batch", "model"), names))
    layouts[key] = (None, "model")
    return ModelParallel(layout_map=layouts, batch_dim_name="batch")


def runs(names: list[str]) -> dict[str, dict]:
    """All runs; of the weights the largest difference from those without a distribution."""
    scopes = {
        "no distribution": contextlib.nullcontext(),
        "DataParallel": DataParallel(devices=names).scope(),
        "ModelParallel": split(names, ".*hidden/kernel").scope(),
        "ModelParallel, part of the path": split(names, "hidden/kernel").scope(),
    }
    if BACKEND == "tensorflow":
        tf.get_logger().setLevel("ERROR")  # no advice about eager strategies
        scopes["MirroredStrategy"] = tf.distribute.MirroredStrategy(names).scope()
    runs = {name: train(scope) for name, scope in scopes.items()}
    serial = runs["no distribution"]["weights"]
    for run in runs.values():
        run["differs"] = checks.largest_difference(run.pop("weights"), serial)
    return runs


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Measure which devices Keras uses.")
    parser.add_argument("--result", type=Path, help="JSON file for the measurements")
    options = parser.parse_args()
    if BACKEND == "tensorflow":
        names = [name.lower() for name in devices.at_least(DEVICES)]
    else:
        names = list_devices()[:DEVICES]
    versions = {name: version(name) for name in ("keras", BACKEND)}
    result = {"measured": str(datetime.now(UTC).date()), "versions": versions}
    result["runs"] = runs(names)
    for name, run in result["runs"].items():
        print(f"{BACKEND}, {name}: kernel {run['kernel']}, batch {run['batch']}")
    if options.result:
        options.result.write_text(json.dumps(result, indent=1) + "\n")
