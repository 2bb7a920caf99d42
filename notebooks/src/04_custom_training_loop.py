# %% [markdown]
# # 04 Custom training loop
#
# **Goal.** Write a custom training loop, run it on one device, then on several, and prove that both train the same
# model. On the way: a division that often goes wrong, uneven last batches, a log, and a run that survives a restart.
#
# **Time.** 40 minutes to read, under a minute to run.
#
# **Before this.** [02 single-device baseline](02_single_device_baseline.ipynb) and
# [03 mirrored strategy](03_mirrored_strategy.ipynb)
#
# **Questions.**
# - Which lines does `fit` hide, and what changes in them for several replicas?
# - By which batch size must each replica divide its loss, and what happens if it uses the other one?
# - What happens to a small last batch, and how do you count each of its images once?
# - What do you have to save to resume an interrupted run?
# - When is a custom loop worth it?
#
# **Hardware.** Two processor cores. Without GPUs the replicas run on logical CPU devices.

# %% tags=["parameters"]
dataset = "digits"  # the images that noise is added to: digits, mnist or fashion_mnist
epochs = 3  # passes over the training images when the U-Net is trained, in section 8
workers = 2  # replicas of the model, 1 to 8

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported
import functools
import inspect
import itertools
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, data, devices, draw, metrics, models, programs, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no notes about how each collective was carried out
tf.keras.utils.set_random_seed(4)
tf.config.experimental.enable_tensor_float_32_execution(False)  # else some GPUs round factors to 10 bits
tf.config.experimental.enable_op_determinism()  # else some GPUs add in another order each time; section 9 repeats a run
train, test = data.load(dataset)
print(data.describe(dataset))

# %% tags=["varies"]
device_names = devices.at_least(workers)  # now: the first operation fixes the devices

# %% [markdown]
# ## 1. The whole loop
#
# The task is **segmentation**: give each pixel a class, here digit or background. The input is a clean image plus
# normal noise. The target, the **mask**, is 1 where the clean image is above a threshold.
#
# Whatever the data set, an epoch here has 40 global batches and a test has 10, so large data sets take no longer. The
# global batch size is 32, rounded down to a multiple of the number of replicas.


# %%
def segmentation_task(images, noise=0.5, threshold=0.5, seed=0):
    """Noisy copies of the images, and the mask of each clean one: 1 above the threshold."""
    disturbance = np.random.default_rng(seed).normal(0, noise, images.shape)
    return (images + disturbance).astype("float32"), (images > threshold).astype("float32")


STEPS_PER_EPOCH, TEST_STEPS, PER_REPLICA_BATCH = 40, 10, 32 // workers
GLOBAL_BATCH = PER_REPLICA_BATCH * workers
noisy, masks = segmentation_task(train.images[: STEPS_PER_EPOCH * GLOBAL_BATCH])
noisy_test, masks_test = segmentation_task(test.images[: TEST_STEPS * GLOBAL_BATCH], seed=1)

# %% [markdown]
# This is a complete custom training loop on several devices. Variables are created in the strategy's scope, the data
# set is distributed, `strategy.run` calls the step on every replica, and each replica divides by the *global* batch
# size. Everything after this section takes these lines apart.

# %% tags=["varies"]
strategy = tf.distribute.MirroredStrategy(device_names)
with strategy.scope():
    model = models.unet()
    optimizer = tf.keras.optimizers.Adam(0.005)
batches = tf.data.Dataset.from_tensor_slices((noisy, masks)).shuffle(len(noisy)).batch(GLOBAL_BATCH)
distributed = strategy.experimental_distribute_dataset(batches)


def replica_step(images, masks):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        per_pixel = tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=logits)
        per_image = tf.reduce_mean(per_pixel, axis=(1, 2))
        loss = tf.nn.compute_average_loss(per_image, global_batch_size=GLOBAL_BATCH)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))  # sums over the replicas
    return loss


@tf.function
def train_step(images, masks):
    losses = strategy.run(replica_step, args=(images, masks))
    return strategy.reduce("SUM", losses, axis=None)


for epoch in range(2):
    losses = [float(train_step(images, masks)) for images, masks in distributed]
    print(f"epoch {epoch + 1}: {len(losses)} steps, mean loss {np.mean(losses):.3f}")

# %% tags=["varies"]
names = ("clean", "noisy: the input", "mask: the target")
figure, rows = plt.subplots(3, 6, figsize=(7.2, 3.6))
for row, pictures, name in zip(rows, (test.images, noisy_test, masks_test), names, strict=True):
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for axes, picture in zip(row, pictures[:6], strict=True):
        axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
draw.show(figure, "Rows of test images: clean, under strong noise, and masks, white where the clean image is bright.")

# %% [markdown] tags=["slide-predict"]
# Two scores compare a predicted mask with the true one. **Pixel accuracy** is the share of pixels that agree.
# **Intersection over union** (IoU) looks at the digit only:
#
# $$\mathrm{IoU} = \frac{\text{pixels that both call digit}}{\text{pixels that at least one calls digit}}$$
#
# **Predict.** Two masks need no training: "all background", and "digit where the noisy pixel is above the threshold".
# Which has the higher pixel accuracy? Which has the higher IoU?


# %% tags=["slide-output"]
def scores(predicted, true):
    """Intersection over union, and pixel accuracy, of boolean masks."""
    union = np.sum(predicted | true)
    return float(np.sum(predicted & true) / union), float(np.mean(predicted == true))


true = masks_test > 0.5
naive = {"all background": np.zeros_like(true), "noisy pixel above 0.5": noisy_test > 0.5}
for name, predicted in naive.items():
    print("{:22s} IoU {:.2f}   pixel accuracy {:.2f}".format(name, *scores(predicted, true)))

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# A mask that finds nothing still gets every background pixel right, so its pixel accuracy looks respectable; the
# smaller the object, the better it looks. Its IoU is 0. We judge by IoU.
#
# ## 2. The model: a small U-Net
#
# ![A U-Net: max pooling leads down to 14 × 14 and 7 × 7, then up again, with copies across](../figures/04_unet.svg)
#
# The left side shrinks the picture, so that each number at the bottom sees a large part of it: *is there a stroke?*
# The right side enlarges it again. The copies across give it the fine detail that shrinking lost: *where exactly is
# its edge?* The output is one **logit** per pixel: above 0 means digit.

# %%
print(inspect.getsource(models.unet))

# %% [markdown]
# ## 3. One step by hand
#
# `fit` repeats four things: forward, loss, gradient, apply. The **gradient tape** records the operations of the
# forward pass, so that it can differentiate the loss.
#
# The loss starts as *one number per image*. Reducing it to a single number is left to the loop, because with several
# replicas that is where the care is needed.
#
# **Predict.** The model is untrained. What is its cross-entropy over two classes, roughly?


# %%
def per_example_loss(masks, logits):
    """One number per image: the mean cross-entropy of its pixels."""
    per_pixel = tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=logits)
    return tf.reduce_mean(per_pixel, axis=(1, 2))


tf.keras.utils.set_random_seed(4)
model = models.unet()
start = model.get_weights()  # every run in this chapter begins with these
optimizer = tf.keras.optimizers.SGD(0.01)
images, targets = tf.constant(noisy[:GLOBAL_BATCH]), tf.constant(masks[:GLOBAL_BATCH])

with tf.GradientTape() as tape:
    losses = per_example_loss(targets, model(images, training=True))  # forward
    loss = tf.reduce_mean(losses)  # loss
gradients = tape.gradient(loss, model.trainable_variables)  # gradient
optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))  # apply

print(f"{losses.shape[0]} losses, mean {loss:.2f}; {len(gradients)} gradients, one per variable")

# %% [markdown]
# The loss is close to $\ln 2 \approx 0.69$: a model that knows nothing gives each class about one half. It is the
# check of chapter 03 with two classes instead of ten. A first loss far from it points to a wrong loss or wrong
# targets.
#
# ## 4. `tf.function`: traced once, run many times
#
# Python runs the step line by line. `@tf.function` runs the Python code *once* with placeholders, records the
# operations as a graph, and then runs the graph. The recording is called **tracing**. Python's side effects, such as
# an `append`, happen while tracing only. That lets us count the traces. (`build` creates the optimizer's variables;
# without it, the first call creates them and is traced twice.)
#
# **Predict.** The step is called five times: three full batches, a batch with 5 images fewer, and a full one. How many
# traces?


# %%
def one_device_step(model, optimizer):
    """A training step for one device: takes a batch, returns its loss."""
    optimizer.build(model.trainable_variables)

    @tf.function
    def train_step(images, masks):
        traces.append(images.shape[0])
        with tf.GradientTape() as tape:
            losses = per_example_loss(masks, model(images, training=True))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


traces = []
single_step = one_device_step(model, optimizer)

# %%
for size in (GLOBAL_BATCH, GLOBAL_BATCH, GLOBAL_BATCH, GLOBAL_BATCH - 5, GLOBAL_BATCH):
    single_step(images[:size], targets[:size])
    print(f"batch of {size}, traces so far: {len(traces)}")

# %% [markdown]
# Each new shape is traced again; a known shape reuses its graph. A smaller last batch costs one more trace. A Python
# number as an argument is worse: it becomes part of the graph, so each *value* is a new trace.


# %%
@tf.function
def scaled(factor):
    numbers_traced.append(factor)
    return factor * 2.0


for values in ([0.1, 0.2, 0.3], [tf.constant(x) for x in (0.1, 0.2, 0.3)]):
    numbers_traced = []
    doubled = [scaled(value) for value in values]
    print(f"{len(doubled)} values of type {type(values[0]).__name__}, traces: {len(numbers_traced)}")

# %% [markdown] tags=["slide-predict"]
# So pass a learning rate or a batch size that changes during training as a tensor, or keep it in a variable.
#
# **Predict.** How many times as fast is the traced step as the same Python code run line by line (**eagerly**)? For a
# full batch, and for a single image?

# %% tags=["varies", "slide-output"]
steps = {"eager": single_step.python_function, "traced": single_step}
milliseconds = {}
for (name, step), n in itertools.product(steps.items(), (1, GLOBAL_BATCH)):
    work = functools.partial(step, images[:n], targets[:n])
    milliseconds[f"{name}, batch of {n}"] = 1000 * metrics.median_seconds(work, repeats=3)
eager_one, eager_full, traced_one, traced_full = milliseconds.values()
figure = draw.bars(milliseconds, "milliseconds per step (median of 3)", "{:.1f}")
in_words = ", ".join(f"{name}: {value:.1f}" for name, value in milliseconds.items())
draw.show(figure, f"Times in ms of a step: {in_words}.")
Markdown(
    f"The traced step is {eager_one / traced_one:.1f} times as fast as the eager one for one image, and "
    f"{eager_full / traced_full:.1f} times for {GLOBAL_BATCH}."
)

# %% [markdown]
# No single factor describes it. Tracing saves mainly Python's time per *operation*, which does not depend on the batch.
# The convolutions gain less from it: the larger the batch, the larger is usually their share, and the smaller the gain.
# If tracing gained nothing here, run the cell again on an idle machine.
#
# **Question.** A step takes `(images, masks, epoch)`, where `epoch` is Python's loop counter. What happens in a run of
# 100 epochs?
#
# 1. It runs as without `tf.function`, only faster.
# 2. The step is traced 100 times.
# 3. The first epoch's number is used throughout.
#
# <details>
# <summary>Answer</summary>
#
# **2.** A graph is looked up by its arguments, and a Python number is one. Answer 3 would be right if the step read
# `epoch` as a *global* Python variable: that is read once, while tracing. The fix for both: use a `tf.Variable`, or
# pass a tensor.
# </details>

# %% [markdown]
# ## 5. The same loop under a strategy
#
# The strategy is the one of section 1. **Variables** are created in its scope: model, optimizer, metrics. Each then has
# a copy on every replica.

# %%
with strategy.scope():
    replicated = models.unet()
    sgd = tf.keras.optimizers.SGD(0.01)
    adam = tf.keras.optimizers.Adam(0.005)
    train_loss = tf.keras.metrics.Mean()
replicated.set_weights(start)

examples = tf.data.Dataset.from_tensor_slices((noisy, masks))
batches = examples.batch(GLOBAL_BATCH, drop_remainder=True)
# The first 20 batches in a list: they serve several runs.
distributed_batches = list(strategy.experimental_distribute_dataset(batches.take(20)))
distributed_images, distributed_masks = distributed_batches[0]

for replica, part in enumerate(strategy.experimental_local_results(distributed_images)):
    print(f"replica {replica} gets {part.shape[0]} images of the global batch of {GLOBAL_BATCH}")

# %% [markdown]
# The data set was batched with the *global* batch size. `experimental_distribute_dataset` cut each batch into one
# part per replica. A distributed batch is a `PerReplica` value: a bundle of tensors, one per device.
#
# Now the step. What one replica does goes into a function, and `strategy.run` calls it on every replica. The divisor of
# the loss is an argument, a tensor, so that the next section can pass a wrong one. Section 1 used `GLOBAL_BATCH` there.
# The second cell below prints every difference from the one-device step: lines with `-` are gone, lines with `+` are
# new.


# %%
def replicated_step(model, optimizer):
    """A training step for all replicas: takes a distributed batch, returns each replica's loss."""
    with strategy.scope():
        optimizer.build(model.trainable_variables)

    def replica_step(images, masks, divisor):
        with tf.GradientTape() as tape:
            losses = per_example_loss(masks, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=divisor)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        train_loss.update_state(losses)
        return loss

    @tf.function
    def train_step(images, masks, divisor):
        return strategy.run(replica_step, args=(images, masks, divisor))

    return train_step


# %% tags=["slide-output"]
def body(function):
    """The lines of a function after its docstring, without their indentation."""
    return "\n".join(line.strip() for line in inspect.getsource(function).splitlines()[2:] if line.strip())


programs.changes(body(one_device_step), body(replicated_step), context=0)

# %% [markdown] tags=["slide-takeaway"]
# `apply_gradients` is not among these lines, yet it does more than before. In a replica it first **sums** the gradients
# over all replicas (the all-reduce), then applies the sum, the same on each. So each replica's gradient must be its
# *share* of the whole. The next section is about this sum.
#
# One step, and what comes back:

# %%
sgd_step, adam_step = replicated_step(replicated, sgd), replicated_step(replicated, adam)
# The optimizers' variables before any step, so that several runs can begin alike.
initial_state = {optimizer.name: [variable.numpy() for variable in optimizer.variables] for optimizer in (sgd, adam)}

parts = sgd_step(distributed_images, distributed_masks, tf.constant(GLOBAL_BATCH))
for replica, part in enumerate(strategy.experimental_local_results(parts)):
    print(f"replica {replica} returns {part:.3f}")
print(f"reduced with SUM:  {strategy.reduce('SUM', parts, axis=None):.3f}")
print(f"reduced with MEAN: {strategy.reduce('MEAN', parts, axis=None):.3f}")
print(f"the metric says:   {train_loss.result():.3f}")

# %% [markdown]
# Each replica returns its part of the global mean, so the parts are added. `SUM` is the right reduction here, and
# `MEAN` would divide a second time. The metric got the per-example losses: it keeps a total and a count on each
# replica, and adds both when it is read. So no loss has to travel to Python in every step, which would make the
# program wait for it.
#
# **Question.** Which of these need *not* be made in the scope?
#
# 1. The optimizer.
# 2. The data set.
# 3. A metric that the step updates.
#
# <details>
# <summary>Answer</summary>
#
# **2.** The scope is about where *variables* live, and a data set holds none. Answer 1 overlooks that an optimizer has
# variables: a step counter, and with Adam two numbers per weight. Answer 3 overlooks that a metric has variables too: a
# total and a count.
# </details>

# %% [markdown] tags=["slide-formula", "slide-predict"]
# ## 6. Divide by the global batch
#
# A global batch of $B$ images is cut into $R$ parts of $b = B/R$. The gradient of the mean loss is a sum of $R$
# shares:
#
# $$\nabla \frac{1}{B} \sum_{i=1}^{B} \ell_i = \sum_{r=1}^{R} \nabla \frac{1}{B} \sum_{i \in \text{part } r} \ell_i$$
#
# The all-reduce does the outer sum. Each replica must divide by $B$, the *global* batch size. `reduce_mean`, which
# was right on one device, divides by $b$: each share is $R$ times too large, and so is the sum.
#
# **Predict.** There are two choices: the divisor, and the reduction of the *printed* loss. Three of the four
# combinations are wrong. In which do you see it in the log?


# %% tags=["slide-output"]
def rewind(optimizer):
    """Back to the common start: the first weights, and an optimizer that has seen nothing."""
    replicated.set_weights(start)
    for variable, value in zip(optimizer.variables, initial_state[optimizer.name], strict=True):
        variable.assign(value)


def change(weights):
    """How far weights are from the common start: the length of the difference."""
    return np.sqrt(sum(np.sum((new - old) ** 2.0) for new, old in zip(weights, start, strict=True)))


DIVISORS = {"global": tf.constant(GLOBAL_BATCH), "per replica": tf.constant(PER_REPLICA_BATCH)}
results = {}
for name, divisor in DIVISORS.items():
    rewind(sgd)
    parts = sgd_step(distributed_images, distributed_masks, divisor)
    results[name] = change(replicated.get_weights())
    for reduction in ("SUM", "MEAN"):
        results[name, reduction] = float(strategy.reduce(reduction, parts, axis=None))

print("divided by    reduced with   printed loss ÷ true loss   update ÷ true update")
for name, reduction in itertools.product(DIVISORS, ("SUM", "MEAN")):
    loss_ratio = results[name, reduction] / results["global", "SUM"]
    update_ratio = results[name] / results["global"]
    print(f"{name:12s}  {reduction:12s}   {loss_ratio:24.3f}   {update_ratio:20.3f}")

# %% [markdown] tags=["slide-takeaway"]
# Look at the last line. The printed loss is exactly right, because the factor $R$ and the division by `MEAN` cancel.
# The update is still $R$ times too large. So **the log looks right and the training is wrong**. The two middle lines
# print wrong numbers, so somebody notices.
#
# Under SGD the update is the learning rate times the gradient. $R$ times the gradient is $R$ times the learning rate:
# the program trains with a learning rate that nobody chose and that changes with the number of devices. If that is
# all, then 20 steps with the wrong divisor must equal 20 steps on *one* device with $R$ times the learning rate.
#
# **Predict.** Adam divides each weight's mean gradient by the root of its mean square. What does the wrong divisor do
# to a run with Adam?


# %%
def on_one_device(learning_rate, steps=20):
    """The weights after some SGD steps on one device, from the common start, by the step that is already traced."""
    model.set_weights(start)
    optimizer.learning_rate.assign(learning_rate)
    for images, masks in batches.take(steps):
        single_step(images, masks)
    return model.get_weights()


def on_all_replicas(step, optimizer, divisor, steps=20):
    """The weights after some steps on all replicas; `train_loss` holds the steps' mean loss."""
    rewind(optimizer)
    train_loss.reset_state()
    for images, masks in distributed_batches[:steps]:
        step(images, masks, divisor)
    return replicated.get_weights()


right = on_all_replicas(sgd_step, sgd, DIVISORS["global"])
wrong = on_all_replicas(sgd_step, sgd, DIVISORS["per replica"])
checks.assert_equal_weights(wrong, on_one_device(learning_rate=0.01 * workers))

# %% tags=["varies"]
first, losses = {}, {}
for name, divisor in DIVISORS.items():
    first[name] = change(on_all_replicas(adam_step, adam, divisor, steps=1))
    on_all_replicas(adam_step, adam, divisor)
    losses[name] = float(train_loss.result())
factor = first["per replica"] / first["global"]
print(f"Adam's first update {factor:.3f} times the true one; SGD's was {workers} times the true one")
print(f"mean loss over 20 steps {losses['global']:.3f}, with the wrong divisor {losses['per replica']:.3f}")
sizes = np.concatenate([np.abs(gradient.numpy()).ravel() for gradient in gradients])
Markdown(
    f"Adam's quotient cancels every factor but for its ε (here {adam.epsilon:g}), which is added to "
    "the root so that nothing is divided by 0. Why not exactly 1, then? In section 3, "
    f"{np.mean(sizes[sizes > 0] < 1e-6):.0%} of the gradients that are not 0 were below 0.000001. "
    "Adam's first root is about 3 % of the gradient, and compared with such a root ε is not small."
)

# %% [markdown]
# So the loss of a run with Adam usually does not reveal the mistake. It shows later: with SGD, with gradient clipping,
# with a weight penalty added to the loss, in a log of gradient norms.
#
# The loss objects of legacy Keras refuse to guess. Their default reduction divides by the number of losses they see,
# which in a replica is the per-replica batch size. (Those of Keras 3 divide the mean by the number of replicas, without
# a word: right for equal parts, and divided twice if your program divides, too.)

# %%
with strategy.scope():
    keras_loss = tf.keras.losses.BinaryCrossentropy(from_logits=True)
try:
    two_masks = (distributed_masks, distributed_masks)
    # A lambda has no lines of its own that AutoGraph could convert, and needs no conversion.
    tf.function(lambda: strategy.run(keras_loss, args=two_masks), autograph=False)()
except ValueError as error:
    print(str(error).split(" for loss")[0])

# %% [markdown]
# With `reduction="none"` it does not divide by the batch. But it still averages over the *last* axis, so masks give one
# loss per row of pixels: average those too, because `compute_average_loss` sums everything that it gets. Without
# `global_batch_size` it assumes that all replicas have as many images as this one, which the next section breaks.

# %% [markdown]
# **Question.** A loop uses `reduce_mean` in each replica and logs with `MEAN`. SGD at 0.1 trains well on 1 GPU and
# diverges on 8. A colleague sets 0.0125, and it trains. Why?
#
# 1. Larger batches need smaller learning rates.
# 2. The division by 8 undoes the factor 8 in the gradient.
# 3. By luck: a factor in the loss changes nothing.
#
# <details>
# <summary>Answer</summary>
#
# **2.** The colleague has fixed the loss in the wrong place. Answer 1 has the rule upside down: a larger batch allows a
# *larger* learning rate (notebook 10, large batches). Answer 3 is nearly true of Adam, and false for SGD.
# </details>
#
# ## 7. A last batch that does not fill the replicas
#
# The numbers 1, 2, 3, … instead of losses show it best. A global batch has 4 per replica, and the remainder is too
# small.


# %%
def last_batch(remainder):
    """A distributed batch of `remainder` numbers that comes after one full batch."""
    numbers = np.arange(1, 4 * workers + remainder + 1, dtype="float32")
    batches = tf.data.Dataset.from_tensor_slices(numbers).batch(4 * workers)
    return list(strategy.experimental_distribute_dataset(batches))[-1]


last_batches = {"uneven": last_batch(2 * workers - 1), "too few": last_batch(1)}
for name, batch in last_batches.items():
    parts = strategy.experimental_local_results(batch)
    print(f"{name}:", *(f"replica {r} {part.numpy().astype(int).tolist()}" for r, part in enumerate(parts)), sep="  ")

# %% [markdown] tags=["slide-text", "slide-predict"]
# Each replica gets the remainder divided by the number of replicas, *rounded up*, as long as there is something left.
# So the last ones get less, or *nothing*: an empty batch (4 images on 3 replicas are cut into 2, 2 and 0).
#
# **Predict.** Three divisors for the sum of the losses: the true number of images in this batch, the usual global
# batch size, and the replica's own number times the number of replicas (what `compute_average_loss` assumes without
# `global_batch_size`). Which give the mean of the batch?


# %% tags=["slide-output"]
@tf.function
def three_means(batch):
    def on_replica(losses):
        context = tf.distribute.get_replica_context()
        count = context.all_reduce("SUM", tf.cast(tf.size(losses), tf.float32))
        total, own_mean = tf.reduce_sum(losses), tf.reduce_mean(losses)
        return total / count, total / (4 * workers), own_mean / context.num_replicas_in_sync

    means = strategy.run(on_replica, args=(batch,))
    return [strategy.reduce("SUM", mean, axis=None) for mean in means]


for name, batch in last_batches.items():
    numbers = np.concatenate(strategy.experimental_local_results(batch))
    by_count, by_usual, by_own = (float(mean) for mean in three_means(batch))
    print(
        f"{name}: mean {numbers.mean():.3f}; divided by the true number {by_count:.3f}, "
        f"by the usual one {by_usual:.3f}, by the replica's own {by_own:.3f}"
    )

# %% [markdown]
# - *The true number*, counted with an all-reduce, gives the mean. Every **step** has the same weight.
# - *The usual number* gives less, since the last batch is smaller. Every **image** has the same weight in the epoch.
# - *The replica's own number* gives the images of the emptiest replica the most weight. `reduce_mean` of an empty batch
#   is 0/0: `nan`, "not a number", and one `nan` makes the reduced loss `nan`. The weights stay finite, since the
#   gradient of no images is 0, but the update is wrong. Without `global_batch_size`, `compute_average_loss` returns 0
#   there: no `nan`, but the mean is still wrong.
#
# **The solution** for a loop that must equal one device: sum the losses, and divide by the all-reduced count. A sum
# over no images is 0, so an empty batch does no harm.

# %%
REST = 1  # images in the last batch, fewer than replicas
uneven = tf.data.Dataset.from_tensor_slices((train.images, train.labels)).take(3 * GLOBAL_BATCH + REST)
cross_entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
with strategy.scope():
    classifier = models.mlp(dropout=0.0)
    plain_sgd = tf.keras.optimizers.SGD(0.1)
first_weights = classifier.get_weights()


def counted_step(images, labels):
    context = tf.distribute.get_replica_context()
    count = context.all_reduce("SUM", tf.cast(tf.shape(images)[0], tf.float32))
    with tf.GradientTape() as tape:
        losses = cross_entropy(labels, classifier(images, training=True))
        loss = tf.reduce_sum(losses) / count
    gradients = tape.gradient(loss, classifier.trainable_variables)
    plain_sgd.apply_gradients(zip(gradients, classifier.trainable_variables, strict=True))


run_step = tf.function(lambda images, labels: strategy.run(counted_step, args=(images, labels)), autograph=False)
for images, labels in strategy.experimental_distribute_dataset(uneven.batch(GLOBAL_BATCH)):
    run_step(images, labels)

# %%
alone = models.mlp(dropout=0.0)
alone.set_weights(first_weights)
alone.compile(tf.keras.optimizers.SGD(0.1), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
alone.fit(uneven.batch(GLOBAL_BATCH), verbose=0)
print(f"3 batches of {GLOBAL_BATCH} and one of {REST}, on {workers} replicas and on one device:")
checks.assert_equal_weights(classifier.get_weights(), alone.get_weights())

# %% [markdown]
# Some operations reject an empty batch, so a model with convolutions, like our U-Net, may stop with an error. Then pad
# the last batch with images of weight 0 and count the weights instead of the images, or use `drop_remainder=True`, as
# the rest of this chapter does. It drops a few images per epoch; with shuffling, different ones each time. For
# *evaluation*, where each image must count once, use metrics, which count.
#
# ## 8. Train it, log it, save it
#
# Now the U-Net is trained to the end, with Adam. Evaluation is a second function for `strategy.run`: forward only.

# %%
with strategy.scope():
    test_loss, test_iou = tf.keras.metrics.Mean(), tf.keras.metrics.BinaryIoU(target_class_ids=[1])

test_examples = tf.data.Dataset.from_tensor_slices((noisy_test, masks_test))
test_batches = list(strategy.experimental_distribute_dataset(test_examples.batch(GLOBAL_BATCH)))


# %%
@tf.function
def test_step(images, masks):
    def replica_step(images, masks):
        logits = replicated(images, training=False)
        test_loss.update_state(per_example_loss(masks, logits))
        test_iou.update_state(masks, tf.sigmoid(logits))  # this metric takes probabilities

    strategy.run(replica_step, args=(images, masks))


# %% [markdown]
# To resume a run, you need the weights, the optimizer's variables, and *the position in the data*. The batches of all
# epochs form one long sequence, and each epoch's number seeds its shuffle (together with the program's own seed, which
# a restart sets again). So the sequence is always the same, and one integer, the number of completed steps, says how
# much of it to skip.


# %%
def batches_after(step):
    """The distributed batches of all epochs in one sequence, from a certain step on."""
    sequence = tf.data.Dataset.range(epochs).flat_map(lambda epoch: examples.shuffle(len(noisy), seed=epoch))
    return strategy.experimental_distribute_dataset(sequence.batch(GLOBAL_BATCH, drop_remainder=True).skip(step))


def training(step_function, checkpoint, after_step=None):
    """Continue from the checkpoint's step counter to the end."""
    for images, masks in batches_after(int(checkpoint.step)):
        step_function(images, masks, DIVISORS["global"])
        checkpoint.step.assign_add(1)
        if after_step:
            after_step(int(checkpoint.step))


# %% [markdown] tags=["slide-predict"]
# `tf.train.Checkpoint` names the objects that belong together, and `CheckpointManager` keeps the newest few in a
# folder. We save every 20 steps, twice per epoch.
#
# The log is a file with one JSON object per line. It is opened and closed for each epoch, so a run that dies leaves
# every line it wrote. The metrics are read once per epoch and then reset.
#
# **Predict.** What IoU will the U-Net reach after the first epoch, 40 steps? Section 1 printed the threshold's IoU.

# %%
folder = tempfile.TemporaryDirectory()
log = Path(folder.name) / "history.jsonl"
rewind(adam)
checkpoint = tf.train.Checkpoint(model=replicated, optimizer=adam, step=tf.Variable(0))
manager = tf.train.CheckpointManager(checkpoint, folder.name, max_to_keep=3, checkpoint_name="unet")


def save_and_record(step):
    if step % 20 == 0:
        manager.save(checkpoint_number=step)
    if step % STEPS_PER_EPOCH == 0:
        for images, masks in test_batches:
            test_step(images, masks)
        measured = {"train_loss": train_loss, "test_loss": test_loss, "test_iou": test_iou}
        line = {name: float(metric.result()) for name, metric in measured.items()}
        with log.open("a") as file:
            file.write(json.dumps({"epoch": step // STEPS_PER_EPOCH} | line) + "\n")
        for metric in measured.values():
            metric.reset_state()


# %%
train_loss.reset_state()
training(adam_step, checkpoint, save_and_record)
uninterrupted = replicated.get_weights()
print("in the folder:", *(Path(file).name for file in manager.checkpoints))

# %% tags=["varies", "slide-output"]
history = [json.loads(line) for line in log.read_text().splitlines()]
curves = {name: [line[name] for line in history] for name in history[0]}
threshold_iou = scores(naive["noisy pixel above 0.5"], true)[0]
figure, (losses_plot, iou_plot) = plt.subplots(1, 2, figsize=(7.2, 2.8))
losses_plot.plot(curves["epoch"], curves["train_loss"], label="training")
losses_plot.plot(curves["epoch"], curves["test_loss"], label="test")
losses_plot.set(xlabel="epoch", ylabel="loss", xticks=curves["epoch"])
losses_plot.legend(loc="upper right")
iou_plot.plot(curves["epoch"], curves["test_iou"], color=draw.RANK_COLOURS[2], marker=draw.MARKERS[2])
iou_plot.axhline(threshold_iou, color=draw.RANK_COLOURS[7], linestyle=":", marker="")
iou_plot.annotate("threshold", (1, threshold_iou), (0, 4), textcoords="offset points")
iou_plot.set(xlabel="epoch", ylabel="IoU on the test images", ylim=(0, 1), xticks=curves["epoch"])
first_iou, last_iou = curves["test_iou"][0], curves["test_iou"][-1]
draw.show(
    figure,
    f"Two plots over {epochs} epochs: the losses on training and test images, and the IoU on the test "
    f"images. The IoU ends at {last_iou:.2f}; the threshold's, dotted, is {threshold_iou:.2f}.",
)
verdict = "above" if last_iou > threshold_iou else "not yet above"
Markdown(
    f"After one epoch the IoU is {first_iou:.2f}, at the end {last_iou:.2f}, {verdict} the threshold's "
    f"{threshold_iou:.2f}. A threshold sees one pixel. The U-Net sees its surroundings: noise has no "
    "shape, a stroke has one."
)

# %% tags=["varies", "slide-output"]
predicted = replicated.predict(noisy_test, batch_size=GLOBAL_BATCH, verbose=0) > 0  # a logit above 0 means digit
by_threshold = noisy_test > 0.5
names = ("noisy image", "threshold", "U-Net", "true mask")
figure, rows = plt.subplots(4, 6, figsize=(7.2, 5.1))
for row, masks_of, name in zip(rows, (noisy_test, by_threshold, predicted, true), names, strict=True):
    row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    for i, axes in enumerate(row):
        axes.imshow(masks_of[i], cmap="gray", vmin=0, vmax=1)
        axes.set(xticks=[], yticks=[])
        if name in ("threshold", "U-Net"):
            axes.set_xlabel(f"IoU {scores(masks_of[i], true[i])[0]:.2f}", fontsize=8.5)
draw.show(
    figure,
    "Six test images in four rows: the noisy image; the mask by threshold, full of single "
    "white dots; the U-Net's mask, usually whole strokes; the true mask. The IoU is "
    "printed under each predicted mask.",
)
print("all test images, U-Net: IoU {:.2f}, pixel accuracy {:.2f}".format(*scores(predicted, true)))
print(f"the metric, added up over all replicas: IoU {last_iou:.2f}")

# %% [markdown] tags=["slide-predict"]
# `fit`'s TensorBoard callback has a counterpart too: `tf.summary.scalar` writes the files that TensorBoard shows. It
# needs the package tensorboard, which this course does not install.
#
# ## 9. Continue after a restart
#
# Suppose that the machine stopped between the last two checkpoints. A new program starts: a *new* model, a *new*
# optimizer, a new step counter. It restores the checkpoint that is 20 steps old and resumes in the middle of an
# epoch.
#
# `assert_consumed` raises an error if the file holds something that no object took. It needs an optimizer whose
# variables exist, which is why `replicated_step` builds it first.
#
# **Predict.** Is the continued run equal to the uninterrupted one? And if only the model is restored, or model and
# optimizer, but with the data from the epoch's start?

# %% tags=["slide-output"]
with strategy.scope():
    resumed, resumed_adam = models.unet(), tf.keras.optimizers.Adam(0.005)
resumed_step = replicated_step(resumed, resumed_adam)
after_restart = tf.train.Checkpoint(model=resumed, optimizer=resumed_adam, step=tf.Variable(0))
older = manager.checkpoints[-2]
after_restart.restore(older).assert_consumed()
print("restored", Path(older).name, "of", epochs * STEPS_PER_EPOCH, "steps")
training(resumed_step, after_restart)
checks.assert_equal_weights(resumed.get_weights(), uninterrupted)


# %% tags=["varies", "slide-output", "slide-continued"]
def largest_difference(first_step, keep_optimizer):
    """Resume from the older checkpoint with 20 steps, and compare with the uninterrupted run."""
    after_restart.restore(older)
    if not keep_optimizer:
        for variable, value in zip(resumed_adam.variables, initial_state["Adam"], strict=True):
            variable.assign(value)
    for images, masks in itertools.islice(batches_after(first_step), 20):
        resumed_step(images, masks, DIVISORS["global"])
    return checks.largest_difference(resumed.get_weights(), uninterrupted)


saved_step = epochs * STEPS_PER_EPOCH - 20
print(f"without the optimizer    a weight differs by {largest_difference(saved_step, keep_optimizer=False):.2f}")
print(f"without the step counter a weight differs by {largest_difference(saved_step - 20, keep_optimizer=True):.2f}")

# %% [markdown]
# Without Adam's two averages per weight the first new steps have another size and direction. Without the step counter
# the run repeats batches. Neither raises an error.
#
# The metrics' totals were not in the checkpoint: the mean training loss of the interrupted epoch would cover its
# second half only. Add the metrics to the `Checkpoint` if you need it. With several machines, one of them keeps the
# log (notebook 07, multi-worker).

# %% [markdown]
# **Question.** A run saves in the middle and at the end of each epoch and logs at its end. It dies right after the
# log's line for epoch 5, before that epoch's last checkpoint. What does the log hold when the continued run is done?
#
# 1. Each epoch once.
# 2. Epoch 5 twice.
# 3. No line for epoch 5.
#
# <details>
# <summary>Answer</summary>
#
# **2.** Log and checkpoint are written at different moments, and a continued run repeats what came after its
# checkpoint. Answer 1 needs a program that drops, at the restart, all lines later than the checkpoint's step: a good
# idea. Answer 3 assumes that restoring the checkpoint also shortens the log.
# </details>
#
# ## 10. Proof
#
# Same first weights, same global batches, SGD, 20 steps: one device against all replicas.

# %%
checks.assert_equal_weights(right, on_one_device(learning_rate=0.01))
try:
    checks.assert_equal_weights(wrong, right)
except AssertionError as error:
    print("with the wrong divisor:", error)

# %% [markdown]
# A proof is worth something only if it can fail, so the cell applies the same check to the wrongly divided run of
# section 6. SGD is used on purpose: a wrong factor in the gradient shows in full, while Adam takes most of it away. The
# remaining differences are rounding: $R$ partial sums are added in another order than one sum.

# %% [markdown] tags=["slide-table"]
# ## 11. `fit` or a custom loop?
#
# | you want | use |
# |---|---|
# | one model, one loss, standard metrics | `fit`: it divides for you; callbacks log, save, stop early |
# | another gradient step, the rest as usual | `fit` with a model class whose `train_step` you override |
# | several models or optimizers in one step (GANs, distillation) | `fit` with `train_step`, or a loop |
# | gradients from several batches before one update, other reductions | a loop |
# | to see and test each part | a loop |
#
# A loop's price is what this chapter is about: the divisor, the last batch, tracing, the log, resuming. Each is a few
# lines that can be wrong without an error.

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("04")

# %% [markdown]
# ## Recap
#
# - A step is forward, loss, gradient, apply; `tf.function` traces it per shape.
# - Replicas need variables in the scope, a distributed data set, `strategy.run`.
# - `apply_gradients` sums, so each replica divides by the *global* batch size.
# - Dividing by the per-replica batch size multiplies the gradient by the number of replicas. Adam almost hides it.
# - An empty part of a last batch has the mean `nan`: divide the sum by the all-reduced count, or drop the remainder.
# - With model, optimizer and step counter restored, a resumed run is the uninterrupted one.
#
# **Next.** [Lab 04](../labs/04_custom_training_loop/lab.ipynb), [05 save and load](05_save_and_load.ipynb)
#
# **Sources.**
# - Ronneberger, Fischer, Brox (2015), *U-Net: convolutional networks for biomedical image segmentation*,
#   [arXiv:1505.04597](https://arxiv.org/abs/1505.04597).
# - Kingma, Ba (2015), *Adam: a method for stochastic optimization*, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980).
# - Goyal et al. (2017), *Accurate, large minibatch SGD*, [arXiv:1706.02677](https://arxiv.org/abs/1706.02677), section
#   3.
# - TensorFlow tutorial: [Custom training with
#   tf.distribute.Strategy](https://www.tensorflow.org/tutorials/distribute/custom_training).
