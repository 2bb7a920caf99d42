# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown] tags=["needs-horovod"]
# # 10 Large batches and warm-up
#
# **Goal.** Know what changes when ranks are added: how long a larger batch saves steps, which learning rate it needs,
# how to start such a training, and how the gradients show its limit.
#
# **Time.** 35 minutes to read, about a minute to run.
#
# **Before this.** [09 Horovod](09_horovod.ipynb) and [02 single-device baseline](02_single_device_baseline.ipynb).
#
# **Questions.**
# - Eight ranks: what are batch, steps per epoch and learning rate now?
# - Does twice the batch need half the steps, and twice the rate?
# - Why can training at 8 times the rate stay at chance, and why does warm-up help?
# - Which schedule, optimizer and clipping do people use?
# - What does batch normalisation see on eight ranks?
# - How large is the largest useful batch?
#
# **Hardware.** Two cores, shared by eight Horovod ranks.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 8,000 training images at most are used
epochs = 6  # of each run in sections 4 and 5, at least 5
workers = 8  # not used in this chapter: its experiment is about eight Horovod ranks

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

from distlab import checks, data, draw, large_batch, launch
from distlab import models, programs, quizzes, recorded_results
from distlab.large_batch import FourNumbers, FourNumbersPanel

launch.require_horovod()
draw.apply_style()
PROGRAMS = Path("programs/10_large_batch_and_warmup")
sys.path.insert(0, str(PROGRAMS))  # the programs of this chapter
import best_rates
import five_seeds
import one_process
import pictures

RANKS, run_epochs = 8, max(epochs, 5)
schedules = large_batch.schedules
quiet = {"start_seconds": 600, "echo": False, "environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}}
print(data.describe(dataset))

# %% [markdown]
# ## 1. More ranks, a larger batch
#
# Each rank that you add brings its own batch, so one update sees more images, and the learning rate must be chosen
# again. Sections 3 and 5 explain this whole program:

# %%
programs.show(PROGRAMS / "minimal.py")

# %% tags=["varies"]
print("$ horovodrun -np 2 --gloo python minimal.py")
run = launch.horovodrun(PROGRAMS / "minimal.py", ranks=2, **quiet)
print(run.output["rank 0"].splitlines()[-1])

# %% [markdown] tags=["slide-predict"]
# Four numbers change together:
#
# | number | what it is |
# |---|---|
# | **per-replica batch** $b$ | images that one rank takes in a step |
# | **global batch** $B = R\,b$ | images behind one update, of all $R$ ranks together |
# | **steps per epoch** $n / B$ | updates after which each of $n$ images was used once |
# | **learning rate** | the factor that multiplies the gradient in an update |
#
# Either the per-replica batch stays (*weak scaling*) or the global batch does (*strong scaling*).
#
# **Predict.** One device was right with a batch of 100 and a rate of 0.01, for 60,000 images. What are the four numbers
# of 4 replicas, for weak and for strong scaling, if the rate grows in proportion to the global batch?

# %% tags=["varies", "slide-output"]
print(FourNumbers.header())
for replicas in (1, 2, 4, 8, 64):
    print(FourNumbers(60_000, replicas, 100, known_rate=0.01, known_batch=100).row())
print("strong scaling:")
for replicas in (2, 4):
    print(FourNumbers.of_global_batch(60_000, replicas, 100, 0.01, 100).row())
panel = FourNumbersPanel(images=60_000, known_rate=0.01, known_batch=100)
draw.show_widget(panel, "[Menus for replicas, batch and rule; they move in JupyterLab.]")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# With strong scaling nothing changes for the optimizer.
#
# ## 2. Twice the batch, half the steps?
#
# With weak scaling the larger batch estimates the true gradient better. Does it save steps? We count the steps until
# the loss of chapter 02's network, without dropout, is below 0.3 on 400 training images of digits, with plain SGD and
# five seeds. **Each batch size gets the best of 15 learning rates**, $\sqrt 2$ apart: one rate for all would measure
# the rate.
#
# **Predict.** By what are the steps divided from batch 2 to 4, from 16 to 32, and from 256 to 512?

# %%
record = recorded_results.read("best_rates", PROGRAMS / "recorded")
print(record.source())
optimizers = record.result["optimizers"]
best = {name: best_rates.best_of(measured) for name, measured in optimizers.items()}
print("batch          steps   divided by   images   best rate   Adam's steps")
before = None
for batch, each in best["sgd"].items():
    divided = f"{before / each.steps:.2f}" if before else ""
    count, adam = f"{each.steps:.0f} ± {each.deviation:.0f}", best["adam"][batch].steps
    row = f"{divided:>12} {batch * each.steps:>8,.0f} {each.rate:>11.3f}"
    print(f"{batch:>5} {count:>14} {row} {adam:>14.0f}")
    before = each.steps

# %% jupyter={"source_hidden": true} tags=["slide-output"]
steps_of = {batch: each.steps for batch, each in best["sgd"].items()}
tradeoff = large_batch.noise_scale.fit_tradeoff(list(steps_of), list(steps_of.values()))
draw.show(*pictures.steps(best["sgd"], tradeoff))
least = f"{tradeoff.least_steps:.0f} steps and {tradeoff.least_samples:.0f} images"
print(f"fit: at least {least}; critical batch size {tradeoff.critical_batch:.0f}")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-formula"]
# By about 1.5, by 1.3, and hardly at all. Adam's steps and the fit show the trend: the
# smaller the batch, the closer twice the batch comes to half the steps, **perfect scaling**. Large batches save next to
# nothing.
#
# McCandlish and others (2018) give the curve of the steps $S$ and images $E$ over the batch $B$, which bends at the
# **critical batch size** $B_{\mathrm{crit}}$:
#
# $$S = S_{\min}\,(1 + B_{\mathrm{crit}} / B), \qquad E = B\,S = E_{\min}\,(1 + B / B_{\mathrm{crit}})$$
#
# At the bend training takes twice the least number of steps, $2\,S_{\min}$, *and* twice the least number of images,
# $2\,E_{\min}$. Well below it more ranks save time nearly for free.
#
# Measure batch 32 yourself (*given up*: over twice the least steps), then a step's time.

# %% tags=["varies"]
some_rates = np.array([0.08, 0.113, 0.16, 0.226, 0.32])
counted = best_rates.steps_to_target("sgd", some_rates, batch=32, dataset=dataset)
for rate, of_seeds in zip(some_rates, counted.T, strict=True):
    mean = f"{of_seeds.mean():.0f} steps" if np.isfinite(of_seeds).all() else "given up"
    print(f"rate {rate:.3f}: {mean}")

# %% tags=["varies"]
sgd = tf.keras.optimizers.SGD()
mlp = one_process.OneProcess(dataset, lambda: models.mlp(dropout=0.0), sgd, images=8_000)
print("batch   ms per step   images/s   seconds to the target")
for batch, count in steps_of.items():
    seconds = mlp.seconds_per_step(batch)
    row = f"{1e3 * seconds:>11.2f} {batch / seconds:>12,.0f} {count * seconds:>15.2f}"
    print(f"{batch:>5} {row}")

# %% [markdown] tags=["slide-quiz"]
# Images per second rise with the batch, because each step has a fixed cost. But above the bend they hardly bring the
# target any sooner (last column).
#
# **Question.** A colleague doubles the ranks at a global batch far above the bend, weak scaling, and reports twice the
# images per second. What did the training gain?
#
# 1. Half the time to the same loss.
# 2. Nothing; it only costs more.
# 3. A better model.
#
# <details>
# <summary>Answer</summary>
#
# 1. That needs half the steps, and above the bend their number stays.
# 2. **Right.** Steps per second and steps to the target are as before; images per second count work, not progress.
# 3. The same number of nearly exact gradients gives nearly the same model.
# </details>

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 3. Which learning rate?
#
# Compare $k$ small steps with rate $\eta$ to one step with all their images and rate $\eta'$. With $g_j$ for the mean
# gradient of batch $j$ (Goyal and others, 2017):
#
# $$w_k = w_0 - \eta \sum_{j<k} g_j(w_j), \qquad w' = w_0 - \eta'\,\frac1k \sum_{j<k} g_j(w_0)$$
#
# **If** $g_j(w_j) \approx g_j(w_0)$, the weights are the same for $\eta' = k\,\eta$: the **linear rule**. The
# **square-root rule** $\eta' = \sqrt k\,\eta$ (Krizhevsky, 2014) keeps the *noise* of a step: a mean over $k$ times the
# images has $1/\sqrt k$ of it. Malladi and others (2022) derive it for Adam.
#
# **Predict.** The batch grows from 2 to 512, 256-fold. How many times larger is the best rate, for SGD and for Adam?

# %% tags=["slide-output"]
draw.show(*pictures.rates(best, tradeoff.critical_batch))


def leaves_the_bars(of_batches, exponent):
    """The first batch at which the rule, begun at batch 2, gives a rate outside the bars."""
    for batch, each in of_batches.items():
        rate = of_batches[2].rate * (batch / 2) ** exponent
        if rate < 0.99 * each.good_rates[0] or rate > 1.01 * each.good_rates[-1]:
            break
    return batch


print("   best rate at 512 / at 2   linear rule ends at   square-root rule ends at   bend")
for name, of_batches in best.items():
    ends = [leaves_the_bars(of_batches, exponent) for exponent in (1, 0.5)]
    grown = of_batches[512].rate / of_batches[2].rate
    steps = [each.steps for each in of_batches.values()]
    bend = large_batch.noise_scale.fit_tradeoff(list(of_batches), steps).critical_batch
    print(f"{name:>4} {grown:>17.1f} times {ends[0]:>15} {ends[1]:>26} {bend:>6.0f}")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-formula"]
# Six times for SGD, twice for Adam, not 256. **The linear rule ends before the bend of the steps, the
# square-root rule after it**, for SGD and for Adam. A rule *ends* where it first leaves the bars (at most 15 % more
# steps than the best). The bars are rough.
#
# McCandlish and others derive a rate inversely proportional to the steps, the solid line:
#
# $$\eta(B) = \frac{\eta_{\max}}{1 + B_{\mathrm{crit}} / B}$$
#
# It is linear in $B$ far below the bend and constant far above it. Only $\eta_{\max}$ is fitted here; the bend comes
# from the steps. So a rule is a start for batches *below the bend*: search around it.
#
# Why does the linear rule end? How far does the large step end from the $k$ small ones of 16 images each, relative to
# the way they went?

# %% tags=["varies"]
many = (2, 4, 8, 16, 32)
print("small steps k     " + "".join(f"{k:>7}" for k in many))
for rate in (0.0025, 0.01, 0.04):
    print(f"rate {rate:<6}       " + "".join(f"{mlp.distance(k, rate):>7.0%}" for k in many))

# %% [markdown]
# Roughly, only $k\,\eta$ matters: it says how far the weights move. When it is large, the small steps would have turned
# on the way. The rule ends first where the gradient changes fastest, in deep networks at the beginning (Goyal and
# others). So begin with the small rate, and increase it.
#
# ## 4. The tutorial's experiment: eight ranks
#
# Argonne's Horovod tutorial trains a CNN on MNIST with Adam on 8 processes, with a batch of 512 each, so 14 steps in an
# epoch, and a rate of 0.01 × 8 = 0.08. In its log, accuracy without warm-up stays at 0.11, the loss at 2.30 = ln 10;
# with three warm-up epochs it reaches 0.96. `train.py` does it with a smaller CNN, smaller batches and as many steps.
# `grouped_allreduce` averages a list of tensors in one call:

# %%
programs.show(PROGRAMS / "train.py", "loss_and_gradients")

# %% [markdown] tags=["slide-predict"]
# Which images are in a step depends on step and seed alone, so one process can do the same training. Afterwards the
# same ranks do what sections 6 and 7 need.
#
# **Predict.** Of five seeds without warm-up, how many fail here? Can a run recover after failing?

# %%
used = min(8_000, len(data.load(dataset).train.images))
per_replica = used // 14 // RANKS  # 14 steps per epoch, as in the tutorial
arguments = ["--dataset", dataset, "--images", used, "--epochs", run_epochs]
arguments += ["--per-replica-batch", per_replica]
print(f"$ horovodrun -np {RANKS} --gloo python train.py", *arguments)
how = {"ranks": RANKS, "result": True, **quiet}
trained = launch.horovodrun(PROGRAMS / "train.py", *arguments, **how).result
print(FourNumbers.header())
print(FourNumbers(used, RANKS, per_replica, 0.01, per_replica).row())

# %% tags=["varies", "slide-output"]
# For comparison: one process with one rank's batch and rate, for at most four epochs.
cnn = one_process.OneProcess(dataset, lambda: models.cnn(8), images=used)
unscaled = schedules.without_warm_up(0.01)
small = cnn.run(unscaled, per_replica, min(run_epochs, 4), seed=0)
runs = {
    "8 × batch and rate, no warm-up": trained["runs"]["none"],
    "the same, gradual warm-up": trained["runs"]["gradual"],
    "one process, small batch and rate": small,
}
draw.show(*pictures.three_runs(runs))
for name, run in runs.items():
    print(f"{name}: accuracy {run['accuracy'][-1]:.2f}, loss {run['loss'][-1]:.2f} at the end")

# %% [markdown] tags=["slide-takeaway"]
# Without warm-up the run usually ends at chance. (On two cores eight ranks take longer than one process.)
#
# **Do eight ranks equal one process?** Before the runs the ranks took 20 steps of plain SGD. Here one process takes
# the same steps:

# %%
sgd = tf.keras.optimizers.SGD()
proof = one_process.OneProcess(dataset, lambda: models.cnn(8), sgd, images=used)
proof.begin(seed=0)
start = proof.model.get_weights()
proof.steps(0, 20, trained["global_batch"], 0, schedules.without_warm_up(0.05))
weights = proof.model.get_weights()
print(f"moved by up to {checks.largest_difference(start, weights):.2f};", end=" ")
checks.assert_equal_weights([np.array(each) for each in trained["weights"]], weights)

# %% [markdown]
# **Is one run enough?** No: it may be lucky. Here are five seeds with each schedule, and the same on 8,000 images of
# MNIST. *Failed*: the test accuracy ends below 0.2.

# %% tags=["varies", "slide-output"]
batch = trained["global_batch"]
curves = {name: cnn.accuracies(name, batch, run_epochs) for name in ("none", "gradual")}
mnist, source = five_seeds.measured_or_recorded()
for where, of_schedules in ((f"{dataset}:", curves), (f"MNIST, {source}:", mnist)):
    print(where)
    for name, accuracies in of_schedules.items():
        ends = np.array(accuracies)[:, -1]
        failed = np.sum(ends < one_process.AT_CHANCE)
        ends = " ".join(f"{end:.3f}" for end in ends)
        print(f"{name:>9}: {failed} of {len(accuracies)} failed; {ends}")
draw.show(*pictures.seeds({dataset: curves, "MNIST": mnist}))

# %% [markdown]
# Why does a failed training never recover? Adam's first steps have about the length of the learning rate in *every*
# weight whose gradient is not zero. Steps of 0.08, larger than most first weights, push units of a ReLU layer, or
# filters of a convolution, below zero for all images. The gradient of such a **dead unit** is zero, so it stops
# learning. Count them after two epochs:

# %% tags=["varies"]
outputs = [cnn.model.layers[place].output for place in (1, -2)]  # convolution, hidden units
hidden = tf.keras.Model(cnn.model.inputs, outputs)
for name in ("none", "gradual"):
    cnn.begin(seed=0)
    rate_at = schedules.by_name(name, 0.01, RANKS, warm_up_epochs=3)
    cnn.steps(0, 2 * trained["steps_per_epoch"], batch, 0, rate_at)
    filters, units = (np.reshape(x, (-1, x.shape[-1])) for x in hidden(cnn.test_images))
    spread = np.ptp(cnn.logits(cnn.test_images).numpy(), axis=0).max()
    print(f"{name}: {np.sum(filters.max(axis=0) <= 0)} of 8 filters and", end=" ")
    print(f"{np.sum(units.max(axis=0) <= 0)} of 64 hidden units are dead;", end=" ")
    print(f"a logit differs between images by up to {spread:.2f}")

# %% [markdown] tags=["slide-quiz"]
# Warm-up kills units, too; the others learn. Once all filters of the convolution are dead, the layers behind it get the
# same zeros for every image. What still learns acts as a bias: it finds the frequencies of the classes, a loss of ln
# 10.
#
# **Question.** The loss stays at 2.30 from the first epoch on. What do you try first?
#
# 1. More epochs.
# 2. Restart from new initial weights, with warm-up or a smaller rate.
# 3. A warm-up that starts now.
#
# <details>
# <summary>Answer</summary>
#
# 1. Dead units have no gradient; no number of epochs wakes them.
# 2. **Right.** These weights cannot recover.
# 3. It comes too late: the first steps did the harm.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 5. What people use
#
# ![Four learning rates over ten epochs: rising, with a jump, at once, and falling](../figures/10_warm_up_schedule.svg)
#
# **Constant warm-up** keeps the small rate for some epochs and then jumps. **Gradual warm-up** adds the same amount in
# every step. Today the rate then usually falls along a cosine; Keras has both in one schedule:
#
# ```python
# schedule = tf.keras.optimizers.schedules.CosineDecay(
#     rate, decay_steps, warmup_target=scaled_rate, warmup_steps=warmup_steps)
# ```
#
# `decay_steps` counts the steps *after* the warm-up. Both numbers are steps, not epochs: with more ranks an epoch has
# fewer. Horovod's older `LearningRateWarmupCallback(initial_lr=scaled_rate, warmup_epochs=3)` only warms up.

# %% [markdown]
# **AdamW** is the usual optimizer of transformers: Adam, with a weight decay that is not divided by Adam's denominator.
#
# **Batch ramp-up** starts with a small batch and lets it grow, as for GPT-3.
#
# **Clipping by the global norm** multiplies the gradients of all variables by one factor, so their common direction
# stays. In Keras it is `global_clipnorm`; `clipnorm` clips each variable's gradient alone, which turns it. Clip *after*
# the all-reduce: in `minimal.py` the wrapped optimizer averages in `compute_gradients`, and Keras clips later, in
# `apply_gradients`. With a tape, clip what `DistributedGradientTape` returns. Here each rank clips *before* the
# all-reduce. The limit is the norm of the global gradient, so nothing should change:

# %%
images, labels = data.load(dataset).train
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
mlp.begin(seed=0)
of_ranks = []
for rank in range(RANKS):
    own = slice(12 * rank, 12 * (rank + 1))
    with tf.GradientTape() as tape:
        value = loss(labels[own], mlp.model(images[own]))
    of_ranks.append(tape.gradient(value, mlp.model.trainable_variables))


def mean(gradients):
    return [tf.add_n(variable) / RANKS for variable in zip(*gradients, strict=True)]


norm = tf.linalg.global_norm
limit = norm(mean(of_ranks))
too_early = mean([tf.clip_by_global_norm(gradient, limit)[0] for gradient in of_ranks])
print("norms of the ranks' gradients:", *(f"{norm(gradient):.2f}" for gradient in of_ranks))
print(f"norm of their mean, which is the limit: {limit:.2f}")
print(f"norm of the mean of clipped gradients: {norm(too_early):.2f}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# Each rank's gradient is noisier, so it is longer than the mean. Clipping it first shortens a mean that needed no
# clipping.
#
# **Constant or gradual?** Goyal and others compared them: ResNet-50, 90 epochs, SGD with momentum, batch 8,192, the
# rate 32 times that of batch 256. Next to their errors are ours, for the small CNN with Adam and 8 times the batch.
# *None*, *constant* and *gradual* are the linear rule with that warm-up; *base* keeps the small rate, *square root*
# takes $\sqrt k$ times it (theirs after gradual warm-up, ours without).
#
# **Predict.** Which of their lines will not repeat here?

# %% tags=["varies", "slide-output"]
for name in ("constant", "base", "square root"):
    curves[name] = cnn.accuracies(name, batch, run_epochs, seeds=3)
curves["small batch"] = np.array([small["accuracy"]])
goyal = {"small batch": (23.60, 0.12), "none": (24.84, 0.37), "constant": (25.88, 0.56)}
goyal |= {"gradual": (23.74, 0.09), "base": (41.67, 0.10), "square root": (26.22, 0.03)}
print("  error in %    Goyal et al.             here   seeds")
for name, (error, deviation) in goyal.items():
    errors = 100 * (1 - curves[name][:, -1])
    spread = f" ± {errors.std(ddof=1):4.1f}" if len(errors) > 1 else " " * 7
    ours = f"{errors.mean():.1f}{spread}"
    print(f"{name:>12}   {error:.2f} ± {deviation:.2f}   {ours:>14} {len(errors):>7}")
print(f"(small batch here: {len(small['accuracy'])} epochs, the others {run_epochs})")

# %% [markdown] tags=["slide-takeaway"]
# *Base* and *constant* do not repeat. *Base* is their worst, ours is usually *none*. *Constant* is worse than *none*
# there, and repairs it here. Five and three seeds are too few
# to rank our two warm-ups. Where the scaled rate gains nothing over *base*, the batch is above the bend, where the best
# rate hardly grows. So **tune the rate for your optimizer and data**.
#
# **Does a large batch generalise worse?** Keskar and others (2017) found a lower test accuracy at the same training
# loss, the *generalisation gap*. Shallue and others (2019) tuned many networks at many batch sizes and found no
# evidence for it.

# %% [markdown]
# **LARS** (You and others, 2017) and **LAMB** (2020). Where gradients are large compared with the weights, a scaled-up
# rate destroys those weights. So both make each layer's step proportional to the norm of its weights. Tuned with equal
# care, Nesterov momentum and Adam do as well with the same large batches (Nado and others, 2021): tune these first.

# %% [markdown]
# ## 6. Batch normalisation on eight ranks
#
# Batch normalisation subtracts the batch's mean and divides by its deviation. Which batch? In Horovod, as in most
# frameworks, **each rank's own**. `hvd.SyncBatchNormalization` uses the global batch. Means can be averaged over ranks,
# variances cannot, so our own layer in `batch_norm.py` averages two means, of $x$ and of $x^2$:
#
# ```python
# means = hvd.allreduce(tf.stack([tf.reduce_mean(x, axis=0), tf.reduce_mean(tf.square(x), axis=0)]))
# mean, variance = means[0], means[1] - tf.square(means[0])
# ```
#
# **Predict.** Four images on each rank. How much do the ranks' means differ, and does the training notice?

# %%
normalised, layers = trained["batch_norm"], tf.keras.layers
tf.keras.utils.set_random_seed(0)
normalise = layers.BatchNormalization(momentum=0.9, epsilon=1e-3)
inner = [layers.Dense(16, use_bias=False), normalise, layers.ReLU()]
single = tf.keras.Sequential([layers.Flatten(), *inner, layers.Dense(10)])
single.compile(tf.keras.optimizers.SGD(0.1), loss)
for step in range(20):
    size = len(images), normalised["global_batch"]
    chosen = large_batch.global_batches.numbers(step, *size, seed=0)
    single.train_on_batch(images[chosen], labels[chosen])
expected = [variable.numpy() for variable in single.trainable_variables]
print("                  means differ between ranks   weights differ from one process")
for way in ("per rank", "synchronised", "Horovod's layer"):
    apart = np.ptp(np.array(normalised[way]["first_means"]), axis=0).max()
    weights = [np.array(values) for values in normalised[way]["weights"]]
    print(f"{way:16} {apart:>27.2g} {checks.largest_difference(weights, expected):>33.1g}")
variance = (normalise.moving_variance - 0.9**20) / (1 - 0.9**20)  # the average began at 1
print(f"standard deviation of a unit (mean): {np.sqrt(variance).mean():.2f}")

# %% [markdown]
# With four images each, the means of two ranks can differ by more than a unit's standard deviation. Synchronised, by
# either layer, eight ranks equal one process with Keras's layer on the global batch. With statistics per rank the
# training is different but valid. The moving averages also differ between ranks, and rank 0's checkpoint holds only its
# own. Rule of thumb: with about 32 images per rank keep the statistics per rank, as Goyal and others do; with only a
# few, synchronise them.

# %% [markdown]
# ## 7. The gradient noise scale
#
# Section 2 found the bend by many trainings. Can one training tell? Let $G$ be the true gradient and $\Sigma$ the
# covariance of a single image's gradient. A mean over $B$ images has
#
# $$\mathbb{E}\,|g_B|^2 = |G|^2 + \operatorname{tr}\Sigma / B .$$
#
# Noise and signal are equal at the **gradient noise scale** $B_{\mathrm{simple}} = \operatorname{tr}\Sigma / |G|^2$.
# Two batch sizes give two equations for the two unknowns, and data-parallel training has both in every step: each
# rank's own gradient before the all-reduce, and their mean after it.

# %%
programs.show(PROGRAMS / "noise_scale.py", "step")

# %% [markdown]
# With $b$ images on a rank, the solution is $|G|^2 = (B\,|g_B|^2 - b\,|g_b|^2)/(B-b)$ and
# $\operatorname{tr}\Sigma = (|g_b|^2 - |g_B|^2)/(1/b - 1/B)$. Each estimate is unbiased and very noisy: average both
# over steps first, divide after. The ranks trained section 2's network with 8 images each.

# %% tags=["varies", "slide-output"]
noise = trained["noise_scale"]
sizes, middle = (noise["small_batch"], noise["big_batch"]), len(noise["losses"]) // 2
for part in (slice(middle), slice(middle, None)):
    squares = noise["small_squares"][part], noise["big_squares"][part]
    scale = large_batch.noise_scale.estimate(*sizes, *squares)
    end = np.mean(noise["losses"][part][-5:])
    print(f"{middle} steps, to a loss of {end:.2f}: noise scale {scale.batch:.0f} images")
print(f"bend of section 2, for a loss of 0.3 on digits: {tradeoff.critical_batch:.0f} images")

# %% [markdown] tags=["slide-takeaway"]
# Expect agreement only in the order of magnitude: the theory leaves out the curvature, and both numbers depend on the
# loss at which one stops. Usually the gradient shrinks faster than its noise, so the useful batch **grows** during a
# training, and a batch ramp-up follows it. McCandlish and others give about 900 as MNIST's noise scale and about 200 as
# its critical batch size, both averaged over a training to a lower loss.
#
# So the plan for more ranks: measure the noise scale, try a few batch sizes around it, and beyond the bend spend
# devices on model parallelism instead ([chapter 12](12_model_parallelism.ipynb)).
#
# **Question.** With two ranks instead of eight, the estimate of $|G|^2$ jumps about and is sometimes negative. Is
# it wrong?
#
# 1. Yes, a squared norm cannot be negative.
# 2. Yes, it is biased for few ranks.
# 3. No: the two batch sizes are too close.
#
# <details>
# <summary>Answer</summary>
#
# 1. The estimate is a difference of two noisy means; only its expectation cannot be negative.
# 2. No: both estimates are unbiased for any two sizes.
# 3. **Right.** Their difference drowns in noise. Average over more steps.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("10")

# %% [markdown]
# ## Recap
#
# - Far below the critical batch size twice the batch needs half the steps, far above it as many.
# - The best rate bends where the steps do; the linear rule ends before that.
# - At 8 times Adam's rate training often ends at chance; gradual warm-up usually prevents that.
# - People use warm-up, cosine decay, and clipping by the global norm after the all-reduce.
# - Eight ranks equal one process, with batch normalisation only if it is synchronised.
# - The ranks' gradients tell the order of magnitude of the largest useful batch.
#
# **Next.** [Lab 10](../labs/10_large_batch_and_warmup/lab.ipynb),
# [11 scaling and profiling](11_scaling_and_profiling.ipynb).
#
# **Sources.**
# - Rates: [Goyal et al. (2017)](https://arxiv.org/abs/1706.02677), [Krizhevsky
#   (2014)](https://arxiv.org/abs/1404.5997), [Malladi et al. (2022)](https://arxiv.org/abs/2205.10287).
# - Bend and noise scale: [McCandlish et al. (2018)](https://arxiv.org/abs/1812.06162). Ramp-up: [Brown et al.
#   (2020)](https://arxiv.org/abs/2005.14165), appendix B.
# - Generalisation: [Keskar et al. (2017)](https://arxiv.org/abs/1609.04836), [Shallue et al.
#   (2019)](https://arxiv.org/abs/1811.03600).
# - [LARS](https://arxiv.org/abs/1708.03888), [LAMB](https://arxiv.org/abs/1904.00962), [Nado et al.
#   (2021)](https://arxiv.org/abs/2102.06356).
# - Argonne, [Horovod
#   tutorial](https://github.com/argonne-lcf/ALCF_Hands_on_HPC_Workshop/tree/5b4beb1902b80dfe10a6a6b7a62e768b2814782d/learningFrameworks/distributedDeepLearning).
