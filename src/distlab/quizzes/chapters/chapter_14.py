"""Other frameworks: layouts of weights, who does which step, what a rank or device holds, a key-value store."""

from distlab import costs
from distlab.quizzes.item import Item, amount, figure, other, pick


def place_after_flatten(
    item: Item,
    side: int = pick(5, 7, 13),
    channels: int = pick(8, 16),
    row: int = pick(1, 2, 3),
    column: int = pick(0, 2, 4),
    channel: int = pick(1, 3, 6),
    framework: str = pick("Keras", "PyTorch"),
) -> None:
    places = {"Keras": (row * side + column) * channels + channel, "PyTorch": (channel * side + row) * side + column}
    item.enter(f"""After the pooling an image has {side} × {side} positions and {channels} channels. At which index,
        counted from 0, does {framework} put row {row}, column {column}, channel {channel} when it flattens them?""")
    item.right(places[framework]).why("""Keras has the channels last and goes row by row; PyTorch has them first and
        goes channel by channel.""")
    item.wrong(other(places, framework), "The other framework").why("Ask which dimension changes fastest.")
    item.wrong((column * side + row) * channels + channel, "Columns first").why("""Both go through a row before the next
        row.""")
    item.wrong(row * side + column, "Without the channels").why("Each position has all channels.")


def where_losses_part(item: Item, case: str = pick("first", "second"), start: float = pick(2.31, 2.34, 2.41)) -> None:
    second = {"first": (start + 0.23, start + 0.11), "second": (start, start - 0.21)}
    places = {
        "first": "The layout of the weights, the order of the images, mean or sum in the loss",
        "second": "The optimizer and the all-reduce",
    }
    item.choose("Two programs in two frameworks start from one file of weights. Where do you look for the difference?")
    item.block = (
        f"framework A: step 1 loss {start:.2f}, step 2 loss {start - 0.08:.2f}\n"
        f"framework B: step 1 loss {second[case][0]:.2f}, step 2 loss {second[case][1]:.2f}"
    )
    item.right(places[case]).why("""The first loss comes before the first update: it checks weights, data and loss,
        nothing else.""")
    item.wrong(other(places, case), "Before or after the update").why("Compare the losses of the first step.")
    item.wrong("The seeds of the two frameworks", "Seeds").why("Weights and order come from the file, not from seeds.")
    item.wrong("Nowhere: frameworks differ", "Frameworks differ").why("Equal programs agree up to rounding.")


def orders_of_a_sampler(
    item: Item, epochs: int = pick(5, 10, 30), ranks: int = pick(2, 4, 8), calls: bool = pick(True, False)
) -> None:
    right, wrong = (epochs, 1) if calls else (1, epochs)
    item.choose(f"""A PyTorch program trains for {epochs} epochs on {ranks} ranks with `DistributedSampler`. It
        {"calls" if calls else "never calls"} `sampler.set_epoch(epoch)`. In how many different orders does a rank see
        its samples?""")
    item.right(right, "orders").why("""The sampler shuffles by its seed and its epoch; without the call the epoch never
        changes.""")
    item.wrong(wrong, "What the call does").why("Ask what the order depends on.")
    item.wrong(ranks, "One per rank").why("All ranks shuffle alike, so that their shares are disjoint.")
    item.wrong(epochs * ranks, "Epochs and ranks").why("A rank has one order in an epoch.")


def sums_and_means(
    item: Item, ranks: int = pick(2, 4, 8), case: str = pick("DDP", "TensorFlow"), rate: float = pick(0.02, 0.1)
) -> None:
    factor = {"DDP": 1 / ranks, "TensorFlow": float(ranks)}[case]
    habit = {
        "DDP": "divides each rank's loss by the global batch, and DDP averages the gradients",
        "TensorFlow": "takes the mean over each worker's own batch, and TensorFlow sums the gradients",
    }
    item.enter(f"""A program on {ranks} ranks {habit[case]}. The optimizer is SGD with a rate of {rate}. Which rate
        makes one process train the same way?""")
    item.right(rate * factor).why("""DDP wants the mean of the rank's own batch, TensorFlow a loss that is divided by
        the global batch.""")
    item.wrong(rate, "It makes no difference").why("One division is missing, or one is too many.")
    item.wrong(rate / factor, "Inverted").why("Ask whether the gradient is too large or too small.")
    item.wrong(rate * factor**2, "Twice").why("Only one of the two steps is wrong.")


def who_must_call(
    item: Item, ranks: int = pick(2, 4, 8, 16), way: str = pick("DistributedDataParallel", "fully_shard")
) -> None:
    whole = {
        "Rank 0 alone can write the checkpoint of the weights.": """Under DDP every rank has the whole model; under
            `fully_shard` it has a part.""",
        "The wrapper itself makes the first weights equal.": """The constructor of DDP broadcasts; `fully_shard` sends
            nothing.""",
    }
    divided = {
        f"Each rank has about 1/{ranks} of every weight.": "`fully_shard` divides every weight among the ranks.",
        "All ranks must take part in writing the weights.": "Whatever needs all parts must be called by all ranks.",
    }
    right, wrong = (whole, divided) if way == "DistributedDataParallel" else (divided, whole)
    item.choose(f"A PyTorch program trains on {ranks} ranks with `{way}`. What is true?")
    for text, why in right.items():
        item.right(text).why(why)
    for text, why in wrong.items():
        item.wrong(text, "The other wrapper").why(why)
    item.wrong("The optimizer is wrapped.", "Horovod's habit").why("""PyTorch wraps the model, neither tape nor
        optimizer.""")


def states_on_a_rank(
    item: Item, ranks: int = pick(2, 4, 8), gigabytes: int = pick(2, 6, 12), way: str = pick("DDP", "ZeRO 1", "FSDP")
) -> None:
    sizes = {"DDP": 2.0 * gigabytes, "ZeRO 1": gigabytes + gigabytes / ranks, "FSDP": 2 * gigabytes / ranks}
    item.choose(f"""A model has {gigabytes} GB of weights and trains by SGD with momentum on {ranks} ranks with {way}.
        How many GB of weights and momentum does each rank keep from step to step?""")
    item.right(sizes[way], "GB").why("What is divided counts 1/N on each rank.")
    for name, size in sizes.items():
        if name != way:
            item.wrong(size, f"As with {name}").why("DDP divides nothing, ZeRO 1 the momentum, FSDP both.")
    item.wrong(2 * gigabytes * ranks, "All ranks together").why("The question is about one rank.")


def silent_clipping(item: Item, norm: float = pick(0.4, 0.8, 2.0, 4.0, 5.0), rate: float = pick(0.02, 0.1)) -> None:
    item.choose(f"""A library clips gradients to norm 1 without a warning. A gradient has norm {norm:g}, and SGD
        has a rate of {rate}. What is the norm of the step?""")
    item.right(rate * min(norm, 1.0)).why("Gradients with a larger norm are scaled down to norm 1; others stay.")
    item.wrong(rate * norm if norm > 1 else rate, "Clipping misunderstood").why("""Clipping shortens what is longer than
        1.""")
    item.wrong(rate / norm, "Divided by the norm").why("A longer gradient gets norm 1; a shorter one stays.")
    item.wrong(rate * norm**2, "The squared norm").why("A step of SGD is the rate times the gradient.")


def traffic_of_a_worker(item: Item, ranks: int = pick(4, 8, 16, 32), megabytes: int = pick(20, 50, 100)) -> None:
    ring = float(costs.all_reduce("ring", ranks, megabytes).largest_bytes_sent)
    item.choose(f"""{ranks} workers have gradients of {megabytes} MB. How many more MB does each of them send in a ring
        all-reduce than to a key-value store?""")
    item.right(ring - megabytes, "MB").why(f"""To the store it pushes the gradient once; in the ring it sends
        {figure(ring)} MB. The load of the servers is another matter.""")
    item.wrong(ring, "The whole ring").why("The question is about the difference.")
    item.wrong(megabytes, "Twice as much").why("A ring comes close to twice, but never reaches it.")
    item.wrong((ranks - 1) * megabytes, "To each other worker").why("A ring sends chunks, not whole gradients.")


def traffic_of_a_server(
    item: Item, workers: int = pick(4, 8, 16), servers: int = pick(1, 2, 4), megabytes: int = pick(40, 100)
) -> None:
    ring = float(costs.all_reduce("ring", workers, megabytes).largest_bytes_sent)
    item.choose(f"""{workers} workers push gradients of {megabytes} MB to a key-value store with
        {amount(servers, "servers")} that share the keys evenly. How many MB does each server receive in a step?""")
    item.right(workers * megabytes / servers, "MB").why("""Every worker pushes the whole gradient, and each server has
        its share of the keys.""")
    item.wrong(megabytes, "One gradient").why("Every worker pushes its own.")
    item.wrong(workers * megabytes * servers, "Multiplied").why("Servers share the keys, they do not repeat them.")
    item.wrong(ring, "A ring").why("Push and pull are no ring.")


def part_on_a_device(
    item: Item,
    devices: int = pick(2, 4, 8),
    rows: int = pick(64, 128),
    spec: str = pick('PartitionSpec("data")', "PartitionSpec()", 'PartitionSpec(None, "data")'),
) -> None:
    parts = {
        'PartitionSpec("data")': f"({rows // devices}, 48)",
        "PartitionSpec()": f"({rows}, 48)",
        'PartitionSpec(None, "data")': f"({rows}, {48 // devices})",
    }
    item.choose(f"""A JAX mesh has {devices} devices on one axis, `data`. An array of shape ({rows}, 48) is put on it
        with `{spec}`. What is the shape of the part on each device?""")
    item.right(parts[spec]).why("""Each name stands for a dimension, in order, and divides it; a dimension without a
        name stays whole.""")
    for name, part in parts.items():
        if name != spec:
            item.wrong(part, f"As with {name}").why("Ask which dimension has the name of the axis.")
    item.wrong(f"({rows // devices}, {48 // devices})", "Both divided").why("One axis can divide one dimension only.")
