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
# **Goal.** Measure a program on one device correctly and make it faster, before a second device is added.
#
# **Time.** 25 minutes to read, under a minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb)
#
# **Questions.**
# - Which clock measures a training run, and what does the other one measure?
# - How many devices does TensorFlow use by itself, and what are the processor's cores doing meanwhile?
# - Which transformation of the input pipeline pays, and in which order do they belong?
# - What do a larger batch and several steps per execution gain, and what do they cost?
# - How does a wrong `from_logits` show before the first training step?
#
# **Hardware.** Any computer with two cores. GPUs are used if they are there; nothing needs one.

# %% tags=["parameters"]
dataset = "digits"  # the images: digits, mnist or fashion_mnist
epochs = 5  # passes of the lecture's program over at most 8,000 images
workers = 2  # how many devices are offered to TensorFlow, which will use one of them

# %%
import distlab  # selects tf-keras; it must come before TensorFlow
import hashlib
import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
import matplotlib.pyplot as plt
import numpy as np
import psutil
import tensorflow as tf
from IPython.display import Markdown
from distlab import checks, data, devices, draw, quizzes
from distlab.metrics import Utilisation, throughput

tf.get_logger().setLevel("ERROR")  # no advice about tracing: this chapter builds many models on purpose
draw.apply_style()
tf.keras.utils.set_random_seed(1)
print(data.describe(dataset))

# %% [markdown] tags=["slide-predict"]
# ## A surprise: 15.4 seconds on one GPU, 43.7 on two
#
# The lecture trains a small network on MNIST, first on one GPU, then on two, and prints the time of each run: **15.4 s
# on one GPU, 43.7 s on two**. The lecture does not comment on it.
#
# **Predict.** Which explanation do you believe?
#
# - The two GPUs spend most of their time exchanging gradients.
# - The second program does more work than the first.
# - The clock measures something else.
#
# The two numbers alone cannot decide it. First we need a program to measure, then the right clock.

# %% [markdown]
# ## The lecture's program
#
# Some words first. A **step** is one update of the weights. The **batch size** is the number of images whose gradients
# are averaged for one step. An **epoch** is one pass over the training images. **Throughput** is the number of images
# processed per second.
#
# The default data set, `digits`, is small: an epoch of it takes a fraction of a second, too short to time. So an epoch
# here is about 6,000 images long, with the small set repeated. A larger set is cut to 8,000 images, so that the chapter
# stays within its minute.

# %%
(x_train, y_train), (x_test, y_test) = data.load(dataset)
copies = max(1, round(6_000 / len(x_train)))
images = np.concatenate([x_train] * copies)[:8_000]
labels = np.concatenate([y_train] * copies)[:8_000]
x_test, y_test = x_test[:2_000], y_test[:2_000]
print(f"An epoch: {len(images):,} images, {copies} × the set, in {math.ceil(len(images) / 32)} steps of at most 32")

# %% [markdown]
# Every chapter on data parallelism starts from this model. It is the lecture's: 784 pixels, 128 hidden units, 10
# classes, one **logit** per class. A logit is the score before the softmax turns scores into probabilities.


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


# %% [markdown]
# How many devices could it use? Where there are fewer GPUs than asked for, the processor is divided into **logical
# devices**: TensorFlow treats each as a separate device, although they share the same cores. On a machine with GPUs the
# first two lines keep TensorFlow from reserving all their memory; below you will see why.

# %% tags=["varies"]
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
devices.at_least(workers)
print("TensorFlow may use:", ", ".join(device.name for device in tf.config.list_logical_devices()))

# %% [markdown] tags=["slide-text", "slide-predict"]
# The lecture trains with Adam, batches of 32 and 5 epochs, on NumPy arrays. This is the whole program, except for the
# callback, which notes the time at the end of each epoch.
#
# **Predict.** Which epoch takes longest, and how many images per second does this machine process after it?

# %%
moments = [time.perf_counter()]
clock = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: moments.append(time.perf_counter()))

model = mlp()
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=tf.keras.optimizers.Adam(), loss=loss, metrics=["accuracy"])
model.fit(images, labels, batch_size=32, epochs=epochs, callbacks=[clock], verbose=0)
test_loss, test_accuracy = model.evaluate(x_test, y_test, verbose=0)

# %% tags=["varies", "slide-output"]
seconds = np.diff(moments)
print("seconds per epoch:", ", ".join(f"{value:.2f}" for value in seconds))
print(f"images per second in the median epoch: {throughput(len(images), np.median(seconds)):,.0f}")
print(f"test accuracy: {test_accuracy:.3f} (chance: 0.1)")

# %% [markdown] tags=["slide-takeaway"]
# The first epoch pays for **tracing**: Keras runs the Python code of a training step once and records a graph of
# TensorFlow operations; all later steps run that graph. So a warm-up that does not count precedes the measurements
# below. They report the median or the shortest of several repeats, because a single interruption by another program
# would distort the mean. The candidates take turns, so that a disturbance affects all of them.
#
# ## Elapsed time and CPU time
#
# The lecture timed its runs with `time.process_time()`. That is **CPU time**: the seconds that processor cores spent on
# this process, summed over its threads. **Elapsed time** is what a clock on the wall shows: `time.perf_counter()`. A
# stopwatch that takes both has six lines:


# %%
def stopwatch(work: Callable[[], object]) -> tuple[float, float]:
    """The elapsed time and the CPU time of `work()`, in seconds."""
    start, cpu_start = time.perf_counter(), time.process_time()
    work()
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    return elapsed, cpu


# %% [markdown] tags=["slide-predict"]
# **Predict.** For each piece of work: which of the two times is larger, and by about which factor?
#
# - wait, as a program does for a slow disk or for a GPU
# - 16 pieces of hashing in one thread
# - the same 16 pieces, 8 in each of two threads
# - the same 16 pieces in a child process
# - one epoch of the lecture's program

# %%
PIECE = "import hashlib; data = bytes(4_000_000); [hashlib.sha256(data).digest() for _ in range(16)]"
piece = bytes(4_000_000)


def compute(pieces: int) -> None:
    """Hash `pieces` times; hashlib lets other threads run meanwhile."""
    for _ in range(pieces):
        hashlib.sha256(piece).digest()


two_threads = ThreadPoolExecutor(2)
work = {
    "wait": lambda: time.sleep(0.2),
    "one thread": lambda: compute(16),
    "two threads": lambda: list(two_threads.map(compute, [8, 8])),
    "child process": lambda: subprocess.run([sys.executable, "-c", PIECE], check=True),
    "one epoch": lambda: model.fit(images, labels, batch_size=32, epochs=1, verbose=0),
}


NOT_FREE = "A larger gain needs two free cores; other programs, here or on the same shared host, may use one."


def other_programs() -> float:
    """The percentage of the processor that other programs keep busy at the moment."""
    return psutil.cpu_percent(interval=1)


# %% tags=["varies", "slide-output"]
print(f"Other programs use {other_programs():.0f} % of the {devices.cores()} cores.")
times = {name: [] for name in work}
for repeat in range(5):  # in turns; one epoch once
    for name, task in work.items():
        if name != "one epoch" or repeat == 0:
            times[name].append(stopwatch(task))
two_threads.shutdown()
shortest = {name: min(pairs) for name, pairs in times.items()}
print(f"{'':15}{'elapsed':>9}{'CPU':>9}{'CPU/elapsed':>14}")
for name, (elapsed, cpu) in shortest.items():
    print(f"{name:15}{elapsed:8.2f}s{cpu:8.2f}s{cpu / elapsed:14.2f}")
gain = shortest["one thread"][0] / shortest["two threads"][0]
print(f"Two threads are {gain:.2f} times as fast as one.", "" if gain > 1.3 else NOT_FREE)

# %% [markdown] tags=["slide-points"]
# The lecture's clock errs in three ways:
#
# - It does not see waiting. A program that waits for a GPU or for data looks fast.
# - It sums over threads. Where two cores are free, two threads halve the elapsed time and leave the CPU time as it was:
#   **the gain from parallel work is what this clock cannot show.** If other programs use the second core, two threads
#   gain nothing.
# - It does not see other processes. Multi-worker training and Horovod run one process per worker.
#
# So what do 15.4 and 43.7 s say? The lecture's processor worked almost three times as long for two GPUs: likely reasons
# are more operations to start, more data to copy, and threads that poll while they wait, which counts as work.
# (Notebook 03 measures such a case.) These numbers do not say which run ended first.

# %% [markdown]
# CPU time is still worth knowing: it says how much work was done, and it changes much less than elapsed time when other
# programs compete for the cores.
#
# <details>
# <summary>Question 1. One GPU: elapsed 10 s, process_time 14 s. Two GPUs: elapsed 6 s, process_time 16 s. What is the
# speed-up? (a) 1.67 (b) 0.88 (c) 2 (d) 2.33</summary>
#
# (a): speed-up compares elapsed times, 10 / 6. (b) compares CPU times, the lecture's mistake: the second GPU needs a
# second thread to feed it, so the sum over threads grows while the run gets shorter. (c) takes the number of devices
# for the speed-up. (d) divides one run's CPU time by the other's elapsed time, two different quantities.
#
# </details>

# %% [markdown]
# ## One device works, the others wait
#
# TensorFlow sees all devices listed above. **Predict.** On how many of them are the weights of the model stored after
# training?

# %%
used = {variable.device for variable in model.weights} | {model(x_test[:32]).device}
print(f"Devices offered: {workers}. Devices that hold a weight or compute the output: {len(used)}")

# %% [markdown]
# One. **TensorFlow alone uses one GPU**, or one logical device, however many there are: every operation goes to the
# first device that can run it. `with tf.device("GPU:1"):` would move the work to another device, not divide it.
# Dividing is the strategy's job, in [03 mirrored strategy](03_mirrored_strategy.ipynb).
#
# Utilisation shows the same from outside. It is the share of time in which a core (or a GPU) was busy with anything.
#
# **Predict.** The program keeps one device busy. How many cores are busy, and how much of the time?

# %% tags=["varies"]
with Utilisation() as recorded:
    two_epochs, _ = stopwatch(lambda: model.fit(images, labels, batch_size=32, epochs=2, verbose=0))
draw.show(
    draw.utilisation(recorded),
    "Percentage busy against time while the lecture's program trains, one row for each core and each GPU. Mean of the "
    f"cores, in percent: {', '.join(f'{busy:.0f}' for busy in recorded.cores.mean(axis=0))}.",
)

# %% [markdown]
# A logical CPU device is not a core: its operations may use every core. With several GPUs the picture has a row for
# each, and only the first is filled. The cores' rows count every program on the machine.
#
# Do not take memory for activity. Without `set_memory_growth`, TensorFlow reserves almost the whole memory of every GPU
# that it *sees*, and `nvidia-smi` shows all GPUs as full although only one computes. The variable
# `CUDA_VISIBLE_DEVICES` decides what a program sees; set it before the program starts:
#
#     CUDA_VISIBLE_DEVICES=1 python train.py
#
# TensorFlow returns memory only when its process ends. Restart a notebook's kernel to free the GPU for others.

# %% [markdown]
# Busy with what? A multiplication of large matrices shows how much arithmetic the device can do per second. The model's
# arithmetic is known: per image and weight at most 6 operations, a multiplication and an addition for each of the
# forward pass, the gradient of the weights and the gradient of the inputs.
#
# **Predict.** Which share of the possible arithmetic does the lecture's program reach?

# %% tags=["varies"]
side = 1_500
matrix = tf.random.normal((side, side))
product = min(stopwatch(lambda: tf.linalg.matmul(matrix, matrix)[0, 0].numpy())[0] for _ in range(8))
possible = 2 * side**3 / product
done = 6 * model.count_params() * throughput(2 * len(images), two_epochs)
Markdown(
    f"The cores were busy {recorded.cores.mean():.0f} % of the time. The program did {done / 1e9:.1f} billion "
    f"operations per second; the device can do at least {possible / 1e9:.0f} billion, the best of eight products. "
    f"That is **{100 * done / possible:.1f} %**. (Chapter 01 measures another library, NumPy's, with another result.)"
)

# %% [markdown]
# **Utilisation says that a device is busy, not that its work is useful.** The second figure is the model's FLOP
# utilisation: the share of the possible arithmetic that the model needed. For a small model the rest usually goes
# to Python code between steps and to starting dozens of small operations. More devices multiply this waste.
#
# <details>
# <summary>Question 2. A GPU shows 100 % utilisation and reaches 5 % of its peak speed. What helps first?
# (a) a second GPU (b) nothing, it is at its limit (c) larger or fewer operations per step</summary>
#
# (c): utilisation counts the time with at least one operation running, even a tiny one. Fewer and larger operations do
# more arithmetic in that time. (a) confuses a busy device with a well-used one; two such GPUs waste twice as much. (b)
# confuses utilisation with a share of the peak.
#
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


times = {name: [] for name in stages}
for repeat in range(7):
    for name, batches in stages.items():
        pair = stopwatch(partial(drain, batches))
        if repeat:  # the first pass is the warm-up; it also fills the cache
            times[name].append(pair)
rates = {name: STORED / min(elapsed for elapsed, _ in pairs) for name, pairs in times.items()}
costs = {name: 1e6 * np.median([cpu for _, cpu in pairs]) / STORED for name, pairs in times.items()}
print(f"{'':20}{'images per second':>18}{'CPU µs per image':>18}")
print("\n".join(f"{name:20}{rates[name]:18,.0f}{costs[name]:18.0f}" for name in stages))
figure = draw.bars(rates, "images per second, pipeline alone, no training; the best of six passes")
draw.show(figure, "Images per second of the input pipeline, one bar per stage; the table above has the numbers.")
gain = rates["decode in parallel"] / rates["+ decode"]
print(f"Parallel decoding: {gain:.2f} ×.", "" if gain > 1.3 else NOT_FREE)

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
# **What does not matter.** With arrays already in memory there is nothing to read or decode, and `cache` keeps another
# copy of what is there. `Model.fit` on NumPy arrays shuffles indices, gathers whole batches and prefetches by itself.
# The lecture's program is not slow because of its input.
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
waits = np.diff(feed(plain, device_seconds=0)[:, :2])
preparation = np.median(waits)
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
for name, events in feeds.items():
    wait = 1000 * np.median(events[:, 1] - events[:, 0])
    print(f"{name:16} median wait for data {wait:.2f} ms, median step {steps[name]:.2f} ms")
gain = steps["without prefetch"] / steps["with prefetch"]
print(f"Prefetch: {gain:.2f} ×.", "" if gain > 1.3 else NOT_FREE)

# %% tags=["varies"]
# Without a clock: how many images are decoded while the device works on the first batch of 32?
for name, batches in {"without prefetch": plain, "with prefetch(2)": plain.prefetch(2)}.items():
    calls.assign(0)
    iterator = iter(batches)
    next(iterator)
    time.sleep(1)  # the device works, usually long enough for the buffer to fill
    print(f"{name:16} {int(calls)} images decoded, {int(calls) // 32 - 1} batches ahead")
    del iterator

# %% [markdown] tags=["slide-takeaway"]
# With $c = p$ the formula promises $2p / p$, a factor of 2, as long as a core is free for the preparation. Prefetch
# hides time and removes no work. Once preparing takes longer than computing, the device waits whatever the size of the
# buffer: then the pipeline itself must become cheaper. And where the "device" is the same processor, as in this
# chapter's training runs, both compete for its cores.
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
#   images: throughput must be computed from those that were processed. A
#   [published benchmark](https://github.com/openhackathons-org/gpubootcamp) divided all 60,000 images by the time,
#   though its 8 GPUs had processed fewer; notebook 11, scaling and profiling, recomputes its efficiency.
#
# The cache and the random transformations have an order too.
#
# **Predict.** For each line below: does the second epoch repeat the first?


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
# <details>
# <summary>Question 3. The decoded set does not fit into memory, decoding is slow, the crop is random. Where does the
# cache go? (a) decode, crop, cache in memory (b) decode, cache in a file, crop (c) before decode (d) after batch and
# crop</summary>
#
# (b): `cache(filename)` keeps the decoded images on disk, and the crop stays random. (a) runs out of memory, and
# forgets that a cache freezes random augmentation. (c) saves the reading, not the slow decoding. (d) assumes that
# larger elements are cheaper, and it freezes the crop and which images share a batch.
#
# </details>

# %% [markdown] tags=["slide-predict"]
# ## Batch size and steps per execution
#
# If the input is not the bottleneck, the steps are. A step of batch size $B$ takes about
#
# $$t(B) = a + b \cdot B$$
#
# $a$ is the fixed cost of a step: Python code between steps, starting operations, updating 101,770 weights. $b$ is the
# arithmetic for one image. Throughput is $B / t(B)$.
#
# Two settings reduce $a$ per image. A larger batch has fewer steps. With `compile(steps_per_execution=k)` the Python
# part of $a$ is paid once per $k$ steps.
#
# Each `compile` leads to another trace, so two compiled models are used from here on, one for 1 and one for 16 steps.
# Later comparisons restore their untrained state.
#
# **Predict.** From batch 32 to batch 1024: 1, 3, 10 or 32 times the throughput? How much do 16 steps per execution add
# at each of the two?

# %%
SIZES = (32, 128, 512, 1024)


def shuffled(batch: int) -> tf.data.Dataset:
    """All images in batches, in a new order each epoch."""
    pipeline = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images))
    return pipeline.batch(batch).prefetch(tf.data.AUTOTUNE)


def compiled(model: tf.keras.Model, steps: int) -> tf.keras.Model:
    """The model, compiled as the lecture does, with `steps` steps per execution."""
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(), loss, metrics=["accuracy"], steps_per_execution=steps)
    return model


def state(model: tf.keras.Model) -> list[tf.Variable]:
    """Every variable of the model and of its optimizer."""
    model.optimizer.build(model.trainable_variables)
    return model.variables + list(model.optimizer.variables)


# %%
def one_epoch(model: tf.keras.Model, batches: tf.data.Dataset) -> tuple[float, float]:
    """The elapsed and the CPU time of one epoch."""
    return stopwatch(lambda: model.fit(batches, epochs=1, verbose=0))


trained = {steps: compiled(mlp(), steps) for steps in (1, 16)}
untrained = {steps: [variable.numpy() for variable in state(model)] for steps, model in trained.items()}
sources = {batch: shuffled(batch) for batch in SIZES}
for model in trained.values():
    one_epoch(model, sources[1024])  # the warm-up; its trace serves every batch size
times = {(steps, batch): [] for steps in trained for batch in SIZES}
for _ in range(2):
    for steps, batch in times:  # in turns, so that a disturbance hits all alike
        times[steps, batch].append(one_epoch(trained[steps], sources[batch]))
rates = {pair: throughput(len(images), min(elapsed for elapsed, _ in runs)) for pair, runs in times.items()}
costs = {pair: min(cpu for _, cpu in runs) / len(images) for pair, runs in times.items()}

# %% tags=["varies", "slide-output"]
figure, axes = plt.subplots()
print(f"{'steps per execution':20}{'batch':>6}{'images/s':>10}{'CPU µs per image':>18}")
for (steps, batch), rate in rates.items():
    print(f"{steps:<20}{batch:6}{rate:10,.0f}{1e6 * costs[steps, batch]:18.1f}")
for steps in trained:
    axes.plot(SIZES, [rates[steps, batch] for batch in SIZES], label=str(steps))
    per_step = np.array([costs[steps, batch] * batch for batch in SIZES])
    b, a = np.polyfit(SIZES, per_step, 1, w=1 / per_step)  # equal weight to each relative error
    print(f"{steps} per execution, in CPU time: a = {1e6 * a:.0f} µs per step, b = {1e6 * b:.1f} µs per image")
axes.set(xscale="log", xlabel="batch size", ylabel="images per second", ylim=(0, None))
axes.set_xticks(SIZES, SIZES)
axes.minorticks_off()
axes.legend(title="steps per execution", loc="lower right")
draw.show(figure, "Images per second against batch size, one line each for 1 and for 16 steps per execution.")

# %% [markdown] tags=["slide-takeaway"]
# The fixed cost per image shrinks with the batch, the arithmetic per image stays. The curve flattens where $b \cdot B$
# exceeds $a$. In CPU time per image, several steps per execution usually save most where the batch is small, since
# there $a$ is most of the step. The images per second also depend on what else the machine is doing, the CPU times
# usually much less. Of two repeats the better one counts.
#
# What the two settings cost differs. **Several steps per execution change nothing in the result**: the same updates in
# the same order. Only callbacks run once per $k$ steps. The proof, with SGD and without dropout and shuffling:

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
# **A larger batch is another training run.** An epoch has fewer steps, so fewer updates. The usual answer is a larger
# learning rate: multiplied by the factor by which the batch grew (the linear rule, for SGD), or by its square root (a
# rule derived for Adam).
#
# To compare runs fairly, all start from the same weights and the same state of the optimizer, and each is repeated with
# three seeds.
#
# **Predict.** After one epoch: how far is batch 1024 behind batch 32? Does a learning rate 6 times as large (the
# square root), or 32 times (the linear rule), make up for it?


# %%
def restore(model: tf.keras.Model, values: list[np.ndarray]) -> None:
    """Set every variable back to its value in `values`."""
    for variable, value in zip(state(model), values, strict=True):
        variable.assign(value)


def accuracy(model: tf.keras.Model) -> float:
    """The share of test images whose largest logit is that of their label."""
    return float(np.mean(np.argmax(model(x_test), axis=1) == y_test))


# %%
model, first_epoch = trained[16], {}
for seed in range(3):
    tf.keras.utils.set_random_seed(seed)
    initial = mlp().get_weights()
    for batch, rate in [(32, 0.001), (256, 0.001), (256, 0.003), (1024, 0.001), (1024, 0.006), (1024, 0.032)]:
        restore(model, untrained[16])
        model.set_weights(initial)
        model.optimizer.learning_rate.assign(rate)
        model.fit(sources.setdefault(batch, shuffled(batch)), epochs=1, verbose=0)
        first_epoch.setdefault((batch, rate), []).append(accuracy(model))
reached = {run: np.mean(accuracies) for run, accuracies in first_epoch.items()}

# %% tags=["varies"]
print(f"{'batch':>6}{'learning rate':>15}{'updates':>9}{'accuracy after one epoch':>26}{'spread':>8}")
for (batch, rate), accuracies in first_epoch.items():
    updates = math.ceil(len(images) / batch)
    print(f"{batch:6}{rate:15.3f}{updates:9}{np.mean(accuracies):26.3f}{np.std(accuracies):8.3f}")
for rate in (0.006, 0.032):
    change = 100 * (reached[1024, rate] - reached[1024, 0.001])
    print(f"batch 1024: a rate of {rate} instead of 0.001 changes the accuracy by {change:+.1f} points")

# %% [markdown]
# More images per second is not more learning per second. A larger learning rate can make up for part of the loss from
# fewer updates, and one that is too large makes it worse: the last two lines say what happened here. Compare the
# changes with the spread, the standard deviation over the seeds. More is in notebook 10, large batch and warm-up.
#
# <details>
# <summary>Question 4. Batch 32 with 16 steps per execution is, for the weights, the same as … (a) batch 512 (b) batch
# 32 with one step per execution (c) batch 512 with 1/16 of the learning rate</summary>
#
# (b): 16 updates, one after the other, each from 32 images. (a) confuses a loop inside the graph with a larger batch;
# batch 512 makes one update. (c) tries to repair (a) by the learning rate.
#
# </details>

# %% [markdown] tags=["slide-formula", "slide-predict"]
# ## The first loss is a test
#
# Cross-entropy needs to know what the model returns: logits or, after a softmax, probabilities. `from_logits` says so,
# and Keras seldom checks it. The lecture's distributed program ends in `Dense(10)` without softmax and compiles with
# `loss="categorical_crossentropy"`, whose default is `from_logits=False`. Its printout shows an accuracy of 0.2202 on
# two GPUs, after 0.9778 on one. The second GPU was not the reason.
#
# There is a test before the first step. An untrained model gives each of the 10 classes about the same probability, so
# its loss is near
#
# $$-\ln \frac{1}{10} = \ln(10) = 2.303$$
#
# **Predict.** Of the four combinations of output and `from_logits`, how many train? Which one warns?


# %%
def experiment(activation: str | None, from_logits: bool) -> dict[str, object]:
    """Train one epoch from fixed weights; the first loss, the accuracy and whether Keras warned."""
    tf.keras.utils.set_random_seed(4)
    layers = tf.keras.layers
    hidden = [layers.Input((28, 28)), layers.Flatten(), layers.Dense(128, activation="relu"), layers.Dropout(0.2)]
    model = tf.keras.Sequential([*hidden, layers.Dense(10, activation=activation)])
    loss = tf.keras.losses.CategoricalCrossentropy(from_logits=from_logits)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        first_loss = float(loss(tf.one_hot(y_test, 10), model(x_test)))
        model.compile("adam", loss, steps_per_execution=16)
        model.fit(images, tf.one_hot(labels, 10).numpy(), batch_size=32, epochs=1, verbose=0)
    warned = any("from_logits" in str(warning.message) for warning in caught)
    return {"first loss": first_loss, "accuracy": accuracy(model), "warned": warned}


pairs = [(None, True), ("softmax", False), (None, False), ("softmax", True)]
results = {pair: experiment(*pair) for pair in pairs}

# %% tags=["varies", "slide-output"]
print(f"{'output':9}{'from_logits':13}{'first loss':>11}{'accuracy':>10}   warning")
for (activation, from_logits), result in results.items():
    line = f"{activation or 'logits':9}{from_logits!s:13}{result['first loss']:11.2f}{result['accuracy']:10.3f}"
    print(f"{line}   {'yes' if result['warned'] else 'none'}")

# %% [markdown] tags=["slide-takeaway"]
# Only the lecture's combination misses $\ln(10)$ by far, and no warning says so. Keras divides the "probabilities" by
# their sum and clips them to at least $10^{-7}$. Logits and their sum may be negative. If the quotient for the true
# class is negative, it is clipped: the image costs $-\ln(10^{-7}) = 16.1$ and teaches nothing, because a clipped value
# does not change with the weights.
#
# Softmax with `from_logits=True`, which should be wrong, has the same loss as the right ones: Keras finds that the
# output comes from a softmax, uses the softmax's input and warns. It finds no softmax that is followed by a reshape,
# for example.

# %% [markdown]
# <details>
# <summary>Question 5. The first loss is 2.30, accuracy rises slowly, the loss never falls below 1.46. What is it? (a) a
# learning rate that is too small (b) a softmax applied twice (c) logits with from_logits=False (d) nothing, 1.46 is
# good</summary>
#
# (b): the loss takes probabilities for logits and applies a second softmax. The best it can see is a 1 and nine 0s, so
# at least $\ln(1 + 9/e) = 1.46$. The first loss is right, since equal in gives equal out: the test is necessary, not
# sufficient. (a) would go on falling. (c) shows in the first loss. (d) forgets that a confident, correct model reaches
# a loss near 0.
#
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## A faster program
#
# Now the lecture's program against a better one, on the same device. The better one takes from each section: batches of
# 128 with the learning rate multiplied by four (the linear rule, made for SGD; we see what it does here), 16 steps per
# execution, a pipeline with prefetch. The pipeline repeats without end and `steps_per_epoch` marks the epochs, so that
# no epoch starts by building it again. Both train for the same number of epochs; in each turn both start from the same
# new weights. They take turns, so that a disturbance affects both, and the shorter times of two turns are compared.
#
# **Predict.** Is the accuracy after the same number of epochs lower, equal or higher?

# %%
PASSES = 5  # the lecture's epochs, whatever `epochs` says above
endless, steps = shuffled(128).repeat(), math.ceil(len(images) / 128)
contenders = {  # steps per execution, learning rate, and the training
    "lecture": (1, 0.001, lambda model: model.fit(images, labels, batch_size=32, epochs=PASSES, verbose=0)),
    "better": (16, 0.004, lambda model: model.fit(endless, steps_per_epoch=steps, epochs=PASSES, verbose=0)),
}
elapsed, reached = {name: [] for name in contenders}, {name: [] for name in contenders}
for _ in range(2):
    fresh = mlp().get_weights()
    for name, (per_execution, rate, train) in contenders.items():
        model = trained[per_execution]
        restore(model, untrained[per_execution])
        model.set_weights(fresh)
        model.optimizer.learning_rate.assign(rate)
        seconds, _ = stopwatch(partial(train, model))
        elapsed[name].append(seconds)
        reached[name].append(accuracy(model))
ratio = min(elapsed["lecture"]) / min(elapsed["better"])
loss_of_accuracy = np.mean(reached["lecture"]) - np.mean(reached["better"])

# %% tags=["varies", "slide-output"]
speed = {name: throughput(PASSES * len(images), min(times)) for name, times in elapsed.items()}
figure = draw.bars(speed, f"images per second, the shorter of two times {PASSES} epochs")
draw.show(figure, "Two bars: " + ", ".join(f"{name} {rate:,.0f} images per second" for name, rate in speed.items()))
for name, times in elapsed.items():
    print(f"{name:8} {PASSES} epochs in {', '.join(f'{value:.2f}' for value in times)} s", end="; ")
    print(f"accuracy {', '.join(f'{value:.3f}' for value in reached[name])}")
print(f"{ratio:.1f} times as fast; mean accuracy {-100 * loss_of_accuracy:+.1f} points", end=" ")
print(f"(one test image is {100 / len(x_test):.1f} points)")

# %% [markdown]
# This result has two limits. If a quarter of the updates reached about the same accuracy, it is because these sets are
# easy and the learning rate was chosen for it. And any gain comes from a small model, whose steps are mostly fixed
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
# - Speed-up compares elapsed times; CPU time leaves out waiting and child processes and sums over threads.
# - TensorFlow alone places a model on one device.
# - A cache freezes what comes before it; prefetch hides preparation.
# - Shuffle before batch; augment after the cache with new seeds.
# - A larger batch makes fewer updates; several steps per execution change no weight.
# - An untrained classifier of 10 classes has a loss near ln 10; logits with `from_logits=False` miss it.
# - The lecture's program can run faster on one device; the faster program is the baseline to beat.
#
# **Next.** [Lab 02](../labs/02_single_device_baseline/lab.ipynb), [03 mirrored strategy](03_mirrored_strategy.ipynb).
#
# **Sources.**
# - D. Murray and others (2021), [tf.data](https://arxiv.org/abs/2101.12127).
# - A. Chowdhery and others (2022), [PaLM](https://arxiv.org/abs/2204.02311) (FLOP utilisation).
# - P. Goyal and others (2017), [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677) (linear rule).
# - S. Malladi and others (2022), [SDEs and scaling rules](https://arxiv.org/abs/2205.10287) (square root).
# - TensorFlow, [Use a GPU](https://www.tensorflow.org/guide/gpu) (memory growth).
