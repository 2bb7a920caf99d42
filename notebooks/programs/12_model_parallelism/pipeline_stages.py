"""A network whose layers are on different devices, trained by a pipeline's schedule.

On a laptop, on logical devices of the processor, or with a GPU for each stage; under Slurm it
is one task:

    python pipeline_stages.py
    srun --ntasks=1 --gpus-per-task=4 python pipeline_stages.py

`tf.device` says where a layer's weights are, and its passes and updates run. The program
prints, for 2 and 4 stages and each schedule, how far the weights are from the undivided
network's, and the most tapes kept at a time.
"""

from itertools import chain, pairwise

from distlab import checks, data, devices, model_parallel  # first: selects tf-keras

import numpy as np
import tensorflow as tf

pipelines = model_parallel.pipelines
SIZES, BATCH, RATE = (28 * 28, 48, 40, 32, 10), 64, 0.1
Layers = list[tuple[np.ndarray, np.ndarray]]  # weights and biases


class Stage:
    """Some layers and their variables, on one device."""

    def __init__(self, device: str, layers: Layers, is_last: bool) -> None:
        """The model's last layer has no ReLU."""
        self.device, self.is_last, self.most_tapes = device, is_last, 0
        with tf.device(device):
            self.variables = [tf.Variable(values) for layer in layers for values in layer]
            self.sums = [tf.Variable(tf.zeros_like(each)) for each in self.variables]
        self.tapes: dict[int, tuple] = {}

    def forward(self, number: int, inputs: tf.Tensor, labels: tf.Tensor, batch: int) -> object:
        """Its outputs; on the last stage its share of the mean loss of `batch` examples."""
        with tf.device(self.device), tf.GradientTape() as tape:
            outputs = inputs = tf.identity(inputs)
            tape.watch(inputs)
            pairs = list(zip(self.variables[::2], self.variables[1::2], strict=True))
            for layer, (weights, bias) in enumerate(pairs, 1):
                outputs = outputs @ weights + bias
                if not (self.is_last and layer == len(pairs)):
                    outputs = tf.nn.relu(outputs)
            if self.is_last:
                losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
                outputs = tf.reduce_sum(losses) / batch
        self.tapes[number] = tape, inputs, outputs
        self.most_tapes = max(self.most_tapes, len(self.tapes))
        return outputs

    def backward(self, number: int, gradient: tf.Tensor | None) -> tf.Tensor:
        """The gradient by inputs; those by variables are added up, and the tape is dropped."""
        tape, inputs, outputs = self.tapes.pop(number)
        with tf.device(self.device):
            gradient = None if gradient is None else tf.identity(gradient)
            by = [inputs, *self.variables]
            by_inputs, *by_variables = tape.gradient(outputs, by, gradient)
            for total, part in zip(self.sums, by_variables, strict=True):
                total.assign_add(part)
        return by_inputs

    def update(self) -> None:
        """One step of SGD, along the sums."""
        with tf.device(self.device):
            for variable, total in zip(self.variables, self.sums, strict=True):
                variable.assign_sub(RATE * total)
                total.assign(tf.zeros_like(total))


def in_time(schedule: str, stages: int, micro_batches: int) -> list[pipelines.Work]:
    """All passes of all stages in the order in which they begin on the virtual cluster."""
    works = chain(*pipelines.simulate(schedule, stages, micro_batches).works)
    return sorted(works, key=lambda work: (work.start, work.stage))


def train_step(stages: list[Stage], order: list, images: list, labels: list) -> None:
    """One batch, cut into micro-batches, through the pipeline; then one step of SGD."""
    examples = sum(map(len, images))
    activations = {(0, number): inputs for number, inputs in enumerate(images)}
    gradients = {(len(stages) - 1, number): None for number in range(len(images))}
    for work in order:
        stage, number = stages[work.stage], work.micro_batch
        place = work.stage, number
        if work.kind == pipelines.FORWARD:
            inputs = activations.pop(place)
            outputs = stage.forward(number, inputs, labels[number], examples)
            activations[work.stage + 1, number] = outputs
        else:
            gradients[work.stage - 1, number] = stage.backward(number, gradients.pop(place))
    for stage in stages:
        stage.update()


def start_layers() -> Layers:
    """The same for every run."""
    numbers, layers = np.random.default_rng(12), []
    for inputs, units in pairwise(SIZES):
        weights = numbers.normal(scale=(2 / inputs) ** 0.5, size=(inputs, units))
        layers.append((weights.astype(np.float32), np.zeros(units, np.float32)))
    return layers


def make_stages(count: int, names: list[str]) -> list[Stage]:
    """The network cut into `count` stages, stage s on device `names[s]`."""
    layers, stages = start_layers(), []
    for s, part in enumerate(np.array_split(np.arange(len(layers)), count)):
        own = [layers[index] for index in part]
        stages.append(Stage(names[s], own, is_last=s == count - 1))
    return stages


def train(
    dataset: str, steps: int, stages: list[Stage], schedule: str, micro_batches: int
) -> list[np.ndarray]:
    """All steps; gives the network's final weights and biases in order."""
    images, labels = data.load(dataset).train
    order = in_time(schedule, len(stages), micro_batches)
    for number in range(steps):
        taken = np.arange(number * BATCH, (number + 1) * BATCH) % len(images)
        batch = images[taken].reshape(BATCH, -1), labels[taken]
        train_step(stages, order, *(np.array_split(part, micro_batches) for part in batch))
    return [variable.numpy() for stage in stages for variable in stage.variables]


if __name__ == "__main__":
    names = devices.at_least(4)
    undivided = train("digits", 20, make_stages(1, names), "gpipe", 1)
    for count in (2, 4):
        for schedule in ("gpipe", "1f1b"):
            stages = make_stages(count, names)
            weights = train("digits", 20, stages, schedule, micro_batches=8)
            far = checks.largest_difference(weights, undivided)
            tapes = [stage.most_tapes for stage in stages]
            print(f"{count} stages, {schedule}: differ by {far:.1e}; tapes kept {tapes}")
