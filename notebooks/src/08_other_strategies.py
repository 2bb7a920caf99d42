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
# **Goal.** Know every strategy of `tf.distribute`, train with parameter servers, see what a stale gradient and a dead
# process do, and decide between synchronous and asynchronous training by numbers.
#
# **Time.** 35 minutes to read, about a minute to run.
#
# **Before this.** [03 mirrored strategy](03_mirrored_strategy.ipynb),
# [04 custom training loop](04_custom_training_loop.ipynb),
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb) and [07 multi-worker](07_multi_worker.ipynb).
#
# **Questions.**
# - Why would anybody want a parameter server?
# - Where does each strategy keep the variables, and who updates them when?
# - How stale is a gradient, and what does that cost?
# - What happens when a worker dies, and when a server dies?
# - What do people use today?
#
# **Hardware.** Two CPU cores. Parameter servers and workers are processes on this machine.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 1,280 images are used
epochs = 2  # of 40 gradients each, in sections 4 and 5
workers = 2  # replicas in section 2; worker processes in sections 3 to 5, 2 or 3

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, collectives, data, devices, draw, launch
from distlab import models, profiling, programs, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")  # TensorFlow would log every strategy and reduction
tf.keras.utils.set_random_seed(8)
PROGRAMS = Path("programs/08_other_strategies")
team = min(max(workers, 2), 3)
how = {"start_seconds": 300, "echo": False}
train = data.load(dataset).train
print(data.describe(dataset))

# %% [markdown] tags=["slide-text", "slide-points"]
# ## 1. Why a parameter server?
#
# In chapters 03 and 07 every device has a copy of all variables, and every step waits for every worker. In the early
# 2010s two needs did not fit that:
#
# - **Machines that differ and disappear.** Large clusters were hundreds of shared CPU machines. One slow machine slows
#   every synchronous step, and one lost machine ends it.
# - **Tables that fit nowhere.** A recommender has a row of numbers for every user and every article. Together they may
#   need more memory than any device has, and a step needs only a few rows.
#
# The answer to both is to take the variables out of the workers. **Parameter servers** hold them. A worker asks for
# what it needs, computes a gradient, sends it and goes on. Nobody waits for anybody.

# %% [markdown] tags=["slide-table"]
# ## 2. Two questions sort the strategies
#
# *Where are the variables*, and *who waits for whom before they change*?
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
# **Synchronous**: all gradients of a step are added before a weight changes. **Asynchronous**: each worker's gradient
# changes the weights when it arrives.

# %% [markdown] tags=["slide-predict"]
# `OneDeviceStrategy` helps to find an error without changing the program.
#
# `CentralStorageStrategy` has each variable once, on the *parameter device*, usually the CPU. In each step every
# replica reads it and sends its gradient back. It helps with embedding tables that do not fit on a GPU, and is still
# experimental.
#
# **Predict.** The graph of a step says who sends what to whom, as in [chapter 03](03_mirrored_strategy.ipynb). The
# parameter device adds the gradients. Does the sum travel back to the replicas?

# %% tags=["varies", "slide-output"]
names = devices.at_least(max(workers, 2) + 1)
holder, computing = names[0], names[1 : workers + 1]
central = tf.distribute.experimental.CentralStorageStrategy(computing, parameter_device=holder)
with central.scope():
    variable, optimizer = tf.Variable(1.0), tf.keras.optimizers.SGD(0.1)
    optimizer.build([variable])


@tf.function
def update():
    def replica():
        with tf.GradientTape() as tape:
            loss = variable**2
        optimizer.apply_gradients([(tape.gradient(loss, variable), variable)])

    central.run(replica)


graph = update.get_concrete_function().graph
for _, source, destination in profiling.messages.between_devices(graph, names):
    print(f"message: {names[source]} → {names[destination]}")
update()
print(f"1 − 0.1 · (the sum of {workers} gradients of 2) = {float(variable):.1f}")

# %% [markdown] tags=["slide-takeaway"]
# No sum travels back: the parameter device applies it, and in the next step every replica reads the new value. (Those
# messages are not in the list, because TensorFlow places reads only when the step runs.) So the traffic of this device
# grows with the number of replicas.
#
# `OneDeviceStrategy` and `CentralStorageStrategy` are synchronous, so both must give the weights of a plain `fit`: same
# first weights, same batches, 20 SGD steps.


# %%
def trained(strategy):
    batch = 64 // workers * workers
    index = np.arange(20 * batch) % 1280
    tf.keras.utils.set_random_seed(8)
    with strategy.scope():
        model = models.mlp(dropout=0.0)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(tf.keras.optimizers.SGD(0.1), loss)
    images, labels = train.images[index], train.labels[index]
    model.fit(images, labels, batch_size=batch, shuffle=False, verbose=0)
    return model.get_weights()


serial = trained(tf.distribute.get_strategy())
for strategy in (tf.distribute.OneDeviceStrategy(computing[0]), central):
    print(type(strategy).__name__, end=": ")
    checks.assert_equal_weights(trained(strategy), serial)

# %% [markdown] tags=["slide-picture"]
# ## 3. A whole program, with `fit`
#
# A cluster with parameter servers has three jobs. A **parameter server** (`ps`) stores variables and applies updates. A
# **worker** computes gradients. The **chief**, also called coordinator, is not a worker here: it runs the program, and
# puts steps into a queue; each free worker takes the next one.
#
# ![Roles in a parameter-server cluster: a chief hands out steps to three workers; each worker reads the variables from
# two parameter servers and writes gradients to both; beside it a TF_CONFIG](../figures/08_parameter_server_roles.svg)
#
# All processes run the same file and read their job from TF_CONFIG. Workers and servers only serve. Here `fit` always
# needs `steps_per_epoch`, and a dataset needs its own `.repeat()`. The data are arrays, a `tf.data.Dataset` or, as
# here, a `DatasetCreator`, whose function each worker calls once: for *all* digits, in its own order.

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# In a terminal: `distlab launch --workers 2 --parameter-servers 1 minimal.py`. Here a function does the same:

# %% tags=["varies"]
run = launch.tensorflow(PROGRAMS / "minimal.py", workers=team, parameter_servers=1, **how)
print(run.output["chief"])

# %% [markdown]
# `steps_per_epoch` counts the gradients of *all* workers, so an epoch has 100 updates, however many workers share them.
# `fit` refuses callbacks at the beginning or the end of a *batch*, since the chief does not wait for any step.
#
# `fit` uses a **`ClusterCoordinator`** object in the chief. A custom loop calls it directly:
#
# ```python
# coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
# results = [coordinator.schedule(step, args=(...)) for _ in range(80)]  # returns at once
# coordinator.join()  # waits until all are done
# values = coordinator.fetch(results)
# ```

# %% [markdown]
# ## 4. How stale is a gradient?
#
# Time passes between reading the weights and updating them, and other workers update. The **staleness** of a gradient
# is the number of updates by others in between. `parameter_server.py` measures it in the step that it schedules. A
# counter on a server is the *version* of the weights:

# %%
programs.show(PROGRAMS / "parameter_server.py", "Trainer.step")

# %% [markdown] tags=["slide-predict"]
# The function `later` delays each gradient by a *sleep* of 50 ms. It simulates computing on the worker's own device and
# needs no core. One launch has five runs: `distlab launch --workers 2 --parameter-servers 2 parameter_server.py`
#
# - `in_order`: 20 gradients without sleep, each scheduled when the one before is done;
# - `equal`: all gradients at once in the queue;
# - `slow`: the same, but the last worker sleeps 200 ms;
# - `lost_worker` and `lost_server` are for section 5.
#
# **Predict.** Two equal workers, and neither waits. How stale is a typical gradient: 0, 1 or 2? And one of the slow
# worker?

# %% tags=["varies"]
folder = tempfile.TemporaryDirectory()
arguments = ["--gradients", 40 * epochs, "--dataset", dataset, "--folder", folder.name]
how |= {"parameter_servers": 2, "may_lose": True, "result": True}
program = PROGRAMS / "parameter_server.py"
run = launch.tensorflow(program, *arguments, workers=team, **how)
measured = run.result["runs"]
with np.load(Path(folder.name) / "weights.npz") as file:
    saved = list(file.values())
folder.cleanup()
print(f"{run.seconds:.0f} s")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
simulation = programs.module(PROGRAMS / "simulated_training.py")
figure, rows = plt.subplots(2, 2, figsize=(7.2, 4.2), sharex="row", sharey="row")
lines = ["run    from       worker  gradients  mean staleness"]
for row, name in zip(rows, ("equal", "slow"), strict=True):
    ran = measured[name]
    virtual = simulation.staleness(ran["seconds_per_gradient"], ran["scheduled"])
    kinds = {"measured": np.array([ran["worker"], ran["staleness"]]), "simulated": virtual}
    bars = max(stale.max() for _, stale in kinds.values()) + 1
    for axes, (kind, (by, stale)) in zip(row, kinds.items(), strict=True):
        own = [stale[by == worker] for worker in range(team)]
        look = {"hatch": draw.HATCHES[:team], "edgecolor": "white", "stacked": True}
        look |= {"label": [f"worker {worker}" for worker in range(team)], "rwidth": 0.8}
        axes.hist(own, np.arange(bars + 1) - 0.5, **look)
        for worker, part in [*enumerate(own), ("all", stale)]:
            mean = part.sum() / max(len(part), 1)
            lines.append(f"{name:6} {kind:10} {worker:>6} {len(part):>10} {mean:>15.2f}")
        axes.set(title=f"{name}, {kind}", xlabel="staleness", xticks=range(bars))
    row[0].set_ylabel("gradients")
figure.legend(*rows[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=team)
text = "Bar charts of the staleness of the gradients: "
draw.show(figure, text + "equal and slow workers, measured and simulated.")
print("\n".join(lines))

# %% [markdown] tags=["slide-takeaway"]
# Typically 1, and about 4 for the slow worker. **Over all gradients the mean is the number of other workers**, $w - 1$,
# whatever the speeds (rows *all*). While
# worker A computes one gradient after the other, every update of worker B falls into exactly one of A's gradients and
# makes it staler by one. The mean is a little lower, because the first updates have few before them, and because a
# worker that pauses catches nothing meanwhile.
#
# A slow worker changes *who* is stale. If it needs $k$ times as long, it catches about $k$ updates of each other
# worker.
#
# The simulation on the right runs on the virtual cluster of [chapter 06](06_collectives_and_ring_all_reduce.ipynb).
# This is its server:

# %%
programs.show("../src/distlab/collectives/parameter_server.py", "_serve")

# %% tags=["varies"]
equal = measured["equal"]
possible, rate = team / 0.05, equal["scheduled"] / equal["seconds"]
print(f"{team} workers that sleep 50 ms could apply {possible:.0f} gradients per second.")
print(f"The cluster applied {rate:.1f}: all but the sleep costs {1 - rate / possible:.0%}.")
slow = 1 + 0.15 * rate / team
print(f"So the slow worker takes {slow:.1f} times as long as another, not {0.2 / 0.05:.0f}.")

# %% [markdown]
# What is not sleep goes into the gradient itself, into the chief, which wakes up for each one, and into the messages
# between servers and workers.
#
# ### Where the variables are
#
# The program gives the strategy a **partitioner**: `MinSizePartitioner(64 << 10, max_shards=2)` cuts a variable along
# its first axis: one piece for each 64 KiB begun, but at most two. Variables and pieces go to the servers in turn:

# %%
for name, shape, device in run.result["variables"]:
    server = device.split("task:")[1][0]
    print(f"ps {server}: {name:22} {shape!s:10} {4 * np.prod(shape):>9,} bytes")

# %% [markdown]
# Each server has about half of the bytes and of the traffic. A dense kernel travels whole in every step. Of an
# embedding only the rows that a batch names travel, and its gradient is a list of rows (`tf.IndexedSlices`): that is
# what parameter servers are good at.
#
# In the run `in_order` no gradient can be stale. So the cluster must give what `fit` gives in this kernel:

# %%
tf.keras.utils.set_random_seed(8)  # the program's seed
model = models.mlp(dropout=0.0)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.SGD(0.03), loss)  # the program's rate
index = np.arange(20 * 32) % 1280
model.fit(train.images[index], train.labels[index], batch_size=32, shuffle=False, verbose=0)
print("staleness in order:", set(measured["in_order"]["staleness"]))
whole = [np.concatenate(saved[:2]), *saved[2:]]  # the two halves of the kernel
checks.assert_equal_weights(whole, model.get_weights())

# %% [markdown] tags=["slide-quiz"]
# **Question.** Eight equal workers and one parameter server. What is the mean staleness, and what is it with four
# servers?
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
# 3. This confuses a server with a group of workers. Every worker talks to all servers.
# 4. It hands them out immediately; only `in_order` waited.
# </details>

# %% [markdown]
# ## 5. A worker dies, a server dies
#
# In the last two runs the chief kills a process when half of the gradients are applied: the last worker in
# `lost_worker`, the last server in `lost_server`.

# %%
programs.show(PROGRAMS / "parameter_server.py", "Trainer.kill")

# %% [markdown] tags=["slide-predict"]
# **Predict.** Under `MultiWorkerMirroredStrategy` one lost worker ends the job ([chapter
# 13](13_fault_tolerance.ipynb)). What happens here to the gradient that the lost worker was computing? And can the
# others go on without a server?

# %% tags=["varies", "slide-output"]
print("exit codes:", {name: code for name, code in run.exit_codes.items() if code})
lost = measured["lost_worker"]
print("lost_worker:", lost["scheduled"], "gradients scheduled,", lost["updates"], "updates")
for worker, count in enumerate(np.bincount(lost["worker"], minlength=team)):
    print(f"    by worker {worker}: {count}")
print("lost_server:", measured["lost_server"].get("error", "it died after the last gradient"))

# %% [markdown] tags=["slide-takeaway"]
# **A lost worker** costs only its share of the speed: the coordinator notices that the connection is closed, puts the
# gradient back into the queue, and another worker takes it. If the worker had died *during* or after its update and
# before its answer, a part of the gradient or all of it would count twice: `schedule` promises "at least once". A
# restarted worker may join again.
#
# **A lost server** takes its variables with it. The coordinator tries a few times, then `join` raises
# `UnavailableError`. Start the job again from the chief's last checkpoint ([chapter 13](13_fault_tolerance.ipynb)). The
# same holds for a lost chief.

# %% [markdown]
# ## 6. What staleness and waiting cost, simulated
#
# In `simulated_training.py` eight workers of the virtual cluster train a small network in NumPy, 10 ms per gradient.

# %% [markdown] tags=["slide-predict"]
# **Staleness** has a price. The same 320 gradients with the same learning rate: by one worker, whose gradients are
# fresh; by eight asynchronous workers; and by eight synchronous ones, whose step is along the sum of eight gradients
# (that of the mean, as in chapters 03 to 07, at eight times the rate). Each loss is the mean over three seeds.
#
# **Predict.** Which of the three tolerates the largest learning rate?

# %% tags=["slide-output"]
problem = simulation.Classifier(dataset)
print("learning rate         1 worker     8 asynchronous      8 synchronous")
for rate in (0.05, 0.15, 0.5):
    texts = []
    for of_seeds in map(np.array, simulation.losses(problem, rate).values()):
        diverged = np.sum(~np.isfinite(of_seeds))
        texts.append(f"{diverged} of 3 diverged" if diverged else f"{of_seeds.mean():.2f}")
    print(f"{rate:>13} {texts[0]:>16} {texts[1]:>18} {texts[2]:>18}")

# %% [markdown] tags=["slide-takeaway"]
# One worker: at a rate that it tolerates, both eight-worker runs diverge. At small rates the price is small. The
# synchronous step is eight times as large, and a gradient that is seven updates old limits the rate about as much.
# Staleness limits the learning rate ([chapter 01](01_why_distribute.ipynb) computes by how much). It also acts like
# momentum, so with momentum in the optimizer the limit is lower still (Mitliagkas et al.).
#
# **Waiting** has a price too. Below, one of eight workers is $k$ times slower, on three networks. The number is the
# time for 192 gradients by a ring, divided by the time by one asynchronous server. Above 1, asynchronous applies more
# gradients per second; their staleness is not counted.
#
# **Predict.** From which $k$ on is it above 1 on a fast network? Is that $k$ larger or smaller on a slow one?

# %%
factors = (1, 1.5, 2, 3, 4, 8)
print("network      k =", *(f"{factor:>5}" for factor in factors))
ratios = {}
for name, network in simulation.NETWORKS.items():
    ratios[name] = [simulation.times_longer(network, slower) for slower in factors]
    print(f"{name:16}", *(f"{ratio:>5.2f}" for ratio in ratios[name]))

# %% jupyter={"source_hidden": true} tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3))
for name, values in ratios.items():
    axes.loglog(factors, values, label=name)
axes.axhline(1, color="black", linewidth=0.8, linestyle="-", marker="")
ratio = "time synchronous ÷ asynchronous"
axes.set(xlabel="slow factor k of one worker in eight", ylabel=ratio)
axes.set_xticks(factors, factors)
axes.set_yticks((0.5, 1, 2, 4), (0.5, 1, 2, 4))
axes.minorticks_off()
figure.legend(loc="outside upper center", ncols=3)
text = "Three rising lines: how many times longer synchronous training takes, "
draw.show(figure, text + "by the slow factor.")

# %% [markdown] tags=["slide-takeaway"]
# If $w$ workers need $t_1, \dots, t_w$ seconds per gradient, synchronous training applies $w / \max t_i$ gradients per
# second: it has the pace of the slowest. Asynchronous rates add up: $\sum 1 / t_i$. With one slow worker of eight the
# ratio is $(7k + 1)/8$. On the two fast networks it is above 1 from the first delay on; at 1 Gbit/s even without one,
# for the ring has 14 latencies per step.
#
# On the slow network the *synchronous* way wins until one worker is two to three times slower. All eight gradients and
# all eight answers pass one server's port, while the ring spreads them over all links. More servers help. With many
# more weights the first network, too, would be slow.
#
# **Question.** The slow worker is always the same one. You stay synchronous and give it fewer images per step. What
# happens?
#
# 1. Nothing, the step still waits for it.
# 2. The step becomes nearly as short as with equal workers.
# 3. Its gradients become stale.
#
# <details>
# <summary>Answer</summary>
#
# 1. It waits less: the slow worker has less to compute.
# 2. **Right.** The others take over its images, so a step takes $8/(7 + 1/k)$ times as long as with equal workers: at
#    most a seventh longer. The gradient must then weight every image, not every worker, equally.
# 3. No gradient is stale in a synchronous step.
# </details>

# %% [markdown] tags=["slide-predict"]
# **Workers that are slow by chance.** Now all are equal, but one gradient in twenty takes ten times as long. A
# synchronous step waits if at least one of eight workers is unlucky, which happens in $1 - 0.95^8 = 34\,\%$ of all
# steps.
#
# Chen et al. (2016) stay synchronous but start $b$ more workers than they need. A step takes the first 8 gradients of
# $8 + b$ and drops the rest. (Here the late workers stop at once, and all start the next step together.) No gradient is
# stale.
#
# **Predict.** How many **backup workers** remove most of the waiting?

# %% tags=["slide-output"]
mean = 0.95 * 0.01 + 0.05 * 0.1
print(f"asynchronous: {1 / mean:.0f} gradients/s per worker")
for backups in range(4):
    seconds, used = simulation.mean_step(backups), 8 / (8 + backups)
    print(f"backups {backups}: {1000 * seconds:4.1f} ms per step,", end=" ")
    print(f"{1 - used:3.0%} dropped, {used / seconds:2.0f} gradients/s per worker")

# %% [markdown] tags=["slide-takeaway"]
# One backup worker removes most of the waiting and costs a ninth of the work. The last column counts both: two are
# best, and as fast as asynchronous training. In Chen et al. a late worker first finishes its gradient, which is dropped
# when it arrives; so it misses the next steps too, and you need more backups.
#
# They help against workers that are slow *by chance*: one that is always slow is always dropped, with its share of the
# data. Today's strategies have no switch for them. Look for the cause instead ([chapter 13](13_fault_tolerance.ipynb),
# a straggler).

# %% [markdown] tags=["slide-table"]
# ## 7. What to use today
#
# | you have | take |
# |---|---|
# | GPUs of one machine, or a TPU | `MirroredStrategy`, `TPUStrategy` |
# | several machines | synchronous, with an all-reduce: chapters 07, 09 and 14 |
# | one machine that is always slower | synchronous, with fewer images for it |
# | pre-emptible machines | synchronous; save on notice and requeue, or elastic: [13](13_fault_tolerance.ipynb) |
# | tables too large for any device | parameter servers, or an embedding that is divided over the devices |
#
# Older texts advise asynchronous training where machines differ or disappear. Since then training moved to equal GPUs,
# and jobs learned to save on notice and restart. No test can compare an asynchronous run with serial training.

# %% [markdown] tags=["slide-takeaway"]
# **The author's word.** In December 2024 Keras's author François Chollet called parameter servers "basically never the
# right idea", even with several machines, and advised Keras 3 with JAX and `keras.distribution`
# ([keras#20585](https://github.com/keras-team/keras/issues/20585)).
#
# So learn parameter servers to read older programs and papers, for recommenders, and because staleness comes back: in
# asynchronous reinforcement learning and in pipelines.

# %% [markdown]
# **Question.** On 64 equal GPUs with a fast network, a colleague turns to parameter servers "since nobody waits there".
# What do you answer?
#
# 1. Good: 64 workers never wait.
# 2. There is nothing to wait for, and the staleness of 63 requires a smaller learning rate.
# 3. The loss will be the same after the same number of gradients.
#
# <details>
# <summary>Answer</summary>
#
# 1. With equal workers there is almost nothing to wait for.
# 2. **Right.** And every update passes the servers.
# 3. At small learning rates only.
# </details>

# %% [markdown]
# > **Box: TPUs.** A TPU (Tensor Processing Unit) is Google's processor for matrix products. On today's TPU VMs the
# > program runs on the machine that has the TPU:
# >
# > ```python
# > resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu="local")
# > tf.config.experimental_connect_to_cluster(resolver)
# > tf.tpu.experimental.initialize_tpu_system(resolver)
# > strategy = tf.distribute.TPUStrategy(resolver)
# > ```
# >
# > The compiler XLA turns a step into one program, so shapes must be fixed (`drop_remainder=True`). Without a TPU the
# > third line raises `NotFoundError`.
#
# > **Box: two older names.** **Estimators** (2017 to 2023) were TensorFlow 1's training API, with TF_CONFIG and
# > parameter servers inside; `Model.fit` with a strategy replaced them. **Mesh TensorFlow** (2018) was a language for
# > model parallelism. Its meshes and layouts live on in DTensor ([chapter 12](12_model_parallelism.ipynb)) and in JAX's
# > shardings.

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
# - Parameter servers hold the variables, workers compute, the chief hands out steps; `fit` takes `steps_per_epoch`.
# - The mean staleness is the number of other workers, at most; staleness limits the learning rate.
# - A lost worker's steps are done by others; a lost server ends the job.
# - Synchronous training has the pace of its slowest worker; asynchronous rates add up.
# - Today: synchronous, also on pre-emptible machines.
#
# **Next.** [Lab 08](../labs/08_other_strategies/lab.ipynb), [08b Keras 3](08b_keras_3.ipynb), [09
# Horovod](09_horovod.ipynb).
#
# **Sources.**
# - TensorFlow: [Parameter server
#   training](https://www.tensorflow.org/tutorials/distribute/parameter_server_training),
#   [ClusterCoordinator](https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/coordinator/ClusterCoordinator).
# - Li et al. (2014), [*Scaling distributed machine learning with the parameter
#   server*](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu), OSDI.
# - Chen et al. (2016), *Revisiting distributed synchronous SGD*, [arXiv:1604.00981](https://arxiv.org/abs/1604.00981).
# - Mitliagkas et al. (2016), *Asynchrony begets momentum*, [arXiv:1605.09774](https://arxiv.org/abs/1605.09774).
# - Shazeer et al. (2018), *Mesh-TensorFlow*, [arXiv:1811.02084](https://arxiv.org/abs/1811.02084).
