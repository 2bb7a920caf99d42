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
# lecture's program, and check that the parallel run gives the weights of one device.
#
# **Time.** 35 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb) and
# [02 single-device baseline](02_single_device_baseline.ipynb).
#
# **Questions.**
# - What does the strategy copy, what does it divide, and what do the devices exchange?
# - What is wrong with the lecture's program, and how does it show?
# - Is the result the same as on one device?
# - Who sends what to whom in TensorFlow's three reductions?
# - When is it faster?
#
# **Hardware.** Any machine. With at least `workers` GPUs it runs on those, else on logical CPU devices.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; at most 8,000 training images
epochs = 2  # passes over the images, in each training run
workers = 2  # how many devices train, one replica on each; with 1 there is nothing to share

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras before TensorFlow is imported

import math
from pathlib import Path

import numpy as np
import tensorflow as tf
from IPython.display import Markdown

from distlab import checks, data, devices, draw
from distlab import launch, models, profiling, programs, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # else it announces every strategy and all-reduce
tf.keras.utils.set_random_seed(3)
tf.config.experimental.enable_tensor_float_32_execution(False)  # else newer GPUs round

# %% [markdown]
# ## 1. The whole program
#
# This is everything that a program needs to train on several devices; copy it into a file together with the parameters
# above. (Outside the course's environment it runs with Keras 3; see the end of the chapter.) If there are fewer GPUs
# than `workers`, it divides the processor into **logical devices**. TensorFlow treats each as a separate device, but
# they share the cores. At least four are made, for the experiments below; the first `workers` train.

# %% tags=["program", "slide-code"]
import tensorflow as tf
from sklearn.datasets import load_digits

kind = "GPU"
if len(tf.config.list_physical_devices("GPU")) < workers:
    kind, processor = "CPU", tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * max(workers, 4)
    tf.config.set_logical_device_configuration(processor, parts)
    tf.config.set_visible_devices([], "GPU")  # else an operation could be moved to one

strategy = tf.distribute.MirroredStrategy([f"{kind}:{number}" for number in range(workers)])
global_batch_size = 32 * strategy.num_replicas_in_sync

digits, classes = load_digits(return_X_y=True)
batches = tf.data.Dataset.from_tensor_slices((digits[:1500] / 16, classes[:1500]))
batches = batches.shuffle(1500, seed=1).batch(global_batch_size).prefetch(tf.data.AUTOTUNE)

with strategy.scope():
    hidden = tf.keras.layers.Dense(128, activation="relu")
    layers = [hidden, tf.keras.layers.Dropout(0.2), tf.keras.layers.Dense(10)]
    model = tf.keras.Sequential([tf.keras.layers.Input((64,)), *layers])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])

model.fit(batches, epochs=epochs, verbose=0)
test_loss, test_accuracy = model.evaluate(digits[1500:] / 16, classes[1500:], verbose=0)

# %% tags=["varies"]
replicas = strategy.num_replicas_in_sync
print(f"replicas on {kind} devices: {replicas}, test accuracy: {test_accuracy:.2f}")

# %% [markdown]
# Compared with a program for one device, three things are new:
#
# - **The strategy.** `MirroredStrategy()` without a list takes every GPU, or every logical CPU device if there is none.
# - **The scope.** The variables of model, optimizer and metrics are created inside `strategy.scope()`. `fit` and
#   `evaluate` need no scope.
# - **The batch size.** `batch(...)` sets the **global batch size**. The strategy divides each global batch into one
#   **per-replica batch** for each replica.

# %% [markdown] tags=["slide-picture"]
# ## 2. What the strategy copies and divides
#
# A **replica** is one copy of the model on one device. A weight created inside the scope is a **mirrored variable**:
# one copy per device under one name. All copies start equal, and all apply the same summed gradient. This is
# synchronous data parallelism inside one process.
#
# ![One process with one input pipeline, two replicas with a part of the batch and a copy of each mirrored variable, and
# an all-reduce that adds their gradients](../figures/03_mirrored_strategy.svg)
#
# The next cell compares the copies after training and counts each replica's images.


# %%
def images_per_replica(strategy, batches) -> list[int]:
    """How many images of the first batch each replica gets."""
    batch_images, _ = next(iter(strategy.experimental_distribute_dataset(batches)))
    return [len(part) for part in strategy.experimental_local_results(batch_images)]


kernel = model.trainable_variables[0]
copies = [copy.numpy() for copy in strategy.experimental_local_results(kernel)]
print("copies of the first weight matrix:", len(copies))
checks.assert_equal(copies, [copies[0]] * len(copies), "copies", tolerance=0)
print("images per replica in a step:", images_per_replica(strategy, batches))

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 3. The lecture's program
#
# This is the lecture's distributed program in our words, for images of 28 × 28 pixels. It was written for two GPUs with
# 32 images each. It runs, it prints no warning, and it has four faults. Do not look for them yet.
#
# **Predict.** With this network one device usually reaches an accuracy near 0.9. What do you expect on several devices?

# %%
train, test = data.load(dataset)
images, labels = train.images[:8000], train.labels[:8000]
one_hot_labels = tf.keras.utils.to_categorical(labels, 10)
one_hot_test = (test.images[:2000], tf.keras.utils.to_categorical(test.labels[:2000], 10))

BATCH_SIZE = 32
GLOBAL_BATCH_SIZE = BATCH_SIZE * strategy.num_replicas_in_sync
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
lecture_batches = tf.data.Dataset.from_tensor_slices((images, one_hot_labels)).batch(64)
lecture_batches = lecture_batches.with_options(options)

tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = models.mlp()  # the layers of the program above, for images of 28 × 28 pixels
    model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=["accuracy"])

# %% tags=["varies", "slide-output"]
first_loss = model.evaluate(*one_hot_test, verbose=0)[0]
history = model.fit(lecture_batches, epochs=epochs, verbose=0).history
accuracy_lecture = model.evaluate(*one_hot_test, verbose=0)[1]
print(f"loss before training: {first_loss:.2f}")
print(f"loss of each epoch:   {', '.join(f'{value:.2f}' for value in history['loss'])}")
print(f"test accuracy:        {accuracy_lecture:.2f}")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# The network has learned little or nothing. The lecture's printout shows the same: an accuracy of 0.2202 on two GPUs
# and 0.9778 on one. The loss before training says where to look: an untrained network gives each of 10 classes a
# probability near 1/10, so its loss must be near $\ln 10 \approx 2.303$.
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
# 1. The reported loss is a mean; this confuses it with the sum of gradients.
# 2. Nothing has been trained yet.
# 3. **Right.** Only data, network and loss take part before training.
# 4. With a loss that fits, other seeds move it by about a tenth. With this one they give anything from 4 to 9.
# </details>

# %% [markdown]
# ### Fault 1: the loss takes logits for probabilities
#
# The last layer, `Dense(10)`, has no softmax: it returns **logits**, numbers of any sign. The string
# `"categorical_crossentropy"` means a loss with `from_logits=False`, which expects probabilities. It divides the ten
# numbers by their sum, clips what is not between 0 and 1, and takes the logarithm. A clipped number has no gradient.
# Logits need `from_logits=True`, and a softmax the default. The opposite mistake usually does no harm: Keras finds the
# softmax, takes its input and warns.
#
# On one device the same program fails too; the lecture's program for one device has the right loss ([chapter
# 02](02_single_device_baseline.ipynb)). The fix is one argument.


# %% tags=["varies"]
def compiled(loss: tf.keras.losses.Loss) -> tf.keras.Model:
    """The lecture's network, with the same initial weights each time."""
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = models.mlp()
        model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    return model


model = compiled(tf.keras.losses.CategoricalCrossentropy(from_logits=True))
first_loss_fixed = model.evaluate(*one_hot_test, verbose=0)[0]
model.fit(lecture_batches, epochs=epochs, verbose=0)
accuracy_fixed = model.evaluate(*one_hot_test, verbose=0)[1]
print(f"loss before training: {first_loss_fixed:.2f} (lecture: {first_loss:.2f})")
print(f"test accuracy:        {accuracy_fixed:.2f} (lecture: {accuracy_lecture:.2f})")

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### Fault 2: the distributed data are never shuffled
#
# The lecture's serial program called `fit` with NumPy arrays, which `fit` shuffles before each epoch. A `tf.data`
# pipeline is used as it is: the default `shuffle=True` of `fit` has no effect on it. The distributed program has no
# `shuffle`, so all epochs present the same batches in the same order. Many data sets are stored class by class.
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
for name, pipeline in pipelines.items():
    first_labels = [next(iter(pipeline))[1].numpy()[:8].tolist() for _ in range(2)]
    print("{:15}  first labels of two epochs: {} {}".format(name, *first_labels))
    model = compiled(tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(pipeline, epochs=epochs, verbose=0)
    evaluation = model.evaluate(test.images[:2000], test.labels[:2000], verbose=0)
    accuracy_sorted[name] = evaluation[1]

# %% tags=["varies", "slide-output"]
for name, accuracy in accuracy_sorted.items():
    print(f"{name:15}  test accuracy {accuracy:.2f}")

# %% [markdown]
# Without `shuffle` a batch holds few classes. Each step pulls the network towards these, and it partly forgets the
# earlier ones. Keras 3 warns, but for every pipeline, shuffled or not.
#
# ### Fault 3: the literal 64
#
# The program computes `GLOBAL_BATCH_SIZE` and then writes `batch(64)`. On the lecture's two GPUs that is the same, on
# any other number of devices it is not, and nothing says so.

# %%
available = len(tf.config.list_logical_devices(kind))
names = [f"{kind}:{number}" for number in range(available)]
for count in [count for count in (2, 4) if count <= available]:
    reduction = tf.distribute.ReductionToOneDevice()  # explained below; not used here
    several = tf.distribute.MirroredStrategy(names[:count], cross_device_ops=reduction)
    intended = math.ceil(len(images) / (BATCH_SIZE * count))
    seen = images_per_replica(several, lecture_batches)
    print(f"{count} devices, intended:    {intended} steps, images: {[BATCH_SIZE] * count}")
    print(f"{count} devices, the program: {len(lecture_batches)} steps, images: {seen}")

# %% [markdown]
# Each further device makes every share smaller, and the number of steps, each with an all-reduce, stays the same. With
# eight GPUs, each gets eight images, far too few to keep them busy. The fix is to use the number that was computed.
# Then more devices mean fewer updates with larger batches.
#
# ### Fault 4: a policy that does nothing
#
# The lecture sets `AutoShardPolicy.DATA`. **Auto-sharding** divides data among processes that each have a pipeline
# ([chapter 07](07_multi_worker.ipynb)). Here there is one pipeline, whose batches are divided whatever the policy says.

# %% [markdown]
# ### The last batch
#
# The last batch of an epoch is usually smaller, and is still divided into $R$ parts. `fit` lets each replica take the
# mean over *its own* $b_r$ images and then averages the replicas (it divides each loss by $R$, and the all-reduce adds
# up), so an image has the weight $1 / (R\,b_r)$. With one image for two replicas that is 1/2 instead of 1.


# %%
def trained(strategy, batches, dropout: float = 0.0) -> tuple[list, list]:
    """Weights of the network before (always the same) and after one pass of plain SGD."""
    tf.keras.utils.set_random_seed(7)
    with strategy.scope():
        model = models.mlp(dropout)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=loss)
    before = model.get_weights()
    model.fit(batches, verbose=0)
    return before, model.get_weights()


single = tf.distribute.OneDeviceStrategy(names[0])  # one replica, on the first device
one_image = tf.data.Dataset.from_tensor_slices((images[:1], labels[:1]))
one_image = one_image.batch(global_batch_size)
before, alone = trained(single, one_image)
_, mirrored = trained(strategy, one_image)
steps = [np.linalg.norm(weights[-1] - before[-1]) for weights in (mirrored, alone)]
print("one image left, divided into parts of", images_per_replica(strategy, one_image))
print(f"length of this step, {workers} replicas against one: {steps[0] / steps[1]:.3f}")

# %% [markdown]
# The empty replicas contribute a gradient of zero, and the average still divides by all. A comparison with a serial run
# reveals this. With `fit`, `batch(…, drop_remainder=True)` avoids the short batch; [chapter
# 04](04_custom_training_loop.ipynb) trains it rightly.

# %% [markdown] tags=["slide-text", "slide-formula", "slide-predict"]
# ## 4. Are the weights those of one device?
#
# Same initial weights, same global batches, plain SGD, 20 steps: after that the mirrored run must have the weights of
# the one-device run. If all parts are equally large, the mean of the gradients $g_i$ of $B$ images is the mean of the
# means $m_r$ of $R$ replicas:
#
# $$\frac{1}{B}\sum_{i} g_i = \frac{1}{R}\sum_{r} m_r$$
#
# **Predict.** Exactly equal, or nearly? And with the lecture's dropout of 0.2?

# %% tags=["slide-output"]
STEPS = 20
batch = 64 // workers * workers  # 64, or the next smaller number that divides into equal parts
index = np.arange(STEPS * batch) % len(images)
full_batches = tf.data.Dataset.from_tensor_slices((images[index], labels[index]))
full_batches = full_batches.batch(batch)
_, serial = trained(single, full_batches)
_, parallel = trained(strategy, full_batches)
checks.assert_equal_weights(serial, parallel)

# %% tags=["varies", "slide-output", "slide-continued"]
_, serial_dropout = trained(single, full_batches, dropout=0.2)
_, parallel_dropout = trained(strategy, full_batches, dropout=0.2)
difference = checks.largest_difference(serial_dropout, parallel_dropout)
print(f"largest difference of the weights with dropout: {difference:.1g}")

# %% [markdown] tags=["slide-takeaway"]
# Not exactly equal: floating-point addition is not associative, and with replicas the order of additions differs. The
# difference has the size of a float32 rounding error. A real mistake, such as a wrong batch size, a lost replica or a
# gradient counted twice, shows in the first three decimals.
#
# Dropout breaks the *comparison*, not the training: each replica draws its own random mask, while the serial run draws
# one for the whole batch. Batch normalisation takes its statistics from the images of one replica, unless the layer is
# created with `synchronized=True`. So compare without them.

# %% [markdown]
# ## 5. The all-reduce, and three ways to do it
#
# An **all-reduce** adds the replicas' gradients and gives every replica the sum. The argument `cross_device_ops` of
# `MirroredStrategy` chooses how:
#
# - **`ReductionToOneDevice`**: one device collects, adds, and sends the sum back.
# - **`HierarchicalCopyAllReduce`**: two groups of devices. Each adds up on one of its devices; one of these two adds
#   both sums and sends the total to the other; then each passes it on inside its group. Made for NVIDIA's DGX-1: two
#   groups of four GPUs.
# - **`NcclAllReduce`**: NVIDIA's library **NCCL**, for GPUs only. TensorFlow passes it one tensor per device and
#   receives the sum.


# %%
def summing(name: str, device_names: list[str]):
    """A step in which every replica receives the sum of all gradients."""
    reduction = getattr(tf.distribute, name)()
    strategy = tf.distribute.MirroredStrategy(device_names, cross_device_ops=reduction)

    def replica() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float32)
        gradient = tf.fill([3], 1 + number)  # ones on replica 0, twos on replica 1, …
        return context.all_reduce(tf.distribute.ReduceOp.SUM, gradient)

    return tf.function(lambda: strategy.experimental_local_results(strategy.run(replica)))


four = names[:4] if len(names) >= 4 else names[:2]  # two GPUs will do
REDUCTIONS = ("ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce")
for name in REDUCTIONS:
    try:
        results = [result.numpy().tolist() for result in summing(name, four)()]
        print(f"{name}: {results}")
    except tf.errors.InvalidArgumentError as error:
        print(f"{name}: {error.message.splitlines()[0].partition(' used by')[0]}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The first two give the same sum on every device. `NcclAllReduce` has no implementation for CPU devices, and TensorFlow
# says so when the step first runs.
#
# The sums are equal, but the messages are not. In TensorFlow's graph each operation has a device. If it reads a tensor
# from another device, that tensor must travel. `profiling.messages` of `distlab` reads the messages from the graph. It
# orders them in steps: in one step a device sends at most one message and receives at most one, as in [chapter
# 06](06_collectives_and_ring_all_reduce.ipynb).
#
# **Predict.** Four devices. How many messages does device 0 send and receive under `ReductionToOneDevice`?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
patterns = {}
for name in REDUCTIONS:
    graph = summing(name, four).get_concrete_function().graph
    sent = profiling.messages.between_devices(graph, four)
    of_device_0 = sum(0 in (message.source, message.destination) for message in sent)
    print(f"{name}: messages: {len(sent)}, to or from device 0: {of_device_0}")
    patterns |= {name: sent} if sent else {}
text = "One panel per reduction, one row per device, one arrow per message, by step. "
for name, sent in patterns.items():
    text += f"{name}: "
    text += ", ".join(f"{source} to {to} in step {step}" for step, source, to in sent) + ". "
rows = [f"device {number}" for number in range(len(four))]
draw.show(draw.exchange(patterns, rows), text)

# %% [markdown] tags=["slide-takeaway"]
# Under `ReductionToOneDevice` everything passes through device 0: with $p$ devices it handles $2(p-1)$ messages, here
# **6**, each as large as the gradient, one after the other. `HierarchicalCopyAllReduce` sends as many messages in fewer
# steps, since the groups work at the same time. For `NcclAllReduce` the graph shows none: it has one operation per
# device, and NCCL moves the data between them, as a ring or as trees.

# %% [markdown]
# **What the log says.** On two GPUs the lecture's program prints
#
#     batch_all_reduce: 4 all-reduces with algorithm = nccl, num_packs = 1
#
# The 4 are the tensors to reduce, one gradient for each of two kernels and two biases. One pack means that they are
# joined into one array, which travels in one all-reduce and is cut into four again. `NcclAllReduce` writes this line,
# `HierarchicalCopyAllReduce` the same with its own name. If you choose no reduction, TensorFlow 2.21 uses its
# collective operations, NCCL between GPUs and a ring between CPU devices, and says
# `Collective all_reduce tensors: 4 all_reduces, … num_packs = 1`. There `bytes_per_pack` decides on the packs ([chapter
# 07](07_multi_worker.ipynb)). Make one such strategy per process: a second one can fail ("Shape mismatch in the
# collective instance"), so every other strategy in this chapter names a reduction.

# %% [markdown]
# **Question.** Which reduction would you choose on two GPUs without NVLink?
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
#
# ### Compare with a known sum
#
# Three devices hold gradients of 1, 2 and 3, so the sum must be 6. (A machine with only two GPUs shows no fault.)

# %% tags=["slide-output"]
for name in REDUCTIONS[:2]:
    results = [float(result[0]) for result in summing(name, names[:3])()]
    print(f"{name}: {results}, the correct sum is {sum(range(1, len(results) + 1))}")

# %% [markdown] tags=["slide-takeaway"]
# `HierarchicalCopyAllReduce` makes two groups of $\lfloor p/2 \rfloor$ devices. With an odd number of devices the last
# one is in no group, and its gradient is lost without a warning: three devices train on two thirds of the data, with
# two thirds of the gradient.

# %% [markdown]
# ## 6. Are all devices busy?
#
# `num_replicas_in_sync` only says what was asked for. So let each replica note the time: when it starts a step, when it
# has its gradients, and when its weights are updated. Both runs get the same batches.

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
TITLE = f"MirroredStrategy, devices: {workers}"
PARTS = ("forward and backward", "all-reduce (if any) and update")
index = np.arange(6 * 256 * workers) % len(images)
large = tf.data.Dataset.from_tensor_slices((images[index], labels[index]))
large = large.batch(256 * workers)
busy = {}
for title, used in (("one device", single), (TITLE, strategy)):
    moments = profiling.replicas.moments(used, lambda: models.mlp(dropout=0.0), large)
    busy[title] = []
    for steps in moments:
        pairs = [(step[i : i + 2], PARTS[i]) for step in steps for i in (0, 1)]
        busy[title].append([draw.Interval(*times, part) for times, part in pairs])
draw.show(
    draw.busy(busy, [f"device {number}" for number in range(workers)]),
    "Two strips over time, one row per device. On one device only device 0 has boxes. "
    "Under MirroredStrategy each device has boxes for each step.",
)
together = int(np.sum(moments[..., 0].max(axis=0) < moments[..., 1].min(axis=0)))
Markdown(
    f"In {together} of {moments.shape[1]} steps there was a moment at which every chosen "
    "device was busy with forward and backward."
)

# %% [markdown] tags=["slide-takeaway"]
# Each chosen device works in every step, on its own part. In the gaps between the steps, Python starts the next one. No
# replica can update before the last one has its gradients: the all-reduce is where they meet, and a replica that is
# late makes all wait. That is what *synchronous* costs.

# %% [markdown] tags=["slide-predict"]
# ## 7. When are several devices faster?
#
# One device and `workers` devices train on the same number of images, with 32 images per replica and with 512. A third
# measurement makes a device more like a GPU, a processor of its own. It needs a fresh process, which the kernel starts:
#
#     python one_thread_each.py --devices 2
#
# There an operation may use one thread, and the run with one device is held on one core:
#
#     tf.config.threading.set_intra_op_parallelism_threads(1)
#
# The network has four hidden layers of 512 units.
#
# **Predict.** By which factor does the number of images per second change in each of the three cases?

# %% jupyter={"source_hidden": true} tags=["varies"]
PROGRAM = Path("programs/03_mirrored_strategy/one_thread_each.py")
program, used = programs.module(PROGRAM), {1: single, workers: strategy}
shared = {size: program.compared(used, per_replica=size) for size in (32, 512)}
run = launch.alone(PROGRAM, "--devices", workers, "--result", "{result}")
own_thread = {int(count): seconds for count, seconds in run.result.items()}

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
gains = {
    f"{size} images per replica, all threads": times[1].elapsed / times[workers].elapsed
    for size, times in shared.items()
}
gains["512 images per replica, one thread"] = own_thread[1] / own_thread[workers]
figure = draw.bars(gains, f"speed-up with {workers} devices (line: one device)", "{:.2f} ×")
figure.axes[0].axvline(1, color=draw.INK, linestyle="--", linewidth=1, zorder=0)
for number in figure.axes[0].texts:  # inside the bars, which the line does not cross
    number.set(ha="right", color="white", position=(-4, 0))
described = ", ".join(f"{name}: {gain:.2f}" for name, gain in gains.items())
draw.show(figure, f"Speed-up. {described}. A dashed line marks 1, the speed of one device.")
_, all_threads, one_thread = gains.values()
cores = shared[512][1].cpu / shared[512][1].elapsed
reason = "More processors, more images: that is what GPUs offer"
if one_thread < 1.1:
    reason = "No gain even so: there were too few cores, or other programs used them meanwhile"
Markdown(
    f"This process may use {devices.cores()} cores; at the large batch one device used "
    f"{cores:.1f} of them. With {workers} devices it was **{all_threads:.2f} ×** as fast, and "
    f"with one thread per device **{one_thread:.2f} ×**. {reason}."
)

# %% [markdown] tags=["slide-takeaway"]
# - **All threads.** One device spreads large operations over all cores already. More replicas can gain only what one
#   device leaves idle, and they add operations to start and an all-reduce, which weigh most at 32 images.
# - **One thread.** A second device brings a second core, as a second GPU brings a second processor. The gain stays
#   below the number of devices: each step ends with an all-reduce, at which the faster replica waits.
#
# Several GPUs guarantee no gain either. In a [bootcamp's](https://github.com/openhackathons-org/gpubootcamp) CIFAR-10
# run with Horovod and 512 images per GPU, eight V100s process 5.9 times as many images per second as one (221,506 and
# 37,525), but eight A100s fewer than one (43,244 and 65,063). So measure on your own machine. Data parallelism pays
# where a step computes for much longer than its gradient travels ([chapter 11](11_scaling_and_profiling.ipynb)).

# %% [markdown]
# ## 8. XLA under the strategy
#
# `jit_compile=True` compiles the training step with XLA, TensorFlow's compiler. On CPU devices that step would have to
# touch the variables of several devices:

# %% jupyter={"source_hidden": true} tags=["varies"]
with strategy.scope():
    model = models.mlp()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=True)
try:
    model.fit(one_image, verbose=0)
    print("compiled and trained")
except (tf.errors.OpError, ValueError, NotImplementedError) as error:
    _, trying, reason = str(error).partition("Trying to access")
    print(f"{type(error).__name__}: {trying}{reason.partition(' (defined')[0]} …")

# %% [markdown]
# With several CPU devices it fails: the step on device 0 touches a variable of replica 1.
#
# On GPUs `fit` accepts it since TensorFlow 2.8
# ([tensorflow#45940](https://github.com/tensorflow/tensorflow/issues/45940)): each GPU compiles its own step. But long
# runs have crashed with `std::system_error` ([tensorflow#56423](https://github.com/tensorflow/tensorflow/issues/56423),
# still open), embeddings fail ([tf-keras#99](https://github.com/keras-team/tf-keras/issues/99)), and the optimizer must
# be created inside the scope ([tf-keras#385](https://github.com/keras-team/tf-keras/issues/385)). In a custom loop,
# compile only the function that computes *one replica's* gradients (`tf.function(jit_compile=True)`): it stays on one
# device, so it works on CPU devices too. Test your model over a whole epoch.

# %% [markdown]
# **With Keras 3.** In one trial with Keras 3.15 on TensorFlow 2.21, `fit` on two logical CPU devices gave the weights
# of one device. `jit_compile=True` failed, and so did `gradient_accumulation_steps`. Keras 3.7 could not build a
# `Dropout` layer in a scope ([keras#20611](https://github.com/keras-team/keras/issues/20611)), so test your release.

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("03")

# %% [markdown]
# ## Recap
#
# - The strategy keeps one replica on each chosen device, divides each global batch, and all-reduces the gradients.
# - `batch(...)` sets the global batch size; a literal there is right for one number of devices only.
# - A loss far from $\ln 10$ before training means that loss and last layer do not fit.
# - A `tf.data` pipeline must shuffle for itself.
# - After 20 SGD steps on equal parts, without dropout, the weights equal one device's within 1e-5.
# - Hierarchical copy is wrong on an odd number of devices.
# - A gain needs a processor for each replica, and enough work for it in a step.
#
# **Next.** [Lab 03](../labs/03_mirrored_strategy/lab.ipynb), [04 custom loop](04_custom_training_loop.ipynb).
#
# **Sources.**
# - TensorFlow, [MirroredStrategy](https://www.tensorflow.org/api_docs/python/tf/distribute/MirroredStrategy) and
#   [CrossDeviceOps](https://www.tensorflow.org/api_docs/python/tf/distribute/CrossDeviceOps).
# - OpenHackathons, [Distributed Deep Learning](https://github.com/openhackathons-org/gpubootcamp).
