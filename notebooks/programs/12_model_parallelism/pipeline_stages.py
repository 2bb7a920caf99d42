"""A network whose layers are on different devices, trained in micro-batches by a pipeline's schedule.

On a laptop, on logical devices of the processor, or with a GPU for each stage; under Slurm it is one task:

    python pipeline_stages.py --stages 2 4 --result result.json
    srun --nodes=1 --ntasks=1 --gpus-per-task=4 python pipeline_stages.py --stages 4 --result result.json

`tf.device` says where a layer's weights are, and its passes and updates run. The result has, for each number of stages
and each schedule, the largest difference of a weight from the undivided network's, and the most tapes kept at a time.
"""

import argparse
import json
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path

from distlab import checks, data, devices, model_parallel  # before TensorFlow: it selects tf-keras

import numpy as np
import tensorflow as tf

pipelines = model_parallel.pipelines
SIZES, BATCH, RATE = (28 * 28, 48, 40, 32, 10), 64, 0.1


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Train a network by stages and compare with the undivided one.")
    parser.add_argument("--stages", type=int, nargs="+", default=[2, 4], help="each at most 4 (default: 2 4)")
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--dataset", choices=data.NAMES, default="digits")
    parser.add_argument("--result", type=Path, help="JSON file with the differences and the tapes kept")
    return parser.parse_args()


class Stage:
    """Some layers and their variables, on one device."""

    def __init__(self, device: str, layers: Sequence[tuple[np.ndarray, np.ndarray]], is_last: bool) -> None:
        """`layers` are weights and biases at the start; the model's last layer has no ReLU."""
        self.device, self.is_last, self.most_tapes = device, is_last, 0
        with tf.device(device):
            self.variables = [tf.Variable(values) for layer in layers for values in layer]
        self.tapes: dict[int, tuple] = {}

    def forward(self, number: int, inputs: tf.Tensor, labels: tf.Tensor, batch: int) -> tf.Tensor:
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

    def backward(self, number: int, gradient: tf.Tensor | None) -> tuple[tf.Tensor, list]:
        """The gradients by inputs and by variables, from that by the outputs; drops the tape."""
        tape, inputs, outputs = self.tapes.pop(number)
        with tf.device(self.device):
            gradient = None if gradient is None else tf.identity(gradient)
            by_inputs, *by_variables = tape.gradient(outputs, [inputs, *self.variables], gradient)
        return by_inputs, by_variables


def in_time(schedule: str, stages: int, micro_batches: int) -> list[pipelines.Work]:
    """All passes of all stages in the order in which they begin on the virtual cluster."""
    works = chain(*pipelines.simulate(schedule, stages, micro_batches).works)
    return sorted(works, key=lambda work: (work.start, work.stage))


def train_step(stages: list[Stage], order: list[pipelines.Work], images: list, labels: list) -> None:
    """One batch, cut into micro-batches `images` and `labels`, through the pipeline; then one step of SGD."""
    examples = sum(map(len, images))
    activations = {(0, number): inputs for number, inputs in enumerate(images)}
    gradients = {(len(stages) - 1, number): None for number in range(len(images))}
    sums = []
    for stage in stages:
        with tf.device(stage.device):
            sums.append([tf.zeros_like(variable) for variable in stage.variables])
    for work in order:
        stage, place = stages[work.stage], (work.stage, work.micro_batch)
        if work.kind == pipelines.FORWARD:
            outputs = stage.forward(work.micro_batch, activations.pop(place), labels[work.micro_batch], examples)
            activations[work.stage + 1, work.micro_batch] = outputs
        else:
            by_inputs, by_variables = stage.backward(work.micro_batch, gradients.pop(place))
            gradients[work.stage - 1, work.micro_batch] = by_inputs
            with tf.device(stage.device):
                sums[work.stage] = [total + part for total, part in zip(sums[work.stage], by_variables, strict=True)]
    for stage, totals in zip(stages, sums, strict=True):
        with tf.device(stage.device):
            for variable, total in zip(stage.variables, totals, strict=True):
                variable.assign_sub(RATE * total)


def start_layers() -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases of every layer, the same for every run."""
    numbers = np.random.default_rng(12)
    layers = ((numbers.normal(scale=(2 / n) ** 0.5, size=(n, m)), np.zeros(m)) for n, m in pairwise(SIZES))
    return [(weights.astype(np.float32), bias.astype(np.float32)) for weights, bias in layers]


def make_stages(count: int, names: Sequence[str]) -> list[Stage]:
    """The network cut into `count` stages, stage s on device `names[s]`."""
    layers = start_layers()
    parts = np.array_split(np.arange(len(layers)), count)
    return [Stage(names[s], [layers[index] for index in part], s == count - 1) for s, part in enumerate(parts)]


def train(dataset: str, steps: int, stages: list[Stage], schedule: str, micro_batches: int) -> list[np.ndarray]:
    """All steps; gives the network's final weights and biases in order."""
    images, labels = data.load(dataset).train
    order = in_time(schedule, len(stages), micro_batches)
    for number in range(steps):
        taken = np.arange(number * BATCH, (number + 1) * BATCH) % len(images)
        batch = images[taken].reshape(BATCH, -1), labels[taken]
        train_step(stages, order, *(np.array_split(part, micro_batches) for part in batch))
    return [variable.numpy() for stage in stages for variable in stage.variables]


def main() -> None:
    """Train the undivided network, then by stages; compare and write the result."""
    options = parse()
    names = devices.at_least(max(options.stages))
    undivided = train(options.dataset, options.steps, make_stages(1, names), "gpipe", 1)
    runs = []
    for count in options.stages:
        for schedule in ("gpipe", "1f1b"):
            stages = make_stages(count, names)
            weights = train(options.dataset, options.steps, stages, schedule, options.micro_batches)
            far = checks.largest_difference(weights, undivided)
            tapes = [stage.most_tapes for stage in stages]
            runs.append({"stages": count, "schedule": schedule, "difference": far, "most_tapes": tapes})
            print(f"{count} stages, {schedule}: weights differ by {far:.1e}; tapes kept {tapes}", flush=True)
    moved = checks.largest_difference(undivided, list(chain(*start_layers())))
    if options.result:
        options.result.write_text(json.dumps({"moved": moved, "runs": runs}) + "\n")


if __name__ == "__main__":
    main()
