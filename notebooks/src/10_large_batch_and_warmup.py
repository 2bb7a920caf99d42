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
# **Time.** 50 minutes to read, two minutes to run.
#
# **Before this.** [09 Horovod](09_horovod.ipynb) for ranks and the all-reduce of gradients;
# [02 single-device baseline](02_single_device_baseline.ipynb) for batches and steps.
#
# **Questions.**
# - Eight ranks: what are batch, steps per epoch and learning rate now?
# - Does twice the batch need half the steps?
# - Why can training at 8 times the learning rate stay at chance, and why does warm-up help?
# - Does a large batch generalise worse?
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

import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, data, draw, large_batch, launch, metrics, models, programs, quizzes
from distlab.large_batch import LAMB, LARS, FourNumbers, FourNumbersPanel

launch.require_horovod()
draw.apply_style()
PROGRAMS = Path("programs/10_large_batch_and_warmup")
RANKS, run_epochs = 8, max(epochs, 5)
print(data.describe(dataset))

# %% [markdown] tags=["slide-predict"]
# ## 1. Four numbers
#
# Add ranks to a data-parallel training and four numbers change together:
#
# | number | what it is |
# |---|---|
# | **per-replica batch** $b$ | images that one rank takes in a step |
# | **global batch** $B = R\,b$ | images behind one update, of all $R$ ranks together |
# | **steps per epoch** $n / B$ | updates after which each of $n$ images was used once |
# | **learning rate** | the factor that multiplies the gradient in an update; section 3 says why it may grow with $B$ |
#
# Either the per-replica batch stays (*weak scaling*, each rank remains busy) or the global batch does (*strong
# scaling*, the same training in smaller parts). Confusing the two is a frequent mistake.
#
# **Predict.** One device was right with a batch of 100 and a rate of 0.01, for 60,000 images. What are the four numbers
# of 8 replicas, for weak and for strong scaling?

# %% tags=["varies"]
panel = FourNumbersPanel(images=60_000, known_rate=0.01, known_batch=100)
draw.show_widget(
    panel, "[Menus for replicas, batch and rule, and the four numbers that follow; they move in JupyterLab.]"
)

# %% tags=["slide-output"]
# The same without a widget, first weak scaling, then strong.
print(FourNumbers.header())
for replicas in (1, 2, 8, 64):
    print(FourNumbers(60_000, replicas, 100, known_rate=0.01, known_batch=100).row())
print()
for replicas in (1, 2, 4):
    print(FourNumbers.of_global_batch(60_000, replicas, 100, 0.01, 100).row())

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# Weak scaling gives fewer but more exact updates per epoch. This chapter asks whether the training is as good. With
# strong scaling nothing changes for the optimizer: no rule is needed, and no warm-up.
#
# ## 2. Twice the batch, half the steps?
#
# The mean over a larger batch is a better estimate of the true gradient. Does it save steps? One process, the lecture's
# network, plain SGD; we count steps until the training loss is below 0.3, for batches from 4 to 512. To be fair,
# **each batch gets the best of four learning rates**: a comparison at one rate for all would measure the rate.
#
# **Predict.** How many times fewer steps are needed from batch 4 to 8, from 32 to 64, and from 128 to 512?

# %%
one_process = programs.module(PROGRAMS / "one_process.py")
SEED, TARGET, LARGEST = 10, 0.3, 512
mlp = one_process.OneProcess(dataset, lambda: models.mlp(0.0), tf.keras.optimizers.SGD(), images=8_000)


def best_steps(batch):
    """(rate, steps) of the rate that reaches the target soonest, over two seeds."""
    best = (math.nan, 1500.0)
    for rate in (0.08, 0.16, 0.04, 0.32):
        runs = [mlp.steps_to(TARGET, rate, batch, seed, most=int(1.25 * best[1])) for seed in (SEED, SEED + 1)]
        if np.mean(runs) < best[1]:
            best = (rate, float(np.mean(runs)))
    return best


# %% tags=["varies"]
batches = [4, 8, 16, 32, 64, 128, LARGEST]
best_of = {batch: best_steps(batch) for batch in batches}
steps = [best_of[batch][1] for batch in batches]
tradeoff = large_batch.noise_scale.fit_tradeoff(batches, steps)
for batch, (rate, count) in best_of.items():
    print(f"batch {batch:>5}: {count:>6.1f} steps, {batch * count:>8,.0f} images, at rate {rate}")
print(f"fit: at least {tradeoff.least_steps:.0f} steps, {tradeoff.least_samples:.0f} images: bend at "
      f"{tradeoff.critical_batch:.0f}")  # fmt: skip

# %% tags=["varies", "slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3.4))
curve = np.geomspace(batches[0], batches[-1])
axes.loglog(batches, steps, linestyle="", color=draw.RANK_COLOURS[0], label="measured")
axes.loglog(curve, tradeoff.steps(curve), marker="", linestyle="-", color=draw.RANK_COLOURS[0], label="fit")
axes.loglog(curve, tradeoff.least_samples / curve, marker="", linestyle="--", color="grey", label="perfect scaling")
axes.axvline(tradeoff.critical_batch, linestyle=":", marker="", color=draw.RANK_COLOURS[3], label="bend")
axes.set(xlabel="batch size", ylabel="steps to the target", xticks=batches, xticklabels=batches)
axes.set_ylim(0.6 * min(steps), 1.4 * max(steps))
axes.minorticks_off()
axes.set_yticks(ticks := [tick for tick in (25, 50, 100, 200, 400, 800) if tick < 1.4 * max(steps)], ticks)
axes.legend()
draw.show(
    figure,
    "Steps to the target against batch size, both logarithmic: first along the line of perfect scaling, then flat.",
)

# %% tags=["varies"]
for first, second in ((0, 1), (3, 4), (5, 6)):
    measured, fitted = steps[first] / steps[second], tradeoff.steps(batches[first]) / tradeoff.steps(batches[second])
    print(f"{batches[first]} → {batches[second]}: steps divided by {measured:.2f}; by {fitted:.2f} in the fit")

# %% [markdown] tags=["slide-takeaway", "slide-predict"]
# With tiny batches, at the left, twice the batch should save up to half of the steps: **perfect scaling**. At the right
# it should save next to nothing: the gradient is already nearly exact. Single factors are rough, so use the fit.
# McCandlish and others (2018) give the curve:
#
# $$S = S_{\min}\,(1 + B_{\mathrm{crit}} / B), \qquad E = B\,S = E_{\min}\,(1 + B / B_{\mathrm{crit}})$$
#
# At the **critical batch size** $B_{\mathrm{crit}}$ one pays twice the least number of steps $S$ *and* twice the least
# number of images $E$. Well below it more ranks save time nearly for free; well above it they use more images and save
# almost no steps.
#
# That is one clock. The other is time: what does a step cost?
#
# **Predict.** A batch of 512 is 128 times one of 4. Is its step 128 times as long?


# %% tags=["varies", "slide-output"]
def seconds_of_steps(batch, count=20):
    """The median over some steps of one run."""
    mlp.begin(SEED)
    watches = [metrics.Stopwatch() for _ in range(count)]
    for number, watch in enumerate(watches):
        with watch:
            mlp.steps(number, 1, batch, SEED, large_batch.schedules.without_warm_up(0.04))
    return float(np.median([watch.elapsed for watch in watches]))


seconds = {batch: seconds_of_steps(batch) for batch in batches}
print("batch   ms per step   images/s   seconds to the target")
for batch, count in zip(batches, steps, strict=True):
    row = f"{1e3 * seconds[batch]:>11.2f} {batch / seconds[batch]:>10,.0f} {count * seconds[batch]:>15.2f}"
    print(f"{batch:>5} {row}")
longer = seconds[LARGEST] / seconds[batches[0]]
print(f"A step with {LARGEST // batches[0]} times the images takes {longer:.1f} times as long.")

# %% [markdown] tags=["slide-takeaway"]
# Images per second usually rise with the batch, because each step has a fixed cost. That alone makes large batches
# attractive. The time to the target is the product of both
# clocks: look for its least value in the last column. With $R$ ranks a step gets shorter by up to $R$; the number of
# steps stays.
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
# 2. **Right.** Steps per second and steps to the target are as before, images per second count work, not progress.
# 3. The same number of nearly exact gradients gives nearly the same model.
# </details>

# %% [markdown]
# ## 3. The linear rule, and where it ends
#
# How does the best rate in the table above change with the batch? Compare $k$ small steps with batches
# $\mathcal B_0, \mathcal B_1, \dots$ and rate $\eta$ to one step with all their images and rate $\eta'$. With $g(w)$
# for a mean gradient (Goyal and others, 2017, section 2.1):
#
# $$w_k = w_0 - \eta \sum_{j<k} g_j(w_j), \qquad w' = w_0 - \eta'\,\frac1k \sum_{j<k} g_j(w_0)$$
#
# **If** $g_j(w_j) \approx g_j(w_0)$, the weights are the same for $\eta' = k\,\eta$. That is the **linear rule**. Its
# condition is that the gradient must hardly change during $k$ small steps. Let us look when that holds.
#
# **Predict.** Which makes the agreement worse: a larger $k$, a larger $\eta$, or only their product?


# %%
def distance(k, rate, batch=16):
    """How far one large step ends from k small ones, as a part of the way that these went."""
    mlp.begin(SEED)
    start = mlp.model.get_weights()
    mlp.steps(0, k, batch, SEED, large_batch.schedules.without_warm_up(rate))
    small = mlp.model.get_weights()
    mlp.begin(SEED)
    union = [large_batch.global_batches.numbers(step, len(mlp.images), batch, SEED) for step in range(k)]
    mlp.step(tf.constant(np.concatenate(union)), tf.constant(k * rate, tf.float32))

    def norm(first, second):
        return math.sqrt(sum(np.sum((ours - theirs) ** 2) for ours, theirs in zip(first, second, strict=True)))

    return norm(mlp.model.get_weights(), small) / norm(small, start)


# %% tags=["varies"]
many, rates = (2, 4, 8, 16, 32), (0.0025, 0.01, 0.04)
apart = {rate: [distance(k, rate) for k in many] for rate in rates}
print("small steps k     " + "".join(f"{k:>7}" for k in many))
for rate, values in apart.items():
    print(f"rate {rate:<6}       " + "".join(f"{value:>7.0%}" for value in values))

# %% [markdown]
# Roughly, only the product matters: it says how far the weights move. As long as $k\,\eta$ is small, one large step is
# a good replacement for $k$ small ones. When it is large, the large step goes where the small ones would never have
# gone, since they would have turned on the way. So the rule has an end for every network, and it comes first where the
# gradient changes fastest. For deep networks that is the beginning, say Goyal and others, when the weights are random.
# The cure follows: begin with the small rate, and increase it.

# %% [markdown]
# The **square-root rule** $\eta' = \sqrt k\,\eta$ asks for something else. A mean over $k$ times the images has
# $1/\sqrt k$ of the noise; $\sqrt k$ keeps the *noise* of a step as it was. Adam divides by the gradient's own size, so
# its steps do not shrink with the gradient: the linear rule's argument does not apply to it as it stands.
#
# | rule | keeps | argued for |
# |---|---|---|
# | linear | way of $k$ steps | SGD below the bend |
# | square root ([Krizhevsky, 2014](https://arxiv.org/abs/1404.5997)) | noise of a step | noisy gradients, Adam |
# | unchanged | length of a step | batches beyond the bend |

# %% [markdown]
# ## 4. The tutorial's experiment: eight ranks
#
# Argonne's Horovod tutorial trains a CNN on MNIST with Adam, 8 processes, rate 0.01 × 8 = 0.08, 14 steps in an epoch.
# Without warm-up the accuracy stays at 0.11 with the loss at 2.30 = ln 10; with three warm-up epochs it reaches 0.96.
#
# `train.py` does it with a smaller CNN and the same number of steps. The rate is a function of the step:

# %%
programs.show(PROGRAMS / "train.py", "loss_and_gradients", "train")

# %% [markdown] tags=["slide-predict"]
# Which images are in a step is a function of step and seed alone, and each rank takes its share. So the same training
# can be done by one process, and the two compared.
#
# Starting TensorFlow eight times on two cores takes long, so one launch runs several programs in the same ranks: this
# experiment, and then the gradients for the noise scale (section 8). The launch is over Gloo. Eight ranks share a few
# cores, so ranks that wait should sleep; MPI polls.
#
# **Predict.** Without warm-up, is the training slow, or does it fail? And after failing, does it recover?

# %%
used = min(8_000, len(data.load(dataset).train.images))
per_replica = used // 14 // RANKS  # 14 steps per epoch, as in the tutorial


def eight_ranks(*arguments):
    """What each of these programs, with `--then` between them, has given."""
    print(f"$ horovodrun -np {RANKS} --gloo python together.py", *map(str, arguments))
    how = {"start_seconds": 600, "echo": False, "result": True}
    return launch.horovodrun(PROGRAMS / "together.py", *arguments, ranks=RANKS, **how).result


experiment = ["train", "--dataset", dataset, "--images", used]
experiment += ["--per-replica-batch", per_replica, "--epochs", run_epochs]
ranks = eight_ranks(*experiment, "--then", "noise_scale", "--dataset", dataset, "--steps", 100)

# %%
trained = ranks["train"]
global_batch, per_epoch = trained["global_batch"], trained["steps_per_epoch"]
print(FourNumbers.header())
print(FourNumbers(used, RANKS, per_replica, 0.01, per_replica).row())

# %% [markdown]
# For comparison one process trains with one rank's batch and rate, in this kernel, for at most four epochs. We plot
# accuracy against images seen, then against seconds.

# %% tags=["varies", "slide-output"]
cnn = one_process.OneProcess(dataset, lambda: models.cnn(8), images=used)
small = cnn.run(large_batch.schedules.without_warm_up(0.01), per_replica, min(run_epochs, 4), seed=0)
runs = {
    "8 × batch and rate, no warm-up": trained["runs"]["none"],
    "the same, gradual warm-up": trained["runs"]["gradual"],
}
runs["one process, small batch and rate"] = small
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
for name, run in runs.items():
    count = per_epoch if run is not small else used // per_replica
    end = f"accuracy {run['accuracy'][-1]:.2f}, loss {run['loss'][-1]:.2f} at the end"
    print(f"{name}: {1e3 * np.median(run['seconds']) / count:.1f} ms per step, {end}")

# %% [markdown] tags=["slide-takeaway"]
# Without warm-up the run usually ends at chance, with a loss of ln 10, but it may be lucky. Compare the curves on the
# left: the warm-up run makes an eighth of the steps per image of the small batch. A single curve may dip: at the end of
# the warm-up the rate is at its largest, and a few steps of that length can undo many. Averages over seeds come below.
# In seconds eight ranks that share a few cores can hardly win: they also pay for an exchange in every step. With a
# device for each rank a step would take as long as the small batch's, plus the exchange.
#
# ### Do eight ranks equal one process?
#
# Before the runs the ranks did 20 steps of plain SGD. Here they are in one process:

# %%
proof = one_process.OneProcess(dataset, lambda: models.cnn(8), tf.keras.optimizers.SGD(), images=used)
proof.begin(seed=0)
before = proof.model.get_weights()
proof.steps(0, 20, global_batch, 0, large_batch.schedules.without_warm_up(0.05))
print(f"moved by up to {checks.largest_difference(before, proof.model.get_weights()):.2f};", end=" ")
checks.assert_equal_weights([np.array(weights) for weights in trained["weights"]], proof.model.get_weights())

# %% [markdown]
# So one process stands for eight ranks, and the comparisons below need no launch.
#
# ### Is one run enough?
#
# No: one run may be lucky or unlucky. We use five seeds with each schedule, in one process with the ranks' global
# batch. *Diverged* means that the test accuracy ends below 0.2.


# %% tags=["varies"]
def curves(name, training=cnn, batch=global_batch, seeds=range(5)):
    """Test accuracy after each epoch (column), one row for each seed."""
    rate_at = large_batch.schedules.by_name(name, 0.01, RANKS, 3)
    return np.array([training.run(rate_at, batch, run_epochs, seed)["accuracy"] for seed in seeds])


def compared(curves_of):
    """Print how many seeds diverge without warm-up and with it."""
    for name, ends in curves_of.items():
        diverged = np.sum(ends[:, -1] < one_process.AT_CHANCE)
        print(f"{name:>8}: {diverged} of {len(ends)} diverged; " + " ".join(f"{end:.3f}" for end in ends[:, -1]))


curves_of = {name: curves(name) for name in ("none", "gradual")}
compared(curves_of)

# %% tags=["varies"]
figure, axes = plt.subplots(figsize=(7.2, 2.8))
epoch_numbers = np.arange(1, run_epochs + 1)
for number, (name, accuracies) in enumerate(curves_of.items()):
    colour = draw.RANK_COLOURS[number]
    axes.plot(epoch_numbers, accuracies.mean(axis=0), color=colour, marker=draw.MARKERS[number], label=name)
    axes.fill_between(epoch_numbers, accuracies.min(axis=0), accuracies.max(axis=0), color=colour, alpha=0.2)
axes.set(xlabel="epoch", ylabel="test accuracy", ylim=(0, 1))
axes.legend(title="warm-up")
draw.show(figure, "Test accuracy by epoch, the mean over five seeds and the range between the best and the worst.")


# %% [markdown]
# Is it the data set? The same on MNIST, where this machine has it:

# %% tags=["varies"]
if data.find("mnist"):
    mnist = one_process.OneProcess("mnist", lambda: models.cnn(8), images=8_000)
    compared({name: curves(name, mnist, 560) for name in ("none", "gradual")})
else:
    print("MNIST is not on this machine; `make execute DATASET=mnist ONLY=10` fetches it")

# %% [markdown]
# Why does a training that has diverged never recover? Adam's first steps have about the length of the learning rate
# in *every* weight whose gradient is not zero, however small it is. Steps of 0.08 push units of a ReLU layer below zero
# for all images. The gradient of such a **dead unit** is zero from then on. Let us count them after two epochs.

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
# ## 5. Constant or gradual?
#
# ![Three learning rates over ten epochs: at once, with a jump, and rising](../figures/10_warm_up_schedule.svg)
#
# **Constant warm-up** keeps the small rate for some epochs and then jumps. **Gradual warm-up** adds the same amount in
# every step. With `Model.fit`, Horovod has the latter as a callback. This is the training function that eight ranks run
# now, with `RATE` = 0.01, `BATCH` = 12, `STEPS_PER_EPOCH` = 4, `WARM_UP_EPOCHS` = 3 and `EPOCHS` = 4; `LearningRates`
# notes the rate of each step. The same ranks then run the program of section 6.

# %%
programs.show(PROGRAMS / "warm_up_callback.py", "train")

# %%
ranks |= eight_ranks("warm_up_callback", "--dataset", dataset, "--then", "batch_norm", "--dataset", dataset)
callback = ranks["warm_up_callback"]
epochs_done = np.arange(1, len(callback["rates"]) + 1) / callback["steps_per_epoch"]  # at the end of each step
rate_at = large_batch.schedules.gradual_warm_up(0.01, 0.08, callback["warm_up_epochs"])
for step in (0, 3, 7, 11, 15):
    chosen, expected = callback["rates"][step], rate_at(epochs_done[step])
    print(f"step {step + 1:>2}: the callback chose {chosen:.4f}, our formula says {expected:.4f}")
checks.assert_equal([callback["rates"]], [[rate_at(epoch) for epoch in epochs_done]], "rates", tolerance=1e-6)

# %% [markdown] tags=["slide-text", "slide-predict"]
# `initial_lr` is the *scaled* rate, where the warm-up ends. The callback also does **momentum
# correction** (Goyal and others, section 3). SGD with momentum keeps a sum of past steps. When the rate grows from
# $\eta$ to $\eta'$, these old steps are too short for the new rate; multiplied by
# $\eta'/\eta$ they fit. It is on by default; with today's tf-keras and SGD it stops
# (`'float' object has no attribute 'dtype'`): pass `momentum_correction=False`.
#
# Goyal and others compared both kinds of warm-up: ResNet-50, 90 epochs, SGD with momentum, batch 8,192, the rate 32
# times that of batch 256. Next to their errors are ours, for the small CNN with Adam and 8 times the batch.
#
# *None*, *constant* and *gradual* are the warm-ups; *base* keeps the small rate; *square root* is that rule.
#
# **Predict.** Which of their lines will not repeat here?

# %% tags=["varies", "slide-output"]
curves_of |= {name: curves(name, seeds=range(3)) for name in ("constant", "base", "square root")}
final = {name: ends[:, -1] for name, ends in curves_of.items()} | {"small batch": np.array(small["accuracy"][-1:])}
goyal = {"small batch": (23.60, 0.12), "none": (24.84, 0.37), "constant": (25.88, 0.56), "gradual": (23.74, 0.09)}
goyal |= {"base": (41.67, 0.10), "square root": (26.22, 0.03)}
print(f"{'error in %':>12}   {'Goyal et al.':>14}   {'here':>14}   seeds")
for name, (mean, deviation) in goyal.items():
    errors = 100 * (1 - final[name])
    ours = f"{errors.mean():5.1f}" + (f" ± {errors.std():4.1f}" if len(errors) > 1 else " " * 7)
    print(f"{name:>12}   {mean:>6.2f} ± {deviation:.2f}    {ours:>14}   {len(errors):>5}")
ahead = 100 * (final["gradual"].mean() - final["constant"].mean())
spread = 100 * max(np.ptp(final["gradual"]), np.ptp(final["constant"]))
print(f"(here the small batch has trained for {len(small['accuracy'])} epochs, the others for {run_epochs})")
print(f"gradual is ahead of constant by {25.88 - 23.74:+.2f} points there, by {ahead:+.1f} here")
compared_to = "less" if abs(ahead) < spread else "more"
print(f"that is {compared_to} than the {spread:.1f} points between the seeds of one of them")
worst = min(final, key=lambda name: final[name].mean())
print(f"the worst line is {max(goyal, key=goyal.get)} there and {worst} here")

# %% [markdown] tags=["slide-takeaway"]
# What should agree: gradual warm-up repairs what no warm-up breaks. What often does not: in their table constant
# warm-up is worse than none, and *base*, the rate left as it was, is the worst line. Here *none* is usually the worst,
# and so few seeds can hardly rank our two warm-ups. There are two reasons. Adam's step does not shrink with the
# gradient, so a rate that stays should cost it less than SGD; and our small images need few steps, while ImageNet at an
# unscaled rate does not get far enough in 90 epochs. So **tune the rate for your optimizer and data**; the linear rule
# is a place to start, made for SGD.

# %% [markdown]
# ### Does a large batch generalise worse?
#
# Keskar and others (2017) found that large batches end in sharp minima, with a lower test accuracy at the same training
# loss: the *generalisation gap*. Shallue and others (2019) trained many
# networks at many batch sizes, tuned each of them, and found no evidence for it. So before you blame the batch, tune
# the rate again and count steps, not epochs: a large batch makes fewer per epoch.
#
# ## 6. Batch normalisation on eight ranks
#
# Batch normalisation subtracts the batch's mean and divides by its deviation. Which batch? In Horovod, as in most
# frameworks, **each rank's own**: statistics of a few images, different on every rank. `batch_norm.py` has a layer that
# can do both. Means can be averaged over ranks, variances cannot. So the layer averages two means, of $x$ and of $x^2$,
# and computes the variance from them.

# %%
programs.show(PROGRAMS / "batch_norm.py", "moments")

# %% [markdown]
# `hvd.allreduce` is differentiable: the gradient of a mean over ranks is a mean over ranks of gradients, so the tape
# goes through it. Horovod's own layer of this kind is `hvd.SyncBatchNormalization`; the program tries it, too.
#
# **Predict.** Four images on each rank. How much do the ranks' means differ, and does the training notice?

# %%
normalised = ranks["batch_norm"]
own, together = (np.array(normalised[way]["first_means"]) for way in ("per rank", "synchronised"))
for way, means in (("per rank", own), ("synchronised", together)):
    print(f"{way:>12}: a unit's first mean differs between ranks by up to {np.ptp(means, axis=0).max():.2f}")
print("the mean of the ranks' means and the synchronised one:", end=" ")
checks.assert_equal([own.mean(axis=0)], [together[0]], "means")

# %%
layers = tf.keras.layers
tf.keras.utils.set_random_seed(0)
inner = [layers.Dense(16, use_bias=False), layers.BatchNormalization(momentum=0.9, epsilon=1e-3), layers.ReLU()]
single = tf.keras.Sequential([layers.Flatten(), *inner, layers.Dense(10)])
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
single.compile(tf.keras.optimizers.SGD(0.1), loss)
images, labels = data.load(dataset).train
for step in range(20):
    chosen = large_batch.global_batches.numbers(step, len(images), normalised["global_batch"], 0)
    single.train_on_batch(images[chosen], labels[chosen])
expected = [variable.numpy() for variable in single.trainable_variables]
ways = ("per rank", "synchronised", "Horovod's layer")
weights = {way: [np.array(values) for values in normalised[way]["weights"]] for way in ways}
print(f"per rank: a weight differs by up to {checks.largest_difference(weights['per rank'], expected):.2f}")
for way in ways[1:]:
    print(f"{way}:", end=" ")
    checks.assert_equal_weights(weights[way], expected)

# %% [markdown]
# Synchronised, by either layer, eight ranks equal one process with Keras's layer on the global batch. With statistics
# per rank the training is different but valid, and its statistics are noisier. The moving averages also differ between
# ranks, and rank 0's checkpoint holds only its own. Rule of thumb: with about 32 images per rank keep the statistics
# per rank (Goyal and others do); with only a few, synchronise them.

# %% [markdown]
# ## 7. LARS and LAMB
#
# One rate for all layers is a compromise: where gradients are large compared with the weights, a scaled-up rate
# destroys those weights. **LARS** (You and others, 2017) makes each layer's step proportional to the norm of its
# weights $w$, **LAMB** (2020) does so with Adam's direction $r$. In LARS $g$ is the gradient, $\beta$ the weight decay,
# $\eta$ a small trust factor and $\lambda$ the layer's own rate; in LAMB $\eta$ is the learning rate and $\lambda$ the
# weight decay:
#
# $$\text{LARS: } \lambda = \eta\,\frac{|w|}{|g| + \beta |w|}, \qquad
# \text{LAMB: } w \leftarrow w - \eta\,\frac{|w|}{|r + \lambda w|}\,(r + \lambda w)$$

# %%
programs.show("../src/distlab/large_batch/optimizers.py", "LAMB.update_step")

# %% [markdown] tags=["slide-text", "slide-predict"]
# Now a batch of 512, far above the bend: 1,024 images, two steps per epoch, 12 epochs, each optimizer with
# warm-up and the best of three rates, two seeds. Optimizers that were tuned with unequal care cannot be compared.
#
# **Predict.** LAMB's paper trains BERT in 76 minutes on a TPUv3 pod, with batches of 65,536 short sequences,
# later 32,768 long ones. Do LARS and LAMB win here?

# %% tags=["varies"]
optimizers = {
    "SGD, momentum": (tf.keras.optimizers.SGD(momentum=0.9), (0.01, 0.03, 0.1)),
    "LARS": (LARS(trust=0.01), (0.3, 1.0, 3.0)),
    "Adam": (tf.keras.optimizers.Adam(), (0.003, 0.01, 0.03)),
    "LAMB": (LAMB(), (0.01, 0.03, 0.1)),
}
best = {}
for name, (optimizer, rates) in optimizers.items():
    training = one_process.OneProcess(dataset, lambda: models.cnn(4), optimizer, images=1_024)
    for rate in rates:
        rate_at = large_batch.schedules.gradual_warm_up(0.0, rate, epochs=3)
        both = [training.run(rate_at, 512, 12, seed) for seed in (0, 1)]
        mean = np.mean([run["accuracy"] for run in both], axis=0)
        if name not in best or mean[-1] > best[name][1][-1]:
            best[name] = (rate, mean, np.mean([run["seconds"] for run in both], axis=0))
tested = len(data.load(dataset).test.labels)
error_of = {}  # standard errors of a share of the test images
for name, (rate, mean, _) in best.items():
    error_of[name] = math.sqrt(mean[-1] * (1 - mean[-1]) / tested)
    print(f"{name:>14}: test accuracy {mean[-1]:.3f} ± {error_of[name]:.3f} at rate {rate}")
for usual, adapted in (("SGD, momentum", "LARS"), ("Adam", "LAMB")):
    difference = best[adapted][1][-1] - best[usual][1][-1]
    error = math.hypot(error_of[adapted], error_of[usual])
    verdict = "too small to rank them" if abs(difference) < 3 * error else "larger than the test images explain"
    print(f"{adapted} minus {usual}: {difference:+.3f}, {verdict}")

# %% tags=["varies", "slide-output"]
figure, (by_images, by_time) = plt.subplots(1, 2, sharey=True, figsize=(7.2, 3.2))
for name, (_, mean, spent) in best.items():
    by_images.plot(np.arange(1, 13), mean, label=name, markevery=3)
    by_time.plot(np.cumsum(spent), mean, markevery=3)
by_images.set(xlabel="epochs", ylabel="test accuracy", ylim=(0, 1))
by_time.set(xlabel="seconds of training")
figure.legend(loc="outside upper center", ncols=4)
draw.show(figure, "Test accuracy at batch 512 against epochs, left, and seconds, right, for SGD, LARS, Adam and LAMB.")

# %% [markdown] tags=["slide-takeaway"]
# Two seeds and a few hundred test images cannot rank optimizers; the output says where a difference is too small. But
# an accuracy far above chance, 0.1, shows that an optimizer can be made to work at this batch. Nado and others (2021)
# made the comparison at full size: tuned with equal care, SGD with momentum and Adam reach what LARS and LAMB reach at
# the batch sizes of their papers. Their aim is a rate that needs less tuning when layers differ by orders of magnitude.
# (Here the rates were chosen on the same test images, so all four accuracies are a little too good.)

# %% [markdown]
# ## 8. The gradient noise scale
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

# %% [markdown] tags=["slide-predict"]
# Each estimate is unbiased and very noisy: average $|G|^2$ and $\operatorname{tr}\Sigma$ over steps first, divide
# after. The ranks trained section 2's network with 8 images each. The first part ends when the loss reaches the target,
# and after 60 steps at the latest.
#
# **Predict.** Is the noise scale the same at the start and at the end of a training?

# %% tags=["varies", "slide-output"]
noise = ranks["noise_scale"]
smooth = np.convolve(noise["losses"], np.ones(5) / 5, "valid")
below = np.flatnonzero(smooth < TARGET)
reached = min(int(below[0]), 60) if below.size else 60  # the stretch that section 2 counted, as far as it was run


def scale_between(first, last):
    squares = (noise[name][first:last] for name in ("small_squares", "big_squares"))
    return large_batch.noise_scale.estimate(noise["small_batch"], noise["big_batch"], *squares)


to_target, afterwards = scale_between(0, reached), scale_between(reached, None)
print(f"first {reached} steps, to loss {smooth[reached]:.2f} (target {TARGET}): "
      f"noise scale {to_target.batch:.0f} images")  # fmt: skip
print(f"the next {len(noise['losses']) - reached} steps: {afterwards.batch:.0f} images")
print(f"the bend of section 2: {tradeoff.critical_batch:.0f} images; "
      f"the first noise scale is {to_target.batch / tradeoff.critical_batch:.1f} times as large")  # fmt: skip
print("the noise scale", "grew" if afterwards.batch > to_target.batch else "did not grow in this noisy estimate")

# %% [markdown] tags=["slide-takeaway"]
# One training of a hundred steps estimates what took section 2 a training for each batch size and rate. Expect the
# order of magnitude, not more: the theory leaves out the curvature, and both numbers depend on the loss at which one
# stops. It should also say *when*: usually the gradient shrinks faster than its noise, so the useful batch **grows**
# during a training. The paper's noise scale for MNIST is about 900, averaged over a training to a lower loss.
#
# So the plan for more ranks: measure the noise scale, try a few batch sizes around it, and beyond the bend spend
# devices on something else, such as model parallelism (12).

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
# ## 9. Five questions on the four numbers
#
# Replace each `None` by a number and run the cell again. As in section 1, a rate of 0.01 is right for one device with a
# batch of 100, and there are 60,000 images. A wrong answer gets a hint.

# %%
for question in large_batch.quiz.QUESTIONS:
    print(f"{question.name}: {question.text}")

# %%
answers = {
    "global_batch": None,
    "steps_per_epoch": None,
    "learning_rate": None,
    "rate_with_4_replicas": None,
    "rate_in_warm_up": None,
}
print(*large_batch.quiz.feedback(answers), sep="\n")

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
# - The linear rule holds while $k\,\eta$ is small: the gradient hardly changes during $k$ small steps.
# - At 8 times Adam's rate training often ends at chance; gradual warm-up usually prevents that.
# - Eight ranks equal one process, with batch normalisation only if it is synchronised.
# - Compare LARS and LAMB with equally tuned baselines.
# - The ranks' gradients tell the order of magnitude of the largest useful batch.
# - Whether large batches generalise worse is disputed; first tune the rate.
#
# **Next.** [Lab 10](../labs/10_large_batch_and_warmup/lab.ipynb),
# [11 scaling and profiling](11_scaling_and_profiling.ipynb).
#
# **Sources.**
# - Goyal et al. (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677).
# - Keskar et al. (2017), [Sharp minima](https://arxiv.org/abs/1609.04836).
# - Shallue et al. (2019), [Effects of data parallelism](https://arxiv.org/abs/1811.03600).
# - McCandlish et al. (2018), [Empirical model](https://arxiv.org/abs/1812.06162).
# - You et al., [LARS](https://arxiv.org/abs/1708.03888), [LAMB](https://arxiv.org/abs/1904.00962).
# - Nado et al. (2021), [Reality check](https://arxiv.org/abs/2102.06356).
# - Argonne, [Horovod
#   tutorial](https://github.com/argonne-lcf/ai-science-training-series/tree/main/06_distributedTraining).
