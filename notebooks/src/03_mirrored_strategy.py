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
# **Goal.** Train one network on several devices of one machine with `tf.distribute.MirroredStrategy`, find the two bugs
# of the lecture's program by their symptoms, and prove that the parallel run computes what one device computes.
#
# **Time.** 35 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb) and
# [02 single-device baseline](02_single_device_baseline.ipynb).
#
# **Questions.**
# - What does the strategy copy, what does it divide, what do the devices tell each other?
# - Which batch size does `batch(...)` set, and what becomes of the last batch?
# - Who sends what to whom in TensorFlow's three reductions?
# - Which worker sees which files under the policies OFF, DATA, FILE and AUTO?
# - Are the devices busy at once, and is the result the same?
# - Why is it not twice as fast here?
#
# **Hardware.** Any machine. With at least `workers` GPUs it runs on those, else on logical CPU devices.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; at most 8,000 of its training images are used
epochs = 2  # passes over these images, in each of the three runs of the lecture's program
workers = 2  # how many devices train, one replica on each; with 1 there is nothing to share

# %%
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from IPython.display import Markdown
from tensorflow.python.distribute import input_ops  # private: strategies shard their input with it

from distlab import checks, data, devices, draw, metrics, models, profiling

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # else it announces every strategy and every all-reduce that it plans
tf.keras.utils.set_random_seed(3)
print(data.describe(dataset))
train, test = data.load(dataset)

# %% [markdown]
# ## 1. One strategy, one chosen list of devices
#
# A **replica** is one copy of the model on one device. `MirroredStrategy` keeps one replica on each device of its list
# and keeps them equal: all start from the same weights, each gets another part of the batch, and all apply the same
# summed gradient. This is synchronous data parallelism inside one process.
#
# Without GPUs the processor is divided into **logical devices**. TensorFlow treats each as a device of its own, but
# they share the cores. The next cell makes four, if there are fewer GPUs than `workers`, and chooses the first
# `workers` of them.

# %% tags=["varies"]
gpus = len(tf.config.list_physical_devices("GPU"))
names = devices.at_least(workers if gpus >= workers else max(workers, 4))
chosen = names[:workers]
print("chosen:", chosen)

# %% [markdown]
# `MirroredStrategy()` without a list takes every GPU, or every logical CPU device when there is no GPU. A list chooses.
# What is not in the list stays idle: on a shared machine that is a courtesy, and a way to run two experiments side by
# side.
#
# A variable that is made inside `strategy.scope()` becomes a **mirrored variable**: one copy per device under one name.

# %%
strategy = tf.distribute.MirroredStrategy(devices=chosen)

with strategy.scope():
    weight = tf.Variable(0.5)

copies = strategy.experimental_local_results(weight)
print("replicas:", strategy.num_replicas_in_sync)
print("copies of the weight:", len(copies), "with the values", [float(copy) for copy in copies])
assert strategy.num_replicas_in_sync == len(copies) == workers
assert [copy.device[-len(name) :] for copy, name in zip(copies, chosen, strict=True)] == chosen

# %% [markdown]
# ## 2. The lecture's program, with its two bugs
#
# This is the lecture's training program in our own words. It runs, it warns about nothing, and it has two bugs. Do not
# look for them yet.
#
# **Predict.** One device reached an accuracy above 0.9 with this network in
# [notebook 02](02_single_device_baseline.ipynb). What do you expect after a few epochs on several devices?

# %%
images, labels = train.images[:8000], tf.keras.utils.to_categorical(train.labels[:8000], 10)
test_batches = tf.data.Dataset.from_tensor_slices(
    (test.images[:2000], tf.keras.utils.to_categorical(test.labels[:2000], 10))
).batch(256)

BATCH_SIZE_PER_REPLICA = 64
GLOBAL_BATCH_SIZE = BATCH_SIZE_PER_REPLICA * strategy.num_replicas_in_sync
train_batches = tf.data.Dataset.from_tensor_slices((images, labels)).cache().shuffle(8000, seed=1).batch(64)

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Flatten(input_shape=(28, 28)),
            tf.keras.layers.Dense(128, activation="relu"),
            tf.keras.layers.Dropout(0.2),
            tf.keras.layers.Dense(10),
        ]
    )
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])

# %% tags=["varies"]
first_loss = model.evaluate(test_batches, verbose=0)[0]
history = model.fit(train_batches, epochs=epochs, verbose=0).history
accuracy_lecture = model.evaluate(test_batches, verbose=0)[1]
print("loss before training: ", round(first_loss, 2))
print("loss of each epoch:   ", np.round(history["loss"], 2).tolist())
print("test accuracy:        ", round(accuracy_lecture, 3))

# %% [markdown]
# The network has learnt next to nothing. The lecture's own printout showed it too: 0.2202 on two GPUs, 0.9778 on one.
# The first number says where to look: an untrained network gives each of 10 classes a probability near 1/10, so its
# loss must be near $\ln 10 \approx 2.303$.
#
# <details>
# <summary>Question: the loss before training is far from ln 10. What follows?</summary>
#
# 1. *Two replicas add up, so the loss doubles.* No. The reported loss is a mean; this mixes it up with the sum of
#    gradients.
# 2. *The learning rate is too large for two devices.* No. Nothing has been trained yet.
# 3. *The loss does not fit the last layer.* Yes. Only the data, the network and the loss take part before training.
# 4. *Bad luck with the initial weights.* No. Other seeds move the loss of an untrained network by tenths.
# </details>

# %% [markdown]
# ### Bug 1: the loss takes logits for probabilities
#
# The last layer, `Dense(10)`, has no softmax: it gives **logits**, numbers of any sign. The string
# `"categorical_crossentropy"` stands for a loss with `from_logits=False`. That loss expects probabilities. It divides
# the ten numbers by their sum, cuts off what is not between 0 and 1, and takes logarithms of the rest. A cut-off number
# has no gradient. [Notebook 02](02_single_device_baseline.ipynb) has all four combinations of layer and loss.
#
# The fix is one argument. Everything else stays as it was, the second bug included.

# %% tags=["varies"]
tf.keras.utils.set_random_seed(3)
lecture_layers = [(type(layer), layer.count_params()) for layer in model.layers]
with strategy.scope():
    model = models.mlp()  # the same four layers
    model.compile(
        optimizer="adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
first_loss_fixed = model.evaluate(test_batches, verbose=0)[0]
model.fit(train_batches, epochs=epochs, verbose=0)
accuracy_fixed = model.evaluate(test_batches, verbose=0)[1]
print("loss before training: ", round(first_loss_fixed, 2))
print("test accuracy:        ", round(accuracy_fixed, 3))

# %%
assert [(type(layer), layer.count_params()) for layer in model.layers] == lecture_layers
assert abs(first_loss_fixed - np.log(10)) < 0.5 < abs(first_loss - np.log(10))
assert accuracy_fixed > accuracy_lecture + 0.3
print("near ln 10 before training: lecture", abs(first_loss - np.log(10)) < 0.5, end=", ")
print("fixed", abs(first_loss_fixed - np.log(10)) < 0.5)
print("fixed, it is at least 30 percentage points better:", accuracy_fixed > accuracy_lecture + 0.3)

# %% [markdown]
# ### Bug 2: look at what each replica is given
#
# The accuracy is fine now, so most people would stop here. The second bug changes no result that you would notice. It
# shows when you ask two questions that are worth asking of every distributed program.
#
# **Predict.** The program says 64 images per replica. How many does each replica get in a step, and how many steps has
# an epoch?


# %%
def images_per_replica(batches: tf.data.Dataset) -> list[int]:
    """How many images each replica of the strategy gets of the first batch."""
    first = next(iter(strategy.experimental_distribute_dataset(batches)))
    return [len(part) for part in strategy.experimental_local_results(first[0])]


steps_intended = -(-len(images) // GLOBAL_BATCH_SIZE)  # rounded up
print("intended:   ", [BATCH_SIZE_PER_REPLICA] * workers, "images in a step,", steps_intended, "steps")
print("the program:", images_per_replica(train_batches), "images in a step,", len(train_batches), "steps")

# %% [markdown]
# The program computes `GLOBAL_BATCH_SIZE` and then never uses it: `batch(64)` has a literal 64. `batch(...)` before a
# strategy sets the **global batch size**, which the strategy cuts into one **per-replica batch** for each replica. So
# every further device makes each device's share smaller, and the number of steps, each with an all-reduce, stays the
# same. With eight GPUs each would get eight images. A device works poorly on so few, and nothing is gained.
#
# Here is the program with both fixes.

# %% tags=["varies"]
train_batches = tf.data.Dataset.from_tensor_slices((images, labels)).cache().shuffle(8000, seed=1)
train_batches = train_batches.batch(GLOBAL_BATCH_SIZE).prefetch(tf.data.AUTOTUNE)

tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = models.mlp()
    model.compile(
        optimizer="adam", loss=tf.keras.losses.CategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
model.fit(train_batches, epochs=epochs, verbose=0)
print("test accuracy:", round(model.evaluate(test_batches, verbose=0)[1], 3))

# %%
print("each replica:", images_per_replica(train_batches), "images in a step,", len(train_batches), "steps")
assert images_per_replica(train_batches) == [BATCH_SIZE_PER_REPLICA] * workers
assert len(train_batches) == steps_intended

# %% [markdown]
# The accuracy may have dropped a little. A global batch that is `workers` times larger means that many times fewer
# updates in an epoch. That is no bug: it is the price of a larger batch, and it is paid with a larger learning rate or
# more epochs (notebook 10, large batch and warm-up).
#
# ## 3. The global batch, and the last one
#
# With $R$ replicas and $b$ images per replica the global batch size is $B = R\,b$. The number of images is seldom a
# multiple of $B$, so the last batch is smaller. The strategy still cuts it into $R$ parts.
#
# **Predict.** How is a rest of 29 images divided among the replicas? And a rest of one image?


# %%
def parts(rest: int) -> list[int]:
    """How a global batch with only `rest` images in it is divided among the replicas."""
    batches = tf.data.Dataset.range(GLOBAL_BATCH_SIZE + rest).batch(GLOBAL_BATCH_SIZE)
    last = list(strategy.experimental_distribute_dataset(batches))[-1]
    return [len(part) for part in strategy.experimental_local_results(last)]


print("images in the last batch of an epoch:", len(images) % GLOBAL_BATCH_SIZE or GLOBAL_BATCH_SIZE)
for rest in (29, 3, 1):
    print(f"{rest:>2} images are divided into {parts(rest)}")

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
    model.fit(batches, shuffle=False, verbose=0)
    return before, model.get_weights()


# %%
one_device = tf.distribute.get_strategy()  # the default outside any scope: one replica, no mirroring
one_image = tf.data.Dataset.from_tensor_slices((train.images[:1], train.labels[:1])).batch(GLOBAL_BATCH_SIZE)
before, alone = trained(one_device, one_image)
_, mirrored = trained(strategy, one_image)
share = np.linalg.norm(mirrored[-1] - before[-1]) / np.linalg.norm(alone[-1] - before[-1])
print(f"the step of {workers} replicas, one of which has the image: {share:.3f} times the step of one device")
assert abs(share - 1 / workers) < 1e-3

# %% [markdown]
# The empty replicas contribute a gradient of zero, and the average still divides by all. With two replicas the step is
# half as long. One such batch per epoch does little harm. A data set of a few batches, or a comparison with a serial
# run, suffers. Cures: `batch(B, drop_remainder=True)` as in the proof below, or `repeat()` before `batch()`, or a loop
# of your own that divides by the true global batch ([notebook 04](04_custom_training_loop.ipynb)).

# %% [markdown]
# ## 4. The all-reduce, and three ways to do it
#
# After the backward pass each replica holds its own gradient. An **all-reduce** adds them up and gives every replica
# the sum. The argument `cross_device_ops` of `MirroredStrategy` chooses how:
#
# - **`ReductionToOneDevice`**: one device collects, adds, and sends the sum back.
# - **`HierarchicalCopyAllReduce`**: two groups, a first device in each; made for the DGX-1, whose eight GPUs are two
#   fours.
# - **`NcclAllReduce`**: NVIDIA's library NCCL, for GPUs only; TensorFlow hands over one tensor per device and gets the
#   sum.
#
# If you choose none, TensorFlow 2.21 takes its own collective operation: NCCL between GPUs, a ring between CPU devices.
# One warning: a second strategy with such collectives in the same process can fail ("Shape mismatch in the collective
# instance"). Make one strategy and keep it, as this notebook does; the three reductions below are not such collectives.

# %%
REDUCTIONS = {
    "ReductionToOneDevice": tf.distribute.ReductionToOneDevice(),
    "HierarchicalCopyAllReduce": tf.distribute.HierarchicalCopyAllReduce(),
    "NcclAllReduce": tf.distribute.NcclAllReduce(),
}


def summing(reduction: tf.distribute.CrossDeviceOps, devices: list[str]) -> Callable:
    """A step in which replica 0 holds a gradient of ones, replica 1 of twos …, and all receive the sum."""
    strategy = tf.distribute.MirroredStrategy(devices, cross_device_ops=reduction)

    def replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        gradient = tf.fill([3], 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32))
        return context.all_reduce(tf.distribute.ReduceOp.SUM, gradient)

    return tf.function(lambda: strategy.experimental_local_results(strategy.run(replica)))


# %%
four = names[:4] if len(names) >= 4 else names[:2]  # two GPUs will do
for name, reduction in REDUCTIONS.items():
    try:
        results = [result.numpy().tolist() for result in summing(reduction, four)()]
    except tf.errors.InvalidArgumentError as error:
        print(f"{name}: {error.message.splitlines()[0].partition(' used by')[0]}")
        continue
    print(f"{name}: {results}")
    assert results == [[len(four) * (len(four) + 1) / 2] * 3] * len(four)

# %% [markdown]
# The first two give the same sum on every device. `NcclAllReduce` has no implementation for CPU devices, and TensorFlow
# says so when the step first runs, not when the strategy is made.
#
# The sums are equal, the messages are not. TensorFlow turns a step into a graph in which each operation has its device.
# Where an operation reads a tensor of another device, that tensor has to travel. So the graph shows who sends what to
# whom, even for NCCL, which cannot run here.
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

# %%
drawn = {name: sent for name, sent in patterns.items() if sent}
in_words = [
    f"{name}: " + ", ".join(f"{source} to {destination} in step {step}" for step, source, destination in sent)
    for name, sent in drawn.items()
]
draw.show(
    draw.exchange(drawn, [f"device {number}" for number in range(len(four))]),
    "A panel a reduction, a row a device, steps to the right, an arrow a message. " + ". ".join(in_words),
)

# %% [markdown]
# `ReductionToOneDevice` is short, but everything passes through device 0: with $p$ devices it handles $2(p-1)$
# messages, each as large as the gradient. `HierarchicalCopyAllReduce` has as many messages in more steps, and most stay
# inside a group. For `NcclAllReduce` the graph shows none: the exchange happens inside one operation, as a ring or a
# tree without a centre (notebook 06, collectives and ring all-reduce).
#
# <details>
# <summary>Question: which of them would you choose on two GPUs without NVLink?</summary>
#
# 1. *Hierarchical copy: hierarchies scale.* With two devices each group is one device, and nothing is left of the
#    hierarchy.
# 2. *Reduction to one device: NCCL needs NVLink.* NCCL runs over PCIe and over networks too.
# 3. *The default, then measure.* Yes. The default is NCCL, and it is right unless a measurement says otherwise.
# 4. *Any: the sums are equal.* The sums are, the time on the wires is not.
# </details>

# %% [markdown]
# ### Do not trust, compare
#
# **Predict.** Three devices hold gradients of 1, 2 and 3. What do the two reductions give?

# %%
for name in ("ReductionToOneDevice", "HierarchicalCopyAllReduce"):
    results = [float(result[0]) for result in summing(REDUCTIONS[name], names[:3])()]
    print(f"{name} on {len(results)} devices: {results}, the right sum is {sum(range(1, len(results) + 1))}")

# %% [markdown]
# `HierarchicalCopyAllReduce` makes two groups of $\lfloor p/2 \rfloor$ devices. With an odd number of devices the last
# one is in no group, and its gradient is lost, without an error or a warning: three devices train on two thirds of the
# data. That is why every parallel notebook here ends with a comparison against the serial run.
#
# ## 5. Who sees which file: the auto-shard policy
#
# `MirroredStrategy` has one input pipeline: it reads a batch and cuts it. With several **workers** (processes, each
# with its own pipeline; notebook 07) something must stop them from all reading the same images. That is
# **auto-sharding**: TensorFlow rewrites each worker's pipeline. The **policy** says how:
#
# - **OFF**: nothing is rewritten.
# - **DATA**: each worker reads everything and keeps every $n$-th batch.
# - **FILE**: each worker reads every $n$-th file.
# - **AUTO** (the default): FILE if the pipeline reads files, else DATA.

# %% [markdown]
# Eight small TFRecord files, four images each. A TFRecord file is a sequence of byte strings; each of ours holds the
# number of an image and its pixels. We shall only ask for the numbers, to see who got what.

# %%
FILES, PER_FILE = 8, 4
folder = tempfile.TemporaryDirectory()
files = [str(Path(folder.name) / f"images-{file}.tfrecord") for file in range(FILES)]
for file, path in enumerate(files):
    with tf.io.TFRecordWriter(path) as writer:
        for number in range(file * PER_FILE, (file + 1) * PER_FILE):
            pixels = tf.io.serialize_tensor(train.images[number]).numpy()
            writer.write(number.to_bytes(2, "little") + pixels)


# %%
def numbers_in(files: list[str]) -> tf.data.Dataset:
    """A pipeline that reads TFRecord files and gives the number of each image."""
    return tf.data.TFRecordDataset(files).map(
        lambda record: tf.io.decode_raw(tf.strings.substr(record, 0, 2), tf.uint16)[0]
    )


def with_policy(pipeline: tf.data.Dataset, policy: str) -> tf.data.Dataset:
    """The pipeline with an auto-shard policy."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    return pipeline.with_options(options)


# %% [markdown]
# **Predict.** Which images does each replica of our `MirroredStrategy` see under each policy?

# %%
POLICIES = ("OFF", "DATA", "FILE", "AUTO")
for policy in POLICIES:
    pipeline = with_policy(numbers_in(files).batch(2 * workers), policy)
    distributed = strategy.experimental_distribute_dataset(pipeline)
    numbers = [[part.numpy() for part in strategy.experimental_local_results(batch)] for batch in distributed]
    per_replica = [np.concatenate(parts).tolist() for parts in zip(*numbers, strict=True)]
    print(f"{policy:<4}", [f"{len(seen)} images, first {seen[:4]}" for seen in per_replica][:2])
    assert sorted(np.concatenate(per_replica)) == list(range(FILES * PER_FILE))

# %% [markdown]
# Whatever the policy, each image goes to exactly one replica: there is one pipeline, and nothing to divide among
# pipelines. A policy set "for the GPUs" does nothing.
#
# To see the policies at work we need several pipelines. A strategy calls `auto_shard_dataset(pipeline, workers, index)`
# in each worker after it has cut the batch to that worker's part. We call the same function for each index, so the
# rewriting is TensorFlow's own, without starting processes; one of the course's tests compares it with two real
# workers. The fifth case shuffles before sharding, with another seed in each worker, as happens when nobody sets one.

# %%
pipelines = max(workers, 2)  # with one worker there would be nothing to see


def given(policy: str, index: int, shuffled: bool = False) -> list[int]:
    """The numbers of the images that worker `index` of `pipelines` is given, in batches of two."""
    pipeline = numbers_in(files)
    if shuffled:
        pipeline = pipeline.shuffle(FILES * PER_FILE, seed=index)
    pipeline = input_ops.auto_shard_dataset(with_policy(pipeline.batch(2), policy), pipelines, index)
    return [int(number) for batch in pipeline for number in batch]


cases = {policy: [given(policy, index) for index in range(pipelines)] for policy in POLICIES}
cases["DATA, shuffled differently"] = [given("DATA", index, shuffled=True) for index in range(pipelines)]

# %%
columns = ["policy", *(f"worker {index}" for index in range(pipelines)), "seen twice or more", "never seen"]
table = "| " + " | ".join(columns) + " |\n"
table += "|---" * len(columns) + "|\n"
for name, rows in cases.items():
    counts = np.bincount(np.concatenate(rows), minlength=FILES * PER_FILE)
    from_files = [" ".join(map(str, sorted({number // PER_FILE for number in row}))) for row in rows]
    shares = [f"{len(row)} images, files {names}" for row, names in zip(rows, from_files, strict=True)]
    table += f"| {name} | {' | '.join(shares)} | {(counts > 1).sum()} | {(counts == 0).sum()} |\n"
    assert name in ("OFF", "DATA, shuffled differently") or (counts == 1).all()
Markdown(table)

# %%
draw.show(
    draw.seen(cases, FILES, PER_FILE),
    f"Which of {pipelines} workers saw which of {FILES * PER_FILE} images in {FILES} files. OFF: every worker saw all. "
    "DATA: the workers take turns, two images each. FILE and AUTO: they take turns with whole files. DATA, shuffled "
    "differently: each worker saw a random share; some images were seen by several workers, others by none.",
)

# %% [markdown]
# - **OFF** repeats: with $n$ workers one epoch is $n$ passes over the data. It is right when each worker makes its own
#   random order, or chooses its own files.
# - **DATA** is exact, but every worker reads and decodes all the files and throws the others' share away.
# - **DATA after a shuffle** is exact only if all workers shuffle alike. Give `shuffle` a seed, or shard first:
#   `dataset.shard(n, index).shuffle(...)`.
# - **FILE** reads each file once. It needs many files of similar size: three files for two workers mean twice the
#   images for one of them, and the other runs out first.
# - **AUTO** chose FILE, because the pipeline reads files.
#
# **Predict.** One file, several workers, policy AUTO: does it fall back to DATA?

# %%
sources = {
    "FILE, one file": with_policy(numbers_in(files[:1]).batch(2), "FILE"),
    "AUTO, one file": with_policy(numbers_in(files[:1]).batch(2), "AUTO"),
    "AUTO, no file, numbers 0 to 31 in memory": with_policy(tf.data.Dataset.range(32).batch(2), "AUTO"),
}
for (name, pipeline), index in itertools.product(sources.items(), range(2)):
    try:
        shard = input_ops.auto_shard_dataset(pipeline, pipelines, index)
        answer = [int(number) for batch in shard for number in batch]
    except tf.errors.InvalidArgumentError as error:
        answer = type(error).__name__ + ": " + error.message.partition("}} ")[2].partition(":")[0]
    print(f"{name}, worker {index}: {answer}")
folder.cleanup()

# %% [markdown]
# AUTO falls back to DATA only if the pipeline reads *no* files. With too few files worker 0 fails, and worker 1 is
# given nothing, without an error: in a real run it fails later, with a message about a lost connection. Set DATA, or
# write at least one file a worker.
#
# <details>
# <summary>Question: 1,000 images in one file, four workers, no policy set. How does each worker get a share?</summary>
#
# 1. *Nothing to do, AUTO shards by images.* It tries FILE, because there is a file, and fails as above.
# 2. *OFF, and each worker sees a quarter.* With OFF each worker sees all 1,000.
# 3. *DATA, or at least four files and FILE.* Yes. The first reads everything four times, the second once.
# 4. *A larger batch.* The batch size does not decide which worker reads what.
# </details>

# %% [markdown]
# ## 6. Are both devices busy?
#
# `num_replicas_in_sync` only says what was asked for. So let each replica note the time: when it starts, when it has
# its gradients, and when its weights are updated. The loop below is taken apart in
# [notebook 04](04_custom_training_loop.ipynb); here it only carries the clock.


# %%
def clock(after: list[tf.Tensor]) -> tf.Tensor:
    """The time at which all tensors in `after` have been computed."""
    with tf.device("CPU:0"):
        return tf.numpy_function(lambda *values: time.perf_counter(), after, tf.float64, stateful=False)


# %%
def training_step(strategy: tf.distribute.Strategy, global_batch: int, clock: Callable) -> Callable:
    """A step of SGD; each replica gives the times at which it began, had its gradients, and had updated."""
    with strategy.scope():
        model, optimizer = models.mlp(dropout=0.0), tf.keras.optimizers.SGD(0.1)
        optimizer.build(model.trainable_variables)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")

    def replica(images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        began = clock([images[:1]])
        with tf.control_dependencies([began]):
            images = tf.identity(images)  # nothing below starts before the clock was read
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(loss_of(labels, model(images, training=True))) / global_batch
        gradients = tape.gradient(loss, model.trainable_variables)
        computed = clock(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        updated = clock([tf.identity(weight) for weight in model.trainable_variables])
        return tf.stack([began, computed, updated])

    return tf.function(lambda batch: strategy.experimental_local_results(strategy.run(replica, args=batch)))


# %% [markdown]
# A measuring device must not change what it measures. `tf.timestamp()` looks like the obvious clock, but it counts as
# an operation with a side effect, and a `tf.function` runs all of these in the order of the program. Replica 1's clock
# would wait for replica 0's, and the picture would show replicas that take turns. The clock above has no such order.
#
# **Predict.** Draw it in your mind first: one row a device, time to the right. What do the rows look like under "no
# strategy", and under the strategy with its chosen devices?


# %%
def batches_of(strategy: tf.distribute.Strategy, global_batch: int, count: int) -> list:
    """`count` distributed batches, in memory, so that no input pipeline takes part in what is measured."""
    index = np.arange(global_batch * count) % len(images)
    pipeline = tf.data.Dataset.from_tensor_slices((train.images[index], train.labels[index]))
    return list(strategy.experimental_distribute_dataset(pipeline.batch(global_batch, drop_remainder=True)))


def intervals(strategy: tf.distribute.Strategy) -> list[list[draw.Interval]]:
    """What each replica did, and when, in five steps after a first one."""
    global_batch = 256 * workers
    step, batches = training_step(strategy, global_batch, clock), batches_of(strategy, global_batch, 5)
    step(batches[0])
    rows = [[] for _ in range(strategy.num_replicas_in_sync)]
    for batch in batches:
        all_times = [times.numpy() for times in step(batch)]
        for row, (began, computed, updated) in zip(rows, all_times, strict=True):
            row.append(draw.Interval(began, computed, "forward and backward"))
            row.append(draw.Interval(computed, max(computed, updated), "all-reduce and update"))
    return rows


TITLE = f"MirroredStrategy, devices chosen: {workers}"
busy = {"no strategy": intervals(one_device), TITLE: intervals(strategy)}

# %% tags=["varies"]
draw.show(
    draw.busy(busy, [f"device {number}" for number in range(len(names))]),
    "Two strips over time, one row a device. Without a strategy only device 0 has boxes. Under MirroredStrategy each "
    "chosen device has a box for each of five steps, at the same times as the others; the other devices stay empty.",
)

# %%
for title, rows in busy.items():
    print(f"{title}: steps on each device", [len(row) // 2 for row in rows] + [0] * (len(names) - len(rows)))
passes, updates = ([row[kind::2] for row in busy[TITLE]] for kind in (0, 1))
together = [
    max(work.start for work in begun) < min(work.end for work in done)
    for begun, done in zip(zip(*passes, strict=True), zip(*updates, strict=True), strict=True)
]
print("in every step all chosen devices had begun before the first one was done:", all(together))

# %% [markdown]
# Each chosen device works in every step, on its own part, at the same time as the others. No replica updates before the
# last one has its gradients: the all-reduce is where they meet. A replica that is late makes all wait; that is what
# *synchronous* costs. White gaps are Python handing over the next batch. Devices that are not in the list do nothing.
#
# On logical CPU devices the picture says that the *replicas* overlap. How many *cores* were behind them is the question
# of section 8.

# %% [markdown]
# ## 7. Proof: the weights are equal
#
# Same initial weights, same global batches, plain SGD, 20 steps: after that the mirrored run must have the weights of
# the one-device run, up to rounding. If all parts are equally large, the mean of the gradients $g_i$ of $B$ images is
# the mean of the replicas' means $m_r$:
#
# $$\frac{1}{B}\sum_{i} g_i = \frac{1}{R}\sum_{r} m_r$$
#
# **Predict.** Exactly equal, or nearly? And with the lecture's dropout of 0.2?

# %%
STEPS = 20
batch = 64 // workers * workers  # 64, or the next smaller number that divides into equal parts
index = np.arange(STEPS * batch) % len(images)
batches = tf.data.Dataset.from_tensor_slices((train.images[index], train.labels[index]))
batches = batches.batch(batch, drop_remainder=True)
_, serial = trained(one_device, batches)
_, parallel = trained(strategy, batches)
checks.assert_equal_weights(serial, parallel)

# %% tags=["varies"]
_, serial_dropout = trained(one_device, batches, dropout=0.2)
_, parallel_dropout = trained(strategy, batches, dropout=0.2)
Markdown(
    f"After {STEPS} steps with {workers} replicas no weight differs by more than "
    f"**{checks.largest_difference(serial, parallel):.1g}** without dropout, and by up to "
    f"**{checks.largest_difference(serial_dropout, parallel_dropout):.1g}** with it."
)

# %% [markdown]
# Not exactly equal: floating-point addition is not associative, and the replicas add in another order. The difference
# stays at the size of a float32 rounding error. A real mistake is larger by orders of magnitude: a wrong batch size, a
# lost replica or a gradient counted twice shows in the first three decimals.
#
# Dropout breaks the *comparison*, not the training. Each replica draws its own random mask for its own images; the
# serial run draws one mask for the whole batch. Both are correct runs with different dice. The same goes for random
# augmentation, and in another way for batch normalisation, which takes its statistics from the images of one replica.
# Compare without them.

# %%
assert workers == 1 or checks.largest_difference(serial_dropout, parallel_dropout) > 100 * checks.TOLERANCE
print("with dropout the two runs are comparable weight by weight:", workers == 1)

# %% [markdown]
# ## 8. How fast is it, honestly?
#
# **Predict.** The same images, once on one device, once on `workers` logical devices of the same processor. How many
# times as many images a second: 2, 1, or fewer than 1? Does the global batch size matter?
#
# Only whole steps are timed, on batches that already lie in memory, without the clock inside. Each measurement is the
# median of three after a warm-up.


# %%
def no_clock(after: list[tf.Tensor]) -> tf.Tensor:
    return tf.constant(0.0, tf.float64)


def measured(strategy: tf.distribute.Strategy, global_batch: int, images_in_all: int) -> tuple[float, float]:
    """Images per second, and CPU seconds per image (the seconds of all threads together)."""
    step, batches = (training_step(strategy, global_batch, no_clock), batches_of(strategy, global_batch, 4))
    count = images_in_all // global_batch

    def work() -> None:
        for repeat in range(count):
            last = step(batches[repeat % 4])
        last[-1].numpy()

    work()
    with metrics.Stopwatch() as stopwatch:
        seconds = metrics.median_seconds(work, repeats=3, warm_ups=0)
    return count * global_batch / seconds, stopwatch.cpu / (3 * count * global_batch)


# %%
speed = {}
for global_batch, images_in_all in ((64 * workers, 2048 * workers), (512 * workers, 4096 * workers)):
    speed[f"batch {global_batch}, 1 device"] = measured(one_device, global_batch, images_in_all)
    speed[f"batch {global_batch}, {workers} devices"] = measured(strategy, global_batch, images_in_all)

# %% tags=["varies"]
draw.show(
    draw.bars({name: rate for name, (rate, _) in speed.items()}, "images per second"),
    "Images per second. " + ", ".join(f"{name}: {rate:,.0f}" for name, (rate, _) in speed.items()),
)
small, small_mirrored, large, large_mirrored = speed.values()
Markdown(
    f"| with {workers} devices, against one | batch {64 * workers} | batch {512 * workers} |\n|---|---|---|\n"
    f"| images per second | {small_mirrored[0] / small[0]:.2f} × | {large_mirrored[0] / large[0]:.2f} × |\n"
    f"| CPU time per image | {small_mirrored[1] / small[1]:.2f} × | {large_mirrored[1] / large[1]:.2f} × |\n\n"
    f"This process may use {devices.cores()} cores. At the large batch it used {large[0] * large[1]:.1f} of them with "
    f"one device, and {large_mirrored[0] * large_mirrored[1]:.1f} with {workers}."
)

# %% [markdown]
# Two things pull in opposite directions.
#
# - **Overhead.** Two replicas mean twice as many operations to start, and an all-reduce of 101,770 numbers. That costs
#   about the same work in every step, so it weighs most where a step is short: at the small batch. CPU time shows it on
#   a busy machine too: it counts work, not waiting ([notebook 02](02_single_device_baseline.ipynb)).
# - **Idle cores.** Logical devices add no core. But one device may leave some idle: TensorFlow spreads an operation
#   over several cores only if it is large enough. A second replica can use what is left, unless another program does.
#
# So the answer depends on the machine and its load; it is not "times two", and often it is below one. That is no
# argument against the strategy: on logical devices it is there to be learnt and tested. On GPUs the *same program* has
# a processor per replica.

# %% [markdown]
# GPUs do not guarantee a gain either. Three published figures:
#
# - An NVIDIA lab with this strategy on 8 V100, an MNIST CNN and a batch of 512 per replica: about 210,000 images a
#   second from the second epoch on.
# - The same lab's Horovod program on one V100: about 67,000. If the two programs are comparable, eight GPUs gave a
#   factor of 3.
# - The OpenHackathons bootcamp's CIFAR-10 run: 65,063 images a second on one A100, 43,244 on eight. Eight were slower.
#
# These networks are so small that a GPU finishes its part before the next one is ready. Data parallelism pays where a
# step computes for much longer than its gradient travels (notebook 11, scaling and profiling).

# %% [markdown]
# <details>
# <summary>Question: your run on 4 GPUs is as fast as on 1. What do you look at first?</summary>
#
# 1. *The reduction; another one will be faster.* Perhaps, but only after you know that the all-reduce is what takes the
#    time.
# 2. *The global batch size.* Yes. If it is still the one of a single GPU, each GPU gets a quarter, as in bug 2.
# 3. *`num_replicas_in_sync`; if it says 4, all is well.* It says how many replicas there are, not that they are busy.
# 4. *The accuracy.* It does not change with speed.
# </details>
#
# One more switch does not help: `jit_compile=True` compiles the training step with XLA. Under this strategy the
# compiled step would have to touch the variables of several devices.

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
# With several CPU devices it fails. In a loop of your own, `tf.function(jit_compile=True)` around the function that
# computes *one replica's* gradients works, because it stays on one device.

# %% [markdown]
# ## Recap
#
# - The strategy keeps one replica on each chosen device, divides each global batch, and all-reduces the gradients.
# - A loss far from $\ln 10$ before training means that loss and last layer do not fit.
# - `batch(...)` sets the global batch size; a literal there shrinks each replica's share.
# - An uneven last batch changes the gradient under `fit`.
# - The reductions give equal sums by different messages; hierarchical copy is wrong on three devices.
# - Auto-shard policies act on input pipelines, not on replicas; AUTO means FILE where there is a file.
# - After 20 SGD steps the weights equal one device's within 1e-5.
# - Logical devices add no core.
#
# **Next.** [Lab 03](../labs/03_mirrored_strategy/lab.ipynb), [04 custom loop](04_custom_training_loop.ipynb).
#
# **Sources.**
# - Goyal et al. (2017), Accurate, large minibatch SGD, arXiv:1706.02677.
# - TensorFlow 2.21, documentation and source of MirroredStrategy, CrossDeviceOps, AutoShardPolicy.
# - NVIDIA lab on 8 V100, OpenHackathons: throughputs.
