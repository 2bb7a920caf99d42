"""Other frameworks: layouts of weights, who does which step, what a rank holds, the traffic of a key-value store."""

from distlab import costs
from distlab.model_parallel import sharded_optimizers
from distlab.quizzes import simulations
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure


def place_after_flatten(numbers: Numbers) -> Item:
    """Where does a feature stand after Flatten?"""
    side = numbers.pick("side", (5, 7, 13))
    channels = numbers.pick("channels", (8, 16))
    row = numbers.pick("row", (1, 2, 3))
    column = numbers.pick("column", (0, 2, 4))
    channel = numbers.pick("channel", (1, 3, 6))
    framework = numbers.pick("framework", ("Keras", "PyTorch"))
    places = {
        "Keras": (row * side + column) * channels + channel,
        "PyTorch": (channel * side + row) * side + column,
    }
    mistaken = next(places[each] for each in places if each != framework)
    return number(
        f"After the pooling an image has {side} × {side} positions and {channels} channels. At which place, counted "
        f"from 0, does {framework} "
        f"put row {row}, column {column}, channel {channel} when it flattens?",
        places[framework],
        "",
        "Keras has the channels last and goes row by row; PyTorch has them first and goes channel by channel.",
        Wrong(mistaken, "The other framework", "Ask which dimension changes fastest."),
        Wrong(
            (column * side + row) * channels + channel, "Columns first", "Both go through a row before the next row."
        ),
        Wrong(row * side + column, "Without the channels", "Each position has all channels."),
        exact=True,
    )


def where_losses_part(numbers: Numbers) -> Item:
    """Where do two frameworks begin to differ?"""
    case = numbers.pick("case", ("first", "second"))
    start = numbers.pick("start", (2.31, 2.34, 2.41))
    first, second = ((start, start - 0.08), (start + 0.23, start + 0.11))
    if case == "second":
        second = (start, start - 0.21)
    before, after = (
        "The layout of the weights, the order of the images, mean or sum in the loss",
        "The optimizer and the all-reduce",
    )
    right, wrong = (before, after) if case == "first" else (after, before)
    return one_of(
        "Two programs in two frameworks start from one file of weights. Where do you look for the difference?",
        right,
        "The first loss comes before the first update: it checks weights, data and loss, nothing else.",
        Wrong(wrong, "Before or after the update", "Compare the losses of the first step."),
        Wrong("The seeds of the two frameworks", "Seeds", "Weights and order come from the file, not from seeds."),
        Wrong("Nowhere: frameworks differ", "Frameworks differ", "Equal programs agree up to rounding."),
        block="\n".join(
            f"framework {name}: step 1 loss {losses[0]:.2f}, step 2 loss {losses[1]:.2f}"
            for name, losses in (("A", first), ("B", second))
        ),
    )


def orders_of_a_sampler(numbers: Numbers) -> Item:
    """How many orders does a sampler give?"""
    epochs = numbers.pick("epochs", (5, 10, 30))
    ranks = numbers.pick("ranks", (2, 4, 8))
    calls = numbers.pick("calls", (True, False))
    right, wrong = (epochs, 1) if calls else (1, epochs)
    return one_number_of(
        f"A PyTorch program trains for {epochs} epochs on {ranks} ranks with `DistributedSampler`. It "
        f"{'calls' if calls else 'never calls'} "
        "`sampler.set_epoch(epoch)`. In how many different orders does a rank get its samples?",
        right,
        "orders",
        "The sampler shuffles by its seed and its epoch; without the call the epoch never changes.",
        Wrong(wrong, "What the call does", "Ask what the order depends on."),
        Wrong(ranks, "One per rank", "All ranks shuffle alike, so that their shares are disjoint."),
        Wrong(epochs * ranks, "Epochs and ranks", "A rank has one order in an epoch."),
        exact=True,
    )


def states_on_a_rank(numbers: Numbers) -> Item:
    """What does a rank hold?"""
    ranks = numbers.pick("ranks", (2, 4, 8))
    gigabytes = numbers.pick("gigabytes", (2, 6, 12))
    way = numbers.pick("way", ("DDP", "ZeRO 1", "FSDP"))
    stages = {"DDP": 0, "ZeRO 1": 1, "FSDP": 3}
    kept = sharded_optimizers.BytesPerParameter(4, 0, 4)
    sizes = {
        name: float(sharded_optimizers.model_state_bytes(gigabytes / 4, ranks, stage, kept))
        for name, stage in stages.items()
    }
    wrong = (
        Wrong(size, f"As with {name}", "DDP divides nothing, ZeRO 1 the momentum, FSDP both.")
        for name, size in sizes.items()
        if name != way
    )
    return one_number_of(
        f"A model has {gigabytes} GB of weights and trains by SGD with momentum on {ranks} ranks with {way}. How many "
        "GB of weights and "
        "momentum does each rank keep from step to step?",
        sizes[way],
        "GB",
        "What is divided counts 1/N on each rank.",
        *wrong,
        Wrong(2 * gigabytes * ranks, "All ranks together", "The question is about one rank."),
    )


def sums_and_means(numbers: Numbers) -> Item:
    """What does a mixed division do to the rate?"""
    ranks = numbers.pick("ranks", (2, 4, 8))
    case = numbers.pick("case", ("DDP", "TensorFlow"))
    rate = numbers.pick("rate", (0.02, 0.1))
    total = simulations.all_reduced((1.0,) * ranks)
    factor = {"DDP": 1 / total, "TensorFlow": total}[case]
    habit = {
        "DDP": "divides each rank's loss by the global batch, and DDP averages the gradients",
        "TensorFlow": "takes the mean over each worker's own batch, and TensorFlow sums the gradients",
    }
    return number(
        f"A program on {ranks} ranks {habit[case]}. The optimizer is SGD with a rate of {rate}. With which rate would "
        "one process train alike?",
        rate * factor,
        "",
        "DDP wants the mean of the rank's own batch, TensorFlow a loss that is divided by the global batch.",
        Wrong(rate, "It makes no difference", "One division is missing, or one is too many."),
        Wrong(rate / factor, "Turned round", "Ask whether the gradient is too large or too small."),
        Wrong(rate * factor**2, "Twice", "Only one of the two steps is wrong."),
    )


def traffic_of_a_server(numbers: Numbers) -> Item:
    """How much does a server receive?"""
    workers = numbers.pick("workers", (4, 8, 16))
    servers = numbers.pick("servers", (1, 2, 4))
    megabytes = numbers.pick("megabytes", (40, 100))
    gathered = workers * megabytes / servers
    return one_number_of(
        f"{workers} workers push gradients of {megabytes} MB to a key-value store with {servers} "
        f"{'server' if servers == 1 else 'servers'} "
        "that share the keys evenly. How many MB does each server receive in a step?",
        gathered,
        "MB",
        "Every worker pushes the whole gradient, and each server has its share of the keys.",
        Wrong(megabytes, "One gradient", "Every worker pushes its own."),
        Wrong(workers * megabytes * servers, "Multiplied", "Servers share the keys, they do not repeat them."),
        Wrong(
            float(costs.all_reduce("ring", workers, megabytes).largest_bytes_sent),
            "A ring",
            "Push and pull are no ring.",
        ),
    )


def traffic_of_a_worker(numbers: Numbers) -> Item:
    """How much does a worker send in a ring and to a store?"""
    ranks = numbers.pick("ranks", (4, 8, 16, 32))
    megabytes = numbers.pick("megabytes", (20, 50, 100))
    ring = float(costs.all_reduce("ring", ranks, megabytes).largest_bytes_sent)
    return one_number_of(
        f"{ranks} workers have gradients of {megabytes} MB. How many MB more does each of them send in a ring "
        "all-reduce than to a key-value "
        "store?",
        ring - megabytes,
        "MB",
        f"To the store it pushes the gradient once; in the ring it sends {figure(ring)} MB. The load of the servers is "
        "another matter.",
        Wrong(ring, "The whole ring", "The question is about the difference."),
        Wrong(megabytes, "Twice as much", "A ring comes close to twice, but never reaches it."),
        Wrong((ranks - 1) * megabytes, "To each other worker", "A ring sends chunks, not whole gradients."),
    )


def rescaled_gradient(numbers: Numbers) -> Item:
    """By what is a pushed sum divided?"""
    workers = numbers.pick("workers", (2, 4, 8))
    batch = numbers.pick("batch", (24, 32, 64))
    mode = numbers.pick("mode", ("dist_sync", "dist_async"))
    counts = {"dist_sync": workers * batch, "dist_async": batch}
    mistaken = next(counts[each] for each in counts if each != mode)
    return number(
        f"{workers} MXNet workers push the sum of the gradients over their {batch} images. The optimizer is on the "
        "server, and the mode is "
        f"`{mode}`. Each step shall be a mean over its images. By which number must it divide?",
        counts[mode],
        "images",
        "With `dist_sync` one step takes the pushes of all workers; with `dist_async` each push is a step.",
        Wrong(mistaken, "The other mode", "Ask whose images are in one step."),
        Wrong(workers, "The workers", "The sum is over images, so the images count."),
        Wrong(workers * workers * batch, "Divided twice", "The server adds the pushes once."),
        exact=True,
    )


def silent_clipping(numbers: Numbers) -> Item:
    """What does a default clipping do to a step?"""
    norm = numbers.pick("norm", (0.4, 0.8, 2.0, 4.0, 5.0))
    rate = numbers.pick("rate", (0.02, 0.1))
    clipped = min(norm, 1.0)
    return one_number_of(
        f"A library clips gradients to norm 1, and nobody knows. A gradient has norm {norm:g}, and SGD has a rate of "
        f"{rate}. How long is the "
        "step?",
        rate * clipped,
        "",
        "Gradients with a larger norm are scaled down to norm 1; others stay.",
        Wrong(rate * norm if norm > 1 else rate, "Clipping misunderstood", "Clipping shortens what is longer than 1."),
        Wrong(rate / norm, "Divided by the norm", "A gradient is scaled to norm 1, not below."),
        Wrong(rate * norm**2, "The squared norm", "A step of SGD is the rate times the gradient."),
    )


def who_must_call(numbers: Numbers) -> Item:
    """Who has to do what under DDP and FSDP?"""
    ranks = numbers.pick("ranks", (2, 4, 8, 16))
    way = numbers.pick("way", ("DistributedDataParallel", "fully_shard"))
    share = f"Each rank has 1/{ranks} of every weight."
    statements = {
        "Rank 0 can write the checkpoint of the weights alone.": (
            way != "fully_shard",
            "Under DDP every rank has the whole model; under `fully_shard` it has a part.",
        ),
        "The wrapper itself makes the first weights equal.": (
            way != "fully_shard",
            "The constructor of DDP broadcasts; `fully_shard` sends nothing.",
        ),
        share: (way == "fully_shard", "`fully_shard` divides every weight among the ranks."),
        "All ranks must take part in writing the weights.": (
            way == "fully_shard",
            "Whatever needs all parts must be called by all ranks.",
        ),
    }
    wrong = [Wrong(text, "The other wrapper", why) for text, (is_right, why) in statements.items() if not is_right]
    return several_of(
        f"A PyTorch program trains on {ranks} ranks with `{way}`. What is true?",
        {text: why for text, (is_right, why) in statements.items() if is_right},
        *wrong,
        Wrong("The optimizer is wrapped.", "Horovod's habit", "PyTorch wraps the model, neither tape nor optimizer."),
    )


TEMPLATES = (
    place_after_flatten,
    where_losses_part,
    orders_of_a_sampler,
    sums_and_means,
    who_must_call,
    states_on_a_rank,
    silent_clipping,
    traffic_of_a_worker,
    traffic_of_a_server,
    rescaled_gradient,
)
