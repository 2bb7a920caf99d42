# %% [markdown]
# # Lab 06: write the ring yourself
#
# **Goal.** Write a reduce-scatter, an all-gather and a ring all-reduce as programs that every rank runs, and one
# all-reduce with fewer steps, for any number of ranks and any length.
#
# **Time.** 45 minutes.
#
# **Before this.** [Chapter 06](../../notebooks/06_collectives_and_ring_all_reduce.ipynb), sections 1 to 5. Try it with
# that notebook closed.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it. The check runs your
# program on a virtual cluster, says what is wrong, and draws your run: a row for each rank, a column for each step, a
# box for each chunk. `make check LAB=06` does the same in a terminal. A full solution is next to this file, in
# [solution.ipynb](solution.ipynb); look at it when the check says "right". In grading, cells that import
# `distlab.collectives` are not run.
#
# So a check answers:
#
# ![A wrong line of a reduce-scatter, what the check says about it, and its picture of the run](../../figures/00_check.svg)

# %%
import numpy as np

from distlab import labs
from distlab.simulate import Rank

lab = labs.open("06")

# %% [markdown]
# ## What a rank can do
#
# A program is an `async` function. Each rank calls it with its own `rank` and its own array. `rank.index` is its
# number, from 0, and `rank.size` the number of ranks. Every operation needs an `await`:
#
# | operation | does |
# |---|---|
# | `await rank.send(to, array)` | send a copy of `array` to rank `to` |
# | `received = await rank.receive(source)` | the next message from rank `source` |
# | `received = await rank.exchange(to, array, source)` | send and receive at the same time |
# | `await rank.reduce(array, received)` | add `received` to `array`, in place |

# %% [markdown]
# A **step** is the time of one message; in one step a rank can send one message and receive one. The arrays have one
# dimension. `np.array_split(array, parts)` cuts an array into chunks whose lengths differ by at most one. The chunks
# are views: if you change a chunk, you change the array.
#
# Here is an example, which is none of the answers: each rank sends its array once to the right, and adds the array that
# it receives.


# %%
async def one_step(rank: Rank, array: np.ndarray) -> np.ndarray:
    """The rank's own array, plus that of its left neighbour."""
    total = array.copy()
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    received = await rank.exchange(right, array, left)
    await rank.reduce(total, received)
    return total


# %% [markdown]
# ## 1. Reduce-scatter
#
# Every rank has an array of the same length. At the end, rank $i$ returns chunk $i$ of the sum of all arrays, as
# `np.array_split(sum, rank.size)[i]` would give it, and nothing else.
#
# Use a ring: every rank sends only to its right neighbour (or only to its left one), and in each step no more than one
# chunk. In every exercise, leave the array that the rank was given unchanged.
#
# Points, in every exercise on a ring: a quarter each for sums of equal chunks, sums of any length on any number of
# ranks, steps, bytes. Each counts only if the sums before it are right, the last two only on a ring. If all is right
# but the rank's array has changed, you lose a quarter. Where chunks have unequal lengths, as many bytes are allowed as
# if all were as long as the longest. The target:

# %%
print(lab.target("reduce_scatter"))


# %% answer="reduce_scatter"
async def reduce_scatter(rank: Rank, array: np.ndarray) -> np.ndarray:
    """Chunk number `rank.index` of the sum of all ranks' arrays."""
    ### BEGIN SOLUTION
    chunks = np.array_split(array.copy(), rank.size)
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = chunks[(rank.index - step - 1) % rank.size]
        growing = chunks[(rank.index - step - 2) % rank.size]
        received = await rank.exchange(right, outgoing, left)
        await rank.reduce(growing, received)
    return chunks[rank.index]
    ### END SOLUTION


# %% [markdown]
# ## 2. All-gather
#
# Every rank has one chunk; the chunks may have different lengths, and some may be empty. At the end, every rank returns
# all of them in one array, in order of rank. Use a ring again. Points as in exercise 1. In the table, the elements are
# those of the whole array at the end.

# %%
print(lab.target("all_gather"))


# %% answer="all_gather"
async def all_gather(rank: Rank, chunk: np.ndarray) -> np.ndarray:
    """The chunks of all ranks, one behind the other, in order of rank."""
    ### BEGIN SOLUTION
    parts = [chunk] * rank.size
    right, left = (rank.index + 1) % rank.size, (rank.index - 1) % rank.size
    for step in range(rank.size - 1):
        outgoing = parts[(rank.index - step) % rank.size]
        parts[(rank.index - step - 1) % rank.size] = await rank.exchange(right, outgoing, left)
    return np.concatenate(parts)
    ### END SOLUTION


# %% [markdown]
# ## 3. Ring all-reduce
#
# Every rank has an array of the same length, and at the end returns the sum of all arrays. You may call your own two
# programs (`await reduce_scatter(rank, array)`), or write two loops over one array. Points as in exercise 1.
#
# In every all-reduce, some rank must send at least the bytes in the last column (Patarasuk and Yuan 2009): you are
# asked for the optimum.

# %%
print(lab.target("ring_all_reduce"))


# %% answer="ring_all_reduce"
async def ring_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """The sum of all ranks' arrays, on every rank."""
    ### BEGIN SOLUTION
    own_chunk = await reduce_scatter(rank, array)
    return await all_gather(rank, own_chunk)
    ### END SOLUTION


# %% [markdown]
# ## 4. Halving and doubling
#
# On $p$ ranks a ring takes $2(p-1)$ steps, Rabenseifner's all-reduce $2\lg p$, where $\lg$ is the logarithm to base 2.
# First **halving**: two partners divide the range that both are responsible for. Each sends the other one half, adds
# what it receives to the half it keeps, and is then responsible for that half alone. Then **doubling**: the same
# exchanges in reverse order, with finished parts.
#
# In each halving the distance to the partner halves too, from half the number of ranks down to 1. With 4 ranks: 0 with
# 2 and 1 with 3, then 0 with 1 and 2 with 3. Halves need not be equal.

# %% [markdown]
# Three quarters of the points are for 1, 2, 4, 8, … ranks, divided as in exercise 1. For other numbers some ranks must
# first send their whole array to another rank, and get the sum from it at the end; up to 3 more steps are allowed for
# that.

# %%
print(lab.target("halving_doubling_all_reduce", sizes=(2, 4, 8, 16, 64, 6, 12), length=192))


# %% answer="halving_doubling_all_reduce"
async def halving_doubling_all_reduce(rank: Rank, array: np.ndarray) -> np.ndarray:
    """The sum of all ranks' arrays, on every rank, in 2 lg p steps for p = 2^k ranks."""
    ### BEGIN SOLUTION
    members = 1 << (rank.size.bit_length() - 1)  # the largest power of two up to rank.size
    if rank.index >= members:  # a guest
        await rank.send(rank.index - members, array)
        return await rank.receive(rank.index - members)
    total = array.copy()
    guest = rank.index + members
    if guest < rank.size:
        await rank.reduce(total, await rank.receive(guest))

    low, high = 0, len(total)
    splits = []
    distance = members // 2
    while distance >= 1:
        partner = rank.index ^ distance
        middle = (low + high) // 2
        mine, theirs = slice(low, middle), slice(middle, high)
        if rank.index > partner:
            mine, theirs = theirs, mine
        await rank.reduce(total[mine], await rank.exchange(partner, total[theirs], partner))
        splits.append((partner, mine, theirs))
        low, high = mine.start, mine.stop
        distance //= 2

    for partner, mine, theirs in reversed(splits):
        total[theirs] = await rank.exchange(partner, total[mine], partner)
    if guest < rank.size:
        await rank.send(guest, total)
    return total
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - A ring all-reduce that sends as few bytes as possible, for any number of ranks and any length.
# - An all-reduce whose steps grow only with the logarithm of the number of ranks. On $2^k$ ranks it sends no more bytes
#   than the ring.
# - A habit: try a collective on several numbers of ranks, on lengths that they do not divide, and on one rank.
#
# **Going on.** Change a `+ 1` in your ring and look at the picture before you read the hint.
# [Chapter 07](../../notebooks/07_multi_worker.ipynb) uses the all-reduce between processes.
#
# **Sources.** Patarasuk and Yuan (2009), JPDC 69(2):117–124. Rabenseifner (2004), ICCS. Thakur, Rabenseifner and Gropp
# (2005), IJHPCA 19(1).
