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
# **Goal.** Build the ring all-reduce step by step, know what each collective operation does and costs, and predict a
# real all-reduce roughly, from two numbers measured on this machine.
#
# **Time.** 35 minutes to read, under a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb) and [04 custom training
# loop](04_custom_training_loop.ipynb).
#
# **Questions.**
# - Why is the obvious all-reduce slow, and how does a ring avoid its bottleneck?
# - What do a wrong index, a blocking send, a slow link and a slow rank look like?
# - Which collective does which job, and when is a ring the wrong choice?
# - How much of an all-reduce can hide behind the backward pass?
# - How well do two numbers predict a measured all-reduce?
#
# **Hardware.** Two processor cores.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; used in section 10 alone (1,280 images)
epochs = 1  # not used in this chapter
workers = 2  # processes in section 9, and from 3 on ranks in section 10; 1 to 8

# %% jupyter={"source_hidden": true}
import distlab  # first, as in every chapter; TensorFlow is not needed here

from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import display

from distlab import checks, collectives, costs, data, draw, launch, programs, quizzes
from distlab.simulate import DeadlockError, Link, Network, World

draw.apply_style()
PROGRAMS = Path("programs/06_collectives_and_ring_all_reduce")
print(data.describe(dataset))

# %% [markdown] tags=["slide-picture"]
# ## 1. Every rank needs the sum
#
# A **rank** is one process of a parallel program, and also its number; the **world size** $p$ is the number of ranks.
# In data-parallel training each rank computes a gradient from its own images. Then all ranks need the mean of all
# gradients, because only the same update keeps their weights equal:
#
# ![Four replicas, their gradients −4, −10, −16, −20, the mean −12.5 and the same new weight on
# each](../figures/06_gradient_reduction.svg)
#
# An operation that all ranks call together is a **collective**. The one that gives every rank the sum of all ranks'
# arrays is an **all-reduce**. In MPI, the message-passing standard of clusters, it is one call:

# %%
display(programs.show(PROGRAMS / "sum_with_mpi.py"))
run = launch.mpirun(PROGRAMS / "sum_with_mpi.py", ranks=2, prepared=False, echo=False)
print("$ mpirun -np 2 python sum_with_mpi.py")
print(run.output["rank 0"], run.output["rank 1"], sep="\n")

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# Horovod does the same with TensorFlow tensors, over MPI, Gloo or NCCL, and divides the sum by $p$. Training adds
# *gradients*, not weights, and in **every step**, not once per epoch.
#
# What happens inside the call? In the **naive** way rank 0 receives all arrays, adds them, and sends the sum back.
# Sending $n$ bytes takes about $\alpha + n\beta$ seconds: the **latency** $\alpha$ for any message, and $\beta$ seconds
# per byte, 1 divided by the bandwidth. Rank 0 receives one message at a time and needs
#
# $$T_{naive} = 2(p-1)(\alpha + n\beta)$$
#
# **Predict.** With $\alpha$ = 5 µs and 1 GB per second, a message of 4 MB takes about 4,000 µs. And the naive
# all-reduce of such a gradient, on 8 ranks and on 64?


# %% tags=["slide-output"]
def us(seconds):
    """Seconds as text, in microseconds."""
    return f"{1e6 * seconds:,.0f} µs"


network = Network(latency=5e-6, seconds_per_byte=1e-9)  # for the simulations from section 4 on
for ranks in (2, 8, 64):
    cost = costs.all_reduce("naive", ranks, array_bytes=4e6)
    print(f"{ranks:>2} ranks: {us(cost.seconds(5e-6, 1e-9)):>10}")

# %% [markdown] tags=["slide-takeaway"]
# The time grows with the number of ranks, because every byte passes through rank 0. A better all-reduce has no centre
# and uses all links at once.
#
# ## 2. The ring
#
# Let the ranks form a **ring**: each sends only to its right neighbour, rank $i+1$, and receives only from its left
# one. Cut every array into $p$ **chunks**. In the first step rank $i$ sends chunk $i$ to the right, and adds the chunk
# that arrives from the left to its own. In each further step it passes on the chunk that it has just added to, so that
# each chunk collects the shares of all ranks.
#
# This is the first half of the all-reduce, in NumPy, with a loop over the ranks. Rank 0 has ones, rank 1 tens, and so
# on: the digits of a sum show whose shares are in it.

# %% tags=["program", "slide-code"]
import numpy as np

p = 4
arrays = [np.arange(1, 5) * 10**rank for rank in range(p)]
chunks = [np.array_split(array, p) for array in arrays]  # p views of each


def show(step):
    rows = [" ".join(f"{number:4}" for number in array) for array in arrays]
    print(f"step {step}: {' | '.join(rows)}")


for step in range(p - 1):  # reduce-scatter: chunks travel and grow
    sent = [chunks[rank][(rank - step) % p].copy() for rank in range(p)]
    for rank in range(p):
        chunks[rank][(rank - 1 - step) % p] += sent[rank - 1]
    show(step + 1)

# %% [markdown] tags=["slide-takeaway"]
# After $p-1$ steps each rank has one finished chunk: rank $i$ has chunk $(i+1) \bmod p$. This half is called a
# **reduce-scatter**. Then the finished chunks travel once more around the ring and replace the unfinished ones, which
# is an **all-gather**:

# %% tags=["program"]
for step in range(p - 1):  # all-gather: finished chunks travel and replace
    sent = [chunks[rank][(rank + 1 - step) % p].copy() for rank in range(p)]
    for rank in range(p):
        chunks[rank][(rank - step) % p][:] = sent[rank - 1]
    show(p + step)

# %% [markdown]
# All ranks have the same sum, none has handled more than another, and in each step all links were busy.
#
# ## 3. The ring as a program of one rank
#
# On a cluster every rank runs the same program with its own number. We try such programs on a **virtual cluster**, in
# one process: arrays and sums are real, and the clock is computed from $\alpha$ and $\beta$. A rank is an `async`
# function here, and `await` marks each place where it may wait for a message while the others go on. `exchange` sends
# to one rank and receives from another at the same time; `reduce` adds a received array.
# `World(p).run(program, arrays)` runs the program on $p$ ranks. Below, play it.


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


# %% tags=["slide-output"]
draw.play(collectives.ring_all_reduce, size=4)

# %% [markdown]
# A ring that works on four ranks may fail on five. So we try many sizes against NumPy.

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

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 4. What the ring costs
#
# On $p$ ranks, each of the $2(p-1)$ steps costs a latency $\alpha$ and sends $n/p$ bytes, $\beta$ seconds each. If
# adding a byte takes $\gamma$ seconds (here 0), then
#
# $$T_{ring} = 2(p-1)\alpha + 2\,\frac{p-1}{p}\,n\beta + \frac{p-1}{p}\,n\gamma$$
#
# **Predict.** Twice as many ranks: how many more bytes does each rank send?

# %% tags=["slide-output"]
N = 4_096_000
print("ranks  steps  sent per rank    simulated   by formula        naive")
for size in (2, 4, 8, 16, 64):
    arrays = [np.ones(N // 4, np.float32)] * size
    run = World(size, network).run(ring_all_reduce, arrays)
    cost, naive = (costs.all_reduce(name, size, N) for name in ("ring", "naive"))
    sent = run.bytes_sent / size / N
    print(f"{size:>5}{cost.steps:>7.0f}{sent:>13.3f} n{us(run.elapsed):>13}", end="")
    print(f"{us(cost.seconds(5e-6, 1e-9)):>13}{us(naive.seconds(5e-6, 1e-9)):>13}")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# Each rank sends $n$ bytes on two ranks, towards $2n$ on many, and never more. If the ranks do the adding, less is
# impossible: some rank must send $2\frac{p-1}{p}n$ bytes (Patarasuk and Yuan, 2009). (With switches that add, as
# NVIDIA's SHARP, each rank sends $n$ only.) What grows without limit is the other term, $2(p-1)$ latencies.
#
# **Question.** A gradient of 1 kB on 512 ranks, with 5 µs and 1 GB per second. What limits a ring?
#
# 1. The bandwidth, as always.
# 2. Rank 0.
# 3. The latency of 1,022 steps.
# 4. Adding.
#
# <details>
# <summary>Answer</summary>
#
# 1. No. A message has 1 kB / 512 = 2 bytes. They take 2 ns, and its latency 5 µs.
# 2. No. A ring has no special rank; that is the naive way.
# 3. **Right.** The bytes take about 2 µs, the latencies 5,110 µs.
# 4. No. Each rank adds less than 1 kB in all.
# </details>

# %% [markdown] tags=["slide-text"]
# ## 5. Two mistakes
#
# The most frequent mistake is an index that is off by one: here a `+1` is missing. The second loop sends
# `chunks[index - step]`. So it begins with the chunk that the rank sent *first*, not with its finished one.


# %% tags=["slide-output", "slide-continued"]
async def wrong_ring(rank, array):
    """A ring all-reduce whose second loop begins one chunk too early."""
    total = array.copy()
    chunks = np.array_split(total, rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(chunks[(rank.index - step - 1) % rank.size], received)
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step) % rank.size]  # wrong: + 1 is missing
        unfinished = chunks[(rank.index - step - 1) % rank.size]  # and here, too
        unfinished[:] = await rank.exchange(right, outgoing, left)
    return total


totals = World(2).run(wrong_ring, [np.array([1, 1]), np.array([2, 2])]).results
print("on two ranks:", *totals, "instead of [3 3]")
traced = draw.trace(wrong_ring, 4)
draw.show(traced.strip(), traced.describe())

# %% [markdown] tags=["slide-takeaway", "slide-text"]
# No error, but the sum is wrong. After three steps each rank has one finished chunk, in a thick frame. Then unfinished
# chunks go out and overwrite even the finished ones.
#
# The other mistake is to send first and then receive. `MPI_Send` may return early for short messages, but waits with
# long ones until they are received: a program that passes its small tests hangs with a real gradient. Here is such a
# **blocking send**.


# %% tags=["slide-output", "slide-continued"]
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

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# A circle of waiting is a **deadlock**. On a real cluster the same program prints nothing at all. One fix is `exchange`
# (`MPI_Sendrecv`); another is that even ranks send first and odd ranks receive first.
#
# ## 6. The other collectives
#
# A row is what a rank has, before and after. Here rank 0 is the **root**:
#
# ![Four collectives with a root, before and after: broadcast, reduce, scatter,
# gather](../figures/06_collectives_with_root.svg)

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# The root has everything, before or after. The others have no root:
#
# ![Four collectives without a root: all-gather, reduce-scatter, all-reduce,
# all-to-all](../figures/06_collectives_without_root.svg)

# %% [markdown] tags=["slide-takeaway"]
# Here all ranks do the same work.
#
# | collective | used for | beware |
# |---|---|---|
# | broadcast | equal initial weights | if you forget it, there is no error, and each rank trains a different model |
# | reduce | a sum for rank 0 | the others get nothing |
# | scatter | data that one rank reads | limited by the root's link |
# | gather | predictions for rank 0 | the root needs memory for all |
# | all-gather | weights stored in shards | the result is $p$ times the input |
# | reduce-scatter | gradients of such weights | each rank gets only $1/p$ |
# | all-to-all | tokens to their experts | loads all links |
# | barrier | waiting for each other | if one rank skips it, all wait |

# %% [markdown]
# On a **tree**, where every rank that has the data passes it on in each step, broadcast and reduce take
# $\lceil \lg p \rceil (\alpha + n\beta)$, scatter and gather $\lceil \lg p \rceil \alpha + \frac{p-1}{p} n\beta$
# ($\lg$: base 2). All-gather, reduce-scatter and all-to-all take $(p-1)\alpha + \frac{p-1}{p} n\beta$. Here $n$ is the
# whole array, before or after the call.

# %% [markdown] tags=["slide-quiz"]
# **The pay-off of two halves.** After the reduce-scatter a rank has the gradient of $1/p$ of the weights. If it updates
# these, and the all-gather sends the new *weights* around, the bytes are the same, but a rank stores only $1/p$ of the
# optimizer's state: the first stage of ZeRO. FSDP also shards the weights and all-gathers them before they are used
# ([12](12_model_parallelism.ipynb)). The gradient of a weight that $p$ ranks use is the sum of their gradients: **in
# the backward pass an all-gather becomes a reduce-scatter.**
#
# **Question.** Which pair makes an all-reduce in which no rank handles more than others?
#
# 1. Gather, broadcast.
# 2. Reduce, broadcast.
# 3. Reduce-scatter, all-gather.
# 4. All-to-all, scatter.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: rank 0 does.
# 2. No: the tree's root does.
# 3. **Right.** Each rank finishes one chunk, which then goes round.
# 4. No: nothing adds.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## 7. Which all-reduce when?
#
# Two more are common. The **tree** reduces to rank 0 and then broadcasts. In **halving-doubling** partners, here the
# farthest first, exchange halves of the array, then quarters and so on, and each adds up its part, until every rank has
# one finished chunk; the same steps backwards hand the chunks out. Both need $2\lg p$ steps, but the tree sends the
# whole array in each, and halving-doubling as few bytes per rank as a ring. TensorFlow's `ReductionToOneDevice` is the
# naive way, and `HierarchicalCopyAllReduce` a tree of two levels ([03](03_mirrored_strategy.ipynb) draws both).
#
# **Predict.** 16 ranks. Which is fastest for 1 kB, and which for 10 MB?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
NAMES = ("naive", "tree", "ring", "halving_doubling")
sizes = np.geomspace(1e3, 2e7, 2_000)
figure, panels = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.6))
for axes, ranks in zip(panels, (16, 12), strict=True):
    for number, name in enumerate(NAMES):
        seconds = costs.all_reduce(name, ranks, sizes).seconds(5e-6, 1e-9)
        style = {"color": draw.RANK_COLOURS[number], "linestyle": draw.DASHES[number]}
        label = name.replace("_", "-")
        axes.loglog(sizes / 1e3, 1e6 * seconds, label=label, marker="", **style)
    axes.set(title=f"{ranks} ranks", xlabel="array in kB")
panels[0].set_ylabel("µs")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
draw.show(figure, "Time of four all-reduces by array size on 16 and 12 ranks, by formula.")

# %%
draw.calculator("all-reduce")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# Small arrays want few steps (tree, halving-doubling), large ones few bytes (ring, halving-doubling). Of these,
# halving-doubling is the fastest on $2^k$ ranks, from 4 on. With other numbers the ring wins for large arrays: try 12
# ranks in the calculator. Libraries still use rings for large arrays, because in real networks distant partners share
# cables; NCCL takes trees for smaller ones on several hosts.
#
# We slow down a link, then a *rank*, a **straggler**: four ranks compute for 1,000 µs, rank 2 at half the speed, then
# all-reduce 400 kB.
#
# **Predict.** One of the 8 links of a ring is 10 times slower. How much slower is the all-reduce?


# %% tags=["slide-output"]
def simulated(program, size, array_bytes, network=network):
    """Virtual seconds of a collective to which each rank contributes `array_bytes` bytes."""
    inputs = [np.ones(array_bytes // 4, np.float32)] * size
    return World(size, network).run(program, inputs).elapsed


slow = network.with_slow_link(2, 3, factor=10)
for name in NAMES:
    program = collectives.ALL_REDUCE[name]
    usual, hampered = (simulated(program, 8, 4_000_000, links) for links in (network, slow))
    print(f"{name:17}{us(usual):>9}, with a slow link {us(hampered):>9}:", end=" ")
    print(f"× {hampered / usual:.2f}")


async def training_step(rank, array):
    """A millisecond of computing, then the all-reduce of the gradient."""
    await rank.compute(1e-3)
    return await ring_all_reduce(rank, array)


gradients = [np.ones(100_000, np.float32)] * 4
even = World(4, network).run(training_step, gradients)
uneven = World(4, network, {2: 0.5}).run(training_step, gradients)
print(f"training step: {us(even.elapsed)}, with a straggler {us(uneven.elapsed)}")
draw.show(draw.timeline(uneven), "Timeline: ranks 0, 1 and 3 wait until rank 2 has computed.")

# %% [markdown] tags=["slide-takeaway"]
# **The ring is 10 times slower: it uses the slow link in every step.** Rank 2, at half the speed in the picture,
# delays all by its extra time: the sum needs its share, so no all-reduce can help.
#
# Tree and halving-doubling use the slow link in two steps; the naive way uses only links of rank 0.
#
# A **hierarchical** all-reduce runs rings inside the hosts, where links are fast, and rings between hosts with a part
# of the array each. Here 4 hosts have 4 ranks each. A link between hosts has a tenth of the bandwidth and more than
# three times the latency, and each rank has its own. (With one network card per host the gain would be far smaller.)

# %%
two_levels = Network(10e-6, 2e-10, ranks_per_host=4, inside_host=Link(3e-6, 2e-11))
hierarchical = partial(collectives.hierarchical_all_reduce, ranks_per_host=4)
algorithms = {name: collectives.ALL_REDUCE[name] for name in NAMES}
for name, program in (algorithms | {"hierarchical": hierarchical}).items():
    small, large = (simulated(program, 16, size, two_levels) for size in (64_000, 4_096_000))
    print(f"{name:20}64 kB in {us(small):>8}, 4,096 kB in {us(large):>9}")

# %% [markdown] tags=["slide-picture"]
# Of these the hierarchy wins for the large array: each rank all-reduces only a quarter of it over the slow links. (Our
# halving-doubling sends its largest halves over them; Open MPI's begins with the nearest rank and is a hierarchy
# itself.)
#
# ## 8. Hide it behind the backward pass
#
# A step takes $T_{back} + T_{reduce}$ if its all-reduce begins after the backward pass. But the last layer's gradient
# is ready first, so frameworks reduce it while they compute the others: at best only $\max(T_{back}, T_{reduce})$
# counts. One all-reduce per gradient would pay $2(p-1)\alpha$ each time. Therefore gradients are collected in
# **buckets** (Horovod: **tensor fusion**), each reduced when full.
#
# ![Three timelines: one all-reduce at the end takes longest, one for each gradient is delayed by latency, buckets of
# four gradients end shortly after the backward pass](../figures/06_overlap.svg)

# %% [markdown] tags=["slide-predict"]
# In the picture, 8 ranks on section 1's network have 48 gradients of 50 kB; one becomes ready every 125 µs. (PyTorch's
# DDP collects 25 MiB by default.)
#
# **Predict.** The picture shows buckets of 1, 4 and 48 gradients. Does the step end earlier with 2, 8 or 16 than with
# 4?

# %% tags=["slide-output"]
GRADIENTS, BACKWARD = 48, 125e-6
for per_bucket in (1, 2, 4, 8, 16, 48):
    reducing = costs.all_reduce("ring", 8, per_bucket * 50_000).seconds(5e-6, 1e-9)
    end = 0.0
    for ready in range(per_bucket, GRADIENTS + 1, per_bucket):
        end = max(end, ready * BACKWARD) + reducing  # when it is full and the network is free
    total = GRADIENTS // per_bucket * reducing
    print(f"{per_bucket:>2} per bucket: all-reduces {us(total):>8}, step ends at {us(end):>9}")

# %% [markdown] tags=["slide-takeaway"]
# From 2 per bucket on, only the last bucket's all-reduce comes after the backward pass (6,000 µs): the smaller, the
# better. With 1 per bucket the latencies make the all-reduces outlast it.
#
# **Question.** You pack 42 gradients into one bucket. What do you save in the all-reduces themselves?
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

# %% [markdown]
# ## 9. The real thing
#
# `measure_all_reduce.py` measures processes on this machine: MPI's own all-reduce, and the course's ring over MPI, the
# same function with its messages sent by mpi4py.

# %%
programs.show(PROGRAMS / "measure_all_reduce.py", "mpi")

# %% [markdown] tags=["slide-predict"]
# **Predict.** How long does an all-reduce of 16 bytes take between two processes of one machine? And of 4 MiB?

# %% jupyter={"source_hidden": true} tags=["varies"]
real_ranks = max(workers, 2)  # one rank has nothing to reduce
print(f"$ mpirun -np {real_ranks} python measure_all_reduce.py")
arguments = {"ranks": real_ranks, "result": True, "echo": False, "prepared": False}
program = PROGRAMS / "measure_all_reduce.py"
measured = launch.mpirun(program, **arguments).result
sizes = np.array(measured["array_bytes"])
times = {name: np.array(seconds) for name, seconds in measured["seconds"].items()}
print("medians".ljust(16), *(f"{name:>10}" for name in times))
for size, *row in zip(sizes, *times.values(), strict=True):
    print(f"{size:>10,} bytes", *(f"{us(seconds):>10}" for seconds in row))

# %% [markdown]
# Microseconds for 16 bytes, milliseconds for 4 MiB.
#
# Now we fit the ring's formula: $\alpha$ on the sizes up to 1 KiB, where the bytes hardly count, and $\beta$ on those
# from 1 MiB on, where the latency hardly counts ($\beta$ includes the adding). The two sizes give two values of
# $\beta$. In the picture marks are measured; the bands are fitted at both ends and predicted in the **middle**.

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
ring = costs.all_reduce("ring", real_ranks, sizes)
small, large = sizes <= 2**10, sizes >= 2**20
figure, axes = plt.subplots(figsize=(7.2, 3.4))
for number, (name, seconds) in enumerate(times.items()):
    alpha = np.median(seconds[small] / ring.steps[small])
    betas = np.maximum(0, seconds - ring.steps * alpha)[large] / ring.bytes_on_path[large]
    low, high = (ring.seconds(alpha, beta) for beta in (betas.min(), betas.max()))
    beta_range = f"{1e9 * betas.min():.2f} to {1e9 * betas.max():.2f}"
    print(f"{name}: α = {1e6 * alpha:.1f} µs, β = {beta_range} ns per byte")
    for place in np.flatnonzero(~(small | large)):
        predicted = f"predicted {us(low[place])} to {us(high[place])}"
        print(f"{sizes[place]:>10,} bytes: {predicted}, measured {us(seconds[place])}")
    style = {"color": draw.RANK_COLOURS[number], "label": name}
    axes.fill_between(sizes, 1e6 * low, 1e6 * high, color=style["color"], alpha=0.3)
    axes.loglog(sizes, 1e6 * seconds, linestyle="", marker=draw.MARKERS[number], **style)
axes.set(xlabel="bytes", ylabel="µs")
axes.legend()
draw.show(figure, "Measured all-reduces by size as marks; as bands what α and β predict.")

# %% [markdown] tags=["slide-takeaway"]
# From µs to ms: $\alpha$ and a range of $\beta$ describe five powers of ten roughly. The ring's $\alpha$ is mostly
# Python, which packs each message. **Protocols:** MPI copies short messages through a buffer (*eager*) and asks before
# it sends long ones (*rendezvous*); each has its own $\alpha$ and $\beta$. **Memory:** on one machine a message is a
# copy, and arrays that fit into the cache are copied faster. So $\beta$ is a *range*: between the fitted sizes even the
# prediction may be a third off; trust none beyond them.
#
# > **Open MPI's thresholds.** With two ranks Open MPI 4.1 takes recursive doubling, a single step, below 4 KiB (so its
# > α above is half a message's), and halving-doubling from 256 KiB on. To force one (4: ring):
# > `mpirun --mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm 4 -np 2 python …`

# %% [markdown]
# ## 10. A ring trains as one rank does
#
# We train a linear classifier for 20 steps with batches of 64: once on one rank, and once on `max(workers, 3)` ranks
# that share each batch and add their gradients with the ring of section 3.


# %%
def gradient(weights, images, labels):
    """What these images add to the gradient of the loss, the mean over a batch of 64."""
    logits = images @ weights
    scores = np.exp(logits - logits.max(axis=1, keepdims=True))
    return images.T @ (scores / scores.sum(axis=1, keepdims=True) - labels) / 64


async def train_on(rank, images, labels):
    """Gradient descent on this rank's part of every batch; the gradients of all are added."""
    weights = np.zeros((images.shape[-1], 10))
    for batch in range(len(images)):
        own = slice(rank.index, None, rank.size)  # every p-th image of the batch
        part = gradient(weights, images[batch, own], labels[batch, own])
        weights -= 0.1 * await ring_all_reduce(rank, part)
    return weights


# %%
train = data.load(dataset).train
images = train.images[:1280].reshape(20, 64, -1)
labels = np.eye(10)[train.labels[:1280]].reshape(20, 64, 10)
program, size = partial(train_on, images=images, labels=labels), max(workers, 3)
[serial] = World(1).run(program).results
together = World(size).run(program).results
checks.assert_equal_weights(together, [serial] * size)

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("06")

# %% [markdown]
# ## Recap
#
# - The naive all-reduce sends everything through rank 0; a ring uses all links at once.
# - All-reduce = reduce-scatter + all-gather. Each rank sends less than twice its array, the least possible.
# - A wrong index raises no error; a circle of blocking sends is a deadlock.
# - Small arrays want few steps, large ones few bytes; a ring is as slow as its slowest link and rank.
# - Buckets hide the all-reduce behind the backward pass.
# - Latency from small messages and a range of bandwidths from large ones predict an all-reduce roughly.
#
# **Next.** [Lab 06](../labs/06_collectives_and_ring_all_reduce/lab.ipynb): write the ring yourself. Then [07
# multi-worker](07_multi_worker.ipynb).
#
# **Sources.**
# - Patarasuk and Yuan (2009), [Bandwidth optimal all-reduce algorithms](https://doi.org/10.1016/j.jpdc.2008.09.002).
# - Thakur, Rabenseifner and Gropp (2005), [Collective operations in MPICH](https://doi.org/10.1177/1094342005051521).
# - Graham et al. (2016), [SHArP](https://doi.org/10.1109/COMHPC.2016.006).
# - Li et al. (2020), [PyTorch Distributed](https://arxiv.org/abs/2006.15704).
# - Rajbhandari et al. (2020), [ZeRO](https://arxiv.org/abs/1910.02054).
# - Austin et al. (2025), [How to Scale Your Model](https://jax-ml.github.io/scaling-book/sharding/).
