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
# **Time.** 50 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb)
#
# **Questions.**
# - Which clock measures a training run, and what does the other one measure?
# - How many devices does TensorFlow use by itself, and what are the processor's cores doing meanwhile?
# - Which transformation of the input pipeline pays, and in which order do they belong?
# - What do a larger batch and several steps per execution gain, and what do they cost?
# - What do mixed precision and XLA do, here and on a GPU?
#
# **Hardware.** Any computer with two cores. GPUs are used if they are there; nothing needs one.

# %% tags=["parameters"]
dataset = "digits"  # the images: digits, mnist or fashion_mnist
epochs = 5  # passes of the lecture's program over the training images
workers = 2  # how many devices are offered to TensorFlow, which will use one of them

# %% tags=["varies"]
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
from IPython.display import Markdown

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # no advice about tracing: this chapter builds many models on purpose
tf.keras.utils.set_random_seed(1)
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)  # reserve no more of its memory than is used
names = devices.at_least(workers)

# %% [markdown]
# ## The lecture's program
#
# The lecture trains a small network on one GPU: 128 hidden units, 10 classes, Adam, batches of 32 images, 5 epochs, on
# NumPy arrays. Here is the whole program, with scikit-learn's small images instead of a download; with the parameters
# above it runs in a file of its own.
#
# A **step** is one update of the weights. The **batch size** is the number of images whose gradients are averaged for
# one step. An **epoch** is one pass over the training images. The network returns one **logit** per class: the score
# before the softmax turns scores into probabilities.

# %% tags=["program", "slide-code"]
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

# %% tags=["varies"]
print(f"elapsed {elapsed:.2f} s, CPU {cpu:.2f} s, test accuracy {test_accuracy:.2f}")

# %% [markdown] tags=["slide-predict"]
# ### A surprise: 15.4 seconds on one GPU, 43.7 on two
#
# The lecture trains this network on MNIST, first on one GPU, then on two, and prints the time of each run: **15.4 s on
# one GPU, 43.7 s on two**. It does not comment on the numbers.
#
# **Predict.** Which explanation do you believe?
#
# - The two GPUs spend most of their time exchanging gradients.
# - The second program does more work than the first.
# - The clock measures something else.

# %% [markdown] tags=["slide-text"]
# ## Elapsed time and CPU time
#
# The lecture's clock was `time.process_time()`. That is **CPU time**: the seconds that processor cores spent on this
# process, summed over its threads. **Elapsed time** is what a clock on the wall shows: `time.perf_counter()`. The
# difference is large where work waits, or runs in several threads or processes. `metrics.compare` does each piece of
# work below once as a warm-up, then five times, in turns, and reports the medians.

# %% tags=["varies", "slide-output"]
PIECE = "import hashlib; data = bytes(4_000_000); [hashlib.sha256(data).digest() for _ in range(16)]"
block = bytes(4_000_000)
with ThreadPoolExecutor(2) as threads:
    times = metrics.compare(
        {
            "wait": lambda: time.sleep(0.2),
            "hash, one thread": lambda: [hashlib.sha256(block).digest() for _ in range(16)],
            "hash, two threads": lambda: list(threads.map(hashlib.sha256, [block] * 16)),
            "hash, child process": lambda: subprocess.run([sys.executable, "-c", PIECE], check=True),
        }
    )
print(f"{'':20}{'elapsed':>9}{'CPU':>9}")
for name, (elapsed, cpu) in times.items():
    print(f"{name:20}{elapsed:8.2f}s{cpu:8.2f}s")

# %% [markdown] tags=["slide-takeaway"]
# So the lecture's clock errs in three ways:
#
# - It does not see waiting. A program that waits for a GPU or for data looks fast.
# - It sums over threads. On two free cores, two threads halve the elapsed time and leave the CPU time as it was: **the
#   gain from parallel work is what this clock cannot show.**
# - It does not see other processes. Multi-worker training and Horovod run one process per worker.
#
# So 15.4 and 43.7 s say that the processor worked almost three times as long for two GPUs: more operations to start,
# more data to copy, threads that poll while they wait. They do not say which run ended first. CPU time is still worth
# knowing: it says how much work was done, and changes less when other programs compete for the cores.

# %% [markdown]
# **How this chapter measures.** Candidates take turns, after a warm-up, and the median counts. The first epoch of a
# training is such a warm-up: it pays for **tracing**, in which Keras runs the Python code of a step once and records a
# graph that all later steps run.
#
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
# **1.** Speed-up compares elapsed times, 10 / 6. (2) compares CPU times, the lecture's mistake: the second GPU needs a
# second thread to feed it, so the sum over threads grows while the run gets shorter. (3) takes the number of devices
# for the speed-up. (4) divides one run's CPU time by the other's elapsed time, two different quantities.
# </details>

# %% [markdown]
# ## One device works, the others wait
#
# From here on the images have 28 × 28 pixels, as MNIST's. The default data set is small, so it is repeated until an
# epoch has about 6,000 images; a larger one is cut to 8,000.

# %%
(x_train, y_train), (x_test, y_test) = data.load(dataset)
copies = max(1, round(6_000 / len(x_train)))
images = np.concatenate([x_train] * copies)[:8_000]
labels = np.concatenate([y_train] * copies)[:8_000]
x_test, y_test = x_test[:2_000], y_test[:2_000]
print(data.describe(dataset))
print(f"An epoch: {len(images):,} images, {copies} × the set, in {math.ceil(len(images) / 32)} steps of at most 32")


# %% [markdown]
# **Predict.** On how many of the devices are the weights of the model after training?


# %%
def mlp(dropout: float = 0.2) -> tf.keras.Model:
    """The lecture's network, from images (n, 28, 28) to logits (n, 10); `distlab.models.mlp` is the same."""
    layers = [
        tf.keras.layers.Input((28, 28)),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(128, activation="relu"),
        tf.keras.layers.Dropout(dropout),
        tf.keras.layers.Dense(10),
    ]
    return tf.keras.Sequential(layers)


model = mlp()
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
model.fit(images, labels, batch_size=32, epochs=1, verbose=0)
used = {variable.device for variable in model.weights} | {model(x_test[:32]).device}
print(f"Devices offered: {workers}. Devices that hold a weight or compute the output: {len(used)}")

# %% [markdown]
# One. **TensorFlow alone uses one GPU**, or one logical device, however many there are: every operation goes to the
# first device that can run it. `with tf.device("GPU:1"):` would move the work to another device, not divide it.
# Dividing is the strategy's job, in [03 mirrored strategy](03_mirrored_strategy.ipynb).
#
# `nvidia-smi` shows this, with a trap. Published for a training with TensorFlow on a machine with several GPUs:
#
# | GPU | power | memory | GPU-Util |
# |---|---|---|---|
# | 0 Tesla M40 24GB | 187 W / 250 W | 21,871 MiB / 22,939 MiB | 100 % |
# | 1 Tesla M40 24GB | 56 W / 250 W | 21,806 MiB / 22,939 MiB | 0 % |
#
# Both memories are full, although GPU 1 computes nothing: without `set_memory_growth`, TensorFlow reserves almost the
# whole memory of every GPU that it *sees*, until its process ends. What it sees, the shell decides:
#
#     CUDA_VISIBLE_DEVICES=1 python train.py

# %% [markdown]
# **Utilisation** is the share of time in which a GPU, or a core, was busy with anything.
#
# **Predict.** The program keeps one device busy. How many of this machine's cores are busy, and how much of the time?

# %% tags=["varies"]
with metrics.Utilisation() as recorded, metrics.Stopwatch() as two_epochs:
    model.fit(images, labels, batch_size=32, epochs=2, verbose=0)
draw.show(
    draw.utilisation(recorded),
    "Percentage busy against time while the lecture's program trains, one row for each core and each GPU. Mean of the "
    f"cores, in percent: {', '.join(f'{busy:.0f}' for busy in recorded.cores.mean(axis=0))}.",
)

# %% [markdown]
# A logical CPU device is not a core: its operations may use every core. And busy with what? A product of large matrices
# shows how much arithmetic the device can do per second. The model needs at most 6 operations per image and weight: a
# multiplication and an addition each for the forward pass, the gradient of the weights and the gradient of the inputs.

# %% tags=["varies"]
matrix = tf.random.normal((1_500, 1_500))
product = metrics.compare({"product": lambda: tf.linalg.matmul(matrix, matrix)[0, 0].numpy()})["product"].elapsed
possible = 2 * 1_500**3 / product
done = 6 * model.count_params() * metrics.throughput(2 * len(images), two_epochs.elapsed)
Markdown(
    f"The cores were busy {recorded.cores.mean():.0f} % of the time. The program did {done / 1e9:.1f} billion "
    f"operations per second; the device does {possible / 1e9:.0f} billion in a product of matrices. That is "
    f"**{100 * done / possible:.1f} %**."
)

# %% [markdown]
# **Utilisation says that a device is busy, not that its work is useful.** The second figure is the model's FLOP
# utilisation. For a small model the rest usually goes to Python code between steps and to starting dozens of small
# operations. More devices multiply this waste.
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
# **3.** Utilisation counts the time with at least one operation running, even a tiny one. Fewer and larger operations
# do more arithmetic in that time. (1) confuses a busy device with a well-used one; two such GPUs waste twice as much.
# (2) confuses utilisation with a share of the peak.
# </details>

# %% [markdown] tags=["slide-picture"]
# ## The input pipeline
#
# A pipeline has three stages. **Extract** reads records from files. **Transform** decodes, augments, shuffles and
# batches them. **Load** brings the batch to the device. `tf.data` describes it as a chain of datasets.
#
# ![The input pipeline as a chain of boxes: read (extract); decode, cache, shuffle, batch, augment (transform); prefetch
# (load); then the model. What comes before the cache is done once, the rest in every
# epoch.](../figures/02_input_pipeline.svg)
#
# Arrays in memory need little of it, so some images are first stored the usual way: as JPEG photographs of 448 × 448
# pixels in a TFRecord file, one record per image.
#
# Decoding them, with the reduction to 28 × 28 pixels, gives the same result each time. **Augmentation** must not: it
# changes each image at random in every epoch. Here it adds noise.


# %%
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

# %%
FIELDS = {"jpeg": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.int64)}


def decode(serialised: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """A record to an image of 28 × 28 pixels in [0, 1] and its label."""
    fields = tf.io.parse_single_example(serialised, FIELDS)
    pixels = tf.io.decode_jpeg(fields["jpeg"], channels=1)
    return tf.image.resize(pixels, (28, 28), method="area")[..., 0] / 255, fields["label"]


def add_noise(image: tf.Tensor, label: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """One image, or a batch of them, with normal noise added to every pixel."""
    return image + tf.random.normal(tf.shape(image), stddev=0.1), label


# %% [markdown] tags=["slide-text", "slide-predict"]
# Each line adds or moves one transformation, and all deliver batches of 32. By itself, `tf.data` rewrites such a chain:
# it makes maps parallel and appends a prefetch. That is switched off here, so that each line does what it says.
#
# **Predict.** Which line gains most? Which one costs?

# %%
as_written = tf.data.Options()
as_written.experimental_optimization.apply_default_optimizations = False
stored = tf.data.TFRecordDataset(file).with_options(as_written)
AUTOTUNE = tf.data.AUTOTUNE  # as many threads as tf.data finds useful
decoded = stored.map(decode, num_parallel_calls=AUTOTUNE)
stages = {
    "read": stored.batch(32),
    "+ decode": stored.map(decode).batch(32),
    "decode in parallel": decoded.batch(32),
    "+ cache": decoded.cache().batch(32),
    "+ noise per image": decoded.cache().map(add_noise).batch(32),
    "noise per batch": decoded.cache().batch(32).map(add_noise),
    "+ shuffle": decoded.cache().shuffle(STORED).batch(32).map(add_noise),
}


# %% tags=["varies", "slide-output"]
def drain(batches: tf.data.Dataset) -> None:
    """Fetch every batch once and do nothing with it."""
    for _ in batches:
        pass


times = metrics.compare({name: partial(drain, batches) for name, batches in stages.items()})
rates = {name: metrics.throughput(STORED, elapsed) for name, (elapsed, _) in times.items()}
print(f"{'':20}{'images per second':>18}{'CPU µs per image':>18}")
for name, (_, cpu) in times.items():
    print(f"{name:20}{rates[name]:18,.0f}{1e6 * cpu / STORED:18.0f}")
figure = draw.bars(rates, "images per second of the pipeline alone, without training")
draw.show(figure, "Images per second of the input pipeline, one bar per stage; the table above has the numbers.")

# %% [markdown]
# What the lines do, and why:
#
# - **map** costs what its function costs, and some microseconds for calling it once per image.
# - **Parallel map** divides the work over the cores. It removes no work: where the elapsed time falls, the CPU time
#   usually stays about the same. It can gain while cores are free, and if one call takes much longer than passing
#   an image from thread to thread.
# - **cache** keeps what came before it. From the second epoch on nothing is read or decoded.
# - **noise per batch**: one call makes noise for 32 images. This saves the cost of the calls, not that of the noise.
# - **shuffle** costs a draw from its buffer per image.
#
# What the cache saves shows without a clock, too: in the number of calls of `decode`.

# %%
with tf.device("CPU:0"):
    calls = tf.Variable(0, dtype=tf.int64)


def counted_decode(serialised: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """`decode`, counted."""
    calls.assign_add(1)
    return decode(serialised)


for name, batches in {"no cache": stored.map(counted_decode), "cache": stored.map(counted_decode).cache()}.items():
    calls.assign(0)
    for _ in range(3):
        drain(batches.batch(32))
    print(f"{name:9} 3 epochs of {STORED:,} images: {int(calls):,} images decoded")

# %% [markdown] tags=["slide-text", "slide-predict"]
# With arrays already in memory there is nothing to read or decode, and `Model.fit` on NumPy arrays shuffles indices,
# gathers whole batches and prefetches by itself. The lecture's program is not slow because of its input.
#
# ### Prefetch: work while the device works
#
# Without prefetch, preparing a batch (time $p$) and computing a step (time $c$) alternate: a step takes $p + c$. With
# prefetch, another thread prepares batch $i+1$ while the device computes step $i$: a step takes $\max(p, c)$.
#
# An accelerator computes while the processor is free. Here a sleep takes its place, about as long as the preparation
# of a batch, $c = p$.
#
# **Predict.** By which factor do the steps get shorter?


# %%
def feed(batches: tf.data.Dataset, device_seconds: float, steps: int = 30) -> np.ndarray:
    """For each step, the moments when a batch was asked for, when it came and when the device was done."""
    events, iterator = [], iter(batches.repeat())
    for _ in range(steps):
        asked = time.perf_counter()
        next(iterator)
        arrived = time.perf_counter()
        time.sleep(device_seconds)
        events.append((asked, arrived, time.perf_counter()))
    return np.array(events) - events[0][0]


plain = stored.map(counted_decode).map(add_noise).batch(32)
preparation = np.median(np.diff(feed(plain, device_seconds=0)[1:, :2]))
feeds = {
    "without prefetch": feed(plain, device_seconds=preparation),
    "with prefetch": feed(plain.prefetch(2), device_seconds=preparation),
}

# %% tags=["varies", "slide-output"] jupyter={"source_hidden": true}
figure, axes = plt.subplots(figsize=(7.2, 1.9))
for row, events in enumerate(feeds.values()):
    asked, arrived, done_at = 1000 * (events[10:18] - events[10, 0]).T
    style = {"facecolor": draw.RANK_COLOURS[1], "hatch": "//", "edgecolor": "white"}
    waiting, working = np.stack([asked, arrived - asked], axis=1), np.stack([arrived, done_at - arrived], axis=1)
    axes.broken_barh(waiting, (row - 0.3, 0.6), **style, label="wait for data")
    axes.broken_barh(working, (row - 0.3, 0.6), facecolor=draw.RANK_COLOURS[0], edgecolor="white", label="device works")
axes.set_yticks(range(len(feeds)), list(feeds))
axes.invert_yaxis()
axes.set_xlabel("milliseconds; eight steps in the middle of the run")
handles, texts = axes.get_legend_handles_labels()
axes.legend(handles[:2], texts[:2], loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
draw.show(figure, "Two rows of bars against time, eight steps each: waits for data alternate with the device's work.")

# %% tags=["varies", "slide-output", "slide-continued"]
steps = {name: 1000 * np.median(np.diff(events[:, 2])) for name, events in feeds.items()}
print(", ".join(f"{name}: {step:.2f} ms per step" for name, step in steps.items()))
gain = steps["without prefetch"] / steps["with prefetch"]
print(f"Prefetch makes a step {gain:.2f} times as fast.", "" if gain > 1.3 else "There was hardly a free core for it.")

# %% [markdown] tags=["slide-takeaway"]
# With $c = p$ the formula promises a factor of 2, as long as a core is free for the preparation. Prefetch hides time
# and removes no work. Once preparing takes longer than computing, the device waits whatever the size of the buffer:
# then the pipeline itself must become cheaper. And where the "device" is the same processor, as in this chapter's
# training runs, both compete for its cores.
#
# ### The order matters
#
# The same transformations in another order mean something else. The numbers 0 to 11 represent a data set sorted by
# class.
#
# **Predict.** Which of these lines gives batches in which classes are mixed?

# %%
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
# - The shuffle's buffer should hold the data set: with a buffer of 2 a number moves forward by one place at most.
# - `repeat` after batch keeps epochs apart; before it, a batch may hold the end of one epoch and the beginning of the
#   next.
# - `drop_remainder=True` gives every batch the same shape, which TPUs and some compiled programs need. It also drops
#   images: compute throughput from those that were processed.
#
# The cache and the random transformations have an order too. For each line below: does the second epoch repeat the
# first?


# %%
def jitter(number: tf.Tensor) -> tf.Tensor:
    """A simple random augmentation, with an operation that takes its seed from the program's."""
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
    "cache, augment with new seeds": tf.data.Dataset.zip(numbers.cache(), new_seeds).map(seeded_jitter),
}
for name, fed in orders.items():
    first, second = (list(fed.as_numpy_iterator()) for _ in range(2))
    print(f"{name:30} the second epoch {'repeats the first' if first == second else 'is new'}")

# %% [markdown]
# A cache freezes what comes before it, the order as well as the augmentation. The fourth line surprises: the
# augmentation comes after the cache and still repeats itself. The reason is the seed set at the top. With a seed, an
# operation such as `tf.random.uniform` inside `map` starts its sequence again with every new iterator, so in every
# epoch of `fit`; `add_noise` above does it too. `Dataset.random` with `rerandomize_each_iteration=True` gives new seeds
# in each epoch, and the whole run stays reproducible.
#
# So: read, decode, **cache**, shuffle, batch, augment with new seeds, **prefetch**.

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
# forgets that a cache freezes random augmentation. (3) saves the reading, not the slow decoding. (4) assumes that
# larger elements are cheaper, and it freezes the crop and which images share a batch.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## Batch size and steps per execution
#
# If the input is not the bottleneck, the steps are. A step of batch size $B$ takes about
#
# $$t(B) = a + b \cdot B$$
#
# $a$ is the fixed cost of a step: Python code between steps, starting operations, updating 101,770 weights. $b$ is the
# arithmetic for one image. Throughput is $B / t(B)$. Two settings reduce $a$ per image: a larger batch has fewer steps,
# and with `compile(steps_per_execution=k)` the Python part of $a$ is paid once per $k$ steps.
#
# **Predict.** From batch 32 to batch 1024: 1, 3, 10 or 32 times the throughput? How much do 16 steps per execution add
# at each of the two?

# %%
SIZES = (32, 128, 512, 1024)


def shuffled(batch: int) -> tf.data.Dataset:
    """All images in batches, in a new order each epoch."""
    pipeline = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    return pipeline.batch(batch).prefetch(tf.data.AUTOTUNE)


def compiled(learning_rate: float = 0.001, **options: object) -> tf.keras.Model:
    """The lecture's network, compiled as the lecture does, but for `options`."""
    model = mlp()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(learning_rate), loss, metrics=["accuracy"], **options)
    return model


trained = {steps: compiled(steps_per_execution=steps) for steps in (1, 16)}
epochs_of = {
    (steps, batch): partial(model.fit, shuffled(batch), verbose=0)
    for steps, model in trained.items()
    for batch in SIZES
}
times = metrics.compare(epochs_of, repeats=3)

# %% tags=["varies", "slide-output"]
figure, axes = plt.subplots()
print(f"{'steps per execution':20}{'batch':>6}{'images/s':>10}{'CPU µs per image':>18}")
for (steps, batch), (elapsed, cpu) in times.items():
    rate = metrics.throughput(len(images), elapsed)
    print(f"{steps:<20}{batch:6}{rate:10,.0f}{1e6 * cpu / len(images):18.1f}")
for steps in trained:
    rates = [metrics.throughput(len(images), times[steps, batch].elapsed) for batch in SIZES]
    axes.plot(SIZES, rates, label=str(steps))
axes.set(xscale="log", xlabel="batch size", ylabel="images per second", ylim=(0, None))
axes.set_xticks(SIZES, SIZES)
axes.yaxis.set_major_formatter("{x:,.0f}")
axes.minorticks_off()
axes.legend(title="steps per execution", loc="lower right")
draw.show(figure, "Images per second against batch size, one line each for 1 and for 16 steps per execution.")

# %% [markdown] tags=["slide-takeaway"]
# The fixed cost per image shrinks with the batch, the arithmetic per image stays: the curve flattens where $b \cdot B$
# exceeds $a$. Several steps per execution usually save most where the batch is small, since there $a$ is most of the
# step.
#
# What the two settings cost differs. **Several steps per execution change nothing in the result**: the same updates in
# the same order; only callbacks run once per $k$ steps. The proof, with SGD and without dropout and shuffling:

# %%
weights = []
for steps in (1, 16):
    tf.keras.utils.set_random_seed(2)
    model = mlp(dropout=0.0)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.SGD(0.1), loss, steps_per_execution=steps)
    model.fit(images[:640], labels[:640], batch_size=32, shuffle=False, verbose=0)
    weights.append(model.get_weights())
checks.assert_equal_weights(*weights)

# %% [markdown]
# **A larger batch is another training run.** An epoch has fewer updates. The usual answer is a larger learning rate:
# multiplied by the factor by which the batch grew (the linear rule, made for SGD), or by its square root (a rule
# derived for Adam). Each run below is repeated with three seeds, from equal weights in each.
#
# **Predict.** After one epoch: how far is batch 256 behind batch 32? Does a learning rate 3 times as large (the square
# root), or 8 times (the linear rule), make up for it?


# %%
def accuracy(model: tf.keras.Model) -> float:
    """The share of test images whose largest logit is that of their label."""
    return float(np.mean(np.argmax(model(x_test), axis=1) == y_test))


first_epoch = {}
for batch, rate in [(32, 0.001), (256, 0.001), (256, 0.003), (256, 0.008)]:
    for seed in range(3):
        tf.keras.utils.set_random_seed(seed)
        model = compiled(rate, steps_per_execution=8)
        model.fit(shuffled(batch), verbose=0)
        first_epoch.setdefault((batch, rate), []).append(accuracy(model))

# %% tags=["varies"]
print(f"{'batch':>6}{'learning rate':>15}{'updates':>9}{'accuracy after one epoch':>26}{'spread':>8}")
for (batch, rate), accuracies in first_epoch.items():
    updates = math.ceil(len(images) / batch)
    print(f"{batch:6}{rate:15.3f}{updates:9}{np.mean(accuracies):26.3f}{np.std(accuracies):8.3f}")

# %% [markdown]
# More images per second is not more learning per second: with an eighth of the updates the same learning rate falls
# behind, and a larger rate makes up for a part of it. The spread is the standard deviation over the seeds.
# [Chapter 10](10_large_batch_and_warmup.ipynb) is about large batches.
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
# **2.** 16 updates, one after the other, each from 32 images. (1) confuses a loop inside the graph with a larger batch;
# batch 512 makes one update. (3) tries to repair (1) by the learning rate.
# </details>

# %% [markdown]
# ## Two switches: mixed precision and XLA
#
# **Mixed precision** computes in 16 bits and keeps the weights in 32. On GPUs since 2017, 16-bit products run on
# special units, several times as fast, and activations take half the memory. There are two 16-bit formats:
#
# | | bits for the exponent | largest number | smallest normal number | digits |
# |---|---|---|---|---|
# | `float16` | 5 | 65,504 | 6e-5 | 3 to 4 |
# | `bfloat16` | 8 | 3e38 | 1e-38 | 2 to 3 |
#
# Gradients are often smaller than `float16` can hold. **Loss scaling** is the cure: multiply the loss, and so all
# gradients, by a large factor, and divide before the update.

# %%
gradient = tf.constant(1e-8)
scale = 2.0**15
print("float16:             ", float(tf.cast(gradient, tf.float16)))
print("float16, scaled loss:", float(tf.cast(tf.cast(gradient * scale, tf.float16), tf.float32) / scale))
print("bfloat16:            ", float(tf.cast(gradient, tf.bfloat16)))

# %% [markdown]
# In Keras one line before the model is built switches it on. With `mixed_float16`, `compile` wraps the optimizer into a
# `LossScaleOptimizer`, which chooses the factor by itself; `mixed_bfloat16` needs none.
#
#   tf.keras.mixed_precision.set_global_policy("mixed_float16")  # GPUs; "mixed_bfloat16" on TPUs, A100, H100 and newer
#
# **XLA** compiles a whole step into a few fused operations: `compile(jit_compile=True)`. The compiler needs seconds
# for each new shape of a batch, so give it batches of equal size. Both switches, with batches of 128:
#
# **Predict.** Which of the two helps on this processor?

# %%
equal = shuffled(128).unbatch().batch(128, drop_remainder=True).prefetch(tf.data.AUTOTUNE)
switched = {"as before": compiled(), "XLA": compiled(jit_compile=True)}
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
switched["mixed_bfloat16"] = compiled()
tf.keras.mixed_precision.set_global_policy("float32")
times = metrics.compare({name: partial(model.fit, equal, verbose=0) for name, model in switched.items()}, repeats=3)

# %% tags=["varies", "slide-output"]
for name, (elapsed, cpu) in times.items():
    print(f"{name:16}{metrics.throughput(len(images), elapsed):8,.0f} images/s, {cpu:.2f} s of CPU time per epoch")

# %% [markdown]
# What decides here is the processor: `bfloat16` can gain where it has units for it (AVX512_BF16, AMX), and costs
# conversions elsewhere; XLA saves starting many small operations, which a processor does quickly anyway. On a GPU
# mixed precision is the first switch to try, often worth a factor of two or more, and XLA often tens of percent. The
# results are not equal to the last bit: 16 bits round, and XLA adds in another order.

# %% [markdown]
# **One check before any speed.** An untrained classifier gives each of $n$ classes about the same probability, so its
# cross-entropy must be near $\ln n$, 2.303 for ten classes. If it is not, the loss does not fit the last layer. A loss
# that never falls below $\ln(1 + 9/e) = 1.46$ has seen two softmaxes. [Chapter 03](03_mirrored_strategy.ipynb) meets
# such a program.

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## A faster program
#
# Now the lecture's program against a better one on the same device. What changes takes one line each:
#
# | | lecture | better |
# |---|---|---|
# | batch size | 32 | 128 |
# | learning rate | 0.001 | 0.002, by the square root |
# | steps per execution | 1 | 16 |
# | data | NumPy arrays | a `tf.data` pipeline that repeats and prefetches |
#
# The pipeline repeats without end and `steps_per_epoch` marks the epochs, so that no epoch starts by building it again.
#
# **Predict.** How much faster is it, and is the accuracy after the same number of epochs lower, equal or higher?

# %%
lecture = mlp()
lecture.compile(tf.keras.optimizers.Adam(0.001), loss)

better = mlp()
better.compile(tf.keras.optimizers.Adam(0.002), loss, steps_per_execution=16)
batches = tf.data.Dataset.from_tensor_slices((images, labels))
batches = batches.shuffle(len(images)).batch(128).prefetch(tf.data.AUTOTUNE).repeat()
steps = math.ceil(len(images) / 128)

times = metrics.compare(  # one epoch each as a warm-up, then five in turns
    {
        "lecture": lambda: lecture.fit(images, labels, batch_size=32, verbose=0),
        "better": lambda: better.fit(batches, steps_per_epoch=steps, verbose=0),
    }
)

# %% tags=["varies", "slide-output"]
speed = {name: metrics.throughput(len(images), elapsed) for name, (elapsed, _) in times.items()}
figure = draw.bars(speed, "images per second, the median of five epochs")
draw.show(figure, "Two bars: " + ", ".join(f"{name} {rate:,.0f} images per second" for name, rate in speed.items()))
print(f"{speed['better'] / speed['lecture']:.1f} times as fast")
print(f"accuracy after six epochs: lecture {accuracy(lecture):.3f}, better {accuracy(better):.3f}")

# %% [markdown]
# This result has two limits. If a quarter of the updates reached about the same accuracy, it is because these sets are
# easy and the learning rate was chosen for it. And the gain comes from a small model, whose steps are mostly fixed
# cost. For a model whose arithmetic fills the device, a step is already efficient, and only more devices help.
#
# From here on the better program is the baseline. A speed-up over a slow baseline proves nothing.

# %% [markdown]
# ## Quiz
#
# Ten questions that mark themselves; with `seed=2` they have other numbers.

# %%
quizzes.ask("02")

# %% [markdown]
# ## Recap
#
# - Speed-up compares elapsed times; CPU time leaves out waiting and sums over threads.
# - TensorFlow alone uses one device, and fills the memory of all that it sees.
# - A cache freezes what comes before it; prefetch hides preparation; shuffle before batch.
# - A larger batch makes fewer updates; several steps per execution change no weight.
# - Mixed precision and XLA are one line each; `float16` needs a scaled loss, `bfloat16` does not.
# - The faster program on one device is the baseline to beat.
#
# **Next.** [Lab 02](../labs/02_single_device_baseline/lab.ipynb), [03 mirrored strategy](03_mirrored_strategy.ipynb).
#
# **Sources.**
# - D. Murray and others (2021), [tf.data](https://arxiv.org/abs/2101.12127).
# - A. Chowdhery and others (2022), [PaLM](https://arxiv.org/abs/2204.02311) (FLOP utilisation).
# - P. Goyal and others (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677) (linear rule).
# - S. Malladi and others (2022), [SDEs and scaling rules](https://arxiv.org/abs/2205.10287) (square root).
# - P. Micikevicius and others (2017), [Mixed precision training](https://arxiv.org/abs/1710.03740) (loss scaling).
# - TensorFlow, [Use a GPU](https://www.tensorflow.org/guide/gpu) (memory growth). The two GPUs:
#   [tensor2tensor#17](https://github.com/tensorflow/tensor2tensor/issues/17).
