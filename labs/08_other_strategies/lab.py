# %% [markdown]
# # Lab 08: who waits for whom?
#
# **Goal.** Count how stale gradients are, bound their staleness and say what the bound costs, choose between
# synchronous training, backup workers and asynchronous training for five clusters, and give slow workers less to do.
#
# **Time.** 52 minutes for exercises 1 to 4, and 13 more for exercise 5, which is optional.
#
# **Before this.** [Chapter 08](../../notebooks/08_other_strategies.ipynb), sections 4 and 6.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=08` does the same in a terminal. No server is started here, and TensorFlow is not
# needed. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import numpy as np

from distlab import labs

lab = labs.open("08")

# %% [markdown]
# ## 1. How stale is each gradient?
#
# A parameter server has written a log. Each entry is a pair (worker, event), in the order of time. `"reads"`: the worker
# reads the weights and begins to compute a gradient. `"updates"`: the gradient that it has computed since its last read
# changes the weights. No worker reads twice before it updates. The last gradients of some workers may not have arrived
# yet.
#
# Give a list with the staleness of every update, in the order of the updates: the number of updates by *other* workers
# between the worker's read and this update.
#
# Target: right for any log, also for one without updates. A point each for workers that take turns, a slow worker, and a
# worker that pauses before it reads again. For example

# %%
print(lab.target("staleness"))


# %% answer="staleness"
def staleness(events: list[tuple[int, str]]) -> list[int]:
    """The staleness of every update."""
    ### BEGIN SOLUTION
    version, version_read, stale = 0, {}, []
    for worker, event in events:
        if event == "reads":
            version_read[worker] = version
        else:
            stale.append(version - version_read[worker])
            version += 1
    return stale
    ### END SOLUTION


# %% [markdown]
# ## 2. A rule that bounds it
#
# Without a rule there is no largest staleness: while a very slow worker computes one gradient, the others may update any
# number of times. So many systems bound the **lead**: before a worker reads the weights for its next gradient, the server
# checks how many gradients each worker has *finished*, which means that they have changed the weights. A worker that is
# more than `lead` gradients ahead of the worker that has finished fewest waits until that one has caught up. Computing a
# gradient is never interrupted. (This is called *stale synchronous parallel*; Ho et al., 2013.)
#
# `finished` has the number of finished gradients of every worker. May this worker read now?
#
# Target: True or False, right in any state. One point. For example

# %%
print(lab.target("may_begin"))


# %% answer="may_begin"
def may_begin(finished: list[int], worker: int, lead: int) -> bool:
    """Whether this worker may read the weights for its next gradient."""
    ### BEGIN SOLUTION
    return finished[worker] - min(finished) <= lead
    ### END SOLUTION


# %% [markdown]
# ## 3. What the bound gives, and what it costs
#
# Every worker obeys the rule of exercise 2; `lead` may also be 0. Give
#
# - **largest staleness**: the largest staleness that a gradient can have under this rule, at *any* speeds of the
#   workers, which may also change all the time. To find it, take worker A, which reads after it has finished $a$
#   gradients, and one other worker B. How few gradients may B have finished at that moment? While A computes, how many
#   may B finish at most? Then take all other workers;
# - **without a bound**: the gradients per second of all workers together, in the long run, if worker $i$ always needs
#   `seconds[i]` for a gradient, nobody ever waits, and the network and the server need no time;
# - **with the bound**: the same under the rule. In the long run: the first gradients do not count.
#
# Target: right for any workers, to a relative error of 1e-6, which a simulation does not reach: each number has a
# formula. One point for each number. For example

# %%
print(lab.target("limits"))


# %% answer="limits"
def limits(seconds: list[float], lead: int) -> dict[str, float]:
    """The three numbers, by name."""
    answer = dict.fromkeys(("largest staleness", "without a bound", "with the bound"))
    ### BEGIN SOLUTION
    workers = len(seconds)
    # B has finished a − lead at least when A reads, and a + lead + 1 at most when A updates.
    answer["largest staleness"] = (workers - 1) * (2 * lead + 1)
    answer["without a bound"] = sum(1 / each for each in seconds)
    answer["with the bound"] = workers / max(seconds)
    ### END SOLUTION
    return answer


# %% [markdown]
# ## 4. Five clusters
#
# For each of five clusters somebody has measured how long every worker computes: `seconds` has the shape (steps,
# workers). Here `workers` includes the backups, which chapter 08 counts extra; the server has no column. No two times in
# a row are equal, and `backups` is at least 1. Simulate three ways with these times, and give for each the **gradients
# per second that change the weights**:
#
# - `"synchronous"`: in each step (each row) every worker computes one gradient. A step ends `all_reduce` seconds after
#   the last gradient is there.
# - `"backup workers"`: the same, but a step takes only the first `workers − backups` gradients to be there, and drops the
#   last ones. It ends `all_reduce` seconds after the last gradient that it takes. Then all workers begin the next step.
# - `"asynchronous"`: every worker computes its column of gradients, one after the other, without waiting; the rates of
#   the workers add up. The parameter server needs `server` seconds for each gradient, so it cannot apply more than one
#   in `server` seconds, however many arrive.
#
# Then choose: `"choice"` is the way with the most gradients per second. But two of the ways are not always allowed:
#
# - `"asynchronous"` is out if the mean staleness of workers that never pause is more than `allowed`; the learning rate
#   tolerates no more.
# - `"backup workers"` is out if the gradient of one and the same worker is dropped in more than half of the steps: its
#   share of the data would be lost.
#
# Target: right for any measurements. One point for each cluster, if its three rates (to a relative error of 1e-6) and
# the choice are right. The check tries this example first:

# %%
print(lab.target("choose"))


# %% answer="choose"
def choose(
    seconds: np.ndarray,
    all_reduce: float,
    server: float,
    backups: int,
    allowed: float,
) -> dict:
    """Gradients per second in three ways, and the best way that is allowed."""
    rates, choice = dict.fromkeys(("synchronous", "backup workers", "asynchronous")), None
    ### BEGIN SOLUTION
    steps, workers = seconds.shape
    needed = workers - backups
    ends = np.sort(seconds, axis=1)
    rates = {
        "synchronous": workers * steps / np.sum(ends[:, -1] + all_reduce),
        "backup workers": needed * steps / np.sum(ends[:, needed - 1] + all_reduce),
        "asynchronous": min(np.sum(steps / seconds.sum(axis=0)), 1 / server),
    }
    times_dropped = np.bincount(
        np.argsort(seconds, axis=1)[:, needed:].ravel(),
        minlength=workers,
    )
    allowed_ways = ["synchronous"]
    if times_dropped.max() <= steps / 2:
        allowed_ways.append("backup workers")
    if workers - 1 <= allowed:
        allowed_ways.append("asynchronous")
    choice = max(allowed_ways, key=rates.get)
    ### END SOLUTION
    return rates | {"choice": choice}


# %% [markdown]
# ## 5. A scheduler that gives slow workers less (optional)
#
# If one machine is always slower, a synchronous step need not wait for it: it can get fewer images. `shares` has the
# number of images that each worker had in the last step, `seconds` the time that it computed. The time of a worker is
# proportional to its images. Each worker had at least one.
#
# Give the shares of the next step, a list of whole numbers. Their sum stays the same. Each worker gets at least one
# image, so that its speed can be measured again. If the speeds stay as they were, no other such shares may let the last
# worker finish earlier than yours do; if several shares are that good, each of them is right.
#
# Target: right for any step. You cannot try all divisions: for 6 workers and 100 images there are 71 million. A point
# each for equal shares so far, unequal ones, and very slow workers. For example

# %%
print(lab.target("next_shares"))


# %% answer="next_shares"
def next_shares(shares: list[int], seconds: list[float]) -> list[int]:
    """The images of each worker in the next step."""
    ### BEGIN SOLUTION
    seconds_per_image = np.array(seconds) / np.array(shares)
    following = np.ones(len(shares), int)
    while following.sum() < sum(shares):
        first = np.argmin((following + 1) * seconds_per_image)  # to finish one more image
        following[first] += 1
    return following.tolist()
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - The staleness of every gradient, and a rule that bounds it. With a worker that is always slow, the rule brings back
#   the pace of the slowest; it helps against workers that are slow *by chance*.
# - A choice by numbers instead of a rule of thumb.
# - Shares with which a slow machine delays nobody. With unequal shares the gradient must weight every *image* equally:
#   the mean gradient of a worker counts in proportion to its share.
#
# **Going on.** [Chapter 09](../../notebooks/09_horovod.ipynb).
