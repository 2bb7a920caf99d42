"""Model parallelism: inside a layer, pipelines, tiles of an image, sharded states."""

import numpy as np

from distlab.model_parallel import pipelines, sharded_optimizers
from distlab.quizzes.item import Item, amount, figure, other, pick


def columns_then_rows(
    item: Item,
    batch: int = pick(32, 64, 128),
    hidden: int = pick(80, 800, 8_000),
    outputs: int = pick(10, 16),
    split: str = pick("column, row", "column, column"),
) -> None:
    sent = {"column, row": batch * outputs, "column, column": batch * hidden}
    item.choose(f"""Two dense layers, {hidden:,} hidden units and {outputs} outputs, are split inside: {split}. The
        batch has {batch} samples. How many numbers does the collective that this split needs give to every device?
        (Outputs that are cut by columns may stay divided.)""")
    item.right(sent[split], "numbers").why("""Column, row adds up partial outputs; column, column gathers the hidden
        units before the second layer.""")
    item.wrong(other(sent, split), "The other split").why("Ask what is cut where.")
    item.wrong(hidden * outputs, "The weights").why("Weights and their gradients stay where they are.")
    item.wrong(batch * (hidden + outputs), "Both layers").why("Only one of the two layers needs the other devices.")


def relu_of_the_parts(
    item: Item,
    first: tuple[float, float] = pick((3.0, -2.0), (4.0, -1.0), (2.0, -3.0)),
    second: tuple[float, float] = pick((2.0, 1.0), (1.0, 3.0), (3.0, -1.0)),
) -> None:
    hidden = np.maximum(first, 0)
    right, parts = float(hidden @ second), np.multiply(first, second)
    item.enter(f"""Device 0 has one hidden unit with weight {first[0]:g} and its row {second[0]:g}, device 1 has one
        with weight {first[1]:g} and its row {second[1]:g}. The input is 1, a ReLU follows the hidden layer, and the
        partial outputs are all-reduced. What is the output?""")
    item.right(right).why(f"""The ReLU acts on each hidden unit, {hidden[0]:g} and {hidden[1]:g}, before the rows and
        the sum.""")
    item.wrong(float(parts.sum()), "Without the ReLU").why("A negative hidden unit becomes 0.")
    item.wrong(float(np.abs(parts).sum()), "Signs lost").why("A ReLU is not an absolute value.")
    item.wrong(right / 2, "The mean").why("Each device has a part of the sum, not an estimate of it.")


def bubble(item: Item, stages: int = pick(3, 4, 6, 8), micro_batches: int = pick(4, 8, 16, 32)) -> None:
    share = float(pipelines.bubble_fraction(stages, micro_batches))
    item.enter(f"""A pipeline has {stages} equal stages and {micro_batches} micro-batches, under GPipe. What share of
        their time do the devices spend waiting?""")
    item.right(share, "%").why("(p − 1) / (m + p − 1): the pipeline fills and drains.")
    item.wrong((stages - 1) / micro_batches, "Relative to the work").why("""That divides by the ideal time, not by all
        time.""")
    item.wrong((stages - 1) / stages, "One batch at a time").why("Micro-batches follow one another through the stages.")
    item.wrong(1 - share, "The working share").why("That is the time in which the devices work.")


def more_micro_batches(
    item: Item, stages: int = pick(4, 6, 8), micro_batches: int = pick(2, 4, 8), times: int = pick(2, 4)
) -> None:
    few, many = micro_batches, times * micro_batches
    before, after = (float(pipelines.seconds(stages, m, 1 / m, 2 / m)) for m in (few, many))
    large, small = (float(pipelines.bubble_fraction(stages, m)) for m in (few, many))
    item.choose(f"""{stages} stages work on a batch in {few} micro-batches, then on the same batch in {many}. By what
        factor does the time of the batch shrink? A pass takes the same time per sequence.""")
    item.right(before / after).why("The time is (m + p − 1)/m times the work of a stage: only waiting shrinks.")
    item.wrong(times, "Like the micro-batches").why("The work is the same; only the bubble gets shorter.")
    item.wrong(1, "The stages decide").why("The bubble is p − 1 passes of a micro-batch, and those got shorter.")
    item.wrong(large / small, "The bubble for the time").why("That is how much smaller the bubble's share becomes.")


def activations_of_a_stage(
    item: Item,
    stages: int = pick(4, 6, 8),
    stage: int = pick(0, 1, 2),
    micro_batches: int = pick(16, 32, 64),
    schedule: str = pick("GPipe", "1F1B"),
) -> None:
    kept = {name: pipelines.activations_held(name.lower(), stages, micro_batches, stage) for name in ("GPipe", "1F1B")}
    item.enter(f"""{stages} stages, numbered from 0, {micro_batches} micro-batches, schedule {schedule}. For how many
        micro-batches, at most, does stage {stage} keep activations?""")
    item.right(int(kept[schedule])).why("""GPipe keeps all until the backward passes begin; under 1F1B stage s has at
        most p − s under way.""")
    item.wrong(other(kept, schedule), "The other schedule").why("They take the same time, not memory.")
    item.wrong(stage + 1, "Counted from the input").why("What matters is how many stages follow until the loss.")
    item.wrong(1, "One at a time").why("Later micro-batches enter before the first gradient comes back.")


def interleaved_bubble(item: Item, stages: int = pick(4, 8), times: int = pick(2, 4), chunks: int = pick(2, 4)) -> None:
    micro_batches = stages * times
    plain, interleaved = (float(pipelines.bubble_fraction(stages, micro_batches, v)) for v in (1, chunks))
    longer = float(pipelines.bubble_fraction(stages * chunks, micro_batches))
    item.choose(f"""1F1B with {stages} stages and {micro_batches} micro-batches is changed to interleaved 1F1B with
        {chunks} chunks per stage. What share of the time is the bubble now, if messages take no time?""")
    item.right(interleaved, "%").why(f"""(p − 1) / (vm + p − 1); before it was {100 * plain:.1f} %. The price is
        {chunks} times as many messages.""")
    item.wrong(plain, "1F1B saves memory only").why("""That is true of 1F1B; interleaving also fills the pipeline
        sooner.""")
    item.wrong(plain / chunks, "Divided by the chunks").why("""The bubble's time is divided by v; its share is of less
        time.""")
    item.wrong(longer, "More stages").why("The number of devices stays the same.")


def width_of_the_seam(item: Item, kernel: int = pick(3, 5, 7), layers: int = pick(1, 2, 3)) -> None:
    reach = layers * (kernel // 2)
    item.enter(f"""An image is cut into two tiles, each on a rank. It goes through {amount(layers, "convolutions")} with
        kernels of {kernel} × {kernel}, but somebody forgot to exchange the halos. How many pixels wide is the strip of
        wrong outputs along the cut?""")
    item.right(2 * reach, "pixels").why(f"""The layers reach {reach} pixels beyond a tile's edge, on each side of the
        cut.""")
    item.wrong(reach, "One side").why("The pixels on both sides of the cut lack their neighbours.")
    item.wrong(2 * layers * kernel, "The whole kernel").why("A kernel of 2k + 1 pixels reaches k pixels to each side.")
    item.wrong(2 * layers * kernel * kernel, "The kernel's area").why("The width counts in one direction.")


def sharded_states(
    item: Item, billions: float = pick(1.7, 7.5, 39), ranks: int = pick(8, 16, 64), stage: int = pick(1, 2, 3)
) -> None:
    sizes = [float(sharded_optimizers.model_state_bytes(1e9 * billions, ranks, each)) / 1e9 for each in range(4)]
    item.choose(f"""A model of {billions} billion parameters trains with Adam in mixed precision on {ranks} ranks with
        ZeRO {stage}. How many GB of states does each rank store?""")
    item.right(sizes[stage], "GB").why("""2 bytes for the parameter, 2 for the gradient, 12 for the optimizer; what is
        divided counts 1/N.""")
    for each, size in enumerate(sizes):
        if each != stage:
            item.wrong(size, f"Stage {each}").why("""Stage 1 divides optimizer states, 2 gradients too, 3 parameters
                too.""")


def bytes_of_zero(
    item: Item, ranks: int = pick(4, 8, 16), gigabytes: int = pick(2, 8, 15), stage: int = pick(1, 2, 3)
) -> None:
    sent, another = (
        float(sharded_optimizers.bytes_sent(gigabytes, ranks, each)) for each in (stage, 3 if stage < 3 else 0)
    )
    item.enter(f"""The parameters of a model take {gigabytes} GB, and so do its gradients. How many GB does each of
        {ranks} ranks send in a step with ZeRO {stage}?""")
    item.right(sent, "GB").why("""Stages 1 and 2 use the two halves of an all-reduce; stage 3 gathers the parameters
        once more.""")
    item.wrong(another, "Another stage").why("Only stage 3 needs a second all-gather.")
    item.wrong(sent / 2, "Half of it").why("Gradients are reduce-scattered, and parameters are gathered.")
    item.wrong(sent / ranks, "A share each").why("Memory is divided among the ranks, traffic is not.")


def which_split(item: Item, billions: int = pick(1, 2, 3, 39, 70, 175), devices: int = pick(64, 512)) -> None:
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0)) / 1e9
    data, split = "Data parallelism alone", "Tensor inside the servers, a pipeline between them, data with the rest"
    right, wrong = (data, split) if state <= 60 else (split, data)
    item.choose(f"""A model of {billions} billion parameters trains with Adam in mixed precision on {devices} GPUs with
        80 GB, in servers of 8 with NVLink. Which split do you try first?""")
    item.right(right).why(f"""Its states take {figure(state)} GB. What fits on a device needs no model parallelism; what
        does not needs fast links inside layers.""")
    item.wrong(wrong, "Memory not computed").why("Compare 16 bytes per parameter with the memory of one device.")
    item.wrong("A pipeline inside the servers, tensor between them", "Links exchanged").why("""Every layer waits for its
        all-reduce.""")
    item.wrong(f"A pipeline of {devices} stages", "Stages only").why("The bubble would be most of the time.")
