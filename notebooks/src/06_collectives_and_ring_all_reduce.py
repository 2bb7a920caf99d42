# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 06 Collectives and ring all-reduce
#
# **Goal.** Know what each collective operation does and costs, build the ring all-reduce step by step, and predict a
# real all-reduce from two numbers measured on this machine.
#
# **Time.** 45 minutes to read, under a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb) and
# [04 custom training loop](04_custom_training_loop.ipynb), which use an all-reduce without looking inside.
#
# **Questions.**
# - Which collective does which job in training?
# - How does a ring add arrays of many ranks without one of them being the bottleneck?
# - When is a ring the wrong choice?
# - What do a wrong index, a blocking send, a slow link and a slow rank look like?
# - How well do two numbers, latency and time per byte, predict a measured all-reduce?
#
# **Hardware.** Two processor cores. The virtual cluster needs no more for 64 ranks; the measurement starts `workers`
# processes, at least two.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; used in section 9 alone (1,280 images)
epochs = 1  # not used in this chapter
workers = 2  # real processes to measure in section 8, 1 to 8; the cores are shared if they are fewer

# %%
import distlab  # first, as in every chapter; TensorFlow itself runs in child processes here

import json
import shlex
import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from distlab import checks, collectives, costs, data, draw, launch, programs, quizzes
from distlab import runtime
from distlab.simulate import DeadlockError, Link, Network, World

draw.apply_style()
PROGRAMS = Path("programs/06_collectives_and_ring_all_reduce")
print(data.describe(dataset))

# %% [markdown]
# ## 1. One call, and a cluster in virtual time
#
# A **rank** is one process of a parallel program, and also its number; the **world size** $p$ is the number of ranks.
# An **all-reduce** gives every rank the sum of all ranks' arrays. In MPI, the message-passing standard of clusters, it
# is one call, which every rank makes with its own array:

# %%
display(programs.show(PROGRAMS / "sum_with_mpi.py"))
run = launch.mpirun(PROGRAMS / "sum_with_mpi.py", ranks=2, prepared=False, echo=False)
print("$ mpirun -np 2 python sum_with_mpi.py", run.output["rank 0"], run.output["rank 1"], sep="\n")

# %% [markdown]
# Horovod makes the same call for TensorFlow tensors. Its default is the *mean*, because that is what gradients need;
# `op=hvd.Sum` gives the sum.

# %% tags=["varies"]
display(programs.show(PROGRAMS / "average_with_horovod.py"))
problem = launch.horovod_problem()
if problem:
    print("Without Horovod:", problem)
else:
    run = launch.horovodrun(PROGRAMS / "average_with_horovod.py", ranks=2, echo=False)
    print("$ horovodrun -np 2 --gloo python average_with_horovod.py")
    print(run.output["rank 0"], run.output["rank 1"], sep="\n")

# %% [markdown] tags=["slide-predict"]
# To look inside that call, we simulate a cluster. The programs of this chapter are `async` functions that every rank
# runs: such a function can pause, and each `await` marks a place where it may wait for a message. Meanwhile the other
# ranks go on, so a single process can run them all.
#
# A `World` runs them on a virtual cluster: arrays and sums are real, the clock is computed. A message of $n$ bytes
# takes $\alpha + n\beta$ seconds: the **latency** $\alpha$ for any message, and $\beta$ seconds per byte, 1 divided by
# the bandwidth. A rank can send one message and receive one at the same time. Adding $n$ bytes takes $n\gamma$; here
# $\gamma = 0$ unless we say otherwise.
#
# **Predict.** $\alpha$ is 5 µs and $\beta$ is 1 ns. How large is a message that spends half of its time on latency?

# %% tags=["slide-output"]
network = Network(latency=5e-6, seconds_per_byte=1e-9)


async def hand_over(rank, array):
    """Rank 0 sends its array to rank 1."""
    if rank.index == 0:
        await rank.send(1, array)
        return None
    return await rank.receive(0)


for elements in (1, 1_250, 1_000_000):
    run = World(2, network).run(hand_over, [np.ones(elements, np.float32)] * 2)
    print(f"{4 * elements:>9,} bytes: {1e6 * run.elapsed:>9,.3f} µs, latency is {5e-6 / run.elapsed:.1%} of it")

# %% [markdown] tags=["slide-takeaway"]
# At $\alpha/\beta$ = 5,000 bytes both parts are equal. Far below, the number of messages counts; far above, the bytes.
#
# ## 2. The collectives
#
# A **collective** is an operation that all ranks call together. The pictures come from runs on four ranks and show what
# each has before and after; the broadcast also has its steps. In the costs, $n$ is the bytes of the whole array, $\lg$
# the logarithm to base 2.
#
# ### Broadcast
#
# - **What goes where.** The root's array goes to every rank. On a tree, ranks that have it pass it on.
# - **When to use.** Once at the start, for equal initial weights.
# - **Cost.** $\lceil \lg p \rceil (\alpha + n\beta)$.
# - **Pitfall.** If you forget it, nothing fails: each replica trains a different model.
#
# ![Before: only rank 0 has the four chunks. After: every rank has them](../figures/06_broadcast.svg)


# %%
def picture(program, collective, size=4):
    """Run a collective with arrays that remember whose they are, and draw every step."""
    traced = draw.trace(program, size, collective=collective)
    draw.show(traced.strip(), f"{collective} on {size} ranks. {traced.describe()}")


picture(collectives.broadcast, "broadcast")
numbers = [10**rank * np.arange(1, 5) for rank in range(4)]  # those of the other pictures: ones, tens, hundreds, …


def results(program, inputs):
    """What each of four ranks has after the collective; None for nothing."""
    return [None if result is None else result.tolist() for result in World(4).run(program, inputs).results]


[array.tolist() for array in numbers]

# %% [markdown]
# ### Reduce
#
# - **What goes where.** All arrays are added; the root has the sum. It is the broadcast's tree, walked backwards.
# - **When to use.** A sum that only rank 0 needs, such as a loss for the log.
# - **Cost.** $\lceil \lg p \rceil (\alpha + n\beta + n\gamma)$.
# - **Pitfall.** On the other ranks the result is undefined, and here `None`.
#
# ![Before: each rank has four chunks. After: rank 0 has the sum of each](../figures/06_reduce.svg)

# %%
results(collectives.reduce, numbers)

# %% [markdown]
# ### Scatter
#
# - **What goes where.** The root cuts its array into $p$ chunks; rank $i$ gets chunk $i$.
# - **When to use.** To hand out data that only one rank can read.
# - **Cost.** $\lceil \lg p \rceil \alpha + \frac{p-1}{p} n\beta$ on a tree.
# - **Pitfall.** The root's port is the limit; training data is better read by each rank itself.
#
# ![Before: rank 0 has four chunks. After: each rank has the chunk with its own number](../figures/06_scatter.svg)
#
# ### Gather
#
# - **What goes where.** The root gets every rank's chunk, in order of rank.
# - **When to use.** To collect predictions or metrics on one rank.
# - **Cost.** That of the scatter.
# - **Pitfall.** The root needs memory for all $p$ chunks.
#
# ![Before: each rank has one chunk. After: rank 0 has all four, in order of rank](../figures/06_gather.svg)

# %%
own_chunks = [array[rank : rank + 1] for rank, array in enumerate(numbers)]
print("scatter:", results(collectives.scatter, [numbers[0], None, None, None]))
print("gather: ", results(collectives.gather, own_chunks))

# %% [markdown]
# ### All-gather
#
# - **What goes where.** Every rank gets every rank's chunk.
# - **When to use.** Metrics that every rank needs; weights that are sharded over the ranks (FSDP).
# - **Cost.** $(p-1)\alpha + \frac{p-1}{p} n\beta$ on a ring.
# - **Pitfall.** The result is $p$ times as large as the input.
#
# ![Before: each rank has one chunk. After: every rank has all four, in order of rank](../figures/06_all_gather.svg)
#
# ### Reduce-scatter
#
# - **What goes where.** All arrays are added; rank $i$ gets chunk $i$ of the sum.
# - **When to use.** Gradients, when each rank updates only its own part of the weights (FSDP, ZeRO).
# - **Cost.** $(p-1)\alpha + \frac{p-1}{p} n\beta + \frac{p-1}{p} n\gamma$ on a ring.
# - **Pitfall.** Each rank contributes a full array and receives $1/p$ of the result.
#
# ![Before: each rank has four chunks. After: each has the sum of one](../figures/06_reduce_scatter.svg)

# %%
print("all-gather:    ", results(collectives.all_gather, own_chunks))
print("reduce-scatter:", results(collectives.reduce_scatter, numbers))

# %% [markdown]
# ### All-to-all
#
# - **What goes where.** Chunk $j$ of rank $i$ becomes chunk $i$ of rank $j$: a transposition.
# - **When to use.** Mixture of experts: each token goes to the rank that holds its expert, and back.
# - **Cost.** $(p-1)\alpha + \frac{p-1}{p} n\beta$, one partner after another.
# - **Pitfall.** Every pair of ranks exchanges something, so it loads the whole network, not only neighbours.
#
# ![Before: each rank has four chunks. After: chunk j of rank i is chunk i of rank j](../figures/06_all_to_all.svg)

# %%
results(collectives.all_to_all, numbers)

# %% [markdown]
# ### Barrier
#
# - **What goes where.** Messages of 0 bytes. Nobody leaves before everybody has entered.
# - **When to use.** Before a measurement, or when one rank prepares a file for all.
# - **Cost.** $\lceil \lg p \rceil \alpha$.
# - **Pitfall.** It waits for the slowest rank. And a barrier, like every collective, that *one* rank skips (by
#   `if rank.index != 0:`) leaves all others waiting.
#
# The picture shows ranks that compute for different times and then meet.


# %%
async def meet(rank):
    """Compute for 10, 20, 30 or 40 µs, then wait for the others."""
    await rank.compute(1e-5 * (rank.index + 1))
    await collectives.barrier(rank)


run = World(4, network).run(meet)
description = "Timeline of four ranks: each computes 10 µs longer than the one before; then all wait."
draw.show(draw.timeline(run), description)
print("ranks 0 to 3 leave after", ", ".join(f"{1e6 * seconds:.0f}" for seconds in run.finished), "µs")

# %% [markdown] tags=["slide-picture"]
# ### All-reduce
#
# - **What goes where.** All arrays are added; every rank has the sum.
# - **When to use.** Gradients in data-parallel training, in every step. It is *the* collective of this course.
# - **Cost.** It depends on the algorithm; the rest of this chapter is about that.
# - **Pitfall.** Sum or mean? MPI adds; Horovod divides by $p$ unless told not to.
#
# ![Before: each rank has four chunks. After: each has the sum of all](../figures/06_all_reduce.svg)
#
# Data-parallel training uses it like this. The replicas start with equal weights and compute different gradients; the
# all-reduce gives all of them the same mean, so the weights stay equal:
#
# ![Four replicas, their gradients −4, −10, −16, −20, the mean −12.5 and the same new weight on
# each](../figures/06_gradient_reduction.svg)

# %% [markdown]
# Two sentences that are common in lecture notes are wrong. All-reduce does not "aggregate the weights": it adds
# *gradients*; nobody sends weights after the first broadcast. And gradients are not "averaged at each epoch" but in
# **every step**: after one step without it the replicas would have different weights. (Averaging *weights* now and then
# is another algorithm, local SGD.)
#
# The simulated times match the formulas, here on 8 ranks with arrays of 8,000 bytes.


# %%
def simulated(program, size, array_bytes, network=network):
    """Virtual seconds of a collective to which each rank contributes `array_bytes` bytes."""
    return World(size, network).run(program, [np.ones(array_bytes // 4, np.float32)] * size).elapsed


own_chunk = {"gather": costs.gather_tree, "all_gather": costs.all_gather_ring}  # each rank gives n/p bytes
whole_array = {"broadcast": costs.broadcast_tree, "reduce": costs.reduce_tree, "scatter": costs.scatter_tree}
whole_array |= {"reduce_scatter": costs.reduce_scatter_ring, "all_to_all": costs.all_to_all}
for name, formula in (whole_array | own_chunk).items():
    seconds = simulated(getattr(collectives, name), 8, 1_000 if name in own_chunk else 8_000)
    expected = formula(8, 8_000).seconds(network.latency, network.seconds_per_byte)
    print(f"{name:15}{1e6 * seconds:8.1f} µs, formula {1e6 * expected:8.1f} µs")

# %% [markdown] tags=["slide-quiz"]
# **Question.** Which pair of collectives makes an all-reduce in which no rank handles more than others?
#
# 1. Gather, then broadcast.
# 2. Reduce, then broadcast.
# 3. Reduce-scatter, then all-gather.
# 4. All-to-all, then scatter.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: rank 0 handles everything.
# 2. No: a tree's root handles several whole arrays, a leaf one.
# 3. **Right.** Each rank finishes one chunk, which then goes round.
# 4. No: nothing adds.
# </details>
#
# ## 3. The ring, by hand
#
# The naive all-reduce lets rank 0 receive all arrays, add them, and send the sum to each rank. A ring has no centre:
# each rank sends only to its right neighbour and receives only from its left one. The array is cut into $p$ chunks.
#
# **One step.** Rank $i$ sends chunk $i$ and receives chunk $i-1$, which it adds to its own. All links are busy at
# once, each with $1/p$ of the array.


# %%
async def one_step(rank, array):
    """The first step of a ring reduce-scatter."""
    total = array.copy()
    chunks = np.array_split(total, rank.size)  # views: adding to a chunk changes `total`
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    received = await rank.exchange(right, chunks[rank.index], left)
    await rank.reduce(chunks[left], received)
    return total


inputs = [np.arange(1, 5) * 10**rank for rank in range(4)]
for rank, total in enumerate(World(4).run(one_step, inputs).results):
    print(f"rank {rank}:", " ".join(f"{number:>5}" for number in total))

# %% [markdown] tags=["slide-picture"]
# Each rank now has one chunk with two shares: on rank 1 the first number is 1 + 10.
#
# **Then repeat.** In the next step a rank passes on the chunk that it has just added to. After $p-1$ steps each rank
# has one finished chunk: rank $i$ has chunk $i+1$. This is the **reduce-scatter**.
#
# ![Three steps on four ranks: chunks travel right and collect one more share in each
# step](../figures/06_ring_reduce_scatter_steps.svg)
#
# **Then once more around the ring.** The finished chunks travel $p-1$ steps and replace the unfinished ones: the
# **all-gather**.
#
# ![Three more steps: the finished chunks travel right until every rank has all
# four](../figures/06_ring_all_gather_steps.svg)


# %%
async def ring_all_reduce(rank, array):
    """Every rank gets the sum of all ranks' arrays."""
    total = array.copy()
    chunks = np.array_split(total.reshape(-1), rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size

    for step in range(rank.size - 1):  # reduce-scatter: chunks travel and grow
        outgoing = chunks[(rank.index - step) % rank.size]
        growing = chunks[(rank.index - step - 1) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(growing, received)

    for step in range(rank.size - 1):  # all-gather: finished chunks travel and replace
        outgoing = chunks[(rank.index - step + 1) % rank.size]
        unfinished = chunks[(rank.index - step) % rank.size]
        unfinished[:] = await rank.exchange(right, outgoing, left)
    return total


for rank, total in enumerate(World(4).run(ring_all_reduce, inputs).results):
    print(f"rank {rank}:", " ".join(f"{number:>5}" for number in total))

# %% [markdown]
# A ring that works on four ranks may fail on five. So we test many numbers of ranks, lengths that they do not divide,
# and different numbers on each rank, and compare with NumPy.

# %%
generator = np.random.default_rng(6)
totals, sums = [], []
for size in range(1, 10):
    for length in (0, 1, 5, 24, 101):
        inputs = list(generator.integers(-99, 99, (size, length)))
        totals += World(size).run(ring_all_reduce, inputs).results
        sums += [np.sum(inputs, axis=0)] * size
print(len(totals), "arrays on 1 to 9 ranks:", end=" ")
checks.assert_equal(totals, sums, "sums")

# %% [markdown]
# Here are all six steps, as an animation that you can pause and as pictures side by side. Follow one chunk: it goes
# once round to collect shares, and once round to be handed out. The stepper below walks through the steps with 2 to 8
# ranks.

# %%
draw.trace(ring_all_reduce, 4).show_animation(
    "The ring all-reduce on four ranks: in three steps chunks travel right and grow, "
    "in three more the finished chunks travel on and replace the others.",
)
draw.show_widget(
    draw.Stepper(ring_all_reduce, size=4),
    "[Sliders for step and number of ranks, with the picture of that step; they move in JupyterLab.]",
)

# %% [markdown] tags=["slide-formula", "slide-predict"]
# `distlab.collectives.ring_all_reduce` is the same function; a test of the course compares the two. From here on we use
# that one.
#
# ## 4. What the ring costs
#
# $$T_{ring} = 2(p-1)\alpha + 2\,\frac{p-1}{p}\,n\beta + \frac{p-1}{p}\,n\gamma$$
#
# **Predict.** Twice as many ranks: how much more does each rank send?

# %% tags=["slide-output"]
N = 4_096_000
print("ranks  steps  sent per rank    simulated     by formula  latency part")
for size in (2, 4, 8, 16, 64):
    run = World(size, network).run(collectives.ring_all_reduce, [np.ones(N // 4, np.float32)] * size)
    cost = costs.all_reduce("ring", size, N)
    expected = cost.seconds(network.latency, network.seconds_per_byte)
    latency = cost.steps * network.latency
    print(
        f"{size:>5}{cost.steps:>7.0f}{run.bytes_sent / size / N:>11.3f} n{1e3 * run.elapsed:>12.2f} ms"
        f"{1e3 * expected:>12.2f} ms{latency / run.elapsed:>14.1%}"
    )

# %% [markdown] tags=["slide-takeaway"]
# Not twice as much: from $n$ for two ranks towards $2n$, and never beyond. No algorithm in which the ranks themselves
# add can do with less: Patarasuk and Yuan (2009) prove that at least one rank must send $2\frac{p-1}{p}n$ bytes.
# Switches that add what passes through them, as in NVIDIA's SHARP, need half.
#
# What grows is the other term: $2(p-1)$ messages one by one. With 1,000 ranks and $\alpha$ = 5 µs that is 10 ms
# before the first byte is counted.
#
# **Question.** A gradient of 1 kB, 512 ranks. What limits a ring?
#
# 1. The bandwidth, as always.
# 2. Rank 0.
# 3. The latency of 1,022 steps.
# 4. Adding.
#
# <details>
# <summary>Answer</summary>
#
# 1. No. Each message holds 2 bytes.
# 2. No. A ring has no special rank; that is the naive way.
# 3. **Right.**
# 4. No. Each rank adds under 1 kB in all.
# </details>

# %% [markdown]
# ## 5. A wrong ring, and its picture
#
# The most frequent mistake is an index that is off by one. Here the second loop starts with the chunk that this rank
# sent *first*, not with the one that it finished. The program runs to the end without an error.


# %% tags=["slide-output"]
async def wrong_ring(rank, array):
    """A ring all-reduce with one wrong index."""
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step) % rank.size]  # wrong: + 1 is missing
        chunks[(rank.index - step - 1) % rank.size][:] = await rank.exchange(right, outgoing, left)
    return total


totals = World(2).run(wrong_ring, [np.array([1, 1]), np.array([2, 2])]).results
print("on two ranks:", [total.tolist() for total in totals], "instead of [3, 3]")
picture(wrong_ring, "all_reduce")

# %% [markdown] tags=["slide-takeaway"]
# The first half is right: after three steps each rank has one finished chunk, in a thick frame. Then the frames do not
# spread: unfinished chunks go out first, and in the last step they overwrite even the finished ones. The line below the
# picture says what is missing. "The loss does not fall" would have told you much less.
#
# ## 6. Who waits for whom
#
# `exchange` sends and receives at the same time. Many first rings send, then receive. That is safe only if a send
# returns before the receiver has taken the message. MPI's `MPI_Send` may do so for short messages, and waits for long
# ones: a program that passes its small tests hangs with a real gradient.
#
# The next program has such a **blocking send**: it waits for the receiver's answer.


# %% tags=["slide-output"]
async def blocking_send(rank, to, array):
    """Send, and wait until the receiver has confirmed."""
    await rank.send(to, array)
    await rank.receive(to)


async def blocking_ring_step(rank, array):
    """Everybody sends to the right first, then receives from the left and confirms."""
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    await blocking_send(rank, right, array)
    received = await rank.receive(left)
    await rank.send(left, np.empty(0))
    return received


try:
    World(3, network).run(blocking_ring_step, [np.ones(2)] * 3)
except DeadlockError as error:
    print(error)

# %% [markdown] tags=["slide-takeaway"]
# The error names every waiting rank and whom it waits for: 0 for 1, 1 for 2, 2 for 0. A circle of waiting is a
# **deadlock**. On a real cluster the same program prints nothing at all.
#
# One fix is `exchange` (`MPI_Sendrecv`). Another: even ranks send first, odd ranks receive first.
#
# ## 7. Which all-reduce when?
#
# Besides the naive way and the ring there are two more. The **tree** reduces to rank 0 and then broadcasts: in each
# step half of the remaining ranks send their sum to a partner and stop. **Halving-doubling** (Rabenseifner) keeps all
# ranks busy: partners exchange halves of the array, then quarters, eighths and so on, and each adds up its part, until
# every rank has one finished chunk. The same steps backwards hand the chunks out. Here for $p = 2^k$.


# %%
async def tree_all_reduce(rank, array):
    total, distance = array.copy(), 1
    while distance < rank.size and rank.index % (2 * distance) == 0:
        if rank.index + distance < rank.size:
            await rank.reduce(total, await rank.receive(rank.index + distance))
        distance *= 2
    if rank.index > 0:
        await rank.send(rank.index - distance, total)
    return await collectives.broadcast(rank, total)


async def halving_doubling_all_reduce(rank, array):
    total, part, history = array.copy(), slice(0, len(array)), []
    distance = rank.size // 2
    while distance >= 1:
        partner = rank.index ^ distance  # the rank whose number differs in this bit
        middle = (part.start + part.stop) // 2
        lower, upper = slice(part.start, middle), slice(middle, part.stop)
        keep, give = (lower, upper) if rank.index < partner else (upper, lower)
        await rank.reduce(total[keep], await rank.exchange(partner, total[give], partner))
        history.append((partner, keep, give))
        part, distance = keep, distance // 2
    for partner, keep, give in reversed(history):
        total[give] = await rank.exchange(partner, total[keep], partner)
    return total


# %%
inputs = list(generator.integers(-99, 99, (8, 24)))
for program in (tree_all_reduce, halving_doubling_all_reduce):
    run = World(8).run(program, inputs)
    print(f"{program.__name__}: a rank sent at most {run.bytes_sent_by_rank.max()} bytes;", end=" ")
    checks.assert_equal(run.results, [np.sum(inputs, axis=0)] * 8, "sums")

# %% [markdown] tags=["slide-predict"]
# Both need $2\lg p$ steps. But the tree sends the whole array in each of them, while halving-doubling sends as few
# bytes per rank as a ring. TensorFlow's three cross-device reductions are such algorithms between the GPUs of a host:
#
# ![Three ways to add the gradients of four devices: all through device 0, a tree of two pairs, and a
# ring](../figures/06_reductions.svg)
#
# **Predict.** 16 ranks. Which is fastest for 1 kB, and which for 10 MB?

# %% tags=["slide-output"]
NAMES = ("naive", "tree", "ring", "halving_doubling")


def seconds_of(name, size, array_bytes):
    """By formula, on the network of this chapter."""
    return costs.all_reduce(name, size, array_bytes).seconds(network.latency, network.seconds_per_byte)


sizes = 1024 * 4 ** np.arange(0, 8)
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.6))
for axes, size in zip(panels, (16, 12), strict=True):
    for number, name in enumerate(NAMES):
        colour = draw.RANK_COLOURS[number]
        line = {"linestyle": draw.DASHES[number], "marker": "", "color": colour, "label": name}
        axes.loglog(sizes / 1e3, 1e3 * seconds_of(name, size, sizes), **line)
        points = [1e3 * simulated(collectives.ALL_REDUCE[name], size, n) for n in sizes[:6:2]]
        axes.loglog(sizes[:6:2] / 1e3, points, linestyle="", marker=draw.MARKERS[number], color=colour)
    axes.set(title=f"{size} ranks", xlabel="array in kB")
panels[0].set_ylabel("milliseconds")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
draw.show(figure, "Time of four all-reduces by array size on 16 and 12 ranks: formulas and simulated marks.")

# %% [markdown] tags=["slide-takeaway"]
# Lines are formulas, marks are runs on the virtual cluster. For small arrays tree and halving-doubling win: few steps.
# For large ones ring and halving-doubling win: few bytes. With 12 ranks halving-doubling must first pair off the ranks
# beyond 8, which costs two more messages of the whole array; then there is a **crossover** to the ring.

# %%
for size in (6, 12, 24, 48):
    grid = np.geomspace(1e2, 1e9, 2_000)
    beats_tree = grid[seconds_of("ring", size, grid) < seconds_of("tree", size, grid)]
    beats_halving = grid[seconds_of("ring", size, grid) < seconds_of("halving_doubling", size, grid)]
    print(
        f"{size:>3} ranks: ring beats a tree from {beats_tree[0] / 1e3:>6.1f} kB on, "
        f"halving-doubling from {beats_halving[0] / 1e3:>6.1f} kB on"
    )

ranks, exponents = np.arange(2, 34), np.arange(6, 28)
grid = np.stack([seconds_of(name, ranks[None, :], 2.0 ** exponents[:, None]) for name in NAMES[1:]])
fastest = np.argmin(np.round(grid * 1e12), axis=0)  # whole picoseconds, so that equal times count as equal
figure, axes = plt.subplots(figsize=(7.2, 3.8))
for number, name in enumerate(NAMES[1:]):
    row, column = np.nonzero(fastest == number)
    style = {"color": draw.RANK_COLOURS[number + 1], "marker": draw.MARKERS[number + 1], "label": name}
    if len(row):  # the tree is never the fastest
        axes.plot(ranks[column], 2.0 ** exponents[row], linestyle="", markersize=4, **style)
axes.set(yscale="log", xlabel="ranks", ylabel="bytes")
figure.legend(loc="outside upper center", ncols=3, title="fastest of tree, ring and halving-doubling")
draw.show(
    figure,
    "From 4 ranks on halving-doubling is fastest for few bytes, for 4, 8, 16 and 32 always; else the ring.",
)

# %% [markdown] tags=["slide-predict"]
# This tree is never the fastest: halving-doubling has as few steps and fewer bytes. (NCCL's two trees pass the array on
# in pieces.) For $2^k$ ranks, from 4 on, halving-doubling also beats the ring, on paper. Why do libraries use rings? In
# the model every pair of ranks has its own link. In a real network distant partners share cables, while a ring uses
# neighbours only. And NCCL cuts the array further.
#
# Many small gradients cost mostly $\alpha$. **Tensor fusion** packs them into one buffer first (section 8).
#
# ### A slow link, a straggler, two levels
#
# **Predict.** One of the 8 links of a ring is 10 times slower. How much slower is the all-reduce? And if a
# *rank* is slow, a **straggler**: each rank computes for 1 ms before it all-reduces 400 kB, rank 2 at half the speed?


# %% tags=["slide-output"]
slow = network.with_slow_link(2, 3, factor=10)
for name in NAMES:
    usual = simulated(collectives.ALL_REDUCE[name], 8, 4_000_000)
    hampered = simulated(collectives.ALL_REDUCE[name], 8, 4_000_000, slow)
    print(f"{name:18}{1e3 * usual:7.2f} ms, with a slow link {1e3 * hampered:7.2f} ms: × {hampered / usual:.2f}")


async def training_step(rank, array):
    """A millisecond of computing, then the all-reduce of the gradient."""
    await rank.compute(1e-3)
    return await collectives.ring_all_reduce(rank, array)


gradients = [np.ones(100_000, np.float32)] * 4
even, uneven = (World(4, network, speeds).run(training_step, gradients) for speeds in (None, {2: 0.5}))
print(f"training step: {1e3 * even.elapsed:.2f} ms, with a straggler {1e3 * uneven.elapsed:.2f} ms")
draw.show(draw.timeline(uneven), "Timeline: ranks 0, 1 and 3 wait in the ring until rank 2 has computed.")

# %% [markdown] tags=["slide-takeaway"]
# The ring is as slow as its slowest link: every chunk passes every link. A tree meets that link less often, and the
# naive way does not use it at all.
#
# With the straggler the step is longer by exactly its extra millisecond, and the other three wait for it, since the sum
# needs its share. No all-reduce fixes that.
#
# A cluster usually has two levels. Here 4 hosts with 4 ranks each; links inside a host have 10 times the bandwidth and
# 3 µs instead of 10 µs of latency. The **hierarchical** all-reduce runs rings inside the hosts, and rings between them
# with a quarter of the array each.

# %%
two_levels = Network(10e-6, 2e-10, ranks_per_host=4, inside_host=Link(3e-6, 2e-11))
hierarchical = partial(collectives.hierarchical_all_reduce, ranks_per_host=4)
algorithms = collectives.ALL_REDUCE | {"hierarchical": hierarchical}
for array_bytes in (64_000, 4_096_000):
    print(f"{array_bytes:,} bytes on 4 hosts with 4 ranks each")
    for name in ("tree", "ring", "halving_doubling", "hierarchical"):
        print(f"  {name:18}{1e6 * simulated(algorithms[name], 16, array_bytes, two_levels):9.1f} µs")


figure = draw.bytes_per_link(World(8).run(hierarchical, [np.ones(1_024, np.float32)] * 8))
draw.show(figure, "Bytes from each of 8 ranks on 2 hosts to each other: many inside a host, a few between partners.")

# %% [markdown]
# In the plain ring a few links cross between hosts, and all steps go at their pace. In the hierarchy the slow links see
# only a quarter of the array per rank, in 6 steps instead of 30. (For 64 kB the steps decide: halving-doubling needs 8
# in all, the hierarchy 12.) The picture is a table for 8 ranks on 2 hosts: the row is the sender, the column the
# receiver, and a darker square means more bytes. The dark squares belong to the two rings inside the hosts; the pale
# ones, four columns away from the diagonal, to the partners in different hosts.

# %% [markdown]
# ## 8. The real thing
#
# A model is worth as much as its predictions. `measure_all_reduce.py` measures real processes on this machine: MPI's
# own all-reduce, the course's ring over MPI (the same function, its messages sent by mpi4py), and Horovod. For each
# size there is a warm-up and a barrier before each repeat; the result is the median. At its core is a stopwatch:

# %%
programs.show(PROGRAMS / "measure_all_reduce.py", "mpi")

# %% [markdown]
# **Predict.** How long does an all-reduce of 16 bytes take between two processes of one machine? And of 4 MiB?


# %%
def measure(modes, ranks, seconds):
    """The result of the program on `ranks` processes, or None if it needed more than `seconds`."""
    program = str(PROGRAMS / "measure_all_reduce.py")
    command = ["mpirun", "-np", str(ranks), "python", program, "--modes", *modes, "--result"]
    print("$", shlex.join([*command, "result.json"]))
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        finished = runtime.processes.run([*command, str(result)], seconds)
        if finished.status is None:
            print(f"not finished within {seconds} s, so left out")
            return None
        if finished.status != 0:
            raise RuntimeError(finished.output[-2000:])
        return json.loads(result.read_text())


if workers == 1:
    print("One rank has nothing to reduce: no message, no α, no β. We measure two instead.")
real_ranks = max(workers, 2)
measured = measure(["mpi", "ring"], real_ranks, seconds=600)
array_bytes = np.array(measured["array_bytes"])
modes = measured["modes"]

# %% [markdown]
# Horovod needs TensorFlow in every process, and on most machines the start takes most of this cell's time. Beyond 4
# ranks that would be too long, so it gets 4 at most; on a very slow machine it is left out.

# %% tags=["varies"]
with_horovod = None if problem else measure(["horovod"], min(real_ranks, 4), seconds=200)
if problem:
    print("Without Horovod:", problem)
if with_horovod:
    modes |= with_horovod["modes"]
print("medians in µs:".ljust(16), *(f"{name:>10}" for name in modes))
for index, size in enumerate(array_bytes):
    print(f"{size:>10,} bytes", *(f"{1e6 * mode['seconds'][index]:>10,.0f}" for mode in modes.values()))

# %% [markdown]
# ### α and β of this machine
#
# `costs.fit` looks for the $\alpha$ and $\beta$ with which the ring's formula comes closest, in relative terms. It sees
# only every second size; we predict the others and compare. A fit that has seen everything predicts nothing.

# %% tags=["varies"]
fits = {}
for name, mode in modes.items():
    known = slice(0, None, 2)
    ring_cost = partial(costs.all_reduce, "ring", mode["ranks"])
    fits[name] = costs.fit(array_bytes[known], np.array(mode["seconds"])[known], ring_cost)
    mode["predicted"] = fits[name].seconds(ring_cost(array_bytes))
    mode["residuals"] = mode["predicted"] / mode["seconds"] - 1
    print(
        f"{mode['name']}: α = {1e6 * fits[name].latency:.1f} µs, 1/β = {fits[name].bandwidth / 1e9:.2f} GB/s, "
        f"typical residual of the unseen sizes {np.sqrt(np.mean(mode['residuals'][1::2] ** 2)):.0%}"
    )

# %% tags=["varies", "slide-output"]
figure, (above, below) = plt.subplots(2, 1, sharex=True, figsize=(7.2, 5), height_ratios=(3, 2))
for number, mode in enumerate(modes.values()):
    style = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number]}
    above.loglog(array_bytes, 1e3 * np.array(mode["seconds"]), linestyle="", label=mode["name"], **style)
    above.loglog(array_bytes, 1e3 * mode["predicted"], color=style["color"], linestyle=draw.DASHES[number], marker="")
    below.plot(array_bytes, 100 * mode["residuals"], linestyle=draw.DASHES[number], **style)
below.axhline(0, color="black", linewidth=0.8, marker="", linestyle="-")
above.set_ylabel("milliseconds")
below.set(ylabel="residual in %", xlabel="bytes")
figure.legend(loc="outside upper center", ncols=1)
draw.show(figure, "Measured all-reduce by size with the fitted model as lines, and the residuals below.")

# %% [markdown] tags=["slide-takeaway"]
# The residual is (predicted − measured) / measured. Two numbers describe five powers of ten, but not exactly, and the
# misfits have causes:
#
# - **Protocols.** An MPI library copies short messages through a buffer (eager), and asks before it sends long ones
#   (rendezvous). It also changes its algorithm with the size. Each switch brings another $\alpha$ and $\beta$.
# - **Memory.** On one machine a message is a copy in memory. Arrays that do not fit into the cache are copied more
#   slowly, and the operating system hands out large new arrays page by page. So the largest sizes often take longer
#   than $\beta$ predicts.
# - **Other programs.** With as many ranks as cores, each pause of one rank delays all.
#
# Hence $\alpha$ and $\beta$ belong to a *range* of sizes, and we also fit small and large arrays separately. A
# bandwidth of `inf` means that the times did not grow with the size.

# %% tags=["varies"]
for name in ("mpi", "ring"):
    seconds, cost = np.array(modes[name]["seconds"]), partial(costs.all_reduce, "ring", real_ranks)
    parts = [costs.fit(array_bytes[part], seconds[part], cost) for part in (slice(None), slice(5), slice(5, None))]
    print(f"{name}: all sizes, typical residual {parts[0].typical_residual:.0%}")
    for label, part in zip(("small", "large"), parts[1:], strict=True):
        print(f"  {label}: α = {1e6 * part.latency:9.1f} µs, 1/β = {part.bandwidth / 1e9:6.2f} GB/s,", end=" ")
        print(f"typical residual {part.typical_residual:.0%}")

# %% [markdown]
# ### A ring in Python against the library
#
# For small arrays the library should win: the steps of our ring are Python, and each message is packed and copied. If
# it is hardly ahead at the smallest size, other programs used the cores: measure again later. For large arrays the
# Python steps no longer count, but the extra copies still do. Which of the two is then ahead?

# %% tags=["varies"]
times_of_mpi = np.array(modes["ring"]["seconds"]) / np.array(modes["mpi"]["seconds"])
for size, ratio in zip(array_bytes[::3], times_of_mpi[::3], strict=True):
    print(f"{size:>10,} bytes: the ring in Python takes {ratio:.2f} times as long as MPI")
ahead = [f"{size:,} bytes" for size, ratio in zip(array_bytes, times_of_mpi, strict=True) if ratio < 1]
print(f"The ring in Python is ahead of the library at {' and '.join(ahead) or 'no size'}.")

# %% [markdown]
# If our ring wins at a size, Python is not the reason. Open MPI chooses an algorithm by size and number of ranks, with
# thresholds that were tuned on clusters. With two ranks Open MPI 4.1 takes Rabenseifner's algorithm from 256 KiB on. It
# sends the same bytes as the ring, also in halves, but through other buffers. To find the cause, force an algorithm (3
# is recursive doubling, 4 the ring, 6 Rabenseifner's):
#
# `mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4 -np 2 python …`
#
# For Horovod expect a larger $\alpha$ again: its background thread wakes up once per cycle (`HOROVOD_CYCLE_TIME`, 1
# ms), and the ranks first agree on which tensors are ready everywhere.
#
# With the ring's $\alpha$ and $\beta$ in its network, the virtual cluster becomes a model of this machine.

# %% tags=["varies"]
this_machine = Network(fits["ring"].latency, fits["ring"].seconds_per_byte)
print("the course's ring, on the virtual cluster and on this machine")
for index in range(1, len(array_bytes), 2):
    virtual = simulated(collectives.ring_all_reduce, real_ranks, array_bytes[index], this_machine)
    real = modes["ring"]["seconds"][index]
    print(
        f"{array_bytes[index]:>10,} bytes: {1e6 * virtual:>9,.0f} and {1e6 * real:>9,.0f} µs, {virtual / real - 1:+.0%}"
    )

name = "horovod" if "horovod" in fits else "mpi"
separate, fused = (fits[name].seconds(costs.all_reduce("ring", modes[name]["ranks"], n)) for n in (1e5, 42e5))
print(
    f"predicted for 42 × 100 kB ({modes[name]['name']}): {42e3 * separate:.1f} ms one by one, {1e3 * fused:.1f} packed"
)

# %% [markdown]
# The percentages are the residuals, now of a whole program. Distrust the largest array: new pages and cache misses are
# rare in the sizes that $\beta$ comes from. The last line is **tensor fusion**: one array
# instead of 42 saves 41 latencies.
#
# **Question.** You pack 42 gradients into one array. Which part of the time do you save?
#
# 1. The time per byte.
# 2. 41 of 42 latencies.
# 3. The adding.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: the same bytes travel.
# 2. **Right.** $2(p-1)\alpha$ is paid per all-reduce.
# 3. No. Each number is still added $p-1$ times.
# </details>
#
# ## 9. Proof: a ring trains as one rank does
#
# We train a linear classifier for 20 steps of gradient descent with batches of 64: once on one rank, and once on a
# virtual cluster of `max(workers, 3)` ranks that share each batch and add their gradients with the ring of section 3.

# %%
train = data.load(dataset).train
images, labels = train.images[:1280].reshape(20, 64, -1), np.eye(10)[train.labels[:1280]].reshape(20, 64, 10)


def gradient(weights, images, labels):
    """Of the cross-entropy of a linear classifier, added over these images and divided by the global batch size."""
    logits = images @ weights
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return images.T @ (scores / scores.sum(axis=1, keepdims=True) - labels) / 64


def shard(rank, size):
    """This rank's images and labels of every batch."""
    return [(np.array_split(x, size)[rank], np.array_split(y, size)[rank]) for x, y in zip(images, labels, strict=True)]


async def train_on(rank, batches):
    """Gradient descent; every rank adds up all ranks' gradients and applies the same sum."""
    weights = np.zeros((images.shape[-1], 10))
    for x, y in batches:
        weights -= 0.1 * await ring_all_reduce(rank, gradient(weights, x, y))
    return weights


# %%
serial, *_ = World(1).run(train_on, [shard(0, 1)]).results
size = max(workers, 3)
together = World(size).run(train_on, [shard(rank, size) for rank in range(size)]).results
checks.assert_equal_weights(together, [serial] * size)

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("06")

# %% [markdown]
# ## Recap
#
# - Reduce-scatter, then all-gather, is an all-reduce; on a ring each rank sends less than twice its array; in any
#   all-reduce in which the ranks add, some rank sends at least as much.
# - Gradients are added, not weights, and in every step, not every epoch.
# - Small arrays want few steps, large ones few bytes.
# - A wrong index raises no error; a circle of blocking sends is a deadlock.
# - A ring is as slow as its slowest link and rank.
# - Two fitted numbers predict a measured all-reduce roughly.
#
# **Next.** [Lab 06](../labs/06_collectives_and_ring_all_reduce/lab.ipynb): write the ring yourself. Then
# [07 multi-worker](07_multi_worker.ipynb).
#
# **Sources.**
# - Patarasuk and Yuan (2009), [Bandwidth optimal all-reduce algorithms](https://doi.org/10.1016/j.jpdc.2008.09.002).
# - Thakur, Rabenseifner and Gropp (2005), [Collective operations in MPICH](https://doi.org/10.1177/1094342005051521).
# - Sanders, Speck and Träff (2009), [Two-tree algorithms](https://doi.org/10.1016/j.parco.2009.09.001).
# - Graham et al. (2016), [SHArP](https://doi.org/10.1109/COMHPC.2016.006).
# - Sergeev and Del Balso (2018), [Horovod](https://arxiv.org/abs/1802.05799).
# - Jia et al. (2018), [two-level all-reduce](https://arxiv.org/abs/1807.11205).
