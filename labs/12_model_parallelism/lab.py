# %% [markdown]
# # Lab 12: fill a pipeline, split a layer
#
# **Goal.** Schedule a pipeline with the smallest bubble and the least memory, choose its micro-batches, and write
# layers that are split by columns and by rows, with no more communication than they need.
#
# **Time.** 65 minutes.
#
# **Before this.** [Chapter 12](../../notebooks/12_model_parallelism.ipynb), sections 1 to 3. For exercises 4 to 6,
# [chapter 06](../../notebooks/06_collectives_and_ring_all_reduce.ipynb): all-gather, all-reduce, and programs of a rank
# with `async` and `await`.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it. The check runs your
# schedule or program on a virtual cluster, also with numbers that are not shown here. It says what is wrong, and draws
# your schedule: one row per stage, one box per pass. `make check LAB=12` does the same in a terminal. A full solution
# is next to this file, in [solution.ipynb](solution.ipynb). In grading, cells that use `distlab.model_parallel` are not
# run.

# %%
import numpy as np

from distlab import labs
from distlab.collectives import all_gather, ring_all_reduce
from distlab.simulate import Rank

lab = labs.open("12")

# %% [markdown]
# ## 1. Fill the table
#
# A model is cut into 3 stages, a batch into 4 micro-batches. `F0` is the forward pass of micro-batch 0, `B0` its
# backward pass. In each time slot a stage does one pass, or waits (`..`); here a backward pass takes one slot as well.
#
# Every stage works on every micro-batch, forward and backward. Whatever a pass needs from another stage must have been
# finished there in an *earlier* slot. The loss is computed in the last stage's forward pass.
#
# Half of the points are for a table that can be carried out, half for one with as few slots as possible. The target:

# %%
print(lab.target("table"))

# %% answer="table"
# Replace dots with passes:
table = """
stage 0:  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..
stage 1:  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..
stage 2:  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..  ..
"""
### BEGIN SOLUTION
# One of several with as few slots as possible:
table = """
stage 0:  F0  F1  F2  F3  ..  ..  ..  ..  B3  B2  B1  B0
stage 1:  ..  F0  F1  F2  F3  ..  ..  B3  B2  B1  B0  ..
stage 2:  ..  ..  F0  F1  F2  F3  B3  B2  B1  B0  ..  ..
"""
### END SOLUTION

# %% [markdown]
# ## 2. One forward, one backward (1F1B)
#
# Between its forward and its backward pass a micro-batch's activations stay in a stage's memory. Write a function that
# returns one stage's order of passes, a list such as `["F0", "F1", "B0", "B1"]`, for any number of stages and
# micro-batches. The batch must be finished as fast as possible, and no stage may hold more micro-batches than it must.
# Stage 0 gets the inputs.
#
# Only the order counts: the virtual cluster begins each pass as soon as its stage is free and what it needs has
# arrived. A forward pass takes one second, a backward pass two.
#
# A quarter of the points each for orders that can be carried out on 4 stages; for orders that can be carried out with
# any numbers; for the time; for the memory. The target:

# %%
print(lab.target("one_forward_one_backward"))


# %% answer="one_forward_one_backward"
def one_forward_one_backward(stage: int, stages: int, micro_batches: int) -> list[str]:
    """The passes of a stage, in order."""
    ### BEGIN SOLUTION
    ahead = min(stages - stage - 1, micro_batches)
    order = [f"F{number}" for number in range(ahead)]
    for number in range(ahead, micro_batches):
        order += [f"F{number}", f"B{number - ahead}"]
    return order + [f"B{number}" for number in range(micro_batches - ahead, micro_batches)]
    ### END SOLUTION


# %% [markdown]
# ## 3. How many micro-batches?
#
# The more micro-batches, the smaller the bubble. But each has a price: a stage needs `fixed + examples * each` seconds
# for a micro-batch of `examples` examples, forward and backward together. A pipeline has `stages` stages, a batch has
# `batch` examples, and the memory of each stage has room for the activations of `fits` examples at a time. The schedule
# is 1F1B, so stage 0 holds most.
#
# Choose the number of **micro-batches**: one that divides the batch, that fits, and with which the batch takes the
# least time. Give also the **seconds** that the batch takes, and the **bubble**: the share of this time in which a
# stage waits.
#
# Half of the points are for the number, a quarter each for time and bubble (of the number that you give). The target:

# %%
print(lab.target("plan"))


# %% answer="plan"
def plan(
    stages: int,
    batch: int,
    fits: int,
    fixed: float,
    each: float,
) -> dict[str, float | None]:
    """The number of micro-batches, the batch's seconds, and the bubble's share of them."""
    micro_batches = seconds = bubble = None
    ### BEGIN SOLUTION

    def seconds_of(count: int) -> float:
        return (count + stages - 1) * (fixed + batch / count * each)

    dividing = [count for count in range(1, batch + 1) if batch % count == 0]
    fitting = [count for count in dividing if min(stages, count) * batch / count <= fits]
    micro_batches = min(fitting, key=seconds_of)
    seconds = seconds_of(micro_batches)
    bubble = (stages - 1) / (micro_batches + stages - 1)
    ### END SOLUTION
    return {"micro-batches": micro_batches, "seconds": seconds, "bubble": bubble}


# %% [markdown]
# ## 4. A layer by columns
#
# From here on, each layer itself is split. A dense layer computes `inputs @ weights + bias`; a column of `weights`
# belongs to one unit. The units are divided among the ranks as by `np.array_split`: some ranks may have one more than
# others, or none at all.

# %% [markdown]
# Your program is an `async` function that every rank runs with its own `rank` (`rank.index` is its number, `rank.size`
# the number of ranks) and its own part of the layer. Use these two collectives; what one rank calls, all must call:
#
# - `await all_gather(rank, array)`: the rows of all ranks' arrays, one below the other, in order of rank;
# - `await ring_all_reduce(rank, array)`: the sum of all ranks' arrays, element by element.
#
# Here every rank has all `inputs`, of shape (examples, inputs), but only the `columns` and the `bias` of its own units.
# Return on every rank the outputs of *all* units, of shape (examples, units), in float64 as the layer. What a rank needs
# from others must come in messages.
#
# Half of the points are for the result (a quarter if it is right only where all ranks have equally many units), half
# for the bytes. The target:

# %%
print(lab.target("by_columns"))


# %% answer="by_columns"
async def by_columns(rank: Rank, layer: tuple[np.ndarray, ...]) -> np.ndarray:
    """The outputs of all units, on every rank."""
    inputs, columns, bias = layer
    ### BEGIN SOLUTION
    own = inputs @ columns + bias
    # A row for each unit, so that the units of all ranks can stand one below the other.
    rows = await all_gather(rank, own.T)
    return rows.T
    ### END SOLUTION


# %% [markdown]
# ## 5. A layer by rows
#
# Now the layer's *inputs* are divided: they are the units of the previous layer, and those are on different ranks. A
# rank has the `inputs` from its own units, of shape (examples, own units), and the `rows` of the weights that belong to
# them. Every rank has the whole `bias`. Return on every rank all outputs of the layer, of shape (examples, outputs).
# Points as in exercise 4.

# %%
print(lab.target("by_rows"))


# %% answer="by_rows"
async def by_rows(rank: Rank, layer: tuple[np.ndarray, ...]) -> np.ndarray:
    """The layer's outputs, on every rank."""
    inputs, rows, bias = layer
    ### BEGIN SOLUTION
    return await ring_all_reduce(rank, inputs @ rows) + bias
    ### END SOLUTION


# %% [markdown]
# ## 6. Both, forward and backward
#
# Two layers have a ReLU between them: `np.maximum(inputs @ W1 + b1, 0) @ W2 + b2`. Every rank has all `inputs` and the
# whole `second_bias`, which is `b2`. Of its own hidden units it has the columns of `W1` (`columns`), their part of `b1`
# (`first_bias`), and the rows of `W2` (`rows`). It also has `by_outputs`, the whole gradient of the loss with respect
# to the outputs.
#
# Return on every rank a pair: the outputs, and the gradient of the loss with respect to the inputs, both whole. In
# training the loss is computed between the two, from the outputs. Here `by_outputs` is there from the beginning, so the
# order is yours: only the bytes count. No unit is exactly 0 before the ReLU.
#
# A third of the points each for the outputs, the gradient, and the bytes: those of one all-reduce forward and one
# backward. The bytes count only if both results are right. The target:

# %%
print(lab.target("two_layers"))


# %% answer="two_layers"
async def two_layers(
    rank: Rank,
    network: tuple[np.ndarray, ...],
) -> tuple[np.ndarray, np.ndarray]:
    """The outputs, and the gradient of the loss with respect to the inputs, on every rank."""
    inputs, columns, first_bias, rows, second_bias, by_outputs = network
    ### BEGIN SOLUTION
    hidden = np.maximum(inputs @ columns + first_bias, 0)
    outputs = await ring_all_reduce(rank, hidden @ rows) + second_bias
    by_hidden = by_outputs @ rows.T * (hidden > 0)
    by_inputs = await ring_all_reduce(rank, by_hidden @ columns.T)
    return outputs, by_inputs
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A schedule as fast as GPipe's, whose memory is limited by the number of stages, not of micro-batches.
# - A number of micro-batches that balances the bubble against the price of each, and fits into memory.
# - Split by columns, a layer ends in an all-gather; split by rows, in an all-reduce. A layer by columns followed by one
#   by rows needs no all-gather.
# - In the backward pass it is the other way round: all ranks use the same inputs, so their gradients must be added up.
#
# **Going on.** In the example of exercise 3 double `fits`, then halve `fixed`: which of the two shortens the step?
# [Chapter 12](../../notebooks/12_model_parallelism.ipynb), section 6, chooses all splits of real models together.
#
# **Sources.** Huang et al. (2019), arXiv:1811.06965. Narayanan et al. (2021), arXiv:2104.04473, section 2.2. Shoeybi et
# al. (2019), arXiv:1909.08053, section 3.
