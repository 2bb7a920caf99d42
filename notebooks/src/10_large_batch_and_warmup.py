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
# how to start such a training, and how the gradients show when a larger batch stops paying off.
#
# **Time.** 40 minutes to read, about a minute to run.
#
# **Before this.** [09 Horovod](09_horovod.ipynb) for ranks and the all-reduce of gradients;
# [02 single-device baseline](02_single_device_baseline.ipynb) for batches and steps.
#
# **Questions.**
# - Eight ranks: what are batch, steps per epoch and learning rate now?
# - Does twice the batch need half the steps, and twice the learning rate?
# - Why can training at 8 times the learning rate stay at chance, and why does warm-up help?
# - Which schedule, which optimizer and which clipping do people use?
# - What does batch normalisation see on eight ranks?
# - What is the largest useful batch, and can it be known before it is tried?
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

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, data, draw, large_batch, launch, models, programs, quizzes, recorded_results
from distlab.large_batch import FourNumbers, FourNumbersPanel

launch.require_horovod()
draw.apply_style()
PROGRAMS = Path("programs/10_large_batch_and_warmup")
RANKS, run_epochs = 8, max(epochs, 5)
sys.path.insert(0, str(PROGRAMS))  # the programs of this chapter
import best_rates
import five_seeds
import one_process

quiet = {"start_seconds": 600, "echo": False, "environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}}
print(data.describe(dataset))

# %% [markdown]
# ## 1. More ranks, a larger batch
#
# Each rank that you add brings its own batch, so one update sees more images. The learning rate, its schedule and the
# gradient's noise all depend on that number. This is a whole program with what people use today: a scaled rate, warm-up
# and decay, AdamW, and clipping. It needs Horovod, TensorFlow, tf-keras and scikit-learn.

# %% tags=["slide-code"]
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# The line to type is `horovodrun -np 2 --gloo python minimal.py`; here `launch` runs it:

# %% tags=["varies"]
run = launch.horovodrun(PROGRAMS / "minimal.py", ranks=2, **quiet)
print(run.output["rank 0"].splitlines()[-1])

# %% [markdown] tags=["slide-table", "slide-predict"]
# The sections below explain its lines. Four numbers change together:
#
# | number | what it is |
# |---|---|
# | **per-replica batch** $b$ | images that one rank takes in a step |
# | **global batch** $B = R\,b$ | images behind one update, of all $R$ ranks together |
# | **steps per epoch** $n / B$ | updates after which each of $n$ images was used once |
# | **learning rate** | the factor that multiplies the gradient in an update |
#
# Either the per-replica batch stays (*weak scaling*, each rank remains busy) or the global batch does (*strong
# scaling*, the same training in smaller parts).
#
# **Predict.** One device was right with a batch of 100 and a rate of 0.01, for 60,000 images. What are the four numbers
# of 8 replicas, for weak and for strong scaling, if the rate grows in proportion to the global batch?

# %% tags=["slide-output"]
print(FourNumbers.header())
for replicas in (1, 2, 8, 64):
    print(FourNumbers(60_000, replicas, 100, known_rate=0.01, known_batch=100).row())
print("strong scaling:")
for replicas in (1, 2, 4):
    print(FourNumbers.of_global_batch(60_000, replicas, 100, 0.01, 100).row())

# %% jupyter={"source_hidden": true} tags=["varies"]
panel = FourNumbersPanel(images=60_000, known_rate=0.01, known_batch=100)
draw.show_widget(panel, "[Menus for replicas, batch and rule, and the four numbers; they move in JupyterLab.]")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# With strong scaling nothing changes for the optimizer. Weak scaling gives fewer but more exact updates per epoch; is
# the training as good?
#
# ## 2. Twice the batch, half the steps?
#
# The mean over a larger batch is a better estimate of the true gradient. Does it save steps? We train the network of
# chapter 02 with plain SGD and count the steps until the training loss is below 0.3. **Each batch size gets the best of
# 15 learning rates**, $\sqrt 2$ apart, with five seeds: one rate for all would measure the rate, not the batch.
#
# That is too long for a notebook, so `best_rates.py` has recorded it for digits.
#
# **Predict.** By what are the steps divided from batch 2 to 4, from 16 to 32, and from 256 to 512?

# %% tags=["slide-output"]
record = recorded_results.read("best_rates", PROGRAMS / "recorded")
print(record.source())
best = {name: best_rates.best_of(measured) for name, measured in record.result["optimizers"].items()}
batches = np.array(list(best["sgd"]))
steps = np.array([each.steps for each in best["sgd"].values()])
tradeoff = large_batch.noise_scale.fit_tradeoff(batches, steps)
print("\nbatch          steps   divided by   images   best rate")
for place, (batch, each) in enumerate(best["sgd"].items()):
    divided = f"{steps[place - 1] / steps[place]:>10.2f}" if place else " " * 10
    count = f"{each.steps:>7.0f} ± {each.deviation:>3.0f}"
    print(f"{batch:>5} {count:>14} {divided} {batch * each.steps:>10,.0f} {each.rate:>11.3g}")
print(f"fit: at least {tradeoff.least_steps:.0f} steps and {tradeoff.least_samples:.0f} images; "
      f"critical batch size {tradeoff.critical_batch:.0f}")  # fmt: skip

# %% jupyter={"source_hidden": true} tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3.2))
curve = np.geomspace(batches[0], batches[-1])
spread = [each.deviation for each in best["sgd"].values()]
axes.errorbar(batches, steps, spread, linestyle="", capsize=3, color=draw.RANK_COLOURS[0], label="measured")
axes.loglog(curve, tradeoff.steps(curve), marker="", linestyle="-", color=draw.RANK_COLOURS[0], label="fit")
axes.loglog(curve, tradeoff.least_samples / curve, marker="", linestyle="--", color="grey", label="perfect scaling")
axes.axvline(tradeoff.critical_batch, linestyle=":", marker="", color=draw.RANK_COLOURS[3], label="critical batch size")
axes.set(xlabel="batch size", ylabel="steps to the target", xticks=batches, xticklabels=batches)
axes.set_ylim(0.7 * min(steps), 1.4 * max(steps))
axes.minorticks_off()
axes.set_yticks(ticks := [25, 50, 100, 200, 400], ticks)
axes.legend()
draw.show(
    figure,
    "Steps to the target against batch size, both logarithmic: first along the line of perfect scaling, then flat.",
)

# %% [markdown] tags=["slide-takeaway", "slide-formula"]
# With tiny batches twice the batch saves nearly half of the steps: **perfect scaling**. With large ones it saves next to
# nothing, because the gradient is already nearly exact. McCandlish and others (2018) give the curve:
#
# $$S = S_{\min}\,(1 + B_{\mathrm{crit}} / B), \qquad E = B\,S = E_{\min}\,(1 + B / B_{\mathrm{crit}})$$
#
# At the **critical batch size** $B_{\mathrm{crit}}$, the bend, one pays twice the least number of steps $S$ *and* twice
# the least number of images $E$. Well below it more ranks save time nearly for free. Well above it they use more images
# and save almost no steps.
#
# Measure one batch size yourself, with the data set of this notebook:

# %% tags=["varies"]
some_rates = np.array([0.04, 0.08, 0.16, 0.32])
counted = best_rates.steps_to_target("sgd", some_rates, batch=32, dataset=dataset)
for rate, of_seeds in zip(some_rates, counted.T, strict=True):
    print(f"rate {rate}: {of_seeds.mean():>4.0f} steps on average;", "of five seeds:", *of_seeds.astype(int))
print(f"recorded for batch 32 on digits: {best['sgd'][32].steps:.0f} steps at rate {best['sgd'][32].rate}")

# %% [markdown]
# Steps are one clock. The other is the time of a step: the time to the target is their product.

# %% tags=["varies", "slide-output"]
mlp = one_process.OneProcess(dataset, lambda: models.mlp(0.0), tf.keras.optimizers.SGD(), images=8_000)
print("batch   ms per step   images/s   seconds to the target")
for batch, count in zip(batches, steps, strict=True):
    seconds = mlp.seconds_per_step(int(batch))
    print(f"{batch:>5} {1e3 * seconds:>11.2f} {batch / seconds:>12,.0f} {count * seconds:>15.2f}")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# Images per second rise with the batch, because each step has a fixed cost. That alone makes large batches attractive;
# but look for the least value in the last column. With $R$ ranks a step gets shorter by up to $R$; the number of steps
# stays.
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

# %% [markdown] tags=["slide-formula", "slide-predict"]
# ## 3. Which learning rate?
#
# Compare $k$ small steps with rate $\eta$ to one step with all their images and rate $\eta'$. With $g_j$ for the mean
# gradient of batch $j$ (Goyal and others, 2017):
#
# $$w_k = w_0 - \eta \sum_{j<k} g_j(w_j), \qquad w' = w_0 - \eta'\,\frac1k \sum_{j<k} g_j(w_0)$$
#
# **If** $g_j(w_j) \approx g_j(w_0)$, the weights are the same for $\eta' = k\,\eta$: the **linear rule**. The
# **square-root rule** $\eta' = \sqrt k\,\eta$ (Krizhevsky, 2014) keeps the *noise* of a step instead, because a mean
# over $k$ times the images has $1/\sqrt k$ of it. For Adam, Malladi and others (2022) derive this rule: Adam divides the
# gradient by its own size, so its steps do not shrink with the gradient.
#
# **Predict.** The batch grows from 2 to 512, 256-fold. How many times larger is the best rate, for SGD and for Adam?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
bend = tradeoff.critical_batch
figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.6), sharex=True)
for axes, (name, title) in zip(panels, (("sgd", "SGD"), ("adam", "Adam")), strict=True):
    colour, of_batch = draw.RANK_COLOURS[0], best[name].values()
    rates = np.array([each.rate for each in of_batch])
    lowest, highest = ([each.good_rates[end] for each in of_batch] for end in (0, -1))
    axes.vlines(batches, lowest, highest, color=colour, alpha=0.35, linewidth=5, label="at most 15 % more steps")
    axes.loglog(batches, rates, linestyle="", color=colour, label="best rate")
    for exponent, dash, rule in ((1, "--", "linear rule"), (0.5, "-.", "square-root rule")):
        line = rates[0] * (batches / batches[0]) ** exponent
        axes.loglog(batches, line, dash, marker="", color=draw.INK, label=rule)
    axes.set(title=title, xlabel="batch size", xticks=batches[::2], xticklabels=batches[::2])
    axes.set_ylim(0.4 * rates[0], 30 * rates[0])
    axes.tick_params(axis="x", which="minor", bottom=False)
full_rate = np.exp(np.mean(np.log([each.rate * (1 + bend / batch) for batch, each in best["sgd"].items()])))
bent = {"color": draw.RANK_COLOURS[3], "marker": "", "linestyle": "-", "label": "with the bend of section 2"}
panels[0].loglog(curve, full_rate / (1 + bend / curve), **bent)
panels[0].set_ylabel("learning rate")
figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
text = "Best learning rate against batch size for SGD and Adam, and both rules from batch 2 on. The best rate leaves "
draw.show(figure, text + "the linear rule at once and the square-root rule a little later; from batch 64 on it stays.")

# %%
print("batch          times as large   SGD's best rate   Adam's   linear rule   square-root rule")
for first, last in ((2, 16), (16, 128), (2, 512)):
    times = last / first
    sgd, adam = (best[name][last].rate / best[name][first].rate for name in ("sgd", "adam"))
    print(f"{first:>3} → {last:<5} {times:>17.0f} {sgd:>17.1f} {adam:>8.1f} {times:>13.1f} {times**0.5:>18.1f}")

# %% [markdown] tags=["slide-takeaway", "slide-formula"]
# The rules end where the steps bend. McCandlish and others derive the same curve for SGD's best rate:
#
# $$\eta(B) = \frac{\eta_{\max}}{1 + B_{\mathrm{crit}} / B}$$
#
# It is linear in $B$ far below the bend and constant far above it; at the bend it rises as the square root does. Its
# bend is not fitted to the rates: it comes from the steps. Adam's best rate rises even less, less than the root, and
# also stops.
#
# So a rule by which the rate grows is a rule for batches *below the bend*, the same for which a larger batch saves
# steps. From batch 2 to 512 the linear rule asks for 256 times the rate, many times what this network tolerates. Start
# from a rule, but search around it; the bars show that a factor of $\sqrt 2$ hardly matters.
#
# Why does it end? Compare the large step with the $k$ small ones whose weights it should reach: how far apart do they
# end, as a part of the way of the small ones?

# %% tags=["varies"]
many = (2, 4, 8, 16, 32)
print("small steps k     " + "".join(f"{k:>7}" for k in many))
for rate in (0.0025, 0.01, 0.04):
    print(f"rate {rate:<6}       " + "".join(f"{mlp.distance(k, rate):>7.0%}" for k in many))

# %% [markdown]
# Roughly, only the product $k\,\eta$ matters: it says how far the weights move. When it is large, the large step goes
# where the small ones would never have gone, since they would have turned on the way. The rule ends first where the
# gradient changes fastest. For deep networks that is the beginning, say Goyal and others, when the weights are random.
# The cure follows: begin with the small rate, and increase it.

# %% [markdown]
# ## 4. The tutorial's experiment: eight ranks
#
# Argonne's Horovod tutorial trains a CNN on MNIST with Adam on 8 processes, with a batch of 512 each, so 14 steps in an
# epoch, and a rate of 0.01 × 8 = 0.08. In its log, the training accuracy without warm-up stays at 0.11 with the loss at
# 2.30 = ln 10; with three warm-up epochs it reaches 0.96.
#
# `train.py` does it with a smaller CNN, smaller batches and the same number of steps:

# %% tags=["slide-code"]
programs.show(PROGRAMS / "train.py", "loss_and_gradients", "train")

# %% [markdown] tags=["slide-predict"]
# Which images are in a step depends on step and seed alone, and each rank takes its share. So one process can do the
# same training, and the two can be compared.
#
# Starting TensorFlow eight times on two cores takes long, so `together.py` runs three programs in one launch: this
# experiment, and those of sections 6 and 7. The launch is over Gloo, whose waiting ranks sleep; MPI polls.
#
# **Predict.** Without warm-up, is the training slow, or does it fail? And after failing, does it recover?

# %%
used = min(8_000, len(data.load(dataset).train.images))
per_replica = used // 14 // RANKS  # 14 steps per epoch, as in the tutorial
calls = ["train", "--dataset", dataset, "--images", used, "--per-replica-batch", per_replica]
calls += ["--epochs", run_epochs, "--then", "noise_scale", "--dataset", dataset, "--steps", 100]
calls += ["--then", "batch_norm", "--dataset", dataset]
print(f"$ horovodrun -np {RANKS} --gloo python together.py", *calls)
ranks = launch.horovodrun(PROGRAMS / "together.py", *calls, ranks=RANKS, result=True, **quiet).result

trained = ranks["train"]
global_batch, per_epoch = trained["global_batch"], trained["steps_per_epoch"]
print(FourNumbers.header())
print(FourNumbers(used, RANKS, per_replica, 0.01, per_replica).row())

# %% [markdown]
# For comparison one process trains with one rank's batch and rate, for at most four epochs.

# %% tags=["varies"]
cnn = one_process.OneProcess(dataset, lambda: models.cnn(8), images=used)
small = cnn.run(large_batch.schedules.without_warm_up(0.01), per_replica, min(run_epochs, 4), seed=0)
runs = {
    "8 × batch and rate, no warm-up": trained["runs"]["none"],
    "the same, gradual warm-up": trained["runs"]["gradual"],
    "one process, small batch and rate": small,
}
for name, run in runs.items():
    count = used // per_replica if run is small else per_epoch
    end = f"accuracy {run['accuracy'][-1]:.2f}, loss {run['loss'][-1]:.2f} at the end"
    print(f"{name}: {1e3 * np.median(run['seconds']) / count:.1f} ms per step, {end}")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
figure, (by_images, by_time) = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.2))
for name, run in runs.items():
    by_images.plot(used / 1000 * np.arange(1, len(run["accuracy"]) + 1), run["accuracy"], label=name)
    by_time.plot(np.cumsum(run["seconds"]), run["accuracy"])
by_images.set(xlabel="thousand images seen", ylabel="test accuracy", ylim=(0, 1))
by_time.set(xlabel="seconds of training")
figure.legend(loc="outside upper center", ncols=2)
draw.show(
    figure,
    "Test accuracy against images seen, left, and against seconds, right, for three runs: eight ranks without and with "
    "warm-up, and one process with the small batch.",
)

# %% [markdown] tags=["slide-takeaway"]
# Without warm-up the run usually ends at chance, with a loss of ln 10. In seconds eight ranks that share a few cores can
# hardly win: they also pay for an exchange in every step. With a device for each rank a step would take as long as the
# small batch's, plus the exchange.
#
# ### Do eight ranks equal one process?
#
# Before the runs the ranks took 20 steps of plain SGD. Here they are in one process:

# %%
proof = one_process.OneProcess(dataset, lambda: models.cnn(8), tf.keras.optimizers.SGD(), images=used)
proof.begin(seed=0)
before = proof.model.get_weights()
proof.steps(0, 20, global_batch, 0, large_batch.schedules.without_warm_up(0.05))
print(f"moved by up to {checks.largest_difference(before, proof.model.get_weights()):.2f};", end=" ")
checks.assert_equal_weights([np.array(weights) for weights in trained["weights"]], proof.model.get_weights())

# %% [markdown]
# So one process can replace eight ranks, and the comparisons below need no launch.
#
# ### Is one run enough?
#
# No: one run may be lucky. Here are five seeds with each schedule, and the same on MNIST, recorded if this machine does
# not have it. *Diverged* means that the test accuracy ends below 0.2.

# %% tags=["varies"]
curves_of = {name: cnn.accuracies(name, global_batch, run_epochs) for name in ("none", "gradual")}
mnist, source = five_seeds.measured_or_recorded()
for where, of_name in ((f"{dataset}:", curves_of), (f"MNIST, {source}:", mnist)):
    print(where)
    for name, accuracies in of_name.items():
        ends = np.array(accuracies)[:, -1]
        diverged = np.sum(ends < one_process.AT_CHANCE)
        print(f"{name:>9}: {diverged} of {len(ends)} diverged;", *(f"{end:.3f}" for end in ends))

# %% jupyter={"source_hidden": true} tags=["varies"]
figure, panels = plt.subplots(1, 2, figsize=(7.2, 2.8), sharey=True)
for axes, (title, of_name) in zip(panels, ((dataset, curves_of), ("MNIST", mnist)), strict=True):
    for number, (name, accuracies) in enumerate(of_name.items()):
        accuracies, colour = np.array(accuracies), draw.RANK_COLOURS[number]
        numbers = np.arange(1, accuracies.shape[1] + 1)
        axes.plot(numbers, accuracies.mean(axis=0), color=colour, marker=draw.MARKERS[number], label=name)
        axes.fill_between(numbers, accuracies.min(axis=0), accuracies.max(axis=0), color=colour, alpha=0.2)
    axes.set(title=title, xlabel="epoch", ylim=(0, 1))
panels[0].set_ylabel("test accuracy")
panels[0].legend(title="warm-up")
draw.show(figure, "Test accuracy by epoch for two data sets: mean of five seeds and range from the worst to the best.")

# %% [markdown]
# Why does a training that has diverged never recover? Adam's first steps have about the length of the learning rate
# in *every* weight whose gradient is not zero, however small it is. Steps of 0.08 push units of a ReLU layer below zero
# for all images. The gradient of such a **dead unit** is zero from then on. Count them after two epochs:

# %% tags=["varies"]
hidden = tf.keras.Model(cnn.model.inputs, cnn.model.layers[-2].output)
for name in ("none", "gradual"):
    cnn.begin(seed=0)
    cnn.steps(0, 2 * per_epoch, global_batch, 0, large_batch.schedules.by_name(name, 0.01, RANKS, 3))
    dead = np.mean(hidden(cnn.test_images).numpy().max(axis=0) <= 0)
    spread = np.ptp(cnn.logits(cnn.test_images).numpy(), axis=0).max()
    print(f"{name}: {dead:.0%} of the hidden units are dead; a logit differs between images by up to {spread:.2f}")

# %% [markdown] tags=["slide-quiz"]
# Nothing brings dead units back. If nearly all are dead, the answer is the same for all images, and only the last bias
# still learns: the frequencies of the classes, a loss of ln 10.
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
# ## 5. Warm-up, decay, clipping: what people use
#
# ![Learning rates over ten epochs: at once, with a jump, rising, and rising then falling](../figures/10_warm_up_schedule.svg)
#
# **Constant warm-up** keeps the small rate for some epochs and then jumps. **Gradual warm-up** adds the same amount in
# every step. Today most trainings let the rate fall again, along a cosine. Keras has all of it in one schedule:
#
# ```python
# schedule = tf.keras.optimizers.schedules.CosineDecay(
#     rate, decay_steps, warmup_target=scaled_rate, warmup_steps=warmup_steps)
# ```
#
# `decay_steps` counts the steps *after* the warm-up, and both count steps, not epochs: with more ranks an epoch has fewer.
# Horovod's `LearningRateWarmupCallback(initial_lr=scaled_rate, warmup_epochs=3)` is older and warms up only; with
# today's tf-keras and SGD it stops unless you pass `momentum_correction=False`.

# %% [markdown]
# - **AdamW** is the usual optimizer of transformers. Its weight decay acts on the weights and is not divided by Adam's
#   denominator. When the batch grows $k$-fold, Malladi and others also replace $1-\beta$ by $k\,(1-\beta)$ and
#   $\varepsilon$ by $\varepsilon/\sqrt k$.
# - **Batch ramp-up**: start with a small batch and let it grow, as GPT-3 did. Section 7 shows why this can work.
# - **Clipping by the global norm**: one factor for all variables keeps the gradient's direction. In Keras it is
#   `global_clipnorm`; `clipnorm` treats each variable alone and turns the gradient.
#
# *Where* do you clip? After the all-reduce, when the gradient is that of the global batch. In `minimal.py` the wrapped
# optimizer averages in `compute_gradients`, and Keras clips in `apply_gradients`, after it. With a tape, clip what
# `DistributedGradientTape` returns. Here are eight ranks' gradients, clipped too early and correctly:

# %%
mlp.begin(seed=0)
images, labels = data.load(dataset).train
of_ranks = []
for rank in range(RANKS):
    own = slice(12 * rank, 12 * (rank + 1))
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[own], mlp.model(images[own]))
        loss = tf.reduce_mean(losses)
    of_ranks.append(tape.gradient(loss, mlp.model.trainable_variables))


def mean(gradients):
    return [tf.reduce_mean(tf.stack(of_variable), axis=0) for of_variable in zip(*gradients, strict=True)]


limit = float(tf.linalg.global_norm(mean(of_ranks)))  # so large that the global gradient is not clipped at all
too_early = mean([tf.clip_by_global_norm(own, limit)[0] for own in of_ranks])
correct, norm = tf.clip_by_global_norm(mean(of_ranks), limit)
print("norms of the ranks' gradients:", *(f"{float(tf.linalg.global_norm(own)):.2f}" for own in of_ranks))
print(f"limit {limit:.2f}, clipped after the mean: {float(tf.linalg.global_norm(correct)):.2f}")
print(f"clipped before the mean: {float(tf.linalg.global_norm(too_early)):.2f}")

# %% [markdown]
# Each rank's gradient is noisier, so it is longer than the mean. Clipping it first shortens a gradient that needed no
# clipping, and how much depends on the number of ranks.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### Constant or gradual?
#
# Goyal and others compared both: ResNet-50, 90 epochs, SGD with momentum, batch 8,192, the rate 32 times that of batch
# 256. Next to their errors are ours, for the small CNN with Adam and 8 times the batch. *None*, *constant* and *gradual*
# are the warm-ups with the linear rule; *base* keeps the small rate; *square root* is that rule.
#
# **Predict.** Which of their lines will not repeat here?

# %% tags=["varies", "slide-output"]
others = ("constant", "base", "square root")
curves_of |= {name: cnn.accuracies(name, global_batch, run_epochs, seeds=3) for name in others}
final = {name: accuracies[:, -1] for name, accuracies in curves_of.items()}
final["small batch"] = np.array(small["accuracy"][-1:])
goyal = {"small batch": (23.60, 0.12), "none": (24.84, 0.37), "constant": (25.88, 0.56), "gradual": (23.74, 0.09)}
goyal |= {"base": (41.67, 0.10), "square root": (26.22, 0.03)}
print(f"{'error in %':>12}   {'Goyal et al.':>14}   {'here':>14}   seeds")
for name, (error, deviation) in goyal.items():
    errors = 100 * (1 - final[name])
    ours = f"{errors.mean():5.1f}" + (f" ± {errors.std():4.1f}" if len(errors) > 1 else " " * 7)
    print(f"{name:>12}   {error:>6.2f} ± {deviation:.2f}    {ours:>14}   {len(errors):>5}")
print(f"(small batch here: {len(small['accuracy'])} epochs, the others {run_epochs})")

# %% [markdown] tags=["slide-takeaway"]
# What should agree: gradual warm-up repairs what no warm-up breaks. What often does not: in their table constant
# warm-up is worse than none, and *base* is the worst line. Here *none* is usually the worst, and so few seeds can hardly
# rank our two warm-ups. There are two reasons. Adam's step does not shrink with the gradient, so a rate that stays
# should cost it less than SGD; and our small images need few steps, while ImageNet at an unscaled rate does not get far
# enough in 90 epochs. So **tune the rate for your optimizer and data**; a rule is a place to start.

# %% [markdown]
# **LARS and LAMB.** One rate for all layers is a compromise: where gradients are large compared with the weights, a
# scaled-up rate destroys those weights. LARS (You and others, 2017) makes each layer's step proportional to the norm of
# its weights $w$; LAMB (2020) does so with Adam's direction $r$. In LARS $g$ is the gradient, $\beta$ the weight decay
# and $\lambda$ the layer's own rate, with a small factor $\eta$; in LAMB $\eta$ is the rate and $\lambda$ the decay:
#
# $$\text{LARS: } \lambda = \eta\,\frac{|w|}{|g| + \beta |w|}, \qquad
# \text{LAMB: } w \leftarrow w - \eta\,\frac{|w|}{|r + \lambda w|}\,(r + \lambda w)$$
#
# LAMB's paper trains BERT in 76 minutes with batches of 65,536 and later 32,768 sequences. Nado and others (2021)
# tuned the usual optimizers with equal care, and Nesterov momentum and Adam reached the same at those batch sizes.

# %% [markdown]
# ### Does a large batch generalise worse?
#
# Keskar and others (2017) found that large batches end in sharp minima, with a lower test accuracy at the same training
# loss: the *generalisation gap*. Shallue and others (2019) trained many networks at many batch sizes, tuned each of
# them, and found no evidence for it. So before you blame the batch, tune the rate again and count steps, not epochs: a
# large batch takes fewer per epoch.
#
# ## 6. Batch normalisation on eight ranks
#
# Batch normalisation subtracts the batch's mean and divides by its deviation. Which batch? In Horovod, as in most
# frameworks, **each rank's own**. `batch_norm.py` has a layer that can do both. Means can be averaged over ranks,
# variances cannot, so the layer averages two means, of $x$ and of $x^2$:

# %%
programs.show(PROGRAMS / "batch_norm.py", "moments")

# %% [markdown]
# `hvd.allreduce` is differentiable: the gradient of a mean over ranks is a mean over ranks of gradients. Horovod's own
# layer of this kind is `hvd.SyncBatchNormalization`; the program tries it, too.
#
# **Predict.** Four images on each rank. How much do the ranks' means differ, and does the training notice?

# %%
layers = tf.keras.layers
tf.keras.utils.set_random_seed(0)
inner = [layers.Dense(16, use_bias=False), layers.BatchNormalization(momentum=0.9, epsilon=1e-3), layers.ReLU()]
single = tf.keras.Sequential([layers.Flatten(), *inner, layers.Dense(10)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
single.compile(tf.keras.optimizers.SGD(0.1), loss)
normalised = ranks["batch_norm"]
for step in range(20):
    chosen = large_batch.global_batches.numbers(step, len(images), normalised["global_batch"], 0)
    single.train_on_batch(images[chosen], labels[chosen])
expected = [variable.numpy() for variable in single.trainable_variables]
print("                  means differ between ranks    weights differ from one process")
for way in ("per rank", "synchronised", "Horovod's layer"):
    apart = np.ptp(np.array(normalised[way]["first_means"]), axis=0).max()
    weights = [np.array(values) for values in normalised[way]["weights"]]
    print(f"{way:16} {apart:>27.2g} {checks.largest_difference(weights, expected):>34.1g}")

# %% [markdown] tags=["slide-takeaway"]
# Synchronised, by either layer, eight ranks equal one process with Keras's layer on the global batch. With statistics
# per rank the training is different but valid, and its statistics are noisier. The moving averages also differ between
# ranks, and rank 0's checkpoint holds only its own. Rule of thumb: with about 32 images per rank keep the statistics
# per rank (Goyal and others do); with only a few, synchronise them.

# %% [markdown] tags=["slide-formula"]
# ## 7. The gradient noise scale
#
# Section 2 found the bend by many trainings. Can one training tell? Let $G$ be the true gradient and $\Sigma$ the
# covariance of a single image's gradient. A mean over $B$ images has
#
# $$E|g_B|^2 = |G|^2 + \operatorname{tr}\Sigma / B .$$
#
# Noise and signal are equal at the **gradient noise scale** $B_{\mathrm{simple}} = \operatorname{tr}\Sigma / |G|^2$.
# Two batch sizes give two equations for the two unknowns, and data-parallel training has both in every step: each
# rank's own gradient before the all-reduce, and their mean after it.

# %%
programs.show(PROGRAMS / "noise_scale.py", "record")

# %% [markdown]
# Each estimate is unbiased and very noisy: average $|G|^2$ and $\operatorname{tr}\Sigma$ over steps first, divide
# after. The ranks trained section 2's network with 8 images each.

# %% tags=["varies", "slide-output"]
noise = ranks["noise_scale"]
middle = len(noise["losses"]) // 2
for first, last in ((0, middle), (middle, None)):
    squares = (noise[name][first:last] for name in ("small_squares", "big_squares"))
    scale = large_batch.noise_scale.estimate(noise["small_batch"], noise["big_batch"], *squares)
    loss = np.mean(noise["losses"][first:last][-5:])
    print(f"{middle} steps, to loss {loss:.2f}: noise scale {scale.batch:.0f} images")
print(f"bend of section 2, to loss {record.result['target']}, on digits: {tradeoff.critical_batch:.0f} images")

# %% [markdown] tags=["slide-takeaway"]
# One training of a hundred steps estimates what took section 2 a training for each batch size and rate. Expect the
# order of magnitude, not more: the theory leaves out the curvature, and both numbers depend on the loss at which one
# stops. It should also say *when*: usually the gradient shrinks faster than its noise, so the useful batch **grows**
# during a training, and a batch ramp-up follows it. The paper's noise scale for MNIST is about 900, averaged over a
# training to a lower loss.
#
# So the plan for more ranks: measure the noise scale, try a few batch sizes around it, and beyond the bend spend
# devices on something else, such as model parallelism ([chapter 12](12_model_parallelism.ipynb)).

# %% [markdown]
# **Question.** With two ranks instead of eight, the estimate jumps about and is sometimes negative. Is the estimator
# wrong?
#
# 1. Yes, a squared norm cannot be negative.
# 2. Yes, it is biased for few ranks.
# 3. No: the two batch sizes are too close.
#
# <details>
# <summary>Answer</summary>
#
# 1. A difference of two noisy means can; its expectation is not.
# 2. No: it is unbiased for any two sizes.
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
# - The best rate bends where the steps do: linear below, constant above, a square root in between. Rules end there.
# - At 8 times Adam's rate training often ends at chance; gradual warm-up usually prevents that.
# - The usual recipe: warm-up, cosine decay, and clipping by the global norm after the all-reduce.
# - Eight ranks equal one process, with batch normalisation only if it is synchronised.
# - Compare LARS and LAMB with equally tuned baselines.
# - The ranks' gradients tell the order of magnitude of the largest useful batch.
# - Whether large batches generalise worse is disputed; first tune the rate.
#
# **Next.** [Lab 10](../labs/10_large_batch_and_warmup/lab.ipynb),
# [11 scaling and profiling](11_scaling_and_profiling.ipynb).
#
# **Sources.**
# - Goyal et al. (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677); Krizhevsky (2014), [One weird
#   trick](https://arxiv.org/abs/1404.5997); Malladi et al. (2022), [SDEs and scaling rules for adaptive
#   methods](https://arxiv.org/abs/2205.10287).
# - Keskar et al. (2017), [Sharp minima](https://arxiv.org/abs/1609.04836); Shallue et al. (2019), [Effects of data
#   parallelism](https://arxiv.org/abs/1811.03600).
# - McCandlish et al. (2018), [Empirical model](https://arxiv.org/abs/1812.06162); Brown et al. (2020),
#   [GPT-3](https://arxiv.org/abs/2005.14165), appendix B.
# - You et al., [LARS](https://arxiv.org/abs/1708.03888), [LAMB](https://arxiv.org/abs/1904.00962); Nado et al. (2021),
#   [Reality check](https://arxiv.org/abs/2102.06356).
# - Argonne, [Horovod
#   tutorial](https://github.com/argonne-lcf/ALCF_Hands_on_HPC_Workshop/tree/master/learningFrameworks/distributedDeepLearning).
