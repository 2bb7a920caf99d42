# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 02 One device: the baseline to beat
#
# **Goal.** Measure a program on one device correctly and make it several times faster, before a second device is added.
#
# **Time.** 40 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb)
#
# **Questions.**
# - Which clock measures a training run?
# - How many devices does TensorFlow use by itself?
# - Which order of the input pipeline pays?
# - What do a larger batch and several steps per execution gain and cost?
# - What do mixed precision and XLA do, here and on a GPU?
#
# **Hardware.** Any computer with two cores. GPUs are used if they are there.

# %% tags=["parameters"]
dataset = "digits"  # the images: digits, mnist or fashion_mnist
epochs = 5  # passes of the lecture's program over the training images
workers = 2  # how many devices are offered to TensorFlow, which will use one

# %% tags=["varies"] jupyter={"source_hidden": true}
from distlab import checks, data, devices, draw, metrics, quizzes

import hashlib
import math
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no advice about tracing: this chapter builds many models
tf.keras.utils.set_random_seed(1)
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)  # reserve only the memory that is used
names = devices.at_least(workers)

# %% [markdown]
# ## 1. The lecture's program
#
# The lecture trains a small network on one GPU, with Adam and batches of 32 images. Here is the whole program, with
# scikit-learn's small images. With the parameters above it also runs as a separate file.
#
# A **step** is one update of the weights. The **batch size** is the number of images whose gradients are averaged for
# one step. An **epoch** is one pass over the training images. The network returns one **logit** per class, the score
# before the softmax. `from_logits=True` tells the loss so; [chapter 03](03_mirrored_strategy.ipynb) shows what happens
# without it.

# %% tags=["program", "varies", "slide-code"]
import time

import tensorflow as tf
from sklearn.datasets import load_digits

digits, classes = load_digits(return_X_y=True)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Input((64,)),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(0.2),
        tf.keras.layers.Dense(10),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])

start, cpu_start = time.perf_counter(), time.process_time()
model.fit(digits[:1500] / 16, classes[:1500], batch_size=32, epochs=epochs, verbose=0)
elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu_start

test_loss, test_accuracy = model.evaluate(digits[1500:] / 16, classes[1500:], verbose=0)
print(f"elapsed {elapsed:.2f} s, CPU {cpu:.2f} s, test accuracy {test_accuracy:.2f}")

# %% [markdown] tags=["slide-predict"]
# ## 2. A surprising time
#
# The lecture trains this network on MNIST, first on one GPU, then on two, and prints the time of each run: **15.4 s on
# one GPU, 43.7 s on two**.
#
# **Predict.** Which explanation do you believe?
#
# - The two GPUs spend most of their time exchanging gradients.
# - The second program does more work than the first.
# - The clock measures something else.

# %% [markdown] tags=["slide-text"]
# The lecture's clock was `time.process_time()`. It shows **CPU time**: the seconds that processor cores spent on this
# process, summed over its threads. **Elapsed time** is what a clock on the wall shows, in Python `time.perf_counter()`.
# `metrics.compare` times four pieces of work with both.
#
# In this chapter it always does each piece once as a warm-up, then several times, in turns, and reports the medians. A
# training needs the warm-up for **tracing**: Keras runs the Python code of a step once and records a graph that all
# later steps run.

# %% tags=["varies", "slide-output"]
PIECE = "import hashlib; [hashlib.sha256(bytes(4_000_000)) for _ in range(16)]"
block = bytes(4_000_000)
with ThreadPoolExecutor(2) as threads:
    times = metrics.compare(
        {
            "wait": lambda: time.sleep(0.2),
            "hash, one thread": lambda: [hashlib.sha256(block) for _ in range(16)],
            "hash, two threads": lambda: list(threads.map(hashlib.sha256, [block] * 16)),
            "hash, child process": lambda: subprocess.run([sys.executable, "-c", PIECE]),
        }
    )
print(f"{'':20}{'elapsed':>9}{'CPU':>9}")
for name, (elapsed, cpu) in times.items():
    print(f"{name:20}{elapsed:8.2f}s{cpu:8.2f}s")

# %% [markdown] tags=["slide-takeaway"]
# So the lecture's clock errs in three ways.
#
# - It does not see a wait that sleeps: a program that waits for data looks fast. (A wait that polls, as Open MPI's
#   does, it counts as work.)
# - It sums over threads. On two free cores, two threads halve the elapsed time and leave the CPU time as it was: **the
#   gain from parallel work is what this clock cannot show.**
# - It does not see other processes. Multi-worker training and Horovod run one process per worker.
#
# So the third explanation is right: 15.4 and 43.7 s say that the processor worked almost three times as long for two
# GPUs. The second is likely: more operations to start and more data to copy. Neither number says which run ended first.

# %% [markdown]
# **Question.** One GPU: elapsed 10 s, process_time 14 s. Two GPUs: elapsed 6 s, process_time 16 s. What is the
# speed-up?
#
# 1. 1.67
# 2. 0.88
# 3. 2
# 4. 2.33
#
# <details>
# <summary>Answer</summary>
#
# **1.** Speed-up compares elapsed times, 10 / 6. (2) compares CPU times, the lecture's mistake: a second thread feeds
# the second GPU, so the sum grows while the run gets shorter. (3) counts devices. (4) mixes both clocks.
# </details>

# %% [markdown]
# ## 3. How many devices does TensorFlow use?
#
# From here on the images have 28 × 28 pixels, as MNIST's. The default data set is repeated until an epoch has about
# 6,000 images; a larger one is cut to 8,000.
#
# **Predict.** TensorFlow has been offered several devices. On how many of them are the weights after training?


# %%
def mlp(dropout: float = 0.2) -> tf.keras.Model:
    """The lecture's network, from images (n, 28, 28) to logits (n, 10)."""
    layers = [
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(dropout),
        tf.keras.layers.Dense(10, dtype="float32"),  # so the loss has 32 bits, too
    ]
    return tf.keras.Sequential(layers)


(x_train, y_train), (x_test, y_test) = data.load(dataset)
copies = max(1, round(6_000 / len(x_train)))
images = np.concatenate([x_train] * copies)[:8_000]
labels = np.concatenate([y_train] * copies)[:8_000]
x_test, y_test = x_test[:2_000], y_test[:2_000]
print(data.describe(dataset))
print(f"An epoch: {len(images):,} images in {math.ceil(len(images) / 32)} steps of at most 32")

# %%
model = mlp()
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
model.fit(images, labels, batch_size=32, epochs=1, verbose=0)
used = {variable.device for variable in model.weights} | {model(x_test[:32]).device}
print(f"Devices offered: {len(names)}. Devices with a weight or the output: {len(used)}")

# %% [markdown]
# One. **TensorFlow alone uses one GPU**, or one logical device, however many there are. Dividing the work is a
# strategy's job, in [chapter 03](03_mirrored_strategy.ipynb).
#
# `nvidia-smi` shows this, with a trap. Two rows from a training with TensorFlow in 2017:
#
# | GPU | power | memory | GPU-Util |
# |---|---|---|---|
# | 0 Tesla M40 24GB | 187 W / 250 W | 21,871 MiB / 22,939 MiB | 100 % |
# | 1 Tesla M40 24GB | 56 W / 250 W | 21,806 MiB / 22,939 MiB | 0 % |
#
# Both memories are full, although GPU 1 computes nothing: without `set_memory_growth`, TensorFlow reserves almost all
# memory of every GPU that it *sees*. The shell decides what it sees:
#
#     CUDA_VISIBLE_DEVICES=1 python train.py
#
# The program then sees only GPU 1, under the name `GPU:0`. (`CUDA_DEVICE_ORDER=PCI_BUS_ID` makes its numbers those of
# `nvidia-smi`.)

# %% [markdown]
# GPU-Util is a **utilisation**: the share of time in which a GPU, or a core, was busy with anything. The next cell
# records it while the program trains.
#
# Busy with what? A product of large matrices shows how many operations per second the device can do. The model needs
# about 4 per image and weight: a multiplication and an addition each for the forward pass and for the gradient of the
# weights. (Gradients of inputs take 2 more, but the first layer, with almost all weights, needs none.)

# %% tags=["varies"]
with metrics.Utilisation() as recorded, metrics.Stopwatch() as two_epochs:
    model.fit(images, labels, batch_size=32, epochs=2, verbose=0)
draw.show(
    draw.utilisation(recorded),
    "Percentage busy against time while the program trains, a row for each core and GPU.",
)
n = 8_192 if tf.config.list_logical_devices("GPU") else 1_500
matrix = tf.random.normal((n, n))
possible = 2 * n**3 / metrics.median_seconds(lambda: (matrix @ matrix)[0, 0].numpy())
done = 4 * model.count_params() * 2 * len(images) / two_epochs.elapsed
print(f"busy, all cores and programs:       {recorded.cores.mean():6.0f} %")
print(f"operations per second, the program: {done / 1e9:6.1f} billion")
print(f"operations per second, the product: {possible / 1e9:6.1f} billion")
print(f"the program's share of the product: {100 * done / possible:6.1f} %")

# %% [markdown]
# **Utilisation says that a device is busy, not that its work is useful.** The last number is the model FLOPs
# utilisation of [chapter 01](01_why_distribute.ipynb), but with a measured peak. In a small model the rest goes to
# Python code between steps and to starting small operations, and more devices multiply this waste.
#
# **Question.** A GPU shows 100 % utilisation and reaches 5 % of its peak speed. What helps first?
#
# 1. A second GPU
# 2. Nothing, it is at its limit
# 3. Larger or fewer operations per step
#
# <details>
# <summary>Answer</summary>
#
# **3.** Utilisation counts the time with at least one operation running, even a tiny one. (1) wastes twice as much. (2)
# confuses utilisation with a share of the peak.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## 4. The input pipeline
#
# A pipeline brings the data to the device, in three stages: **extract** reads records from files, **transform**
# decodes, augments, shuffles and batches them, **load** keeps the next batches ready for the device. `tf.data`
# describes it as a chain of datasets.
#
# ![The input pipeline as a chain of boxes: read (extract); decode, cache, shuffle, batch, augment (transform); prefetch
# (load); then the model. What comes before the cache is done once, the rest in every
# epoch.](../figures/02_input_pipeline.svg)
#
# Arrays in memory need little of this, so some images are first stored as JPEG photographs of 448 × 448 pixels in a
# TFRecord file.


# %% jupyter={"source_hidden": true}
def record(image: tf.Tensor, label: int) -> bytes:
    """One image as JPEG bytes with its label, serialised as a `tf.train.Example`."""
    jpeg = tf.io.encode_jpeg(tf.cast(255 * image, tf.uint8)).numpy()
    content = {
        "jpeg": tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg])),
        "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[label])),
    }
    return tf.train.Example(features=tf.train.Features(feature=content)).SerializeToString()


STORED = 256
folder = tempfile.TemporaryDirectory()
file = str(Path(folder.name) / "images.tfrecord")
photographs = tf.image.resize(images[:STORED, ..., None], (448, 448))
with tf.io.TFRecordWriter(file) as writer:
    for photograph, label in zip(photographs, labels[:STORED].tolist(), strict=True):
        writer.write(record(photograph, label))
with tf.device("CPU:0"):
    calls = tf.Variable(0, dtype=tf.int64)  # of `decode`

# %% [markdown] tags=["slide-text"]
# `decode` turns a record into 28 × 28 pixels, and gives the same result each time. **Augmentation** must not: it
# changes each image at random in every epoch. Here it adds noise.
#
# In the measurement below, each line adds, moves or makes parallel one transformation. By itself, `tf.data` makes maps
# without state (random numbers, variables) parallel and appends a prefetch; that is switched off here.

# %%
FIELDS = {
    "jpeg": tf.io.FixedLenFeature([], tf.string),
    "label": tf.io.FixedLenFeature([], tf.int64),
}


def decode(serialised: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A record to an image of 28 × 28 pixels in [0, 1] and its label."""
    calls.assign_add(1)  # counted, to see what a cache saves
    fields = tf.io.parse_single_example(serialised, FIELDS)
    pixels = tf.io.decode_jpeg(fields["jpeg"], channels=1)
    return tf.image.resize(pixels, (28, 28), method="area")[..., 0] / 255, fields["label"]


def add_noise(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """One image, or a batch of them, with normal noise added to every pixel."""
    return image + tf.random.normal(tf.shape(image), stddev=0.1), label


def drain(batches: tf.data.Dataset) -> int:
    """Fetch every batch once; how many images were decoded for that."""
    before = int(calls)
    for _ in batches:
        pass
    return int(calls) - before


# %% tags=["varies", "slide-output"]
as_written = tf.data.Options()
as_written.experimental_optimization.apply_default_optimizations = False
stored = tf.data.TFRecordDataset(file).with_options(as_written)
decoded = stored.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
stages = {
    "read": stored.batch(32),
    "+ decode": stored.map(decode).batch(32),
    "decode in parallel": decoded.batch(32),
    "+ cache": decoded.cache().batch(32),
    "+ noise per image": decoded.cache().map(add_noise).batch(32),
    "noise per batch": decoded.cache().batch(32).map(add_noise),
    "+ shuffle": decoded.cache().shuffle(STORED).batch(32).map(add_noise),
}
decodings = {name: drain(batches) + drain(batches) for name, batches in stages.items()}
times = metrics.compare({name: partial(drain, batches) for name, batches in stages.items()})
rates = {name: metrics.throughput(STORED, elapsed) for name, (elapsed, _) in times.items()}
print(f"{'':20}{'decoded in 2 epochs':>20}{'images/s':>10}{'CPU µs per image':>18}")
for name, (_, cpu) in times.items():
    print(f"{name:20}{decodings[name]:20,}{rates[name]:10,.0f}{1e6 * cpu / STORED:18.0f}")
figure = draw.bars(rates, "images per second, without training", highlight="+ cache")
draw.show(figure, "One bar for each stage, with the images per second of the table above.")

# %% [markdown]
# - **map** costs what its function costs, and tens of microseconds for each call.
# - **Parallel map** divides this work over the cores and removes none of it: where the elapsed time falls, the CPU time
#   stays about the same.
# - **cache** keeps what came before it, small decoded images. From the second epoch on nothing is read or decoded, as
#   the first column shows without any clock.
# - **noise per batch**: one call makes the noise of 32 images, which saves CPU time (last column), as there are fewer
#   calls. The elapsed time also depends on when a core is free.

# %% [markdown] tags=["slide-text"]
# ### Prefetch: work while the device works
#
# Without prefetch (tf.data's own is still switched off), preparing a batch (time $p$) and computing a step (time $c$)
# alternate, so a step takes $p + c$. With prefetch, another thread prepares batch $i+1$ while the device computes step
# $i$, so a step takes $\max(p, c)$. An accelerator computes while the processor is free; here a sleep of $c = p$ takes
# its place.


# %%
def feed(batches: tf.data.Dataset, device_seconds: float, steps: int = 30) -> np.ndarray:
    """For each step, when a batch was asked for, when it came and when the device was done."""
    events, iterator = [], iter(batches)
    for _ in range(steps):
        asked = time.perf_counter()
        next(iterator)
        arrived = time.perf_counter()
        time.sleep(device_seconds)
        events.append((asked, arrived, time.perf_counter()))
    return np.array(events) - events[0][0]


plain = stored.map(decode).map(add_noise).batch(32).repeat()
preparation = np.median(np.diff(feed(plain, device_seconds=0)[1:, :2]))
feeds = {
    "without prefetch": feed(plain, device_seconds=preparation),
    "with prefetch": feed(plain.prefetch(2), device_seconds=preparation),
}

# %% tags=["varies", "slide-output"] jupyter={"source_hidden": true}
figure, axes = plt.subplots(figsize=(7.2, 1.9))
waits = {"color": draw.RANK_COLOURS[1], "hatch": "//", "label": "wait for data"}
works = {"color": draw.RANK_COLOURS[0], "label": "device works"}
for row, events in enumerate(feeds.values()):
    asked, arrived, ended = 1000 * (events[10:18] - events[10, 0]).T
    axes.barh([row] * 8, arrived - asked, 0.6, asked, edgecolor="white", **waits)
    axes.barh([row] * 8, ended - arrived, 0.6, arrived, edgecolor="white", **works)
axes.set_yticks(range(2), list(feeds))
axes.invert_yaxis()
axes.set_xlabel("milliseconds; eight steps in the middle of the run")
handles, texts = axes.get_legend_handles_labels()
axes.legend(handles[:2], texts[:2], loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
draw.show(figure, "Two rows of bars: waits for data alternate with the device's work.")
steps = {name: 1000 * np.median(np.diff(events[:, 2])) for name, events in feeds.items()}
print(", ".join(f"{name}: {step:.1f} ms per step" for name, step in steps.items()))
gain = steps["without prefetch"] / steps["with prefetch"]
remark = "" if gain > 1.3 else "No core was free for it."
print(f"Prefetch makes a step {gain:.1f} times as fast.", remark)

# %% [markdown] tags=["slide-takeaway", "slide-predict"]
# Prefetch hides time and removes no work. Once preparing takes longer than computing, the pipeline itself must become
# cheaper. Prefetch comes last, after `repeat`, or it starts empty in each epoch.
#
# ### The order matters
#
# The numbers 0 to 11 represent a data set sorted by class.
#
# **Predict.** Which of these lines gives batches in which classes are mixed?

# %% tags=["slide-output"]
numbers = tf.data.Dataset.range(12)


def batches(dataset: tf.data.Dataset) -> str:
    """All batches of a dataset, as text."""
    return " ".join(str(batch.tolist()) for batch in dataset.as_numpy_iterator())


print("shuffle, batch     ", batches(numbers.shuffle(12, seed=1).batch(4)))
print("batch, shuffle     ", batches(numbers.batch(4).shuffle(3, seed=1)))
print("shuffle(2), batch  ", batches(numbers.shuffle(2, seed=1).batch(4)))
print("batch, repeat      ", batches(numbers.batch(5).repeat(2)))
print("repeat, batch      ", batches(numbers.repeat(2).batch(5)))
print("drop_remainder     ", batches(numbers.batch(5, drop_remainder=True)))

# %% [markdown]
# - Shuffle **before** batch, or whole batches are shuffled and each keeps its classes.
# - The shuffle's buffer should hold the data set: with a buffer of 2 a number can come at most one place earlier.
# - `repeat` after batch keeps epochs apart; before it, a batch may mix two epochs.
# - `drop_remainder=True` gives every batch the same shape, which TPUs and some compiled programs need. It also drops
#   images.
#
# The cache and random transformations have an order too, and a fault in it gives no error. The next cell compares two
# epochs of each pipeline.


# %%
def jitter(number: tf.Tensor) -> tf.Tensor:
    """A simple random augmentation, whose seed follows from the program's."""
    return tf.cast(number, tf.float32) + tf.random.uniform([])


def seeded_jitter(number: tf.Tensor, seed: tf.Tensor) -> tf.Tensor:
    """The same with a seed for each element."""
    return tf.cast(number, tf.float32) + tf.random.stateless_uniform([], seed)


new_seeds = tf.data.Dataset.random(seed=1, rerandomize_each_iteration=True).batch(2)
orders = {
    "shuffle, cache": numbers.shuffle(12, seed=1).cache(),
    "cache, shuffle": numbers.cache().shuffle(12, seed=1),
    "augment, cache": numbers.map(jitter).cache(),
    "cache, augment": numbers.cache().map(jitter),
    "cache, new seeds": tf.data.Dataset.zip(numbers.cache(), new_seeds).map(seeded_jitter),
}
for name, fed in orders.items():
    first, second = (list(fed.as_numpy_iterator()) for _ in range(2))
    print(f"{name:17} the second epoch {'repeats the first' if first == second else 'is new'}")

# %% [markdown]
# A cache freezes what comes before it, the order as well as the augmentation. The fourth line surprises: its
# augmentation repeats because of the seed set at the top. With a seed, an operation such as `tf.random.uniform` inside
# `map` starts its sequence again with every new iterator; `add_noise` above does it too. `fit` makes an iterator per
# epoch, but a single one for a pipeline with `repeat()` and `steps_per_epoch`. `Dataset.random` with
# `rerandomize_each_iteration=True` gives new seeds in each epoch, and the run stays reproducible.
#
# So the order is: read, decode, **cache**, shuffle, batch, augment with new seeds, **prefetch**.

# %% [markdown]
# **Question.** The decoded set does not fit into memory, decoding is slow, the crop is random. Where does the cache go?
#
# 1. Decode, crop, cache in memory
# 2. Decode, cache in a file, crop
# 3. Before decode
# 4. After batch and crop
#
# <details>
# <summary>Answer</summary>
#
# **2.** `cache(filename)` keeps the decoded images on disk, and the crop stays random. (1) runs out of memory, and
# freezes the crop. (3) saves the reading, not the slow decoding. (4) freezes it, too.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## 5. Batch size and steps per execution
#
# Now the steps. A step of batch size $B$ takes about
#
# $$t(B) = a + b \cdot B$$
#
# where $a$ is the fixed cost of a step (Python code between steps, starting operations, updating 101,770 weights) and
# $b$ the cost of one more image: its arithmetic, and its way through a pipeline that handles images one by one. Two
# settings reduce $a$ per image: a larger batch has fewer steps, and with `compile(steps_per_execution=k)` the Python
# part of $a$ is paid once per $k$ steps.
#
# **Predict.** Suppose $a$ is 1,400 µs and $b$ is 11 µs. From batch 32 to batch 1,024: 1, 4, 10 or 32 times the
# throughput? And what do 16 steps per execution add at batch 32?

# %%
SIZES = (32, 128, 512, 1024)


def shuffled(batch: int, drop_remainder: bool = False) -> tf.data.Dataset:
    """All images in batches, in a new order each epoch."""
    pipeline = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    return pipeline.batch(batch, drop_remainder).prefetch(tf.data.AUTOTUNE)


def compiled(learning_rate: float = 0.001, **options: object) -> tf.keras.Model:
    """The lecture's network, compiled as the lecture does, but for `options`."""
    model = mlp()
    optimizer = tf.keras.optimizers.Adam(learning_rate)
    model.compile(optimizer, loss, metrics=["accuracy"], **options)
    return model


epochs_of = {}
for steps in (1, 16):
    model = compiled(steps_per_execution=steps)
    for batch in SIZES:
        epochs_of[steps, batch] = partial(model.fit, shuffled(batch), verbose=0)
times = metrics.compare(epochs_of)

# %% tags=["varies", "slide-output"] jupyter={"source_hidden": true}
figure, axes = plt.subplots()
print(f"{'steps per execution':20}{'batch':>6}{'images/s':>10}{'CPU µs per image':>18}")
for (steps, batch), (elapsed, cpu) in times.items():
    rate = metrics.throughput(len(images), elapsed)
    print(f"{steps:<20}{batch:6,}{rate:10,.0f}{1e6 * cpu / len(images):18.1f}")
for steps in (1, 16):
    rates = [metrics.throughput(len(images), times[steps, batch].elapsed) for batch in SIZES]
    axes.plot(SIZES, rates, label=str(steps))
axes.set(xlabel="batch size", ylabel="images per second", xlim=(0, None), ylim=(0, None))
axes.set_xticks(SIZES, [f"{batch:,}" for batch in SIZES])
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.legend(title="steps per execution", loc="lower right")
draw.show(figure, "Images per second against batch size, for 1 and 16 steps per execution.")
gain = {key: times[1, 32].elapsed / seconds.elapsed for key, seconds in times.items()}
print(f"batch 1,024 against 32: {gain[1, 1024]:.1f} times the images per second")
print(f"16 steps per execution at batch 32: {gain[16, 32]:.2f} times")

# %% [markdown] tags=["slide-takeaway"]
# About 4 times: per image the fixed cost shrinks with the batch and $b$ stays, so the last column falls about as $a / B
# + b$. Several steps per execution save most CPU time where the batch is small; with 512 images or more this epoch is a
# single execution, too short for its elapsed time to say much.
#
# What the two settings cost differs. **Several steps per execution change nothing in the result**: the same updates
# happen in the same order, and only callbacks run less often. **A larger batch is another training run** with fewer
# updates per epoch. The usual answer is a larger learning rate, multiplied by the factor by which the batch grew (the
# linear rule, for SGD) or by its square root (for Adam).

# %%
weights = []
for steps in (1, 16):
    tf.keras.utils.set_random_seed(2)
    model = mlp(dropout=0.0)
    model.compile(tf.keras.optimizers.SGD(0.1), loss, steps_per_execution=steps)
    model.fit(images[:640], labels[:640], batch_size=32, shuffle=False, verbose=0)
    weights.append(model.get_weights())
checks.assert_equal_weights(*weights)


# %% tags=["varies"]
def accuracy(model: tf.keras.Model) -> float:
    """The share of test images whose largest logit is that of their label."""
    return float(np.mean(np.argmax(model(x_test), axis=1) == y_test))


print("batch  learning rate  updates  accuracy after one epoch     std")
for batch, rate in [(32, 0.001), (256, 0.001), (256, 0.003), (256, 0.008)]:
    reached = []
    for seed in range(3):
        tf.keras.utils.set_random_seed(seed)
        model = compiled(rate, steps_per_execution=8)
        model.fit(shuffled(batch), verbose=0)
        reached.append(accuracy(model))
    updates = math.ceil(len(images) / batch)
    print(f"{batch:5}{rate:15.3f}{updates:9}{np.mean(reached):26.3f}{np.std(reached):8.3f}")

# %% [markdown]
# More images per second is not more learning per second: with an eighth of the updates the same learning rate falls
# behind, and a larger rate ([chapter 10](10_large_batch_and_warmup.ipynb)) makes up for a part of it. Three seeds do
# not show which of the larger rates is better.
#
# **Question.** Batch 32 with 16 steps per execution is, for the weights, the same as …
#
# 1. Batch 512
# 2. Batch 32 with one step per execution
# 3. Batch 512 with 1/16 of the learning rate
#
# <details>
# <summary>Answer</summary>
#
# **2.** 16 updates, one after the other, each from 32 images. (1) mistakes a loop inside the graph for a larger batch,
# and (3) tries to repair that by the learning rate.
# </details>

# %% [markdown]
# ## 6. Two switches: mixed precision and XLA
#
# **Mixed precision** computes in 16 bits and keeps the weights in 32. On NVIDIA's GPUs since the V100 (2017), 16-bit
# products run on special units, several times as fast, and activations take half the memory:
#
# | | bits for the exponent | largest number | smallest normal number | digits |
# |---|---|---|---|---|
# | `float16` | 5 | 65,504 | 6e-5 | 3 to 4 |
# | `bfloat16` | 8 | 3e38 | 1e-38 | 2 to 3 |
#
# Below that `float16` loses digits, and under 3e-8 it is 0; gradients are often as small. **Loss scaling** multiplies
# the loss, and so all gradients, by a large factor, and divides before the update.

# %%
gradient = tf.constant(1e-8)
scale = 2.0**15
print("float16:             ", float(tf.cast(gradient, tf.float16)))
scaled = tf.cast(tf.cast(gradient * scale, tf.float16), tf.float32) / scale
print("float16, scaled loss:", float(scaled))
print("bfloat16:            ", float(tf.cast(gradient, tf.bfloat16)))

# %% [markdown]
# In Keras one line before the model is built switches it on:
#
#     tf.keras.mixed_precision.set_global_policy("mixed_float16")
#
# With `mixed_float16`, `compile` wraps the optimizer into a `LossScaleOptimizer`, which chooses the factor by itself.
# `mixed_bfloat16`, for TPUs and NVIDIA's GPUs since the A100, needs no scaling.
#
# **XLA** compiles a whole step into a few fused operations: `compile(jit_compile=True)`. The compiler needs seconds for
# each new shape, so all batches below have 128 images.

# %% tags=["varies", "slide-output"]
equal = shuffled(128, drop_remainder=True)
switched = {"as before": compiled(), "XLA": compiled(jit_compile=True)}
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
switched["mixed_bfloat16"] = compiled()
tf.keras.mixed_precision.set_global_policy("float32")
runs = {name: partial(model.fit, equal, verbose=0) for name, model in switched.items()}
processed = len(images) // 128 * 128  # the rest is dropped
for name, (elapsed, cpu) in metrics.compare(runs, repeats=3).items():
    rate = metrics.throughput(processed, elapsed)
    print(f"{name:16}{rate:8,.0f} images/s, {1e6 * cpu / processed:.1f} CPU µs per image")

# %% [markdown]
# On a processor `bfloat16` gains only if it has units for it (AVX512_BF16, AMX). XLA starts fewer operations, which
# saves less on a processor than on a GPU, and it leaves the Python code between steps and the pipeline as they are. On
# a GPU mixed precision is the first switch to try, often worth a factor of two or more, and XLA often tens of percent.
# XLA adds in another order, so results differ in the last bits; with `bfloat16` they differ in the third digit. The
# last layer has `dtype="float32"`, so that the loss is computed in 32 bits.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 7. The fast program
#
# The network and the device stay. The batch is four times as large, the learning rate grows by the square root of that,
# 16 steps make one execution, and a ready pipeline replaces the arrays, from which each `fit` builds a new one. One
# change after the other, so that each shows what it brings.
#
# **Predict.** How much faster is it, and is the accuracy after as many epochs lower, equal or higher?

# %%
lecture, larger, piped = compiled(), compiled(0.002), compiled(0.002)
fast = compiled(0.002, steps_per_execution=16)
pipeline = tf.data.Dataset.from_tensor_slices((images, labels))
pipeline = pipeline.shuffle(len(images)).batch(128).repeat().prefetch(tf.data.AUTOTUNE)
ready = {"steps_per_epoch": math.ceil(len(images) / 128), "verbose": 0}

times = metrics.compare(  # one epoch each as a warm-up, then five in turns
    {
        "lecture": lambda: lecture.fit(images, labels, batch_size=32, verbose=0),
        "batch of 128": lambda: larger.fit(images, labels, batch_size=128, verbose=0),
        "+ ready pipeline": lambda: piped.fit(pipeline, **ready),
        "+ 16 steps: fast": lambda: fast.fit(pipeline, **ready),
    }
)

# %% tags=["varies", "slide-output"]
speed = {name: len(images) / elapsed for name, (elapsed, _) in times.items()}
last = "+ 16 steps: fast"
figure = draw.bars(speed, "images per second, median of five epochs", highlight=last)
described = ", ".join(f"{name} {rate:,.0f} images per second" for name, rate in speed.items())
draw.show(figure, f"Four bars: {described}.")
print(f"{speed[last] / speed['lecture']:.1f} times as fast")
print(f"accuracy after six epochs: lecture {accuracy(lecture):.3f}, fast {accuracy(fast):.3f}")

# %% [markdown]
# The accuracy is equal or a little lower: there were a quarter of the updates, but the images are easy. And the gain
# comes from a small model, whose steps are mostly fixed cost. Where arithmetic fills the device, these settings gain
# little; mixed precision helps there, and then more devices.
#
# Take such a program as the baseline: a speed-up over a slow one means nothing.
#
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("02")

# %% [markdown]
# ## Recap
#
# - Speed-up compares elapsed times; CPU time leaves out sleeping and sums over threads.
# - TensorFlow alone uses one device, and fills the memory of all that it sees.
# - A cache freezes what comes before it; prefetch hides preparation; shuffle before batch.
# - A larger batch makes fewer updates; several steps per execution change no weight.
# - Mixed precision and XLA are one line each; `float16` needs a scaled loss.
# - The fast program on one device is the baseline to beat.
#
# **Next.** [Lab 02](../labs/02_single_device_baseline/lab.ipynb), [03 mirrored strategy](03_mirrored_strategy.ipynb).
#
# **Sources.** [tf.data](https://arxiv.org/abs/2101.12127), [FLOP utilisation](https://arxiv.org/abs/2204.02311) (PaLM),
# [linear rule](https://arxiv.org/abs/1706.02677), [square-root rule](https://arxiv.org/abs/2205.10287),
# [loss scaling](https://arxiv.org/abs/1710.03740), [memory growth](https://www.tensorflow.org/guide/gpu) (TensorFlow),
# [the two GPUs](https://github.com/tensorflow/tensor2tensor/issues/17) (tensor2tensor#17).
