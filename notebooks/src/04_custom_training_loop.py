# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 04 Custom training loop
#
# **Goal.** Write a custom training loop, run it on one device, then on several, and show that both train the same
# model, with a weight penalty and with a last batch that does not fill the replicas.
#
# **Time.** 45 minutes to read, under a minute to run.
#
# **Before this.** [02 single-device baseline](02_single_device_baseline.ipynb) and
# [03 mirrored strategy](03_mirrored_strategy.ipynb)
#
# **Questions.**
# - Which lines does `fit` hide, and what changes in them for several replicas?
# - By which batch size must each replica divide its loss, and what happens if it uses the other one?
# - What happens to a penalty on the weights, and to a small last batch?
# - When is a step traced again, and how does a whole epoch become one graph?
# - When is a custom loop worth it?
#
# **Hardware.** Two processor cores. Without GPUs the replicas run on logical CPU devices.

# %% tags=["parameters"]
dataset = "digits"  # images of section 2 and later: digits, mnist or fashion_mnist
epochs = 3  # passes over the training images
workers = 2  # replicas of the model, 1 to 8

# %% jupyter={"source_hidden": true}
from distlab import checks, data, draw, metrics, models, programs, quizzes

import inspect
import warnings

import matplotlib.pyplot as plt
import tensorflow as tf

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no notes about how each collective was carried out
warnings.filterwarnings("ignore", message="To make it possible to preserve tf.data options")
tf.keras.utils.set_random_seed(4)
tf.config.experimental.enable_tensor_float_32_execution(False)  # else newer GPUs round

# %% [markdown]
# ## 1. The whole loop
#
# `fit` is a loop that somebody else has written. This chapter writes it out, because some kinds of training need a
# different one, and because a few of its lines can be wrong on several devices without any error.
#
# The task is **segmentation**: give each pixel a class, here digit or background. The input is a clean image plus
# Gaussian noise. The target, the **mask**, is 1 where the clean image is bright. The next two cells are a whole
# program, with scikit-learn's small digits; with the parameters above it also runs as a separate file.

# %% tags=["program"]
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

logical = [tf.config.LogicalDeviceConfiguration()] * workers
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
kind = "GPU" if len(tf.config.list_logical_devices("GPU")) >= workers else "CPU"
strategy = tf.distribute.MirroredStrategy([f"{kind}:{i}" for i in range(workers)])

GLOBAL_BATCH = 32 // workers * workers  # at most 32, the same number for each replica
images = load_digits().images[:1280].reshape(-1, 8, 8, 1) / 16
noisy = images + np.random.default_rng(0).normal(0, 0.3, images.shape)
samples = tf.data.Dataset.from_tensor_slices((np.float32(noisy), np.float32(images > 0.5)))
samples = samples.shuffle(1280, seed=1).batch(GLOBAL_BATCH, drop_remainder=True)
batches = strategy.experimental_distribute_dataset(samples)

with strategy.scope():
    features = tf.keras.layers.Conv2D(16, 3, padding="same", activation="relu")
    scores = tf.keras.layers.Conv2D(1, 3, padding="same")
    model = tf.keras.Sequential([tf.keras.layers.Input((8, 8, 1)), features, scores])
    optimizer = tf.keras.optimizers.Adam(0.01)
    optimizer.build(model.trainable_variables)  # Keras 3 cannot do it inside a graph


# %% tags=["program", "varies", "slide-code"]
def replica_step(images, masks):
    with tf.GradientTape() as tape:
        logits = model(images, training=True)
        per_pixel = tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=logits)
        per_image = tf.reduce_mean(per_pixel, axis=(1, 2, 3))
        loss = tf.nn.compute_average_loss(per_image, global_batch_size=GLOBAL_BATCH)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


@tf.function
def train_step(images, masks):
    return strategy.reduce("SUM", strategy.run(replica_step, args=(images, masks)), axis=None)


for epoch in range(epochs):
    losses = [float(train_step(*batch)) for batch in batches]  # float() waits for the step
    print(f"epoch {epoch + 1}: {len(losses)} steps, mean loss {np.mean(losses):.3f}")

# %% [markdown]
# Five calls deal with the replicas. The scope creates each variable once per replica, the data set is distributed,
# `strategy.run` calls the step on every replica, `compute_average_loss` divides by the *global* batch size, and
# `strategy.reduce` adds up the returned losses. A sixth is easy to overlook: `apply_gradients` first **adds up** the
# gradients of all replicas.
#
# ## 2. Segmentation with a U-Net
#
# From here on the images are those of the course, 28 × 28 pixels, and the noise is stronger. An epoch has 40 global
# batches whatever the data set, and a test has 10. The strategy stays that of section 1: two strategies in one process
# can disturb each other.

# %% tags=["varies"]
print(data.describe(dataset))
train, test = data.load(dataset)


def segmentation_task(images, noise=0.5, threshold=0.5, seed=0):
    """Noisy copies of the images, and the mask of each clean one: 1 above the threshold."""
    disturbance = np.random.default_rng(seed).normal(0, noise, images.shape)
    return np.float32(images + disturbance), np.float32(images > threshold)


PER_REPLICA_BATCH = GLOBAL_BATCH // workers
noisy, masks = segmentation_task(train.images[: 40 * GLOBAL_BATCH])
noisy_test, masks_test = segmentation_task(test.images[: 10 * GLOBAL_BATCH], seed=1)
print(f"{workers} replicas on {kind} devices")


# %% tags=["varies"] jupyter={"source_hidden": true}
def show_rows(description, **rows):
    figure, all_axes = plt.subplots(len(rows), 6, figsize=(7.2, 1.2 * len(rows)))
    for axes_of_row, (name, pictures) in zip(all_axes, rows.items(), strict=True):
        axes_of_row[0].set_ylabel(name, rotation=0, ha="right", va="center")
        for axes, picture in zip(axes_of_row, pictures[:6], strict=True):
            axes.imshow(picture, cmap="gray", vmin=0, vmax=1)
            axes.set(xticks=[], yticks=[])
    draw.show(figure, description)


pictures = {"clean": test.images, "input": noisy_test, "target": masks_test}
show_rows("Test images: clean, noisy; masks, white where the image is bright.", **pictures)

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
by_threshold = noisy_test > 0.5
rules = {"all background": np.zeros_like(true), "noisy pixel above 0.5": by_threshold}
for name, mask in rules.items():
    print("{:22s} IoU {:.2f}   pixel accuracy {:.2f}".format(name, *scores(mask, true)))

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# A mask that finds nothing still gets every background pixel right, so its pixel accuracy looks respectable. Its IoU is
# 0. We judge by IoU.
#
# A threshold sees one pixel at a time. A **U-Net** sees its surroundings:
#
# ![A U-Net: max pooling leads down to 14 × 14 and 7 × 7, then up again, with copies across](../figures/04_unet.svg)
#
# The left side shrinks the picture, so that each number at the bottom sees a large part of it: *is there a stroke?* The
# right side enlarges it again. The copies across, called **skip connections**, give it the fine detail that shrinking
# lost: *where exactly is its edge?* The output is one **logit** per pixel: above 0 means digit. `models.unet` builds it
# with Keras's layers.

# %% [markdown]
# ## 3. One step, recorded as a graph
#
# A training step does four things: forward, loss, gradient, apply. The **gradient tape** records the operations of the
# forward pass, so that it can differentiate the loss. The loss starts as *one number per image*; how to reduce them is
# the subject of section 5.


# %%
def per_image_loss(masks, logits):
    """One number per image: the mean cross-entropy of its pixels."""
    per_pixel = tf.nn.sigmoid_cross_entropy_with_logits(labels=masks, logits=logits)
    return tf.reduce_mean(per_pixel, axis=(1, 2))


def one_device_step(model, optimizer):
    optimizer.build(model.trainable_variables)  # else the first call does it

    @tf.function
    def train_step(images, masks):
        with tf.GradientTape() as tape:
            losses = per_image_loss(masks, model(images, training=True))
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    return train_step


# %% [markdown] tags=["slide-text", "slide-predict"]
# `@tf.function` runs the Python code of the step with placeholders at the first call, records the operations as a
# graph, and then runs the graph. The recording is called **tracing**. A graph belongs to the shapes of its arguments:
# another shape is traced again. Tracing a large model takes many seconds. Python's side effects, such as an `append`,
# happen while tracing only, which lets us count.
#
# **Predict.** A step is called with batches of 32, 32, 27, 32 and 20 images. How many traces?


# %% tags=["slide-output"]
def sizes_traced(**options):
    """The batch size of each trace, for five batches of three sizes."""
    traced = []

    @tf.function(**options)
    def mean(images):
        traced.append(images.shape[0])
        return tf.reduce_mean(images)

    for size in (32, 32, 27, 32, 20):
        mean(tf.zeros((size, 28, 28)))
    return traced


print("tf.function:     ", sizes_traced())
print("reduce_retracing:", sizes_traced(reduce_retracing=True))
print("input_signature: ", sizes_traced(input_signature=[tf.TensorSpec((None, 28, 28))]))

# %% [markdown] tags=["slide-takeaway"]
# Each new size costs a trace. With `reduce_retracing=True` the second one is traced as `None`, unknown, and this graph
# serves all that follow. With `input_signature` you say so from the start: there is one graph, and a wrong shape raises
# an error instead of being traced.
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
# 1. A Python number is part of the graph.
# 2. **Right.** Each number is another graph. Use a `tf.Variable`, or pass a tensor.
# 3. That would happen if the step read `epoch` as a *global* Python variable: it is read once, while tracing.
# </details>

# %% [markdown]
# ## 4. The same step under a strategy
#
# **Variables** are created in the strategy's scope: model, optimizer, metrics. Weights and optimizer state then have an
# equal copy on every replica. A metric counts on each replica by itself, and reading it adds up the counts. The data
# set is batched with the *global* batch size, and `experimental_distribute_dataset` cuts each batch into one part per
# replica. The images of a distributed batch are a `PerReplica` value: a bundle of tensors, one per device. So are the
# masks, and so is what `strategy.run` returns.
#
# What one replica does goes into a function, and `strategy.run` calls it on every replica. The cell shows each
# difference from the step for one device: lines with `-` are gone, lines with `+` are new.


# %% tags=["slide-output"]
def replicated_step(model, optimizer, divisor):
    with strategy.scope():
        optimizer.build(model.trainable_variables)  # else the first call does it

    def replica_step(images, masks):
        with tf.GradientTape() as tape:
            losses = per_image_loss(masks, model(images, training=True))
            loss = tf.nn.compute_average_loss(losses, global_batch_size=divisor)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def train_step(images, masks):
        return strategy.run(replica_step, args=(images, masks))

    return train_step


before, after = map(inspect.getsource, (one_device_step, replicated_step))
programs.changes(before, after, context=20)

# %% [markdown] tags=["slide-takeaway"]
# `apply_gradients` is not marked, yet it does more than before: it first **sums** the gradients over all replicas, an
# all-reduce. So each replica's gradient must be its *share* of the whole.

# %%
model = models.unet()
start = model.get_weights()  # every run of the U-Net begins with these
with strategy.scope():
    replicated = models.unet()
    sgd = tf.keras.optimizers.SGD(0.01)
replicated.set_weights(start)
sgd_step = replicated_step(replicated, sgd, divisor=GLOBAL_BATCH)

samples = tf.data.Dataset.from_tensor_slices((noisy, masks))
twenty = samples.batch(GLOBAL_BATCH, drop_remainder=True).take(20)
distributed = strategy.experimental_distribute_dataset(twenty)
first_batch = next(iter(distributed))
parts = sgd_step(*first_batch)
images, losses = map(strategy.experimental_local_results, (first_batch[0], parts))
for replica in range(workers):
    print(f"replica {replica}: {len(images[replica])} images, returns {losses[replica]:.3f}")
for reduction in ("SUM", "MEAN"):
    print(f"reduced with {reduction}: {strategy.reduce(reduction, parts, axis=None):.3f}")

# %% [markdown]
# The parts add up to the mean over the global batch, so `SUM` is right, and `MEAN` would divide a second time. The sum
# is close to $\ln 2 \approx 0.69$, the [first loss](03_mirrored_strategy.ipynb) of a model that knows nothing about two
# classes. (A `Mean` metric must get the losses *per image*. Given the divided loss, it would average the parts.)
#
# Does this train the same model? We compare 20 steps of SGD from the same first weights:


# %%
def weights_after(step, model, batches):
    """The weights after 20 steps from the common start."""
    model.set_weights(start)
    for images, masks in batches:
        step(images, masks)
    return model.get_weights()


single_sgd = tf.keras.optimizers.SGD(0.01)
single_step = one_device_step(model, single_sgd)
right = weights_after(sgd_step, replicated, distributed)
checks.assert_equal_weights(right, weights_after(single_step, model, twenty))

# %% [markdown]
# The remaining difference is rounding: a sum of partial sums is added in another order than one sum.
#
# **Question.** Which of these need *not* be created in the scope?
#
# 1. The optimizer.
# 2. The data set.
# 3. A metric that the step updates.
#
# <details>
# <summary>Answer</summary>
#
# 1. An optimizer has variables: a step counter, and Adam's averages.
# 2. **Right.** The scope is about where *variables* live, and a data set holds none.
# 3. A metric has variables too: a total and a count.
# </details>

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 5. Divide by the global batch
#
# A global batch of $B$ images is cut into $R$ parts of $b = B/R$. The gradient of the mean of the losses $\ell_i$ is a
# sum of $R$ shares:
#
# $$\nabla \frac{1}{B} \sum_{i=1}^{B} \ell_i = \sum_{r=1}^{R} \nabla \frac{1}{B} \sum_{i \in \text{part } r} \ell_i$$
#
# The all-reduce does the outer sum. Each replica must divide by $B$, the *global* batch size. `reduce_mean`, which
# was right on one device, divides by $b$: each share is $R$ times too large, and so is the sum.
#
# **Predict.** There are two choices: the divisor, and the reduction of the *printed* loss. Three of the four
# combinations are wrong. In which do you see it in the log?


# %% tags=["slide-output"]
wrong_step = replicated_step(replicated, sgd, divisor=PER_REPLICA_BATCH)
rows = []
for divided_by, step in (("global", sgd_step), ("per replica", wrong_step)):
    replicated.set_weights(start)
    parts = step(*first_batch)
    update = checks.largest_difference(replicated.get_weights(), start)
    for reduction in ("SUM", "MEAN"):
        loss = float(strategy.reduce(reduction, parts, axis=None))
        rows.append((divided_by, reduction, loss, update))

_, _, true_loss, true_update = rows[0]
print("divided by    reduced with   printed loss ÷ true loss   update ÷ true update")
for divided_by, reduction, loss, update in rows:
    ratios = f"{loss / true_loss:24.3f}   {update / true_update:20.3f}"
    print(f"{divided_by:12s}  {reduction:12s}   {ratios}")

# %% [markdown] tags=["slide-takeaway"]
# Look at the last line. The printed loss is exactly right, because the factor $R$ and the division by `MEAN` cancel.
# The update is still $R$ times too large. So **the log looks right and the training is wrong**. The two middle lines
# print a wrong loss, so somebody notices.
#
# Under SGD the update is the learning rate times the gradient. So the program trains with a learning rate that nobody
# chose and that changes with the number of devices: 20 steps with the wrong divisor must equal 20 steps on *one* device
# with $R$ times the learning rate.

# %%
wrong = weights_after(wrong_step, replicated, distributed)
single_sgd.learning_rate.assign(0.01 * workers)
checks.assert_equal_weights(wrong, weights_after(single_step, model, twenty))
difference = checks.largest_difference(wrong, right)
print(f"wrong against right divisor, largest difference: {difference:.1g}")

# %% [markdown]
# Adam would have hidden most of this factor ([chapter 00](00_start_here.ipynb)), which is why we compare under SGD.
#
# **Keras's loss objects** divide by the number of losses that they see, and a replica sees only its part of the
# batch. Under a strategy legacy Keras refuses this with a `ValueError`. Keras 3 silently divides the mean by the number
# of replicas: right for equal parts, and divided twice if your program divides too. With `reduction="none"` both leave
# the division to you. `BinaryCrossentropy` still averages over the *last* axis: masks give one loss per *row* of
# pixels, and these must be averaged too.

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
# 1. The rule is upside down: a larger batch allows a *larger* learning rate
#    ([chapter 10](10_large_batch_and_warmup.ipynb)).
# 2. **Right.** The colleague has repaired the loss in the wrong place.
# 3. Under SGD the factor multiplies the update.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 6. A penalty on the weights
#
# A regulariser adds a penalty to the loss. `fit` does this by itself; for a custom loop the model only *collects* the
# penalties in `model.losses`, and the step must add them. They depend on the weights, which are the same on all
# replicas, and on no image.
#
# **Predict.** Every replica runs the same code. If each adds the whole penalty to its share of the loss, how much of it
# is in the sum?


# %% tags=["slide-output"]
def classifier():
    layers = tf.keras.layers
    inputs = [layers.Input((28, 28)), layers.Flatten()]
    penalty = tf.keras.regularizers.L2(0.01)
    hidden = layers.Dense(32, activation="relu", kernel_regularizer=penalty)
    return tf.keras.Sequential([*inputs, hidden, layers.Dense(10)])


with strategy.scope():
    penalized = classifier()


@tf.function
def penalties_on_replica():
    penalty = tf.add_n(penalized.losses)
    return penalty, tf.nn.scale_regularization_loss(penalty)


print(f"the model's penalty: {tf.add_n(penalized.losses):.3f}")
whole, scaled = strategy.run(penalties_on_replica)
print(f"whole on each replica: {strategy.reduce('SUM', whole, axis=None):.3f} in the sum")
print(f"scaled on each replica: {strategy.reduce('SUM', scaled, axis=None):.3f} in the sum")

# %% [markdown] tags=["slide-takeaway"]
# Unscaled, the penalty grows with the number of devices, and no error says so. `tf.nn.scale_regularization_loss`
# divides by the number of replicas. Every replica step whose model has regularisers needs it:
#
# ```python
# loss = tf.nn.compute_average_loss(losses, global_batch_size=GLOBAL_BATCH)
# loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
# ```
#
# ## 7. A last batch that does not fill the replicas
#
# The best fix is to **avoid short batches**. For training, use `batch(…, drop_remainder=True)` as this chapter does:
# with shuffling, other images are left out in each epoch. Or call `repeat()` before `batch`, so that a batch runs on
# into the next epoch. For evaluation use metrics, because they count images.
#
# If a loop must see every image in every epoch, you have to know what a short batch becomes. The numbers 1, 2, 3, …
# instead of losses show it best.


# %%
def last_batch(remainder):
    """The batch of `remainder` numbers that comes after one full batch, of 4 per replica."""
    numbers = np.arange(4 * workers + remainder, dtype="float32") + 1
    batches = tf.data.Dataset.from_tensor_slices(numbers).batch(4 * workers)
    return list(strategy.experimental_distribute_dataset(batches))[-1]


last_batches = {"uneven": last_batch(2 * workers - 1), "too few": last_batch(1)}
for name, batch in last_batches.items():
    parts = [part.numpy().tolist() for part in strategy.experimental_local_results(batch)]
    print(f"{name}: the replicas get", *parts)

# %% [markdown] tags=["slide-text", "slide-predict"]
# Each replica gets the remainder divided by the number of replicas, *rounded up*, as long as there is something left.
# So the last ones get less, or *nothing*: an empty batch.
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


print("           mean   by true number   by usual number   by own number")
for name, batch in last_batches.items():
    numbers = np.concatenate(strategy.experimental_local_results(batch))
    by_true, by_usual, by_own = (float(mean) for mean in three_means(batch))
    print(f"{name:8s} {numbers.mean():6.2f} {by_true:16.2f} {by_usual:17.2f} {by_own:15.2f}")

# %% [markdown]
# - *The true number*, counted with an all-reduce, gives the mean of this batch. In the epoch every **step** then has
#   the same weight.
# - *The usual number* gives less, since the last batch is smaller. Every **image** has the same weight in the epoch.
# - *The replica's own number* gives the images of the emptiest replica the most weight. The mean of an empty part is
#   0/0: `reduce_mean` returns `nan`, and one `nan` makes the reduced loss `nan`. (The weights stay finite: the gradient
#   of an empty part is 0. `compute_average_loss` also gives it the loss 0, so nothing shows.)
#
# So a loop that must equal one device sums the losses and divides by the all-reduced count. The next step does this,
# with the scaled penalty. It also runs on one device: outside a scope `get_strategy()` gives a default strategy with
# one replica.


# %%
def counted_step(strategy, model, optimizer):
    def replica_step(images, labels):
        context = tf.distribute.get_replica_context()
        count = context.all_reduce("SUM", tf.cast(tf.shape(images)[0], tf.float32))
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_sum(losses) / count
            loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def train_step(images, labels):
        return strategy.run(replica_step, args=(images, labels))

    return train_step


# %% [markdown]
# ## 8. A whole epoch in one graph
#
# So far Python has called the graph once per step. A loop over a distributed data set *inside* a `tf.function` becomes
# part of the graph: one call runs the epoch. This is the custom loop's counterpart of
# [`steps_per_execution`](02_single_device_baseline.ipynb). It is also traced only once: the data set's `element_spec`
# leaves the batch size open.
#
# Now all parts together must train what one device trains: three full batches and one with a single image, the penalty,
# and the epoch in one call.


# %%
def epoch_function(strategy, train_step):
    @tf.function
    def train_epoch(batches):
        total, steps = 0.0, 0.0
        for batch in batches:
            total += strategy.reduce("SUM", train_step(*batch), axis=None)
            steps += 1.0
        return total / steps

    return train_epoch


# %%
labelled = tf.data.Dataset.from_tensor_slices((train.images, train.labels))
uneven = labelled.take(3 * GLOBAL_BATCH + 1).batch(GLOBAL_BATCH)
results = []
for any_strategy in (tf.distribute.get_strategy(), strategy):
    with any_strategy.scope():
        model, plain_sgd = classifier(), tf.keras.optimizers.SGD(0.1)
        plain_sgd.build(model.trainable_variables)
    model.set_weights(penalized.get_weights())
    train_step = counted_step(any_strategy, model, plain_sgd)
    train_epoch = epoch_function(any_strategy, train_step)
    loss = train_epoch(any_strategy.experimental_distribute_dataset(uneven))
    print(f"replicas: {any_strategy.num_replicas_in_sync}, mean loss {loss:.3f}")
    results.append(model.get_weights())
checks.assert_equal_weights(*results)

# %% tags=["varies", "slide-output"]
many = labelled.take(40 * GLOBAL_BATCH).batch(GLOBAL_BATCH)
many = strategy.experimental_distribute_dataset(many)


def each_step():
    losses = [train_step(*batch) for batch in many]
    return float(strategy.reduce("SUM", losses[-1], axis=None))  # waits for the last


by_step = metrics.median_seconds(each_step)
by_epoch = metrics.median_seconds(lambda: float(train_epoch(many)))
print(f"40 steps, a call each: {1000 * by_step:.0f} ms; in one call: {1000 * by_epoch:.0f} ms")

# %% [markdown] tags=["slide-predict"]
# Python's part of a step hardly grows with the computation, so small steps gain most and large ones next to nothing.
# The price: between the steps of an epoch no Python code runs, so Python cannot print, save or stop there (`tf.print`
# can print).
#
# ## 9. Train the U-Net
#
# Evaluation is a second function for `strategy.run`: forward only, with a metric that is created in the scope. It
# returns nothing to reduce: `result()` adds up the replicas' counts.
#
# **Predict.** What IoU will the U-Net reach after the first epoch, 40 steps? Section 2 printed the threshold's IoU.

# %%
with strategy.scope():
    adam = tf.keras.optimizers.Adam(0.005)
    test_iou = tf.keras.metrics.BinaryIoU(target_class_ids=[1])
replicated.set_weights(start)


def test_on_replica(images, masks):
    test_iou.update_state(masks, tf.sigmoid(replicated(images)))  # it takes probabilities


@tf.function
def evaluate(batches):
    for images, masks in batches:
        strategy.run(test_on_replica, args=(images, masks))


# %% tags=["varies", "slide-output"]
shuffled = samples.shuffle(len(noisy), seed=1).batch(GLOBAL_BATCH, drop_remainder=True)
train_batches = strategy.experimental_distribute_dataset(shuffled)
tests = tf.data.Dataset.from_tensor_slices((noisy_test, masks_test)).batch(GLOBAL_BATCH)
test_batches = strategy.experimental_distribute_dataset(tests)

train_epoch = epoch_function(strategy, replicated_step(replicated, adam, divisor=GLOBAL_BATCH))
for epoch in range(epochs):
    loss = train_epoch(train_batches)
    test_iou.reset_state()
    evaluate(test_batches)
    print(f"epoch {epoch + 1}: mean loss {loss:.3f}, test IoU {test_iou.result():.2f}")

# %% tags=["varies", "slide-output"] jupyter={"source_hidden": true}
logits = replicated.predict(noisy_test, batch_size=GLOBAL_BATCH, verbose=0)
masks = {"threshold": by_threshold, "U-Net": logits > 0, "target": true}
show_rows("Noisy images, masks by threshold, U-Net, true masks.", input=noisy_test, **masks)

# %% [markdown] tags=["slide-table"]
# The U-Net has learned that a stroke has a shape and noise has none.
#
# ## 10. `fit` or a custom loop?
#
# | you want | use |
# |---|---|
# | one model, one loss, full batches | `fit`: it divides for you; callbacks log, save, stop early |
# | another gradient step, several models (GANs) | `fit` with a model whose `train_step` you override |
# | gradients from several batches before one update | `train_step`, or a loop |
# | another order of steps and epochs, other reductions | a loop |
# | to see and test each part | a loop |

# %% [markdown]
# ## Quiz
#
# With `seed=2` the questions have other numbers.

# %% jupyter={"source_hidden": true}
quizzes.ask("04")

# %% [markdown]
# ## Recap
#
# - A step is forward, loss, gradient, apply. `tf.function` traces it once per shape; a loop over a data set inside it
#   becomes part of the graph.
# - Replicas need variables in the scope, a distributed data set, `strategy.run`.
# - `apply_gradients` sums, so each replica divides by the *global* batch size.
# - With the per-replica batch size the gradient is too large by the number of replicas, and the log can look right.
# - Each replica adds its share of the penalty: `tf.nn.scale_regularization_loss`.
# - Avoid short last batches; or divide the sum of the losses by the all-reduced count.
#
# **Next.** [Lab 04](../labs/04_custom_training_loop/lab.ipynb), [05 save and load](05_save_and_load.ipynb)
#
# **Sources.**
# - Ronneberger, Fischer, Brox (2015), *U-Net: convolutional networks for biomedical image segmentation*,
#   [arXiv:1505.04597](https://arxiv.org/abs/1505.04597).
# - Goyal et al. (2017), *Accurate, large minibatch SGD*, [arXiv:1706.02677](https://arxiv.org/abs/1706.02677), section
#   3.
# - TensorFlow tutorial: [Custom training with
#   tf.distribute.Strategy](https://www.tensorflow.org/tutorials/distribute/custom_training).
