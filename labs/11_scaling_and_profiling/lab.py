# %% [markdown]
# # Lab 11: audit a scaling table, then predict 64 ranks
#
# **Goal.** Recompute a published table from what its runs really processed, fit Amdahl's law and $\alpha$, $\beta$ to
# measured times, and say how long a step takes on 64 ranks before anybody rents them.
#
# **Time.** 45 minutes.
#
# **Before this.** [Chapter 11](../../notebooks/11_scaling_and_profiling.ipynb), sections 1 to 5, and of
# [chapter 06](../../notebooks/06_collectives_and_ring_all_reduce.ipynb) the cost of a ring.
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. The checks also try numbers that are not shown here. `make check LAB=11` does the same in a
# terminal. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import numpy as np

from distlab import labs

lab = labs.open("11")

# %% [markdown]
# ## 1. What a run processed
#
# A program takes `images // (batch * gpus)` steps per epoch; `batch` is that of each GPU. Images that do not fill a
# step on all GPUs are dropped. You get `seconds`, the time of an epoch on `gpus` GPUs, and `seconds_on_one`, the time
# of an epoch of the same program, with the same `batch`, on one GPU. Give
#
# - the **steps** of an epoch on all GPUs;
# - the **images** that they truly process, all GPUs together;
# - the **images per second**, all GPUs together;
# - the **efficiency**: images per second, divided by what `gpus` GPUs would reach if each were as fast as the one GPU.
#   A run that takes no step has no efficiency: `None`.
#
# A quarter of the points each. The target is for a published run on 8 V100. Its authors printed 489,929 images/s, and
# 71,149 on one GPU: 60,000 images divided by the time of an epoch. So both times are known:

# %%
print(lab.target("audit"))


# %% answer="audit"
def audit(
    images: int,
    batch: int,
    gpus: int,
    seconds: float,
    seconds_on_one: float,
) -> dict[str, float | None]:
    """The four numbers by name."""
    steps = processed = images_per_second = efficiency = None
    ### BEGIN SOLUTION
    steps = images // (batch * gpus)
    processed = steps * batch * gpus
    images_per_second = processed / seconds
    if steps:
        one_gpu = images // batch * batch / seconds_on_one
        efficiency = images_per_second / (gpus * one_gpu)
    ### END SOLUTION
    return {
        "steps": steps,
        "images": processed,
        "images per second": images_per_second,
        "efficiency": efficiency,
    }


# %% [markdown]
# ## 2. The published table
#
# A published table rarely gives its times. In this one, the images per second of **every** run, also of the run on one
# GPU, are 60,000 images divided by the time of its epoch. (For 8 A100 it has a claim, but no images per second.) The
# claims:

# %%
print(lab.given.published_table())

# %% [markdown]
# Write a function that computes the true efficiency from the claimed one, a fraction such as 0.88, without any time. It
# returns `None` if the run took no step; one step is enough for an efficiency.
#
# Target: right for the published claims and for others. Half of the points are for the runs that took steps, half for
# those that took none, if the others are right. When the answer is right, the check prints the corrected table. The
# claims are rounded, so the results are accurate to about one percentage point.


# %% answer="corrected"
def corrected(claimed: float, images: int, batch: int, gpus: int) -> float | None:
    """The true efficiency of a run whose claimed one takes every epoch for all `images`."""
    ### BEGIN SOLUTION
    steps = images // (batch * gpus)
    if steps == 0:
        return None
    share, share_of_one = steps * batch * gpus / images, images // batch * batch / images
    return claimed * share / share_of_one
    ### END SOLUTION


# %% [markdown]
# ## 3. Amdahl's law
#
# $T_p = s + w/p$: on $p$ ranks, the seconds $s$ stay the same, and the seconds $w$ are divided. You get two NumPy
# arrays, the numbers of `ranks` and the `seconds` measured on each; the first number need not be 1. Give $(s, w)$, in
# seconds.
#
# Measured times are noisy, and each is off by about the same *percentage*. So make the sum of the squared **relative**
# errors, $((s + w/p) / T_p - 1)^2$, as small as possible. `np.linalg.lstsq` finds the $x$ with the least $|Ax - b|^2$.
#
# Target: exact for exact times (half of the points); then both numbers within 5 % of the best fit for noisy times. For
# example

# %%
print(lab.target("amdahl"))


# %% answer="amdahl"
def amdahl(ranks: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """The serial and the parallel seconds."""
    ### BEGIN SOLUTION
    columns = np.stack([np.ones(len(ranks)), 1 / ranks], axis=1)
    # Each equation is divided by its time: what is squared is then a relative error.
    (serial, parallel), *_ = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(ranks)))
    return float(serial), float(parallel)
    ### END SOLUTION


# %% [markdown]
# ## 4. $\alpha$ and $\beta$
#
# A message of $m$ bytes takes $\alpha + m\beta$ seconds. On `ranks` ranks the **ring all-reduce** was measured for
# arrays of several `sizes`, in bytes of the whole array. Adding takes no time. Give $(\alpha, \beta)$: seconds per
# message, and seconds per byte that a rank sends.
#
# Again make the squared relative errors small: the sizes, and so the times, differ by powers of ten.
#
# Target: exact for exact times on 8, 2 and 6 ranks (a quarter of the points for each of the two numbers); both within
# 5 % of the best fit for noisy times (half of the points). For example

# %%
print(lab.target("alpha_beta"))


# %% answer="alpha_beta"
def alpha_beta(ranks: int, sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Seconds per message, and seconds per byte."""
    ### BEGIN SOLUTION
    steps = 2 * (ranks - 1)
    messages = np.full(len(sizes), float(steps))
    columns = np.stack([messages, steps / ranks * sizes], axis=1) / seconds[:, None]
    scale = columns.max(axis=0)  # the two unknowns differ by powers of ten
    found, *_ = np.linalg.lstsq(columns / scale, np.ones(len(sizes)))
    latency, seconds_per_byte = found / scale
    return float(latency), float(seconds_per_byte)
    ### END SOLUTION


# %% [markdown]
# ## 5. 64 ranks, strong and weak
#
# A step first computes, for a time that follows Amdahl's law, and then all-reduces `nbytes` of gradient on a ring;
# nothing overlaps. You get
#
# - `computing_ranks`, `computing_seconds`: the computing of a step, without the all-reduce, as in exercise 3. The
#   ranks divided one batch;
# - `reducing_ranks`, `sizes`, `reducing_seconds`: all-reduces on `reducing_ranks` ranks, as in exercise 4;
# - `is_weak`: `False` for **strong scaling**, in which the ranks divide this batch again. `True` for **weak scaling**,
#   in which *each* rank has as many images as the whole batch.
#
# How many seconds does a step take on `ranks` ranks, more than were measured? You may call your own functions.
#
# Target: exact for exact times (a quarter of the points for strong and for weak scaling), within 5 % of the prediction
# by the best fits for noisy times (half of the points). An example:

# %%
print(lab.target("predicted"))


# %% answer="predicted"
def predicted(
    ranks: int,
    is_weak: bool,
    computing_ranks: np.ndarray,
    computing_seconds: np.ndarray,
    reducing_ranks: int,
    sizes: np.ndarray,
    reducing_seconds: np.ndarray,
    nbytes: int,
) -> float:
    """Seconds of a step on `ranks` ranks."""
    ### BEGIN SOLUTION
    serial, parallel = amdahl(computing_ranks, computing_seconds)
    latency, seconds_per_byte = alpha_beta(reducing_ranks, sizes, reducing_seconds)
    computing = serial + (parallel if is_weak else parallel / ranks)
    return computing + 2 * (ranks - 1) * (latency + nbytes / ranks * seconds_per_byte)
    ### END SOLUTION


# %% [markdown]
# ## What you have now
#
# - Three questions about any scaling table: how many steps, how many images, compared with what?
# - A correction that needs no times, and a run that cannot be corrected because it trained on nothing.
# - Two fits that minimise relative errors, so that short times count as much as long ones.
# - A prediction that consists of three parts: what more ranks leave unchanged, what they divide, and what they make
#   longer. In weak scaling they divide nothing.
#
# **Going on.** In the example of exercise 5 halve $\alpha$, then $\beta$, then $s$: which of them is worth money?
# [Chapter 11](../../notebooks/11_scaling_and_profiling.ipynb), section 4, has times to try it on.
#
# **Sources.** openhackathons-org/gpubootcamp, Distributed Deep Learning, notebook 1. Amdahl (1967), AFIPS 30:483–485.
# Patarasuk and Yuan (2009), JPDC 69(2):117–124.
