"""Model parallelism: inside a layer, pipelines, tiles of an image, sharded states."""

import numpy as np

from distlab.model_parallel import pipelines, sharded_optimizers
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of
from distlab.quizzes.numbers import Numbers, figure


def bubble(numbers: Numbers) -> Item:
    """Which share of the time is the bubble?"""
    stages = numbers.pick("stages", (3, 4, 6, 8))
    micro_batches = numbers.pick("micro_batches", (4, 8, 16, 32))
    share = float(pipelines.bubble_fraction(stages, micro_batches))
    return number(
        f"A pipeline has {stages} equal stages and {micro_batches} micro-batches, under GPipe. Which share of the "
        "devices' "
        "time do they wait?",
        share,
        "%",
        "(p − 1) / (m + p − 1): the pipeline fills and drains.",
        Wrong((stages - 1) / micro_batches, "Relative to the work", "That divides by the ideal time, not by all time."),
        Wrong((stages - 1) / stages, "One batch at a time", "Micro-batches follow one another through the stages."),
        Wrong(1 - share, "The working share", "That is the time in which the devices work."),
        scale=100,
    )


def interleaved_bubble(numbers: Numbers) -> Item:
    """How long does an interleaved pipeline take?"""
    stages = numbers.pick("stages", (4, 8))
    times = numbers.pick("times", (2, 4))
    chunks = numbers.pick("chunks", (2, 4))
    micro_batches = stages * times
    plain, interleaved = (float(pipelines.bubble_fraction(stages, micro_batches, v)) for v in (1, chunks))
    return one_number_of(
        f"1F1B with {stages} stages and {micro_batches} micro-batches is changed to interleaved 1F1B with {chunks} "
        "chunks a "
        "stage. Which share of the time is the bubble now, if messages take no time?",
        interleaved,
        "%",
        f"(p − 1) / (vm + p − 1); before it was {100 * plain:.1f} %. The price is {chunks} times as many messages.",
        Wrong(plain, "1F1B saves memory only", "That is true of 1F1B; interleaving also fills the pipeline sooner."),
        Wrong(plain / chunks, "Divided by the chunks", "The bubble's time is divided by v; its share is of less time."),
        Wrong(
            float(pipelines.bubble_fraction(stages * chunks, micro_batches)), "More stages", "The devices stay as many."
        ),
        scale=100,
    )


def more_micro_batches(numbers: Numbers) -> Item:
    """What do more micro-batches do to the time?"""
    stages = numbers.pick("stages", (4, 6, 8))
    micro_batches = numbers.pick("micro_batches", (2, 4, 8))
    times = numbers.pick("times", (2, 4))
    before, after = (float(pipelines.seconds(stages, m, 1 / m, 2 / m)) for m in (micro_batches, times * micro_batches))
    return one_number_of(
        f"{stages} stages work on a batch in {micro_batches} micro-batches, then on the same batch in "
        f"{times * micro_batches}. By what is the time divided, if the passes take as long per sequence?",
        before / after,
        "",
        "The time is (m + p − 1)/m times the work of a stage: only waiting shrinks.",
        Wrong(times, "As the micro-batches", "The work is the same; only the bubble gets shorter."),
        Wrong(1, "The stages decide", "The bubble is p − 1 passes of a micro-batch, and those got shorter."),
        Wrong(
            float(
                pipelines.bubble_fraction(stages, micro_batches)
                / pipelines.bubble_fraction(stages, times * micro_batches)
            ),
            "The bubble for the time",
            "That is by how much the bubble's share shrinks.",
        ),
    )


def activations_of_a_stage(numbers: Numbers) -> Item:
    """How many micro-batches does a stage hold?"""
    stages = numbers.pick("stages", (4, 6, 8))
    stage = numbers.pick("stage", (0, 1, 2))
    micro_batches = numbers.pick("micro_batches", (16, 32, 64))
    schedule = numbers.pick("schedule", ("gpipe", "1f1b"))
    names = {"gpipe": "GPipe", "1f1b": "1F1B"}
    kept = {name: pipelines.activations_held(name, stages, micro_batches, stage) for name in names}
    return number(
        f"{stages} stages, numbered from 0, {micro_batches} micro-batches, schedule {names[schedule]}. Of how many "
        f"micro-batches does stage {stage} keep the activations at most?",
        kept[schedule],
        "",
        "GPipe keeps all until the backward passes begin; under 1F1B stage s has at most p − s on their way.",
        Wrong(
            kept["1f1b" if schedule == "gpipe" else "gpipe"],
            "The other schedule",
            "They take the same time, not memory.",
        ),
        Wrong(stage + 1, "Counted from the input", "What matters is how many stages follow until the loss."),
        Wrong(1, "One at a time", "Later micro-batches enter before the first gradient comes back."),
        exact=True,
    )


def sharded_states(numbers: Numbers) -> Item:
    """How much memory have ZeRO's states?"""
    billions = numbers.pick("billions", (1.7, 7.5, 39))
    ranks = numbers.pick("ranks", (8, 16, 64))
    stage = numbers.pick("stage", (1, 2, 3))
    sizes = [float(sharded_optimizers.model_state_bytes(1e9 * billions, ranks, each)) / 1e9 for each in range(4)]
    wrong = [
        Wrong(size, f"Stage {each}", "Stage 1 divides optimizer states, 2 gradients too, 3 parameters too.")
        for each, size in enumerate(sizes)
        if each != stage
    ]
    return one_number_of(
        f"A model of {billions} billion parameters trains with Adam in mixed precision on {ranks} ranks with ZeRO "
        f"{stage}. "
        "How many GB of states has each rank?",
        sizes[stage],
        "GB",
        "2 bytes for the parameter, 2 for the gradient, 12 for the optimizer; what is divided counts 1/N.",
        *wrong,
    )


def bytes_of_zero(numbers: Numbers) -> Item:
    """How much does ZeRO send?"""
    ranks = numbers.pick("ranks", (4, 8, 16))
    gigabytes = numbers.pick("gigabytes", (2, 8, 15))
    stage = numbers.pick("stage", (1, 2, 3))
    sent = float(sharded_optimizers.bytes_sent(gigabytes, ranks, stage))
    plain = float(sharded_optimizers.bytes_sent(gigabytes, ranks, 0))
    third = float(sharded_optimizers.bytes_sent(gigabytes, ranks, 3))
    return number(
        f"The parameters of a model have {gigabytes} GB, and so have its gradients. How many GB does each of {ranks} "
        "ranks "
        f"send in a step with ZeRO {stage}?",
        sent,
        "GB",
        "Stages 1 and 2 use the two halves of an all-reduce; stage 3 gathers the parameters once more.",
        Wrong(third if stage < 3 else plain, "Another stage", "Only stage 3 needs a second all-gather."),
        Wrong(sent / 2, "Half of it", "Gradients are reduce-scattered, and parameters are gathered."),
        Wrong(sent / ranks, "A share each", "Memory is divided among the ranks, traffic is not."),
    )


def columns_then_rows(numbers: Numbers) -> Item:
    """What is all-reduced in a tensor split?"""
    batch = numbers.pick("batch", (32, 64, 128))
    hidden = numbers.pick("hidden", (80, 800, 8_000))
    outputs = numbers.pick("outputs", (10, 16))
    split = numbers.pick("split", ("column, row", "column, column"))
    sent = {"column, row": batch * outputs, "column, column": batch * hidden}
    return one_number_of(
        f"Two dense layers, {hidden:,} hidden units and {outputs} outputs, are split inside: {split}. The batch has "
        f"{batch} "
        "samples. How many numbers has the array of the forward pass's collective?",
        sent[split],
        "numbers",
        "Column, row adds up partial outputs; column, column gathers the hidden units before the second layer.",
        Wrong(
            sent["column, column" if split == "column, row" else "column, row"],
            "The other split",
            "Ask what is cut where.",
        ),
        Wrong(hidden * outputs, "The weights", "Weights and their gradients stay where they are."),
        Wrong(batch * (hidden + outputs), "Both layers", "Only one of the two layers needs the other devices."),
        exact=True,
    )


def relu_of_the_parts(numbers: Numbers) -> Item:
    """What is the output of a split layer?"""
    first = numbers.pick("first", ((3.0, -2.0), (4.0, -1.0), (2.0, -3.0)))
    second = numbers.pick("second", ((2.0, 1.0), (1.0, 3.0), (3.0, -1.0)))
    hidden = np.maximum(np.array(first), 0)
    right = float(hidden @ np.array(second))
    parts = np.array(first) * np.array(second)
    return number(
        f"Device 0 has one hidden unit with weight {first[0]:g} and its row {second[0]:g}, device 1 has one with "
        "weight "
        f"{first[1]:g} and its row {second[1]:g}. The input is 1, a ReLU follows the hidden layer, and the partial "
        "outputs "
        "are all-reduced. What is the output?",
        right,
        "",
        f"The ReLU acts on each hidden unit, {hidden[0]:g} and {hidden[1]:g}, before the rows and the sum.",
        Wrong(float(parts.sum()), "Without the ReLU", "A negative hidden unit becomes 0."),
        Wrong(float(np.abs(parts).sum()), "Signs lost", "A ReLU is not an absolute value."),
        Wrong(float(right / 2), "The mean", "Each device has a part of the sum, not an estimate of it."),
    )


def width_of_the_seam(numbers: Numbers) -> Item:
    """How wide is the seam between tiles?"""
    kernel = numbers.pick("kernel", (3, 5, 7))
    layers = numbers.pick("layers", (1, 2, 3))
    reach = sum(kernel // 2 for _ in range(layers))
    return number(
        f"An image is cut into two tiles, each on a rank. {layers} {'convolution' if layers == 1 else 'convolutions'} "
        "with "
        f"kernels of {kernel} × {kernel} follow one another, and the exchange of halos was forgotten. How many pixels "
        "wide is "
        "the strip of wrong outputs along the cut?",
        2 * reach,
        "pixels",
        f"The layers reach {reach} pixels beyond a tile's edge, on each side of the cut.",
        Wrong(reach, "One side", "The pixels on both sides of the cut lack their neighbours."),
        Wrong(2 * layers * kernel, "The whole kernel", "A kernel of 2k + 1 pixels reaches k pixels to each side."),
        Wrong(2 * layers * kernel * kernel, "The kernel's area", "The width counts in one direction."),
        exact=True,
    )


def which_split(numbers: Numbers) -> Item:
    """Which split does this model need first?"""
    billions = numbers.pick("billions", (1, 2, 3, 39, 70, 175))
    devices = numbers.pick("devices", (64, 512))
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0)) / 1e9
    data, split = "Data parallelism alone", "Tensor inside the servers, a pipeline between them, data with the rest"
    right, wrong = (data, split) if state <= 60 else (split, data)
    return one_of(
        f"A model of {billions} billion parameters trains with Adam in mixed precision on {devices} GPUs with 80 GB, "
        "in "
        "servers of 8 with NVLink. Which split do you try first?",
        right,
        f"Its states have {figure(state)} GB. What fits on a device needs no model parallelism; what does not needs "
        "fast "
        "links inside layers.",
        Wrong(wrong, "Memory not computed", "Compare 16 bytes per parameter with the memory of one device."),
        Wrong(
            "A pipeline inside the servers, tensor between them",
            "Links exchanged",
            "Every layer waits for its all-reduce.",
        ),
        Wrong(f"A pipeline of {devices} stages", "Stages only", "The bubble would be most of the time."),
    )


TEMPLATES = (
    columns_then_rows,
    relu_of_the_parts,
    bubble,
    more_micro_batches,
    activations_of_a_stage,
    interleaved_bubble,
    width_of_the_seam,
    sharded_states,
    bytes_of_zero,
    which_split,
)
