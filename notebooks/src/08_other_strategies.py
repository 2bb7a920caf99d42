# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 08 Other strategies
#
# **Goal.** Know every strategy of `tf.distribute`, train with parameter servers and see how stale their gradients are,
# and decide between synchronous and asynchronous training by numbers. A second part is about Keras 3.
#
# **Time.** 55 minutes to read, about a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb),
# [04 custom training loop](04_custom_training_loop.ipynb),
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb) and [07 multi-worker](07_multi_worker.ipynb).
#
# **Questions.**
# - What do chief, workers and parameter servers do, and how is a variable divided?
# - Where does each strategy keep the variables, and who updates them when?
# - How stale is a gradient, and what does that cost?
# - What does one slow worker do to synchronous and to asynchronous training?
# - Which strategy works with `fit`, which with a loop, and with which Keras? What does Keras 3 change?
#
# **Hardware.** Two processor cores. Parameter servers and workers are processes of this machine.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 1,280 images are used
epochs = 1  # not used in this chapter: its runs have a fixed number of gradients
workers = 2  # replicas in section 2; real workers in sections 1, 3 and 4, where 2 or 3 are started

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import json
import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import Markdown, display

from distlab import checks, collectives, data, devices, draw, launch, models, profiling, programs, quizzes
from distlab import strategy_support
from distlab.simulate import Network, World

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # otherwise TensorFlow logs every strategy and every reduction
tf.keras.utils.set_random_seed(8)
PROGRAMS = Path("programs/08_other_strategies")
train = data.load(dataset).train
print(data.describe(dataset))

# %% [markdown] tags=["slide-picture"]
# ## Part 1: the strategies
#
# ### 1. Parameter servers: the whole program
#
# In chapters 03 and 07 every device had a copy of the variables. Here the variables are in separate processes. A
# **parameter server** (`ps`) stores variables and applies updates; a **worker** computes gradients; the **chief**, also
# called coordinator, is not a worker here: it runs the program and hands out steps.
#
# ![Roles in a parameter-server cluster: a chief hands out steps to three workers; each worker reads the variables from
# two parameter servers and writes gradients to both; beside it a TF_CONFIG](../figures/08_parameter_server_roles.svg)
#
# All run `minimal.py` in `programs/08_other_strategies` and read their role from `TF_CONFIG`. Workers
# and servers only serve: the chief's program builds graphs and puts steps into a queue, from which the next free worker
# takes one. In a terminal: `distlab launch --workers 2 --parameter-servers 1 minimal.py`

# %%
programs.show(PROGRAMS / "minimal.py")

# %% tags=["varies"]
real_workers = min(max(workers, 2), 3)
how = {"start_seconds": 300, "echo": False}
run = launch.tensorflow(PROGRAMS / "minimal.py", workers=real_workers, parameter_servers=1, **how)
print(run.output["chief"].splitlines()[-1])

# %% [markdown] tags=["slide-table"]
# ### 2. Two questions sort the strategies
#
# A strategy answers two questions: *where are the variables*, and *who waits for whom before they change*?
#
# | strategy | variables | devices that compute | updates |
# |---|---|---|---|
# | `OneDeviceStrategy` | on the one device | one | after each step |
# | `MirroredStrategy` | a copy on each device | those of one machine | synchronous, all-reduce |
# | `CentralStorageStrategy` | on one device | those of one machine | synchronous, the one device adds |
# | `MultiWorkerMirroredStrategy` | a copy on each device | those of many machines | synchronous, all-reduce |
# | `TPUStrategy` | a copy on each core | the cores of a TPU | synchronous, all-reduce |
# | `ParameterServerStrategy` | spread over servers | many workers | asynchronous |
#
# **Synchronous** means: all gradients of a step are added before a weight changes. **Asynchronous**: each worker's
# gradient changes the weights when it arrives.

# %% tags=["varies"]
names = devices.at_least(max(workers, 2) + 1)
holder, computing = names[0], names[1 : workers + 1]
print("variables on", holder, "and replicas on", computing)

# %% [markdown]
# #### `OneDeviceStrategy`
#
# It places variables and computation on a device of your choice. There is nothing to add up. Use it to run a program
# that was written for a strategy on a single device: to find an error, or to have a serial run for comparison.

# %%
one_device = tf.distribute.OneDeviceStrategy(computing[0])
with one_device.scope():
    variable = tf.Variable(1.0)
print("the chosen device:   ", computing[0])
print("the variable is on   ", variable.device)
print("a replica computes on", one_device.run(lambda: tf.constant(1.0)).device)
print("replicas:", one_device.num_replicas_in_sync)

# %% [markdown] tags=["slide-predict"]
# #### `CentralStorageStrategy`
#
# Each variable exists once, on the *parameter device*, usually the processor. In each step every replica reads it
# and sends its gradient back; the parameter device adds the gradients. It was made for models whose variables, such as
# large embedding tables, do not fit on a GPU. It still has `experimental` in its name.
#
# **Predict.** The graph of a step says who sends what to whom, as in
# [notebook 03](03_mirrored_strategy.ipynb). Which messages carry gradients, and does a sum travel back?

# %% tags=["slide-output"]
central = tf.distribute.experimental.CentralStorageStrategy(computing, parameter_device=holder)
with central.scope():
    variable, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1)
    optimizer.build([variable])


@tf.function
def update():
    def replica():
        with tf.GradientTape() as tape:
            loss = 2.0 * variable
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])

    central.run(replica)


copies = central.experimental_local_results(variable)
print("copies of the variable:", len(copies), "for", workers, "replicas")
print("the parameter device:", holder, "and the variable is on", variable.device)
graph = update.get_concrete_function().graph
for step, source, destination in profiling.messages.between_devices(graph, names):
    print(f"step {step}: a gradient goes {names[source]} → {names[destination]}")
update()
print(f"1 − 0.1 · (the sum of {workers} gradients of 2) = {float(variable):.1f}")

# %% [markdown] tags=["slide-takeaway"]
# No sum travels back. The parameter device applies it, and in the next step every replica reads the new value. The
# traffic of the parameter device grows with the number of replicas, as in `ReductionToOneDevice`.
#
# **Proof.** We compare both with training without a strategy: same first weights, same batches, 20 SGD steps with
# `fit`.


# %%
def trained(strategy: tf.distribute.Strategy) -> list[np.ndarray]:
    """The weights after 20 steps; every call starts from the same ones."""
    batch = 64 // workers * workers
    index = np.arange(20 * batch) % 1280
    tf.keras.utils.set_random_seed(8)
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss=loss)
    model.fit(train.images[index], train.labels[index], batch_size=batch, shuffle=False, verbose=0)
    return model.get_weights()


serial = trained(tf.distribute.get_strategy())
for strategy in (one_device, central):
    print(type(strategy).__name__, end=": ")
    checks.assert_equal_weights(trained(strategy), serial)

# %% [markdown]
# ### 3. How stale is a gradient?
#
# Between reading the weights and updating them time passes, and other workers update. The **staleness** of a gradient
# is the number of updates by others in between. `parameter_server.py` measures it in its step, a method of its class
# `Trainer`; `self.model` and the counter `self.version` are on the servers.

# %%
programs.show(PROGRAMS / "parameter_server.py", "Trainer.step")

# %% [markdown] tags=["slide-predict"]
# - A counter on a server is the *version* of the weights.
# - The step reads it *before* it reads the weights: they contain at least that many updates.
# - After its own update it raises the counter and gets the old value, in one atomic operation (`ResourceCountUpTo`;
#   with `assign_add` and a read, another update could come in between).
# - The difference counts the others' updates in between.
#
# The processes would compete for the cores. So the function `later` delays
# each gradient by a *sleep* of 50 ms, which simulates computing on the worker's own device and needs no core.
#
# - `in_order`: 20 gradients, each scheduled when the one before is done.
# - `equal`: 80 gradients, all in the queue at once.
# - `slow`: the same; the last worker sleeps 200 ms.
#
# **Predict.** Two equal workers; neither waits. How stale is a typical gradient: 0, 1 or 2? And the slow worker's?

# %% tags=["varies"]
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "weights.npz"
gradients_per_run = 80  # of all workers together; the run in_order has 20
arguments = ["--runs", "in_order", "equal", "slow", "--gradients", gradients_per_run, "--dataset", dataset]
arguments += ["--weights", file]
program = PROGRAMS / "parameter_server.py"
run = launch.tensorflow(program, *arguments, workers=real_workers, parameter_servers=2, result=True, **how)
asynchronous = run.result
print(run.output["chief"])
saved = [array for _, array in np.load(file).items()]
folder.cleanup()

# %% [markdown]
# #### Where the variables are
#
# The program gives the strategy a **partitioner**: `MinSizePartitioner(64 << 10, max_shards=2)` cuts a variable along
# its first axis into at most two pieces, each of at least 64 KiB. Whole variables and pieces go to the servers in
# turn.

# %%
kilobytes = {}
for variable in asynchronous["variables"]:
    server = variable["device"].split("task:")[1][0]
    kilobytes[server] = kilobytes.get(server, 0) + 4 * np.prod(variable["shape"]) / 1000
    print(f"ps {server}: {variable['name']:22} {variable['shape']}")
print({f"ps {server}": f"{size:.0f} kB" for server, size in sorted(kilobytes.items())})

# %% [markdown]
# The first kernel, $784 \times 128$, is stored in two halves; Keras does not notice. So each server carries about half
# of the bytes and of the traffic. One server would be the bottleneck of all workers, as rank 0 was in the naive
# all-reduce.
#
# #### Proof: in order, it is serial training
#
# In the run `in_order` no gradient can be stale, whichever worker computes it. Then the cluster must give what a plain
# loop in this kernel gives, from the same first weights and the same batches.

# %%
tf.keras.utils.set_random_seed(8)  # the program's seed
model = models.mlp(dropout=0.0)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=tf.keras.optimizers.SGD(asynchronous["learning_rate"]), loss=loss)
index = np.arange(20 * 32) % 1280
model.fit(train.images[index], train.labels[index], batch_size=32, shuffle=False, verbose=0)
in_order = asynchronous["runs"]["in_order"]
print("staleness in order:", set(in_order["staleness"]))
whole = [np.concatenate(saved[:2]), *saved[2:]]  # the kernel's two halves are put together
checks.assert_equal_weights(whole, model.get_weights())

# %% [markdown]
# #### The staleness, measured and simulated
#
# `distlab.collectives.parameter_server` is the same algorithm on the virtual cluster of
# [notebook 06](06_collectives_and_ring_all_reduce.ipynb): rank 0 serves, the others compute for 50 or 200 ms of virtual
# time. There the chief needs no time and no cores are shared.


# %%
def simulated(seconds: list[float], gradients: int) -> list[collectives.Update]:
    """The first `gradients` updates of a virtual cluster."""
    server = partial(
        collectives.parameter_server,
        gradient=lambda weights, worker, step: weights,
        steps=gradients,
        seconds_per_gradient=lambda worker, step: seconds[worker - 1],
    )
    size = 1 + len(seconds)
    training = World(size, Network(1e-5, 1e-9)).run(server, [np.ones(1)] * size).results[0]
    return training.updates[:gradients]


staleness, virtual = {}, {}
for name in ("equal", "slow"):
    run = asynchronous["runs"][name]
    staleness[name, "measured"] = np.array([run["worker"], run["staleness"]])
    virtual[name] = simulated(run["seconds_per_gradient"], run["updates"])
    rows = [[update.worker - 1, update.staleness] for update in virtual[name]]
    staleness[name, "simulated"] = np.array(rows).T

# %% tags=["varies", "slide-output"]
figure, rows = plt.subplots(2, 2, figsize=(7.2, 4.2), sharex="row", sharey="row")
for row, name in zip(rows, ("equal", "slow"), strict=True):
    for axes, kind in zip(row, ("measured", "simulated"), strict=True):
        by, stale = staleness[name, kind]
        bottom = np.zeros(stale.max() + 1)
        for worker in range(real_workers):
            counts = np.bincount(stale[by == worker], minlength=len(bottom))
            look = {"color": draw.RANK_COLOURS[worker], "hatch": draw.HATCHES[worker]}
            look |= {"edgecolor": "white", "label": f"worker {worker}"}
            axes.bar(range(len(bottom)), counts, bottom=bottom, **look)
            bottom += counts
        axes.set(title=f"{name}, {kind}", xlabel="staleness", xticks=range(len(bottom)))
    row[0].set_ylabel("gradients")
legend = rows[0, 0].get_legend_handles_labels()
figure.legend(*legend, loc="outside upper center", ncols=real_workers)
description = f"Bar charts of the staleness of {gradients_per_run} gradients: equal and slow, measured and simulated."
draw.show(figure, description)
print("run    from       worker  gradients  mean staleness")
for (name, kind), (by, stale) in staleness.items():
    for worker in range(real_workers):
        own = stale[by == worker]
        print(f"{name:6} {kind:10} {worker:>6} {len(own):>10} {own.sum() / max(len(own), 1):>15.2f}")
    print(f"{name:6} {kind:10}    all {len(stale):>10} {stale.mean():>15.2f}")

# %% [markdown]
# **Why the mean is the number of other workers.** Take $w$ workers who never pause. While worker A computes one
# gradient after the other, every update of worker B falls into exactly one of A's gradients, and makes it staler by
# one. So each update makes $w-1$ gradients staler, one of each other worker, and the mean is $w-1$, *whatever the
# speeds*. With $p$ ranks, one of them the server, that is $p-2$. A worker that pauses, while the chief hands it the
# next step or the cores are busy, catches nothing meanwhile, so the measured mean is below $w-1$.
#
# What a slow worker changes is *who* is stale. If one needs $k$ times as long, it catches about $k$ updates of each
# other one; the fast ones catch about $1/k$ of an update of it, and one of each fast one.

# %% [markdown] tags=["slide-quiz"]
# **Question.** Eight equal workers and one parameter server. What is the mean staleness, and what is it with four
# parameter servers?
#
# 1. 8 and 8.
# 2. 7 and 7.
# 3. 7 and 7/4.
# 4. 0: the queue hands out one step after the other.
#
# <details>
# <summary>Answer</summary>
#
# 1. A worker's own update does not make it stale.
# 2. **Right.** Servers divide the variables, not the workers; each update still reaches all of them.
# 3. This takes a server for a group of workers. Every worker talks to all servers.
# 4. It hands them out immediately; only `in_order` waited.
# </details>

# %% [markdown] tags=["slide-predict"]
# ### 4. One slow worker: to wait or not to wait
#
# `programs/08_other_strategies/synchronous.py` trains the same network, from the same batches, with the same sleeps,
# under `MultiWorkerMirroredStrategy`. A step adds one gradient of each worker, and all gradients have the same weight
# as in the asynchronous run.
#
# **Predict.** With $w$ workers that need $t_1, \dots, t_w$ seconds, how many gradients per second do the two ways
# apply? Work it out for 50 and 200 ms before you look.
#
# Synchronous: $w$ gradients per step, and a step takes as long as the slowest: $w / \max t_i$. Asynchronous: the rates
# add up: $\sum 1/t_i$. The cell after the measurement gets the same numbers from the virtual cluster.

# %% tags=["varies"]
arguments = ["--gradients", gradients_per_run, "--dataset", dataset]
run = launch.tensorflow(PROGRAMS / "synchronous.py", *arguments, workers=real_workers, result=True, **how)
synchronous = run.result
print(run.output["worker 0"])


# %%
async def one_step(rank, seconds):
    """A synchronous step on the virtual cluster: compute, then add up the gradients."""
    await rank.compute(seconds)
    await collectives.ring_all_reduce(rank, np.ones(1))


rates = {}
for name in ("equal", "slow"):
    seconds = np.array(synchronous["runs"][name]["seconds_per_gradient"])
    step = World(real_workers, Network(1e-5, 1e-9)).run(one_step, seconds).elapsed
    rates[name, "synchronous"] = (real_workers / seconds.max(), real_workers / step)
    rates[name, "asynchronous"] = (np.sum(1 / seconds), gradients_per_run / virtual[name][-1].time)
print("gradients per second   formula   simulated")
for (name, way), (formula, simulation) in rates.items():
    print(f"{name:6} {way:13} {formula:>9.1f} {simulation:>11.1f}")

# %% tags=["varies", "slide-output"]
ways = {"synchronous": synchronous["runs"], "asynchronous": asynchronous["runs"]}
print("measured             gradients      gradients    loss   seconds")
print("run    way           per second   of each worker  at end  it took")
for name, way in rates:
    last, gradients, loss = ways[way][name]["curve"][-1]
    workers_of = ways[way][name].get("worker", np.arange(gradients) % real_workers)
    counts = np.bincount(workers_of).tolist()
    print(f"{name:6} {way:13} {gradients / last:>10.1f} {counts!s:>16} {loss:>7.2f} {last:>8.1f}")

figure, (by_gradients, by_seconds) = plt.subplots(1, 2, figsize=(7.2, 3.1), sharey=True)
for number, (name, way) in enumerate((name, way) for name in ("equal", "slow") for way in ways):
    seconds, gradients, loss = np.array(ways[way][name]["curve"]).T
    look = {"color": draw.RANK_COLOURS[number], "linestyle": draw.DASHES[number]}
    look |= {"marker": draw.MARKERS[number], "markersize": 4, "markevery": 4}
    for axes, horizontal in ((by_gradients, gradients), (by_seconds, seconds)):
        axes.plot(horizontal, loss, label=f"{way}, {name}", **look)
by_gradients.set(xlabel="gradients applied", ylabel="loss")
by_seconds.set_xlabel("seconds")
figure.legend(*by_seconds.get_legend_handles_labels(), loc="outside upper center", ncols=2)
draw.show(
    figure,
    "Curves of the loss of the four runs, against the gradients applied and against the seconds. "
    "The table above has their ends.",
)

# %% tags=["varies"]
seconds, gradients, loss = ways["asynchronous"]["slow"]["curve"][-1]
curve = ways["synchronous"]["slow"]["curve"]
so_far = [point for point in curve if point[0] <= seconds][-1]  # the last measurement until then
Markdown(
    f"With the slow worker, after {seconds:.1f} s the asynchronous run has applied {gradients} gradients and has a "
    f"loss of {loss:.2f}. The synchronous run has applied {so_far[1]} by then, with a loss of {so_far[2]:.2f}. After "
    f"the same number of gradients the losses are {loss:.2f} and {curve[-1][2]:.2f}."
)

# %% [markdown] tags=["slide-takeaway"]
# Per *gradient* the curves are usually alike: with so few workers a stale gradient is nearly as good as a fresh one.
# Per *second* the synchronous run must keep the pace of its slowest worker, and the others wait in the all-reduce.
#
# All processes share a few cores, and the parameter servers move every weight and gradient through them. The busier
# these cores are, the further the measured rates fall below the formula's. The asynchronous way usually loses more: its
# chief wakes up for each gradient.

# %% [markdown]
# **Question.** The same slow worker, synchronous. You give it a quarter of the images per step. What happens?
#
# 1. Nothing, the step still waits for it.
# 2. The step is as short as with equal workers.
# 3. The result is wrong.
# 4. Its gradients become stale.
#
# <details>
# <summary>Answer</summary>
#
# 1. It waits less: the slow worker has less to compute.
# 2. **Right.** If the time is spent on images. The gradient must then weight every image, not every worker, equally
#    ([notebook 07](07_multi_worker.ipynb)).
# 3. Only with the plain mean of the workers' means.
# 4. No gradient is stale in a synchronous step.
# </details>

# %% [markdown] tags=["slide-text", "slide-predict"]
# ### 5. The rule of thumb, computed
#
# Rules of thumb say: synchronous where devices are equal and links fast, asynchronous where devices differ or fail.
# We compute it. Eight workers of the virtual cluster train a small network in NumPy, 10 ms per gradient: with the ring
# all-reduce, and with a parameter server.
#
# #### What staleness costs
#
# First the price. The same 320 gradients, with the same learning rate: one worker, whose gradients are fresh; eight
# workers asynchronously; and eight synchronously, which add eight gradients per step. The first weights are random, so
# each loss is the mean over three seeds, with the standard deviation.
#
# **Predict.** Which of the three tolerates the largest learning rate?


# %%
WORKERS, BATCH, HIDDEN = 8, 32, 16
images, labels = train.images[:1280].reshape(1280, 784), train.labels[:1280]
images = images - images.mean(axis=0)


def start(seed):
    generator = np.random.default_rng(seed)
    kernels = [generator.normal(size=784 * HIDDEN) / 28, generator.normal(size=HIDDEN * 10) / 4]
    return np.concatenate(kernels).astype(np.float32)


def forward(weights, x):
    kernel = weights[784 * HIDDEN :].reshape(HIDDEN, 10)
    hidden = np.maximum(x @ weights[: 784 * HIDDEN].reshape(784, HIDDEN), 0)
    exponentials = np.exp(hidden @ kernel)
    return kernel, hidden, exponentials / exponentials.sum(axis=1, keepdims=True)


def loss(weights):
    return -np.mean(np.log(forward(weights, images)[2][np.arange(1280), labels]))


def gradient(weights, number):
    """The gradient of one batch of images."""
    index = (BATCH * number + np.arange(BATCH)) % 1280
    kernel, hidden, error = forward(weights, images[index])
    error[np.arange(BATCH), labels[index]] -= 1
    to_hidden = (error @ kernel.T) * (hidden > 0)
    parts = (images[index].T @ to_hidden, hidden.T @ error)
    return np.concatenate([part.ravel() for part in parts]) / BATCH


# %%
first = start(seed=0)


def served(workers, rate, steps, seconds=0.01, network=None, speeds=None, watch=None, first=first):
    """Asynchronous training; `watch` sees the weights that the last worker reads."""

    def of_worker(weights, worker, step):
        if watch and worker == workers:
            watch(weights)
        return gradient(weights, step * workers + worker - 1)

    choices = {"steps": steps, "learning_rate": rate, "seconds_per_gradient": seconds}
    program = partial(collectives.parameter_server, gradient=of_worker, **choices)
    return World(workers + 1, network, speeds).run(program, [first] * (workers + 1)).results[0]


def added(rate, steps, first=first):
    """Synchronous training, without a clock: the weights after each step."""
    every = [first]
    for step in range(steps):
        total = sum(gradient(every[-1], WORKERS * step + rank) for rank in range(WORKERS))
        every.append(every[-1] - rate * total)
    return every


# %% tags=["slide-output"]
print("learning rate         one worker     8 asynchronous      8 synchronous")
with np.errstate(all="ignore"):
    for rate in (0.05, 0.15, 0.5):
        losses = []
        for weights in (start(seed) for seed in range(3)):
            one, eight = (served(n, rate, 320 // n, first=weights).weights for n in (1, 8))
            losses.append([loss(one), loss(eight), loss(added(rate, 40, weights)[-1])])
        texts = []
        for column in np.transpose(losses):
            diverged = np.sum(~np.isfinite(column))
            texts.append(f"{diverged} of 3 diverged" if diverged else f"{column.mean():.3f} ± {column.std():.3f}")
        print(f"{rate:>13} {texts[0]:>18} {texts[1]:>18} {texts[2]:>18}")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-predict"]
# At small rates the price is small. At a rate that one worker tolerates, both eight-worker runs diverge, with every
# seed: a gradient that is seven updates old errs much like a step that is eight times as large. Staleness is not a bug
# to fix; it limits the learning rate. Asynchrony acts like momentum, so with momentum in the optimizer the limit is
# lower still (Mitliagkas et al.).
#
# #### Speed: a slow worker and the links
#
# Below, one of eight workers is $k$ times slower, on three networks. The number is the time the synchronous way needs
# to reach the same loss, divided by the asynchronous way's. Above 1, asynchronous wins.
#
# **Predict.** From which $k$ on does asynchronous win on a fast network? On a slow one, is it a larger $k$ or a
# smaller?


# %%
RATE, STEPS = 0.05, 24
target = loss(added(RATE, STEPS)[-1])


async def all_reduced(rank, weights, seconds):
    """Synchronous training as far as the clock is concerned: compute, then add up by a ring."""
    for step in range(STEPS):
        await rank.compute(seconds(rank.index, step) if callable(seconds) else seconds)
        await collectives.ring_all_reduce(rank, weights)


def times(seconds=0.01, network=None, speeds=None):
    """Virtual seconds until the loss is at the target: synchronous and asynchronous."""
    program, seen = partial(all_reduced, seconds=seconds), []
    synchronously = World(WORKERS, network, speeds).run(program, [first] * WORKERS).elapsed
    speeds = {rank + 1: speed for rank, speed in (speeds or {}).items()}  # rank 0 is the server
    training = served(WORKERS, RATE, STEPS + 20, seconds, network, speeds, seen.append)
    read_at = [0.0, *(update.time for update in training.updates if update.worker == WORKERS)]
    lowest = np.minimum.accumulate([loss(weights) for weights in seen])
    return synchronously, np.interp(-target, -lowest, read_at[: len(lowest)], right=np.nan)  # nan: never at the target


# %%
networks = {
    "100 Gbit/s": Network(2e-6, 8e-11),
    "1 Gbit/s": Network(5e-5, 8e-9),
    "100 Mbit/s": Network(1e-4, 8e-8),
}
factors = (1, 1.5, 2, 3, 4, 8)
ratios = {}
print("network      a gradient travels   k =", *(f"{factor:>5}" for factor in factors))
for name, network in networks.items():
    milliseconds = 1e3 * network.default_link.seconds(first.nbytes)
    both = [times(network=network, speeds={0: 1 / factor}) for factor in factors]
    ratios[name] = [synchronously / asynchronously for synchronously, asynchronously in both]
    print(f"{name:<12} {milliseconds:>15.2f} ms       ", *(f"{ratio:>5.2f}" for ratio in ratios[name]))

# %% tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3))
for number, (name, values) in enumerate(ratios.items()):
    look = {"color": draw.RANK_COLOURS[number], "linestyle": draw.DASHES[number]}
    axes.loglog(factors, values, label=name, marker=draw.MARKERS[number], **look)
axes.axhline(1, color="black", linewidth=0.8, linestyle="-", marker="")
axes.set(xlabel="slow factor k of one worker in eight", ylabel="time synchronous ÷ asynchronous")
axes.set_xticks(factors, factors)
axes.set_yticks((0.5, 1, 2, 4), (0.5, 1, 2, 4))
axes.minorticks_off()
figure.legend(loc="outside upper center", ncols=3)
description = "Three rising lines: how many times longer synchronous training takes, by the slow factor."
draw.show(figure, description)

# %% [markdown] tags=["slide-takeaway"]
# With equal workers on fast links it is a tie: every worker computes without a pause either way, and at this rate a
# stale gradient is as good. There is no cross-over: for every $k > 1$ the asynchronous
# way gains, nearly in proportion to $k$, since it loses at most one worker of eight.
#
# On the slow network the *synchronous* way wins here until one worker is two to three times slower. All
# eight gradients and all eight answers pass one server's port, while the ring spreads them over all links. More servers
# help (section 3).
#
# #### Unreliable workers
#
# Now all are equal, but one gradient in twenty takes ten times as long. The synchronous step waits if at least one of
# the eight workers is unlucky, which happens in $1 - 0.95^8$ of all steps.
#
# **Predict.** How many times longer does the synchronous way take?


# %%
def with_hiccups(worker: int, step: int, seed: int) -> float:
    """Seconds of a gradient: 0.01, and in one case of twenty 0.1."""
    return 0.1 if np.random.default_rng((seed, worker, step)).random() < 0.05 else 0.01


# %%
unlucky = 1 - 0.95**WORKERS
step_synchronous, step_asynchronous = 0.01 + 0.09 * unlucky, 0.01 + 0.09 * 0.05
pairs = [times(partial(with_hiccups, seed=seed), networks["100 Gbit/s"]) for seed in range(5)]
simulated_ratios = np.array([synchronously / asynchronously for synchronously, asynchronously in pairs])
print(f"steps with an unlucky worker: {unlucky:.0%}")
print(f"expected step, synchronous: {1e3 * step_synchronous:.1f} ms")
print(f"expected step, asynchronous: {1e3 * step_asynchronous:.1f} ms")
print(f"expected ratio: {step_synchronous / step_asynchronous:.1f}")
print(f"simulated ratio over five seeds: {simulated_ratios.mean():.1f} ± {simulated_ratios.std():.1f}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# #### Backup workers
#
# There is a third way. Chen et al. (2016) stay synchronous but start $b$ more workers than they need. A step takes the
# first 8 gradients of $8 + b$ and drops the rest. No gradient is stale, and a step waits only if *more than $b$*
# workers are unlucky. In their experiments this converged faster than asynchronous training, and to a better accuracy.
#
# **Predict.** How many backup workers remove most of the waiting here?


# %% tags=["slide-output"]
def mean_step(backups: int, seed: int, steps: int = 2000) -> float:
    """Milliseconds of a step that takes the first 8 of 8 + `backups` gradients, on average."""
    is_slow = np.random.default_rng(seed).random((steps, WORKERS + backups)) < 0.05
    milliseconds = np.sort(np.where(is_slow, 100, 10), axis=1)
    return milliseconds[:, WORKERS - 1].mean()


for backups in range(4):
    values = [mean_step(backups, seed) for seed in range(10)]
    dropped = backups / (WORKERS + backups)
    print(
        f"{backups} backup: {np.mean(values):5.1f} ± {np.std(values):.1f} ms per step, {dropped:.0%} of the work lost"
    )

# %% [markdown] tags=["slide-takeaway", "slide-table"]
# One backup worker removes most of the waiting and costs a ninth of the work. It helps against workers that are slow
# *by chance*: one that is always slow is always dropped, with its share of the data.
#
# | cluster | take | because |
# |---|---|---|
# | GPUs of one machine, TPUs, a fast network | synchronous | equal devices: no time to gain, a reproducible result |
# | equal machines, a slow network | synchronous, ring | one server's port is the bottleneck |
# | occasional slow steps | synchronous, backup workers | a step rarely waits |
# | one machine slower, always | synchronous, fewer images for it | all parts take equally long |
# | mixed or pre-emptible machines | asynchronous | nobody waits for a slow or lost worker |
# | huge sparse tables | parameter servers | only the rows that a step touches travel |
#
# Asynchronous training has a cost that no clock shows: a run cannot be repeated, so no test can prove it right.

# %% [markdown]
# **Question.** On 64 equal GPUs with a fast network, a colleague turns to parameter servers "since nobody waits there".
# What do you answer?
#
# 1. Good: 64 workers never wait.
# 2. It takes a smaller learning rate and more servers.
# 3. The loss will be the same after the same number of gradients.
# 4. It cannot work with more than two workers.
#
# <details>
# <summary>Answer</summary>
#
# 1. With equal workers there is almost nothing to wait for.
# 2. **Right.** The staleness is 63, and every update passes the servers.
# 3. At small learning rates only.
# 4. It can, with 64 workers as with two.
# </details>

# %% [markdown]
# ### 6. `TPUStrategy`
#
# A **TPU** (Tensor Processing Unit) is Google's processor for matrix products, used on Google Cloud. A board has
# several cores, and up to thousands of boards are joined by dedicated links. `TPUStrategy` is synchronous data
# parallelism over these cores: in code it is `MirroredStrategy` with three more lines, which find the TPU and reset it.
#
# ```python
# resolver = tf.distribute.cluster_resolver.TPUClusterResolver("my-tpu")
# tf.config.experimental_connect_to_cluster(resolver)
# tf.tpu.experimental.initialize_tpu_system(resolver)
# strategy = tf.distribute.TPUStrategy(resolver)
# ```
#
# The compiler XLA turns a whole step into one program for the TPU. So all shapes must be known beforehand
# (`drop_remainder=True`), Python functions cannot be called inside, and the data must be in cloud storage or come from
# the host. Without a TPU:

# %%
try:
    tf.distribute.cluster_resolver.TPUClusterResolver()
    print("there is a TPU")
except ValueError as error:
    print("ValueError:", str(error).splitlines()[0])

# %% [markdown]
# ### 7. Estimators and Mesh TensorFlow
#
# Older texts name two more ways to distribute.
#
# **Estimators** (2017 to 2023) were TensorFlow 1's training API: a `model_fn` builds a graph for training, evaluation
# or prediction, and `train_and_evaluate` runs it, with `TF_CONFIG` and parameter servers underneath. The role
# `evaluator` in `TF_CONFIG` comes from them. `Model.fit` with a strategy replaced them, and a custom loop where `fit`
# is not enough. They were removed after TensorFlow 2.15.
#
# **Mesh TensorFlow** (2018) was a language for model parallelism: devices form a mesh, the dimensions of tensors have
# names, and a layout says which dimension is divided along which axis of the mesh. The idea lives on in TensorFlow's
# DTensor, and above all in JAX, whose shardings are such layouts. Notebook 12, model parallelism, uses DTensor.

# %% [markdown]
# ## Part 2: Keras 3
#
# ### 8. Which strategy works with what
#
# TensorFlow's guide has long had a table "strategy × training API". Here it is measured again: each cell is a program
# that ran in a separate process, its weights compared with those of the default strategy (`make support-table` does it
# again on your machine).
#
# **Predict.** Which cells fail with Keras 3, which with legacy Keras?

# %%
table = strategy_support.read(PROGRAMS / "support_table.json")
Markdown(strategy_support.markdown(table))

# %% [markdown]
# What does not work, and why:
#
# - **`MultiWorkerMirroredStrategy` with two workers, `fit`, Keras 3.** Its `fit` was written for replicas in one
#   process. It expects a tensor but gets a `PerReplica` object, with one value per replica, and cannot convert it. With
#   one worker it works, so a test with one worker does not find it.
# - **`ParameterServerStrategy`, Keras 3.** Its `fit` does not know the coordinator. In a loop all gradients reach the
#   weights, but the optimizer's own counter loses updates of workers that write at the same time.
# - **Horovod, Keras 3.** `DistributedOptimizer` expects TensorFlow's variables, and Keras 3 has its own.
# - **`TPUStrategy`.** There is no device here; the table says nothing about the strategy.
#
# The cells that fail with Keras 3 link to section 9. Here is what the guide said then, and what was measured now:

# %%
Markdown(strategy_support.then_and_now(table))

# %% [markdown]
# **What to use when.** One machine: `MirroredStrategy`, with either Keras. (The table was measured with a small dense
# network on CPU devices. On several GPUs older versions of Keras 3 need `jit_compile=False`:
# [keras#18627](https://github.com/keras-team/keras/issues/18627).) Several machines: with
# legacy Keras `MultiWorkerMirroredStrategy` and `fit`; with Keras 3 a custom loop. Parameter servers: legacy Keras.
#
# ### 9. Keras 3
#
# This course runs on legacy Keras because of the cells that fail. Your next project may run on Keras 3. With several
# processes, ask: *who adds up the gradients?*
#
# - `MultiWorkerMirroredStrategy`: the optimizer's `apply`. `fit` fails before it; a custom loop works.
# - Horovod: nobody, unless your optimizer does.
# - `ParameterServerStrategy`: nobody has to. In a loop every gradient arrives, but avoid what reads the optimizer's
#   counter: schedules and Adam.
#
# Here are the loop of `programs/08_other_strategies/keras_3.py` and the optimizer of
# `programs/09_horovod/train_keras3.py`:

# %%
horovod_3 = PROGRAMS.parent / "09_horovod" / "train_keras3.py"
display(programs.show(PROGRAMS / "keras_3.py", "trained"), programs.show(horovod_3, "AveragingSGD"))

# %% [markdown]
# #### One all-reduce too many
#
# The loop divides each loss by the *global* batch size. So the *sum* of the workers' gradients is the mean over the
# batch, and `apply` forms this sum. If you come from Horovod, or want to clip the whole gradient, you may put another
# all-reduce before it. Legacy Keras can then leave out its own (`skip_gradients_aggregation=True`); Keras 3 cannot.
#
# The program trains with SGD and with Adam. Each time `apply` gets the gradients in three ways: as they are, added up
# before (`SUM`), averaged before (`MEAN`). At the end the program tries `fit`.
#
# **Predict.** Two workers, 20 steps: which of the six runs differ from serial training, and in which of them would the
# loss tell you?

# %% tags=["varies"]
with tempfile.TemporaryDirectory() as scratch:
    file = Path(scratch) / "weights.npz"
    arguments = ["--dataset", dataset, "--weights", file]
    run = launch.tensorflow(PROGRAMS / "keras_3.py", *arguments, workers=2, result=True, **how)
    saved = dict(np.load(file))
print(f"{run.seconds:.0f} s")

# %%
train_3 = programs.module(PROGRAMS / "keras_3.py")
options = train_3.parse(["--dataset", dataset])
rates = {"SGD": options.sgd, "Adam": options.adam}
print("                       distance from serial,    loss of the")
print("optimizer, gradients   % of distance trained      last step")
for name, of_keras_3 in train_3.OPTIMIZERS.items():
    first, last = train_3.serial(options, of_keras_3(rates[name]))
    for way in (f"{name}, {way}" for way in train_3.WAYS):
        share = np.linalg.norm(saved[way] - last) / np.linalg.norm(last - first)
        print(f"{way:22} {share:21.1%} {run.result['losses'][way][-1]:14.3f}")
print("fit:", run.result["fit"])

# %% [markdown]
# Added up before, `apply` gets the whole gradient from *each* worker and adds these up again: of $n$ workers, the
# gradient $g$ becomes $n g$. For SGD that is a learning rate $n$ times as large. Adam divides $m$, a mean of gradients,
# by the root of $v$, a mean of their squares. With $n g$ for $g$ its step is
#
# $$\eta \, \frac{n m}{\sqrt{n^2 v} + \varepsilon} = \eta \, \frac{m}{\sqrt{v} + \varepsilon / n}.$$
#
# The factor cancels, except for the tiny $\varepsilon$ that prevents a division by zero: the loss looks the same. With
# SGD it may even fall faster, so nothing looks wrong until the rate is too large. Comparing weights finds both. Both
# explanations can be tested on one device:

# %%
sgd, adam = train_3.OPTIMIZERS["SGD"], train_3.OPTIMIZERS["Adam"]
_, twice_the_rate = train_3.serial(options, sgd(2 * options.sgd))
print("SGD, added before, and SGD with twice the learning rate on one device:", end=" ")
checks.assert_equal_weights([saved["SGD, added before"]], [twice_the_rate])
for epsilon in (1e-7, 1e-16):
    once, twice = (train_3.serial(options, adam(options.adam, epsilon=epsilon), scale)[1] for scale in (1, 2))
    print(f"Adam, ε = {epsilon:g}: a doubled loss changes the weights by up to {np.abs(twice - once).max():.3f}")

# %% [markdown]
# ### 10. `keras.distribution`
#
# Keras 3 has its own interface to data and model parallelism: `DataParallel`, and `ModelParallel` with a
# `LayoutMap` from the paths of variables to their splits. The
# [guide](https://keras.io/guides/distribution/) names JAX and PyTorch as backends. This course has TensorFlow.
#
# `programs/08_other_strategies/keras_distribution.py` trains with `fit` on four devices, and a probe layer in the
# network records which devices compute. `MirroredStrategy` is the control. The right half shows what the program
# recorded on JAX, which the course does not install.
#
# **Predict.** What does `ModelParallel` do on TensorFlow: split, fail, or nothing?

# %%
variables = {"OMP_NUM_THREADS": "1"}  # as the two workers had: the launcher can then use their interpreter again
here = launch.alone(PROGRAMS / "keras_distribution.py", echo=False, result=True, environment=variables).result
recorded = json.loads((PROGRAMS / "keras_distribution_jax.json").read_text())


def parts(run):
    """How many devices have a part of the kernel and of the batch, and its shape."""
    texts = [f"{len(run[what])} × {tuple(run[what][0][1])}" for what in ("kernel", "batch")] if run else ["", ""]
    return "".join(f"{text:15}" for text in texts)


print(f"{'':32}TensorFlow: kernel, batch     JAX: kernel, batch")
for name, run in here["runs"].items():
    print(f"{name:32}{parts(run)}{parts(recorded['runs'].get(name))}".rstrip())
print("calls that fail on TensorFlow:", *(f"\n  {what}" for what, error in here["errors"].items() if error))
versions = ", ".join(f"{name} {version}" for name, version in recorded["versions"].items())
print(f"JAX: recorded on {recorded['measured']} with {versions}; {recorded['machine']}")

# %% [markdown]
# On TensorFlow the layouts of variables are accepted and ignored. One device does everything, the result is right, and
# the others idle; only some calls fail. On JAX a key that is only part of a path, `hidden/kernel`, matches nothing, and
# Keras gives no warning: write `.*hidden/kernel`.
#
# **Question.** Four workers; a loop in Keras 3 does `all_reduce("SUM")`, clips that gradient's norm and calls `apply`.
# What makes it right?
#
# 1. Adam.
# 2. A quarter of the learning rate.
# 3. Dividing the clipped gradient by <code>num_replicas_in_sync</code>.
# 4. Nothing: one worker equals serial training.
#
# <details>
# <summary>Answer</summary>
#
# 1. It hides the factor until somebody changes the optimizer.
# 2. Right for SGD, and wrong again with eight workers.
# 3. **Right.** <code>apply</code> adds up four equal quarters.
# 4. A sum over one hides every factor.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("08")

# %% [markdown]
# ## Recap
#
# - A strategy says where variables live and who waits before they change.
# - `OneDeviceStrategy`, `CentralStorageStrategy` and, in order, parameter servers equal one device.
# - The mean staleness is at most the number of other workers; a slow worker's gradients are staler.
# - Staleness limits the learning rate.
# - Synchronous training has the slowest pace; asynchronous rates add.
# - On a slow network one parameter server is the bottleneck.
# - Backup workers keep training synchronous and remove most of the waiting for random stragglers.
# - With several machines `fit` needs legacy Keras; with Keras 3 a loop works.
#
# **Next.** [Lab 08](../labs/08_other_strategies/lab.ipynb), [09 Horovod](09_horovod.ipynb).
#
# **Sources.**
# - Li et al. (2014), [*Scaling distributed machine learning with the parameter
#   server*](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu), OSDI.
# - Chen et al. (2016), *Revisiting distributed synchronous SGD*, [arXiv:1604.00981](https://arxiv.org/abs/1604.00981).
# - Mitliagkas et al. (2016), *Asynchrony begets momentum*, [arXiv:1605.09774](https://arxiv.org/abs/1605.09774).
# - Shazeer et al. (2018), *Mesh-TensorFlow*, [arXiv:1811.02084](https://arxiv.org/abs/1811.02084).
# - Cheng et al. (2017), *TensorFlow Estimators*, [arXiv:1708.02637](https://arxiv.org/abs/1708.02637).
