# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 03 Mirrored strategy
#
# **Goal.** Train one network on several devices of one machine with `tf.distribute.MirroredStrategy`, correct the
# lecture's program, and prove that the parallel run computes what one device computes.
#
# **Time.** 35 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb) and
# [02 single-device baseline](02_single_device_baseline.ipynb).
#
# **Questions.**
# - What does the strategy copy, what does it divide, and what do the devices exchange?
# - Which batch size does `batch(...)` set, and what happens to the last batch?
# - What is wrong with the lecture's distributed program, and how does it show?
# - Who sends what to whom in TensorFlow's three reductions?
# - Are the devices busy at the same time, and is the result the same?
# - Why is it not twice as fast here?
#
# **Hardware.** Any machine. With at least `workers` GPUs it runs on those, else on logical CPU devices.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; at most 8,000 of its training images are used
epochs = 2  # passes over these images, in each training run
workers = 2  # how many devices train, one replica on each; with 1 there is nothing to share

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import itertools
import math
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, data, devices, draw, models, profiling, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # else it announces every strategy and every all-reduce that it plans
tf.keras.utils.set_random_seed(3)
tf.config.experimental.enable_tensor_float_32_execution(False)  # else some GPUs round factors to 10 bits
print(data.describe(dataset))
train, test = data.load(dataset)

# %% [markdown]
# ## 1. The whole program
#
# Without GPUs the processor is divided into **logical devices**. TensorFlow treats each as a separate device, but they
# share the cores. If there are fewer GPUs than `workers`, the next cell makes at least four and uses the first
# `workers` of them.

# %% tags=["varies"]
gpus = len(tf.config.list_physical_devices("GPU"))
names = devices.at_least(workers if gpus >= workers else max(workers, 4))
chosen = names[:workers]
print("chosen:", chosen)

# %% [markdown]
# This is everything that a program needs to train on several devices.

# %% tags=["slide-code"]
BATCH_SIZE_PER_REPLICA = 32

strategy = tf.distribute.MirroredStrategy(devices=chosen)
global_batch_size = BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync

images, labels = train.images[:8000], train.labels[:8000]
train_batches = tf.data.Dataset.from_tensor_slices((images, labels))
train_batches = train_batches.shuffle(len(images), seed=1).batch(global_batch_size).prefetch(tf.data.AUTOTUNE)
test_batches = tf.data.Dataset.from_tensor_slices((test.images[:2000], test.labels[:2000])).batch(256)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(28, 28)),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])

model.fit(train_batches, epochs=epochs, verbose=0)
test_loss, test_accuracy = model.evaluate(test_batches, verbose=0)

# %% tags=["varies"]
print(f"replicas: {strategy.num_replicas_in_sync}, test accuracy: {test_accuracy:.3f}")

# %% [markdown]
# Compared with a program for one device, three things are new:
#
# - **The strategy.** `MirroredStrategy()` without a list takes every GPU, or every logical CPU device if there is no
#   GPU. A list chooses. Devices that are not in the list stay idle: on a shared machine, choose.
# - **The scope.** Variables are created inside `strategy.scope()`: the model, the optimizer and the metrics. `fit` and
#   `evaluate` need no scope.
# - **The batch size.** `batch(...)` sets the **global batch size**. The strategy divides each global batch into one
#   **per-replica batch** for each replica.

# %% [markdown]
# ### What the strategy copies and divides
#
# A **replica** is one copy of the model on one device. A variable created inside the scope is a **mirrored variable**:
# one copy per device under one name. All copies start equal, each replica gets another part of the batch, and all
# apply the same summed gradient. This is synchronous data parallelism inside one process.
#
# **Predict.** The program has trained. Do the copies of a weight still agree, and to how many digits?

# %%
copies = [copy.numpy() for copy in strategy.experimental_local_results(model.trainable_variables[0])]
print("copies of the first weight matrix:", len(copies))
checks.assert_equal(copies, [copies[0]] * len(copies), "copies", tolerance=0)


def images_per_replica(strategy: tf.distribute.Strategy, batches: tf.data.Dataset) -> list[int]:
    """How many images of the first batch each replica gets."""
    batch_images, _ = next(iter(strategy.experimental_distribute_dataset(batches)))
    return [len(part) for part in strategy.experimental_local_results(batch_images)]


print("images per replica in a step:", images_per_replica(strategy, train_batches))

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 2. The lecture's program
#
# This is the lecture's distributed program in our words. It was written for two GPUs with 32 images each. It runs, it
# prints no warning, and it has faults. Do not look for them yet.
#
# **Predict.** With this network one device usually reaches an accuracy near 0.9
# ([notebook 02](02_single_device_baseline.ipynb)). What do you expect after a few epochs on several devices?

# %%
one_hot_labels = tf.keras.utils.to_categorical(labels, 10)
one_hot_test = tf.data.Dataset.from_tensor_slices(
    (test.images[:2000], tf.keras.utils.to_categorical(test.labels[:2000], 10))
).batch(256)

BATCH_SIZE = 32
GLOBAL_BATCH_SIZE = BATCH_SIZE * strategy.num_replicas_in_sync
lecture_batches = tf.data.Dataset.from_tensor_slices((images, one_hot_labels)).batch(64)

tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = models.mlp()  # the four layers of the program above
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])

# %% tags=["varies", "slide-output"]
first_loss = model.evaluate(one_hot_test, verbose=0)[0]
history = model.fit(lecture_batches, epochs=epochs, verbose=0).history
accuracy_lecture = model.evaluate(one_hot_test, verbose=0)[1]
print("loss before training: ", round(first_loss, 2))
print("loss of each epoch:   ", np.round(history["loss"], 2).tolist())
print("test accuracy:        ", round(accuracy_lecture, 3))

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# Such a network usually learns little. The lecture's printout showed it too: accuracy 0.2202 on two GPUs, 0.9778 on
# one. The loss before training says where to look: an untrained network gives each of 10 classes a probability near
# 1/10, so its loss must be near $\ln 10 \approx 2.303$.
#
# **Question.** The loss before training is far from ln 10. What follows?
#
# 1. Two replicas add up, so the loss doubles.
# 2. The learning rate is too large for two devices.
# 3. The loss does not fit the last layer.
# 4. Bad luck with the initial weights.
#
# <details>
# <summary>Answer</summary>
#
# 1. No. The reported loss is a mean; this confuses it with the sum of gradients.
# 2. No. Nothing has been trained yet.
# 3. **Right.** Only the data, the network and the loss take part before training.
# 4. No. Other seeds move the loss of an untrained network by tenths.
# </details>

# %% [markdown]
# ### Fault 1: the loss takes logits for probabilities
#
# The last layer, `Dense(10)`, has no softmax: it returns **logits**, numbers of any sign. The string
# `"categorical_crossentropy"` means a loss with `from_logits=False`, which expects probabilities. It divides the ten
# numbers by their sum, clips what is not between 0 and 1, and takes the logarithm. A clipped number has no gradient.
# Of the four combinations of layer and loss two are right: logits with `from_logits=True`, and a softmax with the
# default. A softmax with `from_logits=True` usually does no harm: Keras finds the softmax, takes its input and warns.
#
# The fix is one argument. Everything else stays as it was.

# %% tags=["varies"]
tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = models.mlp()
    loss = tf.keras.losses.CategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
first_loss_fixed = model.evaluate(one_hot_test, verbose=0)[0]
model.fit(lecture_batches, epochs=epochs, verbose=0)
accuracy_fixed = model.evaluate(one_hot_test, verbose=0)[1]
print(f"loss before training: {first_loss_fixed:.2f} (the lecture's program: {first_loss:.2f})")
print(f"test accuracy:        {accuracy_fixed:.3f} (the lecture's program: {accuracy_lecture:.3f})")

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### Fault 2: the distributed data are never shuffled
#
# The lecture's serial program called `fit` with NumPy arrays, which `fit` shuffles before each epoch. A `tf.data`
# pipeline is used as it is: the default `shuffle=True` of `fit` has no effect on it. The distributed program has no
# `shuffle`, so all epochs present the same batches in the same order. The two programs differ in more than the number
# of devices.
#
# On MNIST you hardly notice, because its files are already mixed. Many data sets are stored class by class.
#
# **Predict.** What accuracy does the pipeline reach on images that are sorted by class, with and without `shuffle`?

# %%
by_class = np.argsort(labels, kind="stable")
stored_sorted = tf.data.Dataset.from_tensor_slices((images[by_class], labels[by_class]))
pipelines = {
    "without shuffle": stored_sorted.batch(global_batch_size),
    "with shuffle": stored_sorted.shuffle(len(images), seed=1).batch(global_batch_size),
}
accuracy_sorted = {}
for name, batches in pipelines.items():
    first_labels = [next(iter(batches))[1].numpy()[:8].tolist() for _ in range(2)]
    print("{:15}  first labels of two epochs: {} {}".format(name, *first_labels))
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = models.mlp()
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    model.fit(batches, epochs=epochs, verbose=0)
    accuracy_sorted[name] = model.evaluate(test_batches, verbose=0)[1]

# %% tags=["varies", "slide-output"]
print("test accuracy:", {name: round(accuracy, 3) for name, accuracy in accuracy_sorted.items()})

# %% [markdown]
# ### A latent fault: the literal 64
#
# The program computes `GLOBAL_BATCH_SIZE` and then writes `batch(64)`. On the lecture's two GPUs that is the same
# number. On any other number of devices it is not, and nothing says so.
#
# **Predict.** The program runs unchanged on four devices. How many images does each get in a step, and how many steps
# has an epoch? What should they be?

# %%
for count in (2, 4):
    if count > len(names):
        continue  # not enough GPUs
    several = tf.distribute.MirroredStrategy(names[:count], cross_device_ops=tf.distribute.ReductionToOneDevice())
    intended = math.ceil(len(images) / (BATCH_SIZE * several.num_replicas_in_sync))
    print(f"{count} devices, intended:    {[BATCH_SIZE] * count} images in a step, {intended} steps in an epoch")
    print(f"{count} devices, the program: {images_per_replica(several, lecture_batches)}", end=" ")
    print(f"images in a step, {len(lecture_batches)} steps in an epoch")

# %% [markdown]
# Each further device makes every device's share smaller, and the number of steps, each with an all-reduce, stays the
# same. With eight GPUs each gets eight images. A GPU is inefficient with so few images, so nothing is gained. The fix
# is to use the number that was computed, as the first program of this chapter does.
#
# With the fix, more devices mean a larger global batch and fewer updates in an epoch. That is another training run: it
# may need another learning rate or more epochs (notebook 10, large batch and warm-up).

# %% [markdown]
# ## 3. The global batch, and the last one
#
# With $R$ replicas and $b$ images per replica the global batch size is $B = R\,b$. The number of images is seldom a
# multiple of $B$, so the last batch is smaller. The strategy still divides it into $R$ parts.
#
# **Predict.** How is a last batch of 29 images divided among the replicas? And one of a single image?


# %%
def parts(rest: int) -> list[int]:
    """How a global batch with only `rest` images in it is divided among the replicas."""
    batches = tf.data.Dataset.range(global_batch_size + rest).batch(global_batch_size)
    last = list(strategy.experimental_distribute_dataset(batches))[-1]
    return [len(part) for part in strategy.experimental_local_results(last)]


print("images in the last batch of an epoch:", len(images) % global_batch_size or global_batch_size)
for rest in (29, 3, 1):
    print(f"last batch of {rest:>2}, divided into parts of {parts(rest)}")

# %% [markdown]
# No image is lost, none is repeated, and a replica may get nothing at all. This looks harmless. Now think of the
# gradient. `fit` lets each replica take the mean over *its own* images and then averages the replicas. An image in a
# part of $b_r$ images has the weight $1 / (R\,b_r)$. On one device it would have $1 / B$, with $B$ the images of this
# batch.
#
# **Predict.** The last batch holds one image. On one device its weight in the gradient is 1. With two replicas?


# %%
def trained(strategy: tf.distribute.Strategy, batches: tf.data.Dataset, dropout: float = 0.0) -> tuple:
    """Weights of the network before (always the same) and after one pass of plain SGD over `batches`."""
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        model = models.mlp(dropout)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=loss)
    before = model.get_weights()
    model.fit(batches, verbose=0)
    return before, model.get_weights()


# %%
single = tf.distribute.get_strategy()  # the default outside any scope: one replica, no mirroring
one_image = tf.data.Dataset.from_tensor_slices((train.images[:1], train.labels[:1])).batch(global_batch_size)
before, alone = trained(single, one_image)
_, mirrored = trained(strategy, one_image)
share = np.linalg.norm(mirrored[-1] - before[-1]) / np.linalg.norm(alone[-1] - before[-1])
print(f"the step of {workers} replicas, one of which has the image: {share:.3f} times the step of one device")

# %% [markdown]
# The empty replicas contribute a gradient of zero, and the average still divides by all. With two replicas the step is
# half as long. One such batch per epoch does little harm; in a data set of a few batches, or in a comparison with a
# serial run, it matters. `batch(..., drop_remainder=True)` avoids it and drops images; `repeat()` before `batch()`
# avoids it and mixes epochs. The fix that changes nothing else is a custom loop that divides by the true global batch
# size: [notebook 04](04_custom_training_loop.ipynb).

# %% [markdown]
# ## 4. The all-reduce, and three ways to do it
#
# After the backward pass each replica holds its own gradient. An **all-reduce** adds them up and gives every replica
# the sum. The argument `cross_device_ops` of `MirroredStrategy` chooses how:
#
# - **`ReductionToOneDevice`**: one device collects, adds, and sends the sum back.
# - **`HierarchicalCopyAllReduce`**: two groups of devices. Each group adds up on one of its devices; one of these two
#   adds both sums and sends the total to the other. Made for NVIDIA's DGX-1: two groups of four GPUs.
# - **`NcclAllReduce`**: NVIDIA's library NCCL, for GPUs only; TensorFlow passes it one tensor per device and receives
#   the sum.

# %% [markdown]
# If you choose none, TensorFlow 2.21 uses its collective operations: NCCL between GPUs, a ring between CPU devices. A
# second strategy that trains with them in the same process can fail ("Shape mismatch in the collective
# instance"). Train with one strategy only, as this notebook does.
#
# On GPUs the lecture's log says `batch_all_reduce: 4 all-reduces with algorithm = nccl, num_packs = 1`. The four are
# the gradients of two kernels and two biases; one pack means that they are joined and travel as one array. This
# notebook silences the line; `bytes_per_pack` in chapter 07 makes more packs.

# %%
REDUCTIONS = {
    "ReductionToOneDevice": tf.distribute.ReductionToOneDevice(),
    "HierarchicalCopyAllReduce": tf.distribute.HierarchicalCopyAllReduce(),
    "NcclAllReduce": tf.distribute.NcclAllReduce(),
}


def summing(reduction: tf.distribute.CrossDeviceOps, device_names: list[str]) -> Callable:
    """A step in which replica 0 holds a gradient of ones, replica 1 of twos …, and all receive the sum."""
    mirrored = tf.distribute.MirroredStrategy(device_names, cross_device_ops=reduction)

    def replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        gradient = tf.fill([3], 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32))
        return context.all_reduce(tf.distribute.ReduceOp.SUM, gradient)

    @tf.function
    def step() -> tuple[tf.Tensor, ...]:
        return mirrored.experimental_local_results(mirrored.run(replica))

    return step


# %%
four = names[:4] if len(names) >= 4 else names[:2]  # two GPUs will do
for name, reduction in REDUCTIONS.items():
    try:
        results = [result.numpy().tolist() for result in summing(reduction, four)()]
    except tf.errors.InvalidArgumentError as error:
        print(f"{name}: {error.message.splitlines()[0].partition(' used by')[0]}")
        continue
    print(f"{name}: {results}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The first two give the same sum on every device. `NcclAllReduce` has no implementation for CPU devices, and TensorFlow
# says so when the step first runs, not when the strategy is created.
#
# The sums are equal, the messages are not. TensorFlow turns a step into a graph in which each operation has its device.
# Where an operation reads a tensor of another device, that tensor has to travel. So the graph shows who sends what to
# whom, without running the step. `profiling.messages` of `distlab` reads it from there. In a step of its count a device
# sends at most one message and receives at most one, as in chapter 06.
#
# **Predict.** Four devices. How many messages does device 0 send and receive under `ReductionToOneDevice`?

# %%
patterns = {
    name: profiling.messages.between_devices(summing(reduction, four).get_concrete_function().graph, four)
    for name, reduction in REDUCTIONS.items()
}
for name, sent in patterns.items():
    at_device_0 = sum(0 in (message.source, message.destination) for message in sent)
    print(f"{name}: {len(sent)} messages, {at_device_0} of them to or from device 0")
    for step, together in itertools.groupby(sent, key=lambda message: message.step):
        print(f"  step {step}:", ", ".join(f"{source} → {destination}" for _, source, destination in together))

# %% tags=["slide-output"]
drawn = {name: sent for name, sent in patterns.items() if sent}
in_words = [
    f"{name}: " + ", ".join(f"{source} to {destination} in step {step}" for step, source, destination in sent)
    for name, sent in drawn.items()
]
draw.show(
    draw.exchange(drawn, [f"device {number}" for number in range(len(four))]),
    "One panel per reduction, one row per device, steps to the right, one arrow per message. " + ". ".join(in_words),
)

# %% [markdown] tags=["slide-takeaway"]
# `ReductionToOneDevice` is simple, but everything passes through device 0: with $p$ devices it handles $2(p-1)$
# messages, each as large as the gradient, one after the other. `HierarchicalCopyAllReduce` sends the same number of
# messages in fewer steps, since the groups work at the same time, and most stay inside a group. For `NcclAllReduce` the
# graph shows none: the exchange happens inside one operation, as a ring or as trees (notebook 06, collectives and ring
# all-reduce).

# %% [markdown]
# **Question.** Which of them would you choose on two GPUs without NVLink?
#
# 1. Hierarchical copy: hierarchies scale.
# 2. Reduction to one device: NCCL needs NVLink.
# 3. The default, then measure.
# 4. Any: the sums are equal.
#
# <details>
# <summary>Answer</summary>
#
# 1. With two devices each group is one device, and nothing is left of the hierarchy.
# 2. NCCL runs over PCIe and over networks too.
# 3. **Right.** The default is NCCL, and it is right unless a measurement says otherwise.
# 4. The sums are equal, but the times are not.
# </details>

# %% [markdown] tags=["slide-predict"]
# ### Compare with a known sum
#
# **Predict.** Three devices hold gradients of 1, 2 and 3. What do the two reductions give?

# %% tags=["slide-output"]
for name in ("ReductionToOneDevice", "HierarchicalCopyAllReduce"):
    results = [float(result[0]) for result in summing(REDUCTIONS[name], names[:3])()]
    print(f"{name} on {len(results)} devices: {results}, the correct sum is {sum(range(1, len(results) + 1))}")

# %% [markdown] tags=["slide-takeaway"]
# `HierarchicalCopyAllReduce` makes two groups of $\lfloor p/2 \rfloor$ devices. With an odd number of devices the last
# one is in no group, and its gradient is lost without an error or a warning: three devices train on two thirds of the
# data. So almost every notebook of this course compares the parallel run with the serial one.

# %% [markdown]
# ## 5. Several pipelines
#
# `MirroredStrategy` has one input pipeline: it reads a global batch and divides it, so each image goes to exactly one
# replica, whatever the policy for **auto-sharding** says. The lecture's program sets `AutoShardPolicy.DATA` all the
# same, a fourth fault, and a harmless one: with a single process it has no effect. Policies matter when several
# processes each have a pipeline; chapter 07 shows OFF, DATA, FILE and AUTO at work.
#
# ## 6. Are both devices busy?
#
# `num_replicas_in_sync` only says what was asked for. So let each replica note the time: when it starts, when it has
# its gradients, and when its weights are updated. [Notebook 04](04_custom_training_loop.ipynb) explains the loop below;
# here it only records the times.


# %%
def clock(after: list[tf.Tensor]) -> tf.Tensor:
    """The time at which all tensors in `after` have been computed."""
    with tf.device("CPU:0"):
        return tf.numpy_function(lambda *values: time.perf_counter(), after, tf.float64, stateful=False)


# %%
def training_step(strategy: tf.distribute.Strategy, global_batch: int, read_clock: Callable) -> Callable:
    """A step of SGD; each replica gives the times at which it began, had its gradients, and had updated."""
    with strategy.scope():
        model, optimizer = models.mlp(dropout=0.0), tf.keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        began = read_clock([images[:1]])
        with tf.control_dependencies([began]):
            images = tf.identity(images)  # nothing below starts before the clock was read
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of(labels, model(images, training=True))) / global_batch
        gradients = tape.gradient(loss, model.trainable_variables)
        computed = read_clock(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        updated = read_clock([tf.identity(weight) for weight in model.trainable_variables])
        return tf.stack([began, computed, updated])

    @tf.function
    def step(batch: tuple) -> tuple[tf.Tensor, ...]:
        return strategy.experimental_local_results(strategy.run(replica, args=batch))

    return step


# %% [markdown] tags=["slide-predict"]
# A measuring device must not change what it measures. `tf.timestamp()` looks like the obvious clock, but it counts as
# an operation with a side effect, and a `tf.function` runs all of these in the order of the program. Replica 1's clock
# would wait for replica 0's, and the picture would show replicas that take turns. The clock above has no such order.
#
# **Predict.** Sketch it first: one row per device, time to the right. What do the rows look like without a strategy,
# and under the strategy with its chosen devices?


# %%
def batches_of(strategy: tf.distribute.Strategy, global_batch: int, count: int) -> list:
    """`count` distributed batches, in memory, so that no input pipeline takes part in what is measured."""
    index = np.arange(global_batch * count) % len(images)
    pipeline = tf.data.Dataset.from_tensor_slices((train.images[index], train.labels[index]))
    return list(strategy.experimental_distribute_dataset(pipeline.batch(global_batch, drop_remainder=True)))


STEPS_DRAWN = 5


def intervals(strategy: tf.distribute.Strategy) -> list[list[draw.Interval]]:
    """What each replica did, and when, in the steps after a first one."""
    global_batch, replicas = 256 * workers, strategy.num_replicas_in_sync
    step, batches = training_step(strategy, global_batch, clock), batches_of(strategy, global_batch, STEPS_DRAWN)
    step(batches[0])  # traces the step
    rows = [[] for _ in range(replicas)]
    for batch in batches:
        for row, times in zip(rows, step(batch), strict=True):
            began, computed, updated = times.numpy()
            row.append(draw.Interval(began, computed, "forward and backward"))
            second = "all-reduce and update" if replicas > 1 else "update"
            row.append(draw.Interval(computed, max(computed, updated), second))
    return rows


TITLE = f"MirroredStrategy, devices chosen: {workers}"
busy = {"no strategy": intervals(single), TITLE: intervals(strategy)}

# %% tags=["varies", "slide-output"]
together = 0
for step in range(STEPS_DRAWN):
    computing = [row[2 * step] for row in busy[TITLE]]
    together += max(box.start for box in computing) < min(box.end for box in computing)
draw.show(
    draw.busy(busy, [f"device {number}" for number in range(len(names))]),
    "Two strips over time, one row per device. Without a strategy only device 0 has boxes. Under MirroredStrategy each "
    f"chosen device has boxes for each of {STEPS_DRAWN} steps; the other devices stay empty.",
)
Markdown(
    f"In {together} of {STEPS_DRAWN} steps there was a moment at which every chosen device was busy with forward and "
    "backward."
)

# %% [markdown] tags=["slide-takeaway"]
# Each chosen device works in every step, on its own part. With a free core or a GPU for each, they usually work at the
# same time; on a busy machine one may start late. No replica can update before the last one has its gradients: the
# all-reduce is where they meet. A replica that is late makes all wait; that is what *synchronous* costs. In the white
# gaps this program's Python code reads the times and starts the next step. Devices that are not in the list do nothing.
#
# On logical CPU devices the picture shows the *replicas*. Section 8 asks how many *cores* they used.

# %% [markdown] tags=["slide-predict"]
# ## 7. Proof: the weights are equal
#
# Same initial weights, same global batches, plain SGD, 20 steps: after that the mirrored run must have the weights of
# the one-device run, up to rounding. If all parts are equally large, the mean of the gradients $g_i$ of $B$ images is
# the mean of the replicas' means $m_r$:
#
# $$\frac{1}{B}\sum_{i} g_i = \frac{1}{R}\sum_{r} m_r$$
#
# **Predict.** Exactly equal, or nearly? And with the lecture's dropout of 0.2?

# %% tags=["slide-output"]
STEPS = 20
batch = 64 // workers * workers  # 64, or the next smaller number that divides into equal parts
index = np.arange(STEPS * batch) % len(images)
batches = tf.data.Dataset.from_tensor_slices((train.images[index], train.labels[index]))
batches = batches.batch(batch, drop_remainder=True)
_, serial = trained(single, batches)
_, parallel = trained(strategy, batches)
checks.assert_equal_weights(serial, parallel)

# %% tags=["varies", "slide-output", "slide-continued"]
_, serial_dropout = trained(single, batches, dropout=0.2)
_, parallel_dropout = trained(strategy, batches, dropout=0.2)
difference = checks.largest_difference(serial_dropout, parallel_dropout)
Markdown(f"With dropout the weights differ by up to **{difference:.1g}** after {STEPS} steps, {workers} replicas.")

# %% [markdown] tags=["slide-takeaway"]
# Not exactly equal: floating-point addition is not associative, and with replicas the order of additions differs. The
# difference stays at the size of a float32 rounding error. A real mistake is larger by orders of magnitude: a wrong
# batch size, a lost replica or a gradient counted twice shows in the first three decimals.
#
# Dropout breaks the *comparison*, not the training. Each replica draws its own random mask for its own images; the
# serial run draws one mask for the whole batch. Both are correct runs with different random numbers. The same holds for
# random augmentation. Batch normalisation differs for another reason: it takes its statistics from the images of one
# replica, unless the layer is created with `synchronized=True`. Compare without them.

# %% [markdown] tags=["slide-predict"]
# ## 8. How fast is it, honestly?
#
# **Predict.** The same images, once on one device, once on `workers` logical devices of the same processor. By which
# factor does the number of images per second change: 2, 1, or less than 1? Does the global batch size matter?
#
# Only whole steps are timed, on batches that are already in memory, without the clock inside. The four runs take turns,
# so that a disturbance hits all of them; each figure is the median of five.


# %%
def no_clock(after: list[tf.Tensor]) -> tf.Tensor:
    return tf.constant(0.0, tf.float64)


def steps_over(strategy: tf.distribute.Strategy, global_batch: int, count: int) -> Callable[[], None]:
    """A function that trains for `count` steps and returns when the last one is done."""
    step, batches = training_step(strategy, global_batch, no_clock), batches_of(strategy, global_batch, 4)

    def train() -> None:
        for number in range(count):
            last = step(batches[number % 4])
        last[-1].numpy()  # waits for the result

    train()  # the warm-up: traces the step
    return train


# %%
SMALL, LARGE = 64 * workers, 512 * workers
IMAGES = 2048 * workers  # in each run
runs = {
    (global_batch, count): steps_over(used, global_batch, IMAGES // global_batch)
    for global_batch in (SMALL, LARGE)
    for count, used in ((1, single), (workers, strategy))
}
elapsed, cpu = {key: [] for key in runs}, {key: [] for key in runs}
for _ in range(5):
    for key, train_steps in runs.items():
        start, cpu_start = time.perf_counter(), time.process_time()
        train_steps()
        elapsed[key].append(time.perf_counter() - start)
        cpu[key].append(time.process_time() - cpu_start)
seconds = {key: np.median(values) for key, values in elapsed.items()}
cpu_seconds = {key: np.median(values) for key, values in cpu.items()}
overhead = {batch: cpu_seconds[batch, workers] / cpu_seconds[batch, 1] for batch in (SMALL, LARGE)}

# %% tags=["varies", "slide-output"]
rates = {f"batch {batch}, devices: {count}": IMAGES / value for (batch, count), value in seconds.items()}
draw.show(
    draw.bars(rates, "images per second"),
    "Images per second. " + ", ".join(f"{name}: {rate:,.0f}" for name, rate in rates.items()),
)
gain = {batch: seconds[batch, 1] / seconds[batch, workers] for batch in (SMALL, LARGE)}
cores = [cpu_seconds[LARGE, count] / seconds[LARGE, count] for count in (1, workers)]
Markdown(
    f"| with {workers} devices, against one | batch {SMALL} | batch {LARGE} |\n|---|---|---|\n"
    f"| images per second | {gain[SMALL]:.2f} × | {gain[LARGE]:.2f} × |\n"
    f"| CPU time per image | {overhead[SMALL]:.2f} × | {overhead[LARGE]:.2f} × |\n\n"
    f"This process may use {devices.cores()} cores. At the large batch it used {cores[0]:.1f} of them with "
    f"one device, and {cores[1]:.1f} with {workers}."
)

# %% [markdown]
# Two things pull in opposite directions.
#
# - **Overhead.** Two replicas mean twice as many operations to start, and an all-reduce of 101,770 numbers. That costs
#   about the same work in every step, so it weighs most where a step is short: at the small batch. CPU time usually
#   shows it even on a busy machine, for it leaves out most waiting ([notebook 02](02_single_device_baseline.ipynb)).
# - **Idle cores.** Logical devices add no core. But one device may leave some idle: TensorFlow spreads an operation
#   over several cores only if it is large enough. A second replica can use what is left, unless another program does.
#
# So the answer depends on the machine and its load; the factor is seldom 2, and often below 1. That is no argument
# against the strategy: logical devices are for learning and testing. On GPUs the *same program* has a processor per
# replica.

# %% [markdown]
# GPUs do not guarantee a gain either:
#
# - An NVIDIA lab with this strategy on 8 V100 is 3.2 times as fast as its Horovod program on one: [chapter
#   11](11_scaling_and_profiling.ipynb) audits such numbers.
# - The [OpenHackathons bootcamp](https://github.com/openhackathons-org/gpubootcamp)'s CIFAR-10 run: 65,063
#   images per second on one A100, 43,244 on eight. Eight were slower.
#
# Such networks are small: starting the operations, feeding the devices and the all-reduce can take longer than the
# arithmetic. Data parallelism pays where a step computes for much longer than its gradient travels (notebook 11,
# scaling and profiling).

# %% [markdown]
# **Question.** Your run on 4 GPUs is as fast as on 1. What do you look at first?
#
# 1. The reduction; another one will be faster.
# 2. The global batch size.
# 3. `num_replicas_in_sync`; if it says 4, all is well.
# 4. The accuracy.
#
# <details>
# <summary>Answer</summary>
#
# 1. Perhaps, but only after you know that the all-reduce is what takes the time.
# 2. **Right.** If it is still that of a single GPU, each GPU gets a quarter, as with the literal 64.
# 3. It says how many replicas there are, not that they are busy.
# 4. It does not change with speed.
# </details>
#
# ### XLA under the strategy
#
# `jit_compile=True` compiles the training step with XLA, TensorFlow's compiler. Whether it works depends on the
# devices. On CPU devices the compiled step would have to touch the variables of several devices:

# %% tags=["varies"]
with strategy.scope():
    model = models.mlp()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=True)
try:
    model.fit(one_image, verbose=0)
    print("compiled and trained")
except (tf.errors.OpError, ValueError, NotImplementedError) as error:
    lines = str(error).splitlines()
    reason = next((line for line in lines if "Trying to access" in line), lines[0])
    print(f"{type(error).__name__}: {reason.partition(' (defined')[0]} …")

# %% [markdown]
# With several CPU devices it fails. On GPUs TensorFlow supports it, in `fit` since version 2.8, with a large gain
# ([tensorflow#45940](https://github.com/tensorflow/tensorflow/issues/45940)): if all devices are GPUs, each compiles
# its own step. The optimizers of Keras 2.11 and newer broke it again
# ([tf-keras#385](https://github.com/keras-team/tf-keras/issues/385)); those in `tf.keras.optimizers.legacy` are the old
# ones. In a custom loop, `tf.function(jit_compile=True)` around the function that computes *one replica's* gradients
# works everywhere, because it stays on one device.

# %% [markdown]
# ### With Keras 3
#
# The course uses legacy Keras. In one trial with Keras 3.15 on TensorFlow 2.21, `fit` under `MirroredStrategy` on two
# logical CPU devices trained all the models that we tried: dense, convolutional and recurrent layers, dropout, batch
# normalisation, random augmentation; with dense layers and SGD the weights agreed with one device to 3e-8. It failed
# with `jit_compile=True` and with an optimizer that has `gradient_accumulation_steps`. Other releases differ: Keras 3.7
# could not even build a `Dropout` layer in a strategy's scope ([issue
# 20611](https://github.com/keras-team/keras/issues/20611)). Test your model with your release.

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("03")

# %% [markdown]
# ## Recap
#
# - The strategy keeps one replica on each chosen device, divides each global batch, and all-reduces the gradients.
# - `batch(...)` sets the global batch size; a literal there is right for one number of devices only.
# - A loss far from $\ln 10$ before training means that loss and last layer do not fit.
# - `fit` shuffles arrays; a `tf.data` pipeline must shuffle for itself.
# - An uneven last batch changes the gradient under `fit`.
# - The reductions give equal sums by different messages; hierarchical copy is wrong on an odd number of devices.
# - After 20 SGD steps the weights equal one device's within 1e-5.
# - Logical devices add no core.
#
# **Next.** [Lab 03](../labs/03_mirrored_strategy/lab.ipynb), [04 custom loop](04_custom_training_loop.ipynb).
#
# **Sources.**
# - P. Goyal and others (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677).
# - TensorFlow, [MirroredStrategy](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy) and
#   [CrossDeviceOps](https://www.tensorflow.org/api_docs/python/tf/distribute/CrossDeviceOps).
# - OpenHackathons, [Distributed Deep Learning](https://github.com/openhackathons-org/gpubootcamp).
