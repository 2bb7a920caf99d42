"""Why distribute: memory and time by arithmetic, kinds of parallelism, staleness, limits of the speed-up."""

import math

import numpy as np

from distlab import costs
from distlab.model_parallel import sharded_optimizers
from distlab.quizzes.item import Item, Wrong, number, one_number_of, one_of, several_of
from distlab.quizzes.numbers import Numbers, figure


def training_state(numbers: Numbers) -> Item:
    """How much memory has the training state?"""
    billions = numbers.pick("billions", (0.34, 1.5, 7, 13, 70))
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0)) / 1e9
    return number(
        f"A model has {figure(billions)} billion parameters and trains with Adam in mixed precision. How many GB has "
        "its "
        "training state, without activations?",
        state,
        "GB",
        "16 bytes per parameter: 2 for the weight, 2 for the gradient, and 12 for the 32-bit copy and two moments.",
        Wrong(state / 8, "The weights alone", "That is 2 bytes per parameter; training keeps more than the weights."),
        Wrong(state / 4, "Weights and gradients", "Adam's moments and the 32-bit copy of the weights are missing."),
        Wrong(state / 2, "Half of it in 16 bits", "The 32-bit copy takes back what the 16-bit numbers had saved."),
    )


def devices_for_the_state(numbers: Numbers) -> Item:
    """How many devices hold the state?"""
    billions = numbers.pick("billions", (20, 70, 175, 540))
    gigabytes = numbers.pick("gigabytes", (32, 80, 141))
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0))
    return one_number_of(
        f"A model has {billions} billion parameters; Adam needs 16 bytes for each. How many devices with {gigabytes} "
        "GB "
        "hold its training state at least, if it can be divided?",
        math.ceil(state / (1e9 * gigabytes)),
        "devices",
        f"{figure(state / 1e9)} GB in all.",
        Wrong(math.ceil(state / 4e9 / gigabytes), "Weights only", "Gradient and moments need memory, too."),
        Wrong(math.ceil(billions / gigabytes), "A byte each", "Billions of parameters are not gigabytes."),
        Wrong(1, "Copies on each", "The question is about a state that is divided; no single device holds it."),
        exact=True,
    )


def plain_data_parallelism(numbers: Numbers) -> Item:
    """Does a model fit if there are many devices?"""
    billions = numbers.pick("billions", (1, 3, 13, 70))
    devices = numbers.pick("devices", (16, 64, 256))
    gigabytes = 80
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, devices, 0)) / 1e9
    fits, fails = "Each device has room for the state.", "It fails on each device, as on one."
    right, wrong = (fits, fails) if state <= gigabytes else (fails, fits)
    return one_of(
        f"{billions} billion parameters, Adam with 16 bytes for each. You train with plain data parallelism on "
        f"{devices} "
        f"devices of {gigabytes} GB. What happens?",
        right,
        f"Data parallelism divides the data and copies the model: each device needs {figure(state)} GB for the state.",
        Wrong(wrong, "The state was not computed", f"Compare {figure(state)} GB with the memory of one device."),
        Wrong(
            "The devices share the state; each holds a part.",
            "One pool of memory",
            "Only sharding or a split model does.",
        ),
        Wrong("It depends on the batch alone.", "Activations only", "The state does not depend on the batch."),
    )


def days_of_training(numbers: Numbers) -> Item:
    """How many days does a training take?"""
    billions = numbers.pick("billions", (7, 13, 70))
    tokens = numbers.pick("tokens", (140, 300, 1_400))
    devices = numbers.pick("devices", (64, 256, 1_024))
    utilisation = 0.4
    days = 6 * 1e9 * billions * 1e9 * tokens / (devices * 312e12 * utilisation) / 86_400
    return number(
        f"{billions} billion parameters, {tokens:,} billion tokens, {devices:,} devices with a peak of 312 TFLOP/s, of "
        "which "
        "training reaches 40 %. How many days does it take?",
        days,
        "days",
        "6ND operations: two per parameter and token forward, four backward.",
        Wrong(days / 3, "Forward pass only", "The backward pass takes twice as many operations as the forward pass."),
        Wrong(days * utilisation, "At peak speed", "Training reaches only a share of the peak."),
        Wrong(days * devices, "One device", "The work is divided among the devices."),
    )


def utilisation_of_flops(numbers: Numbers) -> Item:
    """Which model FLOPs utilisation is that?"""
    billions = numbers.pick("billions", (7, 70, 540))
    devices = numbers.pick("devices", (64, 512, 2_048))
    percent = numbers.pick("percent", (30, 40, 50))
    rate = round(percent / 100 * devices * 312e12 / (6e9 * billions), -2)
    share = 6e9 * billions * rate / (devices * 312e12)
    return one_number_of(
        f"A model with {billions} billion parameters trains on {rate:,.0f} tokens per second. The {devices:,} devices "
        "have a "
        "peak of 312 TFLOP/s each. What is the model FLOPs utilisation?",
        share,
        "%",
        "6 operations per parameter and token, divided by the peak of all devices.",
        Wrong(share / 3, "Forward pass only", "Training has 6 operations per parameter and token, not 2."),
        Wrong(share / 6, "One operation", "A parameter takes part in 6 operations per token."),
        Wrong(1 - share, "The rest", "That is the share that goes elsewhere."),
        scale=100,
    )


def uneven_shards(numbers: Numbers) -> Item:
    """How far is the mean of the means off?"""
    first = numbers.pick("first", (40, 48, 56))
    means = numbers.pick("means", ((2.0, 6.0), (1.0, 5.0), (4.0, 8.0)))
    counts = (first, 64 - first)
    right = float(np.average(means, weights=counts))
    return several_of(
        f"64 images are split {counts[0]} + {counts[1]} between two replicas, whose mean gradients are {means[0]:g} "
        "and "
        f"{means[1]:g}. What is true?",
        {
            f"The gradient of the batch is {right:g}.": "Sums over the shards, divided by the global batch size.",
            "With a split of 32 + 32 the mean of the means is right.": "Equal shards hide the mistake.",
        },
        Wrong(
            f"The gradient of the batch is {np.mean(means):g}.", "The mean of the means", "The shards are not equal."
        ),
        Wrong(
            "The order of the additions explains the difference.", "Rounding", "Rounding changes the last bits only."
        ),
        Wrong(
            f"The gradient of the batch is {np.average(means, weights=counts[::-1]):g}.",
            "The weights are exchanged",
            "The larger shard has the larger weight.",
        ),
    )


def largest_rate_with_staleness(numbers: Numbers) -> Item:
    """Which learning rate tolerates staleness?"""
    staleness = numbers.pick("staleness", (1, 2, 3, 5, 7))
    limit = 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))
    return one_number_of(
        "On the loss w²/2 gradient descent converges for rates below 2. Below which rate does it converge if each "
        "gradient "
        f"is {staleness} {'update' if staleness == 1 else 'updates'} old?",
        limit,
        "",
        "The limit is 2 sin(π / (2 (2τ + 1))), so that more workers need a smaller rate.",
        Wrong(2, "Old gradients are as good", "While a gradient is on its way, the weights have moved on."),
        Wrong(
            2 / (staleness + 3),
            "The workers share the rate",
            "The limit is not the old one divided by a count of workers.",
        ),
        Wrong(2 * math.sin(math.pi / (2 * (staleness + 1))), "One τ too few", "The delay counts twice in the formula."),
    )


def updates_with_a_straggler(numbers: Numbers) -> Item:
    """How many updates are made with a straggler?"""
    workers = numbers.pick("workers", (4, 6, 8))
    slow = numbers.pick("slow", (3, 4, 5))
    method = numbers.pick("method", ("synchronous", "asynchronous"))
    counts = {"synchronous": 60 // slow, "asynchronous": 60 * (workers - 1) + 60 // slow}
    return one_number_of(
        f"{workers} workers need 1 s for a gradient, except for one that needs {slow} s. How many updates does "
        f"{method} "
        "training make in 60 s?",
        counts[method],
        "updates",
        "Synchronous steps have the straggler's pace; asynchronous workers each have their own, and their updates add "
        "up.",
        Wrong(
            counts["asynchronous" if method == "synchronous" else "synchronous"],
            "The other way",
            "Ask who waits for whom.",
        ),
        Wrong(60, "The usual pace", "Nothing in either way makes one update per second."),
        Wrong(60 * workers, "No straggler", "One worker delivers fewer gradients."),
        exact=True,
    )


def two_laws(numbers: Numbers) -> Item:
    """Which law fits, and what does it give?"""
    percent = numbers.pick("percent", (90, 95, 99))
    devices = numbers.pick("devices", (16, 64, 256, 1_024))
    kept = numbers.pick("kept", ("global", "per-replica"))
    f = percent / 100
    laws = {
        "global": float(costs.Amdahl(1 - f, f).speedup(devices)),
        "per-replica": (1 - f) + f * devices,
    }
    return one_number_of(
        f"{percent} % of a training step can be divided; the {kept} batch stays fixed. Which speed-up do {devices:,} "
        "devices "
        "give by the law that fits?",
        laws[kept],
        "times",
        "A fixed global batch is the same work, Amdahl's question. A fixed per-replica batch is more work, "
        "Gustafson's.",
        Wrong(laws["per-replica" if kept == "global" else "global"], "The other law", "Ask whether the work grows."),
        Wrong(1 / (1 - f), "The limit", "That is the limit of Amdahl's law for any number of devices."),
        Wrong(devices, "All is divided", "A part is not divided."),
    )


def from_two_to_many(numbers: Numbers) -> Item:
    """What does a speed-up on 2 devices promise for more?"""
    speedup = numbers.pick("speedup", (1.6, 1.7, 1.8, 1.9))
    devices = numbers.pick("devices", (8, 16, 32))
    share = float(costs.serial_share(speedup, 2))
    promised = float(costs.Amdahl(share, 1 - share).speedup(devices))
    return number(
        f"A program runs {speedup} times as fast on 2 devices. Which speed-up does Amdahl's law give for {devices}, if "
        "the "
        "undivided part stays what it is?",
        promised,
        "",
        f"The undivided part is {100 * share:.1f} % of the serial time.",
        Wrong(speedup / 2 * devices, "The efficiency stays", "Small losses on 2 devices are large ones on many."),
        Wrong(devices, "Measuring noise", "The loss on 2 devices is a part that is not divided."),
        Wrong(speedup ** math.log2(devices), "The same factor again", "Each doubling gains less than the one before."),
    )


TEMPLATES = (
    training_state,
    devices_for_the_state,
    plain_data_parallelism,
    days_of_training,
    utilisation_of_flops,
    uneven_shards,
    largest_rate_with_staleness,
    updates_with_a_straggler,
    two_laws,
    from_two_to_many,
)
