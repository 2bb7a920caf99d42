"""Why distribute: memory and time by arithmetic, kinds of parallelism, staleness, limits of the speed-up."""

import math

import numpy as np

from distlab import costs
from distlab.model_parallel import sharded_optimizers
from distlab.quizzes.item import Item, amount, figure, other, pick


def training_state(item: Item, billions: float = pick(0.34, 1.5, 7, 13, 70)) -> None:
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0)) / 1e9
    item.enter(
        f"""A model has {figure(billions)} billion parameters and trains with Adam in mixed precision. How many
        GB does its training state take, without activations?"""
    )
    item.right(state, "GB").why("""16 bytes per parameter: 2 for the weight, 2 for the gradient, and 12 for the 32-bit
        copy and two moments.""")
    item.wrong(state / 8, "The weights alone").why("""That is 2 bytes per parameter; training keeps more than the
        weights.""")
    item.wrong(state / 4, "Weights and gradients").why("Adam's moments and the 32-bit copy of the weights are missing.")
    item.wrong(state / 2, "Half of it in 16 bits").why("The 32-bit copy takes back what the 16-bit numbers had saved.")


def devices_for_the_state(
    item: Item, billions: int = pick(20, 70, 175, 540), gigabytes: int = pick(32, 80, 141)
) -> None:
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, 1, 0))
    item.choose(f"""A model has {billions} billion parameters; Adam needs 16 bytes for each. How many devices with
        {gigabytes} GB hold its training state at least, if it can be divided?""")
    item.right(math.ceil(state / (1e9 * gigabytes)), "devices").why(f"{figure(state / 1e9)} GB in all.")
    item.wrong(math.ceil(state / 4e9 / gigabytes), "Weights only").why("Gradient and moments need memory, too.")
    item.wrong(math.ceil(billions / gigabytes), "A byte each").why("Billions of parameters are not gigabytes.")
    item.wrong(1, "Copies on each").why("The question is about a state that is divided; no single device holds it.")


def plain_data_parallelism(item: Item, billions: int = pick(1, 3, 13, 70), devices: int = pick(16, 64, 256)) -> None:
    state = float(sharded_optimizers.model_state_bytes(1e9 * billions, devices, 0)) / 1e9
    fits, fails = "Each device has room for the state.", "It fails on each device, as on one."
    right, wrong = (fits, fails) if state <= 80 else (fails, fits)
    item.choose(f"""{billions} billion parameters, Adam with 16 bytes for each. You train with plain data parallelism on
        {devices} devices of 80 GB. What happens?""")
    item.right(right).why(f"""Data parallelism divides the data and copies the model: each device needs {figure(state)}
        GB for the state.""")
    item.wrong(wrong, "The state was not computed").why(f"Compare {figure(state)} GB with the memory of one device.")
    item.wrong("The devices share the state; each holds a part.", "One pool of memory").why("""Only sharding or a split
        model does.""")
    item.wrong("It depends on the batch alone.", "Activations only").why("The state does not depend on the batch.")


def days_of_training(
    item: Item,
    billions: int = pick(7, 13, 70),
    tokens: int = pick(140, 300, 1_400),
    devices: int = pick(64, 256, 1_024),
) -> None:
    days = 6 * 1e9 * billions * 1e9 * tokens / (devices * 312e12 * 0.4) / 86_400
    item.enter(f"""{billions} billion parameters, {tokens:,} billion tokens, {devices:,} devices with a peak of 312
        TFLOP/s, of which training reaches 40 %. How many days does it take?""")
    item.right(days, "days").why("6ND operations: two per parameter and token forward, four backward.")
    item.wrong(days / 3, "Forward pass only").why("""The backward pass takes twice as many operations as the forward
        pass.""")
    item.wrong(days * 0.4, "At peak speed").why("Training reaches only a share of the peak.")
    item.wrong(days * devices, "One device").why("The work is divided among the devices.")


def utilisation_of_flops(
    item: Item, billions: int = pick(7, 70, 540), devices: int = pick(64, 512, 2_048), percent: int = pick(30, 40, 50)
) -> None:
    rate = round(percent / 100 * devices * 312e12 / (6e9 * billions), -2)
    share = 6e9 * billions * rate / (devices * 312e12)
    item.choose(f"""A model with {billions} billion parameters trains on {rate:,.0f} tokens per second. The {devices:,}
        devices have a peak of 312 TFLOP/s each. What is the model FLOPs utilisation?""")
    item.right(share, "%").why("6 operations per parameter and token, divided by the peak of all devices.")
    item.wrong(share / 3, "Forward pass only").why("Training has 6 operations per parameter and token, not 2.")
    item.wrong(share / 6, "One operation").why("A parameter takes part in 6 operations per token.")
    item.wrong(1 - share, "The rest").why("That is the share that goes elsewhere.")


def uneven_shards(
    item: Item, first: int = pick(40, 48, 56), means: tuple[float, float] = pick((2.0, 6.0), (1.0, 5.0), (4.0, 8.0))
) -> None:
    counts = (first, 64 - first)
    mean, exchanged = np.average(means, weights=counts), np.average(means, weights=counts[::-1])
    item.choose(f"""64 images are split {counts[0]} + {counts[1]} between two replicas, whose mean gradients are
        {means[0]:g} and {means[1]:g}. What is true?""")
    item.right(f"The gradient of the batch is {mean:g}.").why("Sums over the shards, divided by the global batch size.")
    item.right("With a split of 32 + 32 the mean of the means is right.").why("Equal shards hide the mistake.")
    item.wrong(f"The gradient of the batch is {np.mean(means):g}.", "The mean of the means").why("""The shards are not
        equal.""")
    item.wrong("The order of the additions explains the difference.", "Rounding").why("""Rounding changes the last bits
        only.""")
    item.wrong(f"The gradient of the batch is {exchanged:g}.", "The weights are exchanged").why("""The larger shard has
        the larger weight.""")


def largest_rate_with_staleness(item: Item, staleness: int = pick(1, 2, 3, 5, 7)) -> None:
    limit = 2 * math.sin(math.pi / (2 * (2 * staleness + 1)))
    item.choose(f"""On the loss w²/2 gradient descent converges for rates below 2. Below which rate does it converge if
        each gradient is {amount(staleness, "updates")} old?""")
    item.right(limit).why("The limit is 2 sin(π / (2 (2τ + 1))), so that more workers need a smaller rate.")
    item.wrong(2, "Old gradients are as good").why("While a gradient is on its way, the weights have moved on.")
    item.wrong(2 / (staleness + 3), "The workers share the rate").why("""The limit is not the old one divided by a count
        of workers.""")
    item.wrong(2 * math.sin(math.pi / (2 * (staleness + 1))), "One τ too few").why("""The delay counts twice in the
        formula.""")


def updates_with_a_straggler(
    item: Item,
    workers: int = pick(4, 6, 8),
    slow: int = pick(3, 4, 5),
    method: str = pick("synchronous", "asynchronous"),
) -> None:
    counts = {"synchronous": 60 // slow, "asynchronous": 60 * (workers - 1) + 60 // slow}
    item.choose(f"""{workers} workers need 1 s for a gradient, except for one that needs {slow} s. How many updates does
        {method} training make in 60 s?""")
    item.right(counts[method], "updates").why("""Synchronous steps have the straggler's pace; asynchronous workers each
        have their own, and their updates add up.""")
    item.wrong(other(counts, method), "The other way").why("Ask who waits for whom.")
    item.wrong(60, "The usual pace").why("Nothing in either way makes one update per second.")
    item.wrong(60 * workers, "No straggler").why("One worker delivers fewer gradients.")


def two_laws(
    item: Item,
    percent: int = pick(90, 95, 99),
    devices: int = pick(16, 64, 256, 1_024),
    kept: str = pick("global", "per-replica"),
) -> None:
    f = percent / 100
    laws = {"global": float(costs.Amdahl(1 - f, f).speedup(devices)), "per-replica": (1 - f) + f * devices}
    item.choose(f"""{percent} % of a training step can be divided; the {kept} batch stays fixed. Which speed-up do
        {devices:,} devices give by the law that fits?""")
    item.right(laws[kept], "times").why("""A fixed global batch is the same work, Amdahl's question. A fixed per-replica
        batch is more work, Gustafson's.""")
    item.wrong(other(laws, kept), "The other law").why("Ask whether the work grows.")
    item.wrong(1 / (1 - f), "The limit").why("That is the limit of Amdahl's law for any number of devices.")
    item.wrong(devices, "All is divided").why("A part is not divided.")


def from_two_to_many(item: Item, speedup: float = pick(1.6, 1.7, 1.8, 1.9), devices: int = pick(8, 16, 32)) -> None:
    share = float(costs.serial_share(speedup, 2))
    promised = float(costs.Amdahl(share, 1 - share).speedup(devices))
    item.enter(f"""A program runs {speedup} times as fast on 2 devices. Which speed-up does Amdahl's law give for
        {devices}, if the undivided part stays what it is?""")
    item.right(promised).why(f"The undivided part is {100 * share:.1f} % of the serial time.")
    item.wrong(speedup / 2 * devices, "The efficiency stays").why("Small losses on 2 devices are large ones on many.")
    item.wrong(devices, "Measuring noise").why("The loss on 2 devices is a part that is not divided.")
    item.wrong(speedup ** math.log2(devices), "The same factor again").why("""Each doubling gains less than the one
        before.""")
