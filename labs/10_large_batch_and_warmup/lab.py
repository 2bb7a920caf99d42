# %% [markdown]
# # Lab 10: eight ranks, and a rate that they survive
#
# **Goal.** Choose batch and learning rate for a number of ranks, write the warm-up that lets the training tolerate such
# a rate, and estimate from the gradients how large a batch is worthwhile.
#
# **Time.** 35 minutes.
#
# **Before this.** [Chapter 10](../../notebooks/10_large_batch_and_warmup.ipynb).
#
# **How it works.** Write each answer in the cell that says so, run it, and run the check below it: it says what is
# wrong, with a hint. `make check LAB=10` does the same in a terminal. Nothing is trained here, and TensorFlow is not
# needed. A full solution is next to this file, in [solution.ipynb](solution.ipynb).

# %%
import numpy as np

from distlab import labs

lab = labs.open("10")

# %% [markdown]
# ## 1. Batch and learning rate for eight ranks
#
# A model trains well on one device with the batch `known_batch` and the learning rate `known_rate`. Now it is trained
# on `hosts` machines with `ranks_per_host` ranks each. The memory of one device has room for a batch of up to `fits`
# images. Above `worthwhile` images a larger global batch saves hardly any steps, and the linear rule ends. Choose the
# largest batch that both limits allow, the same for every rank, and give
#
# - the **per-replica batch**;
# - the **global batch**: images behind one update;
# - the **steps per epoch**, when images that do not fill a global batch are dropped;
# - the **learning rate** by the linear rule (Goyal et al., section 2.1).
#
# Target: right whichever limit is reached first, on several hosts and on one. A quarter of the points for each number.
# For example

# %%
print(lab.target("plan"))


# %% answer="plan"
def plan(
    images: int,
    hosts: int,
    ranks_per_host: int,
    known_batch: int,
    known_rate: float,
    fits: int,
    worthwhile: int,
) -> dict[str, int | float]:
    """The four numbers by name."""
    per_replica_batch = global_batch = steps_per_epoch = learning_rate = None
    ### BEGIN SOLUTION
    ranks = hosts * ranks_per_host
    per_replica_batch = min(fits, worthwhile // ranks)
    global_batch = ranks * per_replica_batch
    steps_per_epoch = images // global_batch
    learning_rate = known_rate * global_batch / known_batch
    ### END SOLUTION
    return {
        "per-replica batch": per_replica_batch,
        "global batch": global_batch,
        "steps per epoch": steps_per_epoch,
        "learning rate": learning_rate,
    }


# %% [markdown]
# ## 2. Gradual warm-up
#
# At the start the gradient changes fast, and the linear rule does not hold. Gradual warm-up (Goyal et al., section 2.2)
# begins with a small rate and adds the same amount **in every step**, until the warm-up is over. Steps are counted from
# 0 over all epochs.
#
# - In step 0 the rate is `first_rate`.
# - In the step after `warm_up_epochs` epochs, and in all later ones, it is `full_rate`.
# - With `warm_up_epochs` 0 it is `full_rate` from step 0 on.
#
# Target: exact in every step, to a relative error of 1e-9. A quarter of the points each for step 0, the rest of its
# epoch, the later epochs of the warm-up, and the full rate, which includes the case without warm-up. For example

# %%
print(lab.target("warm_up"))


# %% answer="warm_up"
def warm_up(
    step: int,
    steps_per_epoch: int,
    warm_up_epochs: int,
    first_rate: float,
    full_rate: float,
) -> float:
    """The learning rate of a step."""
    ### BEGIN SOLUTION
    steps = warm_up_epochs * steps_per_epoch
    if step >= steps:
        return full_rate
    return first_rate + (full_rate - first_rate) * step / steps
    ### END SOLUTION


# %% [markdown]
# ## 3. The gradient noise scale
#
# Let $G$ be the true gradient and $\mathrm{tr}\,\Sigma$ the variance of one image's gradient, summed over all
# parameters. The gradient of $B$ images has $E|g_B|^2 = |G|^2 + \mathrm{tr}\,\Sigma / B$. Two batch sizes give two such
# equations, and data-parallel training gives both for free: the gradient of one rank is a mean over $b$ images, and the
# mean of all ranks' gradients, which the all-reduce gives, is a mean over the images of all ranks (McCandlish et al.,
# 2018, appendix A.1).

# %% [markdown]
# `gradients` has the shape (steps, ranks, parameters): the gradient of each rank before the all-reduce, a mean over its
# own `batch` images. The true gradient differs from step to step. Average the squares over all steps (and ranks), then
# solve. Give
#
# - the **squared gradient**, the estimate of $|G|^2$;
# - the **variance**, the estimate of $\mathrm{tr}\,\Sigma$;
# - the **noise scale** $\mathrm{tr}\,\Sigma / |G|^2$, in images; `float("inf")` if the first estimate is not above 0.
#
# Target: exact to a relative error of 1e-6. A third of the points each. For two steps, two ranks and three parameters:

# %%
print(lab.target("noise_scale"))


# %% answer="noise_scale"
def noise_scale(gradients: np.ndarray, batch: int) -> dict[str, float]:
    """The three estimates by name."""
    squared_gradient = variance = scale = None
    ### BEGIN SOLUTION
    small, large = batch, batch * gradients.shape[1]
    square_of_small = np.mean(np.sum(gradients**2, axis=2))
    square_of_large = np.mean(np.sum(gradients.mean(axis=1) ** 2, axis=1))
    squared_gradient = (large * square_of_large - small * square_of_small) / (large - small)
    variance = (square_of_small - square_of_large) / (1 / small - 1 / large)
    scale = variance / squared_gradient if squared_gradient > 0 else float("inf")
    ### END SOLUTION
    return {"squared gradient": squared_gradient, "variance": variance, "noise scale": scale}


# %% [markdown]
# ## What you have now
#
# - Four numbers to write down before you start a job on eight ranks. The learning rate follows the global batch, not
#   the number of ranks, and is where you start to search.
# - A warm-up that is exact at both ends. If it rose by epoch instead of by step, it would jump.
# - An estimate of the largest worthwhile batch, the `worthwhile` of exercise 1, from gradients that the all-reduce
#   handles anyway.
#
# **Going on.** In the course's folder `notebooks/programs/10_large_batch_and_warmup`, `train.py` trains with such a
# schedule; `noise_scale.py` measures the gradients of a real model. [Chapter 11](../../notebooks/11_scaling_and_profiling.ipynb) asks what the ranks cost.
#
# **Sources.** Goyal et al. (2017), arXiv:1706.02677. McCandlish, Kaplan, Amodei et al. (2018), arXiv:1812.06162.
