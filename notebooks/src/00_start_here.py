# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 00 Start here
#
# **Goal.** Train a first model on two devices and check that the result is right; then know what the course contains,
# how its chapters work, and what your machine offers.
#
# **Time.** 25 minutes to read, under a minute to run.
#
# **Before this.** Python with NumPy, and how a neural network is trained: weights, a loss, its gradient, batches.
#
# **Questions.**
# - What do several devices do in one training step, and how do I know that they do it right?
# - Which chapters do I need, and how do I work through one?
# - What does this machine have: devices, cores, interconnect?
# - How can one processor act as several devices?
#
# **Hardware.** Linux, or a Mac with Apple silicon. Two cores are enough; later chapters use GPUs if present.

# %% tags=["parameters"]
dataset = "digits"  # not used in this chapter, which takes the digits
epochs = 2  # passes over the 512 images of the first training
workers = 2  # into how many devices the processor is divided

# %% [markdown] tags=["slide-picture"]
# ## 1. A first training on two devices
#
# A model trains on several devices if one is too slow or too small. The simplest way gives each device a part of every
# batch:
#
# ![A batch of 64 images on two devices: two gradients of 32 images each, their sum, new
# weights](../figures/00_first_step.svg)
#
# In TensorFlow a `GradientTape` records the operations from images to loss, and computes the gradient from this record.
# Adding the gradients of real devices takes an **all-reduce**: every device contributes an array and gets the sum of
# all.

# %% [markdown]
# The next cell is a complete program. Copied with the numbers above into a file `first.py`, it also runs by
# `.venv/bin/python first.py`. A laptop has no second device, so the program divides the processor into **logical
# devices**. The network is a single layer. Its ten outputs, one score per class, are called **logits**.

# %% tags=["program", "slide-code"]
import numpy as np
import tensorflow as tf
from sklearn.datasets import load_digits

processor = tf.config.list_physical_devices("CPU")[0]
configurations = [tf.config.LogicalDeviceConfiguration()] * workers
tf.config.set_logical_device_configuration(processor, configurations)
images, labels = load_digits(return_X_y=True)
images, labels = np.float32(images[:512] / 16), labels[:512]


def gradient_on(device, weights, part):
    with tf.device(device), tf.GradientTape() as tape:
        logits = tf.constant(images[part]) @ weights
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels[part], logits)
        loss = tf.reduce_sum(losses)
        return tape.gradient(loss, weights)  # inside, so on this device


def train(devices, divide_by=64, learning_rate=0.2):
    weights = tf.Variable(tf.zeros((64, 10)))
    for start in list(range(0, 512, 64)) * epochs:
        parts = np.array_split(np.arange(start, start + 64), len(devices))
        pairs = zip(devices, parts, strict=True)
        gradients = [gradient_on(device, weights, part) for device, part in pairs]
        weights.assign_sub(learning_rate * tf.add_n(gradients) / divide_by)
    return weights.numpy()


several = [f"CPU:{number}" for number in range(workers)]
serial, parallel = train(["CPU:0"]), train(several)
print(f"largest difference of the weights: {np.abs(parallel - serial).max():.0e}")

# %% [markdown] tags=["slide-text"]
# **Equal, not similar.** The last lines train twice, from equal weights, with equal batches, and compare every weight.
# Only the order of the additions differs, so a weight may differ in its last bits. The course tolerates a difference of
# 0.00001; a real mistake is much larger.
#
# Two things are simpler here than later: the weights lie once, in one place, where the gradients are added, and the
# devices work one after the other, so nothing gets faster. TensorFlow's **strategies**, from [chapter
# 03](03_mirrored_strategy.ipynb) on, give each device a copy of the weights (a **replica**), start all devices together
# and all-reduce; the arithmetic is the same.

# %% [markdown] tags=["slide-predict"]
# Now a common mistake: each of two workers divides by the 32 images of its own part instead of the 64 of the batch, and
# the two results are added. The gradient is doubled.
#
# **Predict.** Will the accuracy show the mistake? Will the weights?

# %% tags=["slide-output"]
wrong = train(several, divide_by=64 // workers)  # as if each divided by its own part


def accuracy(weights):
    return np.mean(np.argmax(images @ weights, axis=1) == labels)


difference = np.abs(wrong - serial).max() / np.abs(serial).max()
print(f"training accuracy with the correct gradient: {accuracy(serial):.1%}")
print(f"training accuracy with the wrong gradient: {accuracy(wrong):.1%}")
print(f"the weights differ by up to {difference:.0%} of the largest weight")

# %% [markdown] tags=["slide-takeaway"]
# The weights show it, the accuracy does not: the doubled gradient acts like a doubled learning rate. The training still
# works, here even better, so nobody notices the mistake. On a larger cluster the factor is the number of workers, and
# one day the training diverges. The comparison of weights reveals it at once. For that reason almost every chapter
# makes one, with SGD: Adam divides by the size of recent gradients and would nearly hide the factor ([chapter
# 04](04_custom_training_loop.ipynb)).

# %% [markdown] tags=["slide-picture"]
# ## 2. What this course is
#
# Training a neural network on several devices: why, how, what it costs, and how to be sure that the result is the same.
# It follows a university lecture on distributed training with TensorFlow and Horovod. The lecture's small MNIST program
# appears in many chapters; we find its mistakes and fix them.
#
# Every chapter runs here, on two cores, without a GPU and without a network. The TensorFlow programs are the same on
# GPUs and on a cluster. What cannot run here, such as 512 GPUs, is computed and compared with published measurements.
#
# An arrow in the map leads from a chapter to one that builds on it.
#
# ![The map of the course: the chapters, with arrows from each to those that need it](../figures/00_course_map.svg)

# %% [markdown]
# - **One process.** [01 why distribute](01_why_distribute.ipynb),
#   [02 single-device baseline](02_single_device_baseline.ipynb),
#   [03 mirrored strategy](03_mirrored_strategy.ipynb), [04 custom training loop](04_custom_training_loop.ipynb),
#   [05 save and load](05_save_and_load.ipynb)
# - **Several processes.** [06 collectives](06_collectives_and_ring_all_reduce.ipynb),
#   [07 multi-worker](07_multi_worker.ipynb), [08 other strategies](08_other_strategies.ipynb),
#   [08b Keras 3](08b_keras_3.ipynb), [09 Horovod](09_horovod.ipynb),
#   [10 large batches](10_large_batch_and_warmup.ipynb), [11 scaling and profiling](11_scaling_and_profiling.ipynb)
# - **At scale.** [12 model parallelism](12_model_parallelism.ipynb), [13 fault tolerance](13_fault_tolerance.ipynb),
#   [14 other frameworks](14_other_frameworks.ipynb), [15 clusters](15_clusters.ipynb)
#
# Most chapters have a lab, in which you write the key parts yourself and a check says what is wrong. The end of the
# chapter links to it. The last lab is the [capstone](../labs/16_capstone/lab.ipynb), about the whole course. So a check
# answers, here in lab 06:
#
# ![A wrong line of a reduce-scatter, what the check says about it, and its picture of the run](../figures/00_check.svg)

# %% [markdown] tags=["slide-table"]
# ### What to skip
#
# | you | read | leave out first |
# |---|---|---|
# | are new to this | 00 to 07 in order, then 09 | 08, 14 |
# | have one machine with several GPUs | 01 to 04, then 06, 07, 09, 10 | 08, 13 |
# | use Keras 3 | 01 to 04, 06 to 08, 08b | the rest |
# | have an account on a cluster | 01 to 07, 09, 10, 11, 13, 15 | 08, 12, 14 |
# | find that more GPUs make training slower | 01 to 04, 06, 07, 09, 11 | the rest |
# | want to train a model that does not fit | 01 to 04, 06, 12; 07, 08 and 09 before 14 | 05, 10 |
#
# If you teach, read all; the questions make a quiz. Each chapter names what must come before it, so you can
# start anywhere and go back.

# %% [markdown]
# ## 3. How to work through it
#
# `make lab` opens JupyterLab on your own copy of this chapter, in the folder `work`. Run the cells from top to bottom
# with Shift+Enter. `.venv/bin/distlab lab --fresh 00` gives you the chapter back as it was. `make progress` shows which
# cells have run and which exercises are solved.
#
# Without a browser, `make execute` runs every chapter in a fresh kernel, and passes parameters on (MNIST is downloaded
# once):
#
#     make execute ONLY=03 DATASET=mnist EPOCHS=5 WORKERS=4
#
# **The parameters cell** is the first code cell of every chapter. In JupyterLab, edit it and run everything again (menu
# Kernel, "Restart Kernel and Run All Cells"); `make execute` adds a cell with your values after it.

# %% [markdown]
# **Predictions.** Each measurement that matters begins with a question. Write your guess down: a wrong guess that you
# remember teaches more than a right number that you have read. In JupyterLab the answer appears when you run the cell;
# on the course's site it waits for your guess.
#
# **Folded code.** Cells that only import or draw are folded. In JupyterLab click on the three dots to see one.

# %% [markdown] tags=["slide-quiz"]
# **Questions** look like this. Choose before you open the answer.
#
# **Question.** You have run a chapter, change `epochs = 2` to 4 in its parameters cell and run that cell. How many
# epochs do the results below come from?
#
# 1. Four, as in a spreadsheet.
# 2. Two, until I run the cells below again.
# 3. Two, until I restart the kernel.
#
# <details>
# <summary>Answer</summary>
#
# **2.** Answer 1 treats a notebook like a spreadsheet, but nothing below runs by itself. Answer 3 restarts without
# need: a cell that runs again uses the new value. If in doubt, restart and run all cells.
# </details>

# %% [markdown]
# ### Outputs that vary
#
# The chapters are stored with outputs, and tests run them again and compare. A time, or the number of your cores,
# differs from machine to machine. Cells that show such things have the tag `varies`, and are not compared. With the
# parameters unchanged and fewer than two GPUs, all other outputs must be the same on your machine, up to the number
# after "largest difference", since rounding depends on the processor. If one is not, you have found a mistake, yours or
# ours.

# %% jupyter={"source_hidden": true}
from distlab import devices, metrics, quizzes  # the course's library
from course_tools.setup import doctor

import os
from functools import partial

from IPython.display import Markdown

# %% [markdown] tags=["slide-text"]
# ## 4. Which Keras
#
# The course uses **legacy Keras**, which is Keras 2, maintained as the package `tf-keras`. With TensorFlow 2.21,
# `Model.fit` of the newer Keras 3 fails with `MultiWorkerMirroredStrategy` in two processes, with
# `ParameterServerStrategy` and with Horovod's `DistributedOptimizer`. [Chapter 08b](08b_keras_3.ipynb) measures it and
# shows what to do with Keras 3.

# %% [markdown]
# <details>
# <summary>In an environment of your own</summary>
#
# `tf.keras` is legacy Keras if the variable `TF_USE_LEGACY_KERAS` is 1 when TensorFlow starts, as it is in the course's
# environment. In another one, install `tf-keras`, and set the variable or write `import distlab` before
# `import tensorflow`. A plain `import keras` still imports Keras 3: use `tf.keras`.
# </details>

# %%
print("TF_USE_LEGACY_KERAS =", os.environ["TF_USE_LEGACY_KERAS"])
print("tf.keras is the package", tf.keras.Model.__module__.split(".")[0])
print("TensorFlow", ".".join(tf.__version__.split(".")[:2]))

# %% [markdown]
# ## 5. What this machine has
#
# A **device** executes operations: a processor (CPU) or an accelerator such as a GPU. TensorFlow lists the **physical
# devices**. All processors of a machine together count as one device, however many cores they have, because one
# operation can use all of them.

# %% tags=["varies"]
for device in tf.config.list_physical_devices():
    print(device.device_type, device.name)
print("GPUs that nvidia-smi lists:", ", ".join(devices.gpu_names()) or "none")
print(f"{devices.cores()} cores, {devices.memory_gib():.1f} GiB of memory")

# %% [markdown] tags=["slide-text"]
# The **interconnect** connects the devices: NVLink or PCIe inside a machine, a network between machines. With NVIDIA
# GPUs, `nvidia-smi topo -m` prints it as a matrix. On an H100 server every entry between two GPUs is `NV18`: 18
# NVLinks, through NVSwitch chips. And here:

# %% tags=["varies"]
print(devices.topology())

# %% [markdown]
# <details>
# <summary>What the entries mean, and the matrix of an older server</summary>
#
# From fast to slow:
#
# | entry | the way from one GPU to the other |
# |---|---|
# | `NV18` | 18 NVLinks: directly to the other GPU, or through NVSwitch chips |
# | `PIX` | one PCIe switch |
# | `PXB` | several PCIe switches |
# | `PHB` | through the processor's PCIe controller |
# | `NODE` | between two PCIe controllers of one NUMA node |
# | `SYS` | between two NUMA nodes, usually two processors |
#
# A **NUMA node** is a part of the machine's cores with the memory nearest to it. This matrix was published for a server
# with four K80 cards (two GPUs each) on two processors, without NVLink, and one network card, `mlx5_0`:
#
# ```
#         GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7 mlx5_0
# GPU0     X   PIX  PXB  PXB  SYS  SYS  SYS  SYS   SYS
# GPU1    PIX   X   PXB  PXB  SYS  SYS  SYS  SYS   SYS
# GPU2    PXB  PXB   X   PIX  SYS  SYS  SYS  SYS   SYS
# GPU3    PXB  PXB  PIX   X   SYS  SYS  SYS  SYS   SYS
# GPU4    SYS  SYS  SYS  SYS   X   PIX  PXB  PXB   PHB
# GPU5    SYS  SYS  SYS  SYS  PIX   X   PXB  PXB   PHB
# GPU6    SYS  SYS  SYS  SYS  PXB  PXB   X   PIX   PHB
# GPU7    SYS  SYS  SYS  SYS  PXB  PXB  PIX   X    PHB
# mlx5_0  SYS  SYS  SYS  SYS  PHB  PHB  PHB  PHB    X
# ```
# </details>

# %% [markdown] tags=["slide-predict"]
# Why this matters: in each training step every device sends its gradients. ResNet-50 has 25 million parameters of 4
# bytes, 100 MB per step. A GPU of 2016, the P100, needs 120 ms for the backward pass of 32 images (newer ones are
# several times as fast).
#
# **Predict.** How long does it take to move 100 MB inside this machine's memory, and over Ethernet with 1 Gbit/s?

# %% tags=["varies", "slide-output"]
gradients, received = np.ones((2, 25_000_000), np.float32)
copy = partial(np.copyto, received, gradients)
copying = min(metrics.median_seconds(copy, repeats=1) for _ in range(5))
links = {  # bytes per second in one direction, all but the memory's from data sheets
    "NVLink 4, the 18 links of one H100": 450e9,
    "PCIe 5.0, 16 lanes": 63e9,
    "InfiniBand, 400 Gbit/s": 50e9,
    "this machine's memory, measured": gradients.nbytes / copying,
    "Ethernet, 25 Gbit/s": 25e9 / 8,
    "Ethernet, 1 Gbit/s": 1e9 / 8,
}
table = "| link | GB/s | 100 MB take |\n|---|---|---|\n"
for name, speed in sorted(links.items(), key=lambda link: -link[1]):
    table += f"| {name} | {speed / 1e9:,.3g} | {gradients.nbytes / speed * 1e3:,.3g} ms |\n"
Markdown(table)

# %% [markdown] tags=["slide-takeaway"]
# The fastest link is more than a thousand times as fast as the slowest. On the fast ones, sending takes a small part of
# those 120 ms; over Ethernet with 1 Gbit/s it takes several times as long. So the same program can scale well in one
# machine room and not at all in another. Logical devices exchange data through memory: good for learning what is sent,
# misleading for how long it takes. [Chapter 01](01_why_distribute.ipynb) computes with these links (an all-reduce sends
# almost twice the array), chapters 06 and 11 measure some.

# %% [markdown]
# ## 6. Logical devices
#
# The program at the top divided the processor. Each logical device has a name, and operations and variables can be
# placed on it, just as on a second GPU. `tf.device` says where an operation runs, and each result knows where it is
# stored.

# %%
for number, device in enumerate(tf.config.list_logical_devices("CPU")):
    with tf.device(device.name):
        total = tf.reduce_sum(tf.range(1, 5) * (number + 1))
    print(f"{int(total)} was computed on {total.device.split('/')[-1]}")

# %% [markdown] tags=["slide-predict"]
# **Predict.** What happens if you ask for one more device now?

# %% tags=["slide-output"]
one_more = [*configurations, tf.config.LogicalDeviceConfiguration()]
try:
    tf.config.set_logical_device_configuration(processor, one_more)
except RuntimeError as error:
    print("RuntimeError:", str(error).splitlines()[0])
print("logical devices:", len(tf.config.list_logical_devices("CPU")))

# %% [markdown] tags=["slide-takeaway"]
# Too late: TensorFlow fixes its devices when it first uses or lists them as logical devices. Restart the kernel and
# configure them before that.
# In [chapter 02](02_single_device_baseline.ipynb) `devices.at_least(workers)` does this: it takes GPUs if there are
# enough, else it divides the processor, and prints which.

# %% [markdown] tags=["slide-quiz"]
# **Question.** Training keeps both cores of a laptop busy with one device. You divide the processor into two logical
# devices and train on both. What do you gain?
#
# 1. Almost twice the speed: two devices.
# 2. No speed; each device has its own half of the cores.
# 3. No speed; both devices share all the cores.
#
# <details>
# <summary>Answer</summary>
#
# **3.** Logical devices are names and places, not hardware: the cores stay the same and are shared. Answer 1 counts
# names. Answer 2 assigns cores to a logical device; it has none. The gain: you can find the mistakes of a distributed
# program without a second GPU.
# </details>

# %% [markdown]
# ## 7. Is everything installed?
#
# `make doctor` checks everything the course needs and says how to fix what is missing. It also runs an all-reduce with
# Horovod: two processes add the numbers 1 and 2 and both get 3. Here we call it from Python; it takes some seconds,
# most of them to start TensorFlow.

# %% tags=["varies"]
rows = doctor.examine()
print(doctor.table([row for row in rows if row.ok or row.needed]))

# %% [markdown]
# Without MNIST the chapters use `digits`, without a GPU logical devices, and without a C++ compiler the Horovod
# chapters are skipped with that reason. If the first line says that the course cannot run here yet, follow the lines
# "fix" and run `make doctor` again; [troubleshooting](../docs/troubleshooting.md) has more.

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("00")

# %% [markdown]
# ## Recap
#
# - Training divided over devices equals the serial one to 1e-5. The weights show it; accuracy does not reveal a
#   doubled gradient.
# - With the parameters unchanged and fewer than two GPUs, every output without the tag `varies` is the same, up to
#   rounding.
# - `tf.keras` is legacy Keras here, since three tools of the course fail with `Model.fit` of Keras 3.
# - Links differ in speed more than a thousandfold.
# - One processor can act as several devices, if divided before TensorFlow first uses it.
#
# **Next.** [01 why distribute](01_why_distribute.ipynb), and then [02 single-device
# baseline](02_single_device_baseline.ipynb).
#
# **Sources.** TensorFlow, [Use a GPU](https://www.tensorflow.org/guide/gpu) (logical devices, placement). NVIDIA,
# [nvidia-smi](https://docs.nvidia.com/deploy/nvidia-smi/index.html) and the
# [H100's data sheet](https://www.nvidia.com/en-us/data-center/h100/). The matrix of eight GPUs:
# [lattice/quda#669](https://github.com/lattice/quda/issues/669). P. Goyal and others (2017),
# [Accurate, large minibatch SGD](https://arxiv.org/abs/1706.02677), for the 100 MB and the 120 ms.
