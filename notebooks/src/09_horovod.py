# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown] tags=["needs-horovod"]
# # 09 Horovod
#
# **Goal.** Turn a serial program into a Horovod program in eight steps, prove that it trains the same model, and
# notice which step somebody has forgotten.
#
# **Time.** 45 minutes to read, two minutes to run.
#
# **Before this.** [04 custom training loop](04_custom_training_loop.ipynb),
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb) and [07 multi-worker](07_multi_worker.ipynb).
#
# **Questions.**
# - What are rank, local rank and size, and which process has which device?
# - Which eight changes does a serial program need, with a tape, with Keras, with Keras 3?
# - What happens when you forget one of them, and how do you notice it?
# - What do tensor fusion, compression, gradient accumulation and Adasum do?
#
# **Hardware.** Two processor cores. Ranks are processes of this machine. On other hosts the programs stay the same and
# the command line changes; on GPUs Horovod itself must also be built for NCCL, which set-up does not do.

# %% [markdown]
# **Horovod in 2026.** The last release, 0.28.1, is from June 2023. It is older than Keras 3 and was not made for
# today's TensorFlow: start a new project with `tf.distribute` or PyTorch. Why learn it? Many programs on clusters use
# it, it says in eight steps what others do out of sight, and its ideas live on: the ring, tensor fusion, the timeline,
# one process per device.
#
# **What is built here.** Set-up compiles it for processors, with MPI and Gloo, after three small edits. For fast GPU
# collectives it needs a build with `HOROVOD_GPU_OPERATIONS=NCCL`; what the text says about GPUs was not run.
#
# **Why it beat parameter servers.** There all gradients pass through the servers' links, and users must choose their
# number. A ring loads every link alike. On 128 GPUs its authors report about 88 % efficiency, and 50 % with
# parameter servers.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; at most 1,280 images are used
epochs = 1  # of the runs in sections 4 and 6
workers = 2  # ranks that run cells: 2, or 4 for 4 and more; the proof has 2 and 4 ranks

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import tempfile
from functools import partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import display

from distlab import checks, collectives, data, draw, launch, models, programs, quizzes
from distlab.simulate import World

launch.require_horovod()
draw.apply_style()
tf.get_logger().setLevel("ERROR")
PROGRAMS = Path("programs/09_horovod")
print(data.describe(dataset))

# %% [markdown] tags=["slide-picture"]
# ## 1. One process per device
#
# TensorFlow's `MirroredStrategy` has *one* process that drives all devices of a host. Horovod has **one process per
# device**: on a host with four GPUs, four processes, each of which sees one GPU. Between hosts nothing changes.
#
# ![One process for all devices of a host, and one process for each device](../figures/09_processes_and_devices.svg)
#
# | | `MirroredStrategy` | `MultiWorkerMirroredStrategy` | Horovod |
# |---|---|---|---|
# | processes | one | one per host, usually | one per device |
# | who they are | – | TF_CONFIG says it | the launcher says it |
# | the program sets | the global batch | the global batch | its own batch |
# | who averages gradients | the strategy | the strategy | a wrapped tape or optimizer |
#
# A Horovod program is an ordinary program for one device that is started several times, plus a few calls.

# %% [markdown] tags=["slide-picture"]
# Each process gets numbers. The **size** is the number of processes, the **rank** its number among all of them, from
# 0. The **local rank** is its number on its own host, the **local size** how many there are; the **cross rank** is the
# number of the host.
#
# ![Four processes on two hosts: rank 2 is local rank 0 of the second host](../figures/09_rank_and_local_rank.svg)
#
# **Predict.** Two hosts with four GPUs each. Which local rank, and so which GPU, has rank 6?
#
# To *look* at ranks, this notebook starts some that wait: engines of ipyparallel, which MPI starts as a job. A cell
# that begins with `%%px` then runs on every rank at the same time, not in this kernel.

# %%
team = 4 if workers >= 4 else 2
ranks = launch.start_engines(team)
print(f"{len(ranks.view)} ranks are waiting")

# %%
# %%px
import os
import sys

os.environ["HOROVOD_DYNAMIC_PROCESS_SETS"] = "1"  # for section 2
import numpy as np

import distlab
import horovod.tensorflow as hvd
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
hvd.init()
print(f"rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()} of {hvd.local_size()}")

# %% [markdown] tags=["slide-text", "slide-predict"]
# (Rank 6 of the prediction is local rank 2, GPU 2 of the second host.) `hvd.init()` is where the processes meet. From
# then on each call of a collective must be made by *all* ranks.
#
# **Question.** The program is started with `python train.py`, without a launcher. What is `hvd.size()`?
#
# 1. An error.
# 2. The number of GPUs.
# 3. It is 1.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: Horovod runs as one rank.
# 2. No. Horovod starts no process and divides no device; the launcher does.
# 3. **Right.** Started twice, there are two jobs of one rank, which never exchange anything. A wrong launcher shows in
#    the same way, so print the size.
# </details>
#
# ## 2. Horovod's collectives
#
# They are those of [notebook 06](06_collectives_and_ring_all_reduce.ipynb). Each rank makes the same call with its own
# tensor.
#
# **Predict.** Rank $r$ has $(r, r+1, r+2)$. What are sum, average, minimum and maximum over the ranks?

# %% tags=["slide-output"]
# %%px
own = tf.constant([0.0, 1.0, 2.0]) + hvd.rank()
operations = {"sum": hvd.Sum, "average": hvd.Average, "minimum": hvd.Min, "maximum": hvd.Max}
print({name: hvd.allreduce(own, op=operation).numpy().tolist() for name, operation in operations.items()})

# %% [markdown] tags=["slide-takeaway"]
# The average is the default, since that is what gradients need. Now the collectives that move rows. The number of rows
# may differ from rank to rank in `allgather`, and in `alltoall` if you say how many rows go to each rank. The cell
# after the next gives the same inputs to the virtual cluster, whose collectives are programs that you have read.

# %%
# %%px
rows = tf.reshape(tf.range(2.0 * (hvd.rank() + 1)), (-1, 2)) + 10 * hvd.rank()  # rank r has r + 1 rows
line = tf.range(5.0) + 10 * hvd.rank()
parts = [len(part) for part in np.array_split(np.arange(5), hvd.size())]
moved = {
    "all-reduce": hvd.allreduce(line, op=hvd.Sum),
    "all-gather": hvd.allgather(rows),
    "broadcast": hvd.broadcast(line, root_rank=1),
    "reduce-scatter": hvd.reducescatter(line, op=hvd.Sum),
    "all-to-all": hvd.alltoall(line, splits=tf.constant(parts))[0],
}
moved = {name: tensor.numpy() for name, tensor in moved.items()}

# %%
inputs = {"rows": ranks.view["rows.numpy()"], "line": ranks.view["line.numpy()"]}
virtual = {
    "all-reduce": (collectives.ring_all_reduce, "line"),
    "all-gather": (collectives.all_gather, "rows"),
    "broadcast": (partial(collectives.broadcast, root=1), "line"),
    "reduce-scatter": (collectives.reduce_scatter, "line"),
    "all-to-all": (collectives.all_to_all, "line"),
}
of_ranks = ranks.view["moved"]
for name, (collective, key) in virtual.items():
    run = World(team).run(collective, inputs[key])
    print(f"{name}: rank 0 has {of_ranks[0][name].tolist()};", end=" ")
    checks.assert_equal([moved[name] for moved in of_ranks], run.results, "outputs")

# %% [markdown]
# A **process set** is a group of ranks with its own collectives, for example for ranks that share a part of a model.
# All ranks must add it; only its members call.

# %%
# %%px
alone = hvd.add_process_set([hvd.size() - 1])
first = hvd.add_process_set(range(hvd.size() - 1))
mine = alone if alone.included() else first
print(f"rank {hvd.rank()}: {mine.size()} in its set, sum {hvd.allreduce(line, op=hvd.Sum, process_set=mine).numpy()}")

# %% [markdown]
# Horovod matches the calls of different ranks by *names*; in a `tf.function` it makes them from the tensors' and
# variables' names. It waits until every rank has asked for a name. If one rank skips a call, or has other names because
# it alone has built a second model, the others wait. After 60 seconds (`HOROVOD_STALL_CHECK_TIME_SECONDS`) a warning
# lists the "missing ranks" and the names, and the job goes on waiting. Set `HOROVOD_STALL_SHUTDOWN_TIME_SECONDS` to a
# larger number, say 300, and Horovod ends the job instead; the default, 0, means never. Over Gloo, Horovod 0.28.1 says
# nothing and just hangs; the course's build corrects the line that causes this (in `gloo_controller.cc`).
#
# ## 3. Eight steps, with a tape
#
# `train_serial.py` trains the lecture's network on one device. These are its main parts:

# %%
programs.show(PROGRAMS / "train_serial.py", "step", "train")

# %% [markdown] tags=["slide-text"]
# `train_tape.py` is the same program with Horovod. Each function that has changed is a step; the next cells make the
# differences from the two files.
#
# **Step 1, initialise. Step 2, pin the device.** By its local rank each process picks its one GPU and hides the
# others. TensorFlow would take memory on *all* GPUs that it sees, in every process.

# %% tags=["slide-output", "slide-continued"]
serial, tape = PROGRAMS / "train_serial.py", PROGRAMS / "train_tape.py"


def changed(*names, before=serial, after=tape):
    """What has changed in functions between the two programs."""
    return programs.changes(programs.source(before, *names), programs.source(after, *names))


display(programs.show(tape, "pin_device"), changed("main"))

# %% [markdown] tags=["slide-text"]
# **Step 3, scale the learning rate.** Each rank keeps its batch of 32, so $N$ ranks have a global batch of $32N$. The
# average over more samples allows a longer step, by the linear rule $N$ times as long. How far that carries is
# notebook 10.
#
# **Step 4, wrap the tape.** `DistributedGradientTape` all-reduces the gradients inside `tape.gradient`. The optimizer
# then gets the average. The step is traced with `autograph=False`: no loop or condition in it depends on a tensor, and
# TensorFlow would otherwise translate Horovod's own Python as well, which delays the first step of each rank.

# %% tags=["slide-output", "slide-continued"]
changed("make_optimizer", "step")

# %% [markdown] tags=["slide-text"]
# **Step 5, broadcast the variables** of rank 0, once, before the first step: weights, the optimizer's momentum, and
# everything else that must be equal. From then on equal gradients keep them equal. It also serves to resume: only rank
# 0 reads the checkpoint, and the broadcast carries it to the others.
#
# **Step 6, checkpoint on rank 0.** All ranks have the same weights; one of them writes. (Under
# `MultiWorkerMirroredStrategy` all had to call `save`. Here nothing in it waits for others.)

# %% tags=["slide-output", "slide-continued"]
changed("begin", "save")

# %% [markdown] tags=["slide-text"]
# **Step 7, shard the data.** All ranks shuffle alike, with the seed of the epoch, and each takes every $N$-th sample.
# (The option `--feeding` is section 5.) **Step 8, steps per epoch.** $N$ ranks need $1/N$ of the steps for one pass
# through the data.

# %% tags=["slide-output", "slide-continued"]
changed("batches", "steps_per_epoch")

# %% [markdown]
# **Question.** You double the ranks and change nothing else. What happens to the number of updates in an epoch, and to
# their size?
#
# 1. Both stay; the epoch takes half the time.
# 2. Half as many updates, each twice as large.
# 3. As many updates, each from twice the data.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: twice the samples go into each update.
# 2. **Right.** That is what steps 8 and 3 do. Whether the model is then as good is another question (notebook 10).
# 3. That is twice the work: two rounds through the data.
# </details>

# %% [markdown]
# ## 4. Launching
#
# | command | starts |
# |---|---|
# | `horovodrun -np 2 python train_tape.py` | two ranks here, over MPI if built in |
# | `horovodrun -np 2 --gloo python train_tape.py` | the same over Gloo |
# | `horovodrun -np 8 -H host0:4,host1:4 python train_tape.py` | four per host, over ssh |
# | `mpirun -np 8 -H host0:4,host1:4 python train_tape.py` | the same, by MPI |
# | `srun --mpi=pmix python train_tape.py` | one per Slurm task |
#
# A **slot** is room for one process. **Gloo** comes with Horovod; **MPI** is what clusters offer, and knows their
# networks. "Code in Horovod can use any backend", say lecture notes. The code names none, but the backend must be
# **compiled in** (`horovodrun --check-build` lists it), and NCCL works only between GPUs.
#
# Do two ranks over Gloo train the model of one process, this kernel, with the global batch and the scaled rate?

# %% tags=["varies"]
scratch = tempfile.TemporaryDirectory()
saved = Path(scratch.name) / "saved"
arguments = ["--dataset", dataset, "--epochs", epochs]
print(f"$ horovodrun -np 2 --gloo python train_tape.py --dataset {dataset} --epochs {epochs} --folder saved")
run = launch.horovodrun(tape, *arguments, "--folder", saved, ranks=2, result=True, echo=False)
print(f"{run.seconds:.0f} s in all, with the start of two processes")


# %%
def alone(processes, epochs):
    """The serial program's training with the batch and the rate of `processes` ranks."""
    program = programs.module(serial)
    options = program.parse(["--dataset", dataset, "--epochs", str(epochs)])
    options.batch, options.learning_rate = options.batch * processes, options.learning_rate * processes
    return program.train(options)


model = models.mlp(dropout=0.0)
newest = tf.train.latest_checkpoint(saved)
tf.train.Checkpoint(model=model).restore(newest).expect_partial().assert_existing_objects_matched()
print(f"{len(run.result['losses'])} steps with {np.shape(run.result['seen'])[0]} ranks")
more = str(epochs + 1)
ranks.view.push({"arguments": ["--dataset", dataset, "--folder", str(saved)], "more": more})
checks.assert_equal_weights(model.get_weights(), alone(2, epochs)["weights"])

# %% [markdown]
# Now the other ranks, those of this notebook, which talk over MPI, continue from that checkpoint for one more epoch. A
# checkpoint knows nothing of ranks. Afterwards we compare rank 0 with the other ranks, and two ranks with one process
# that trained all epochs.

# %%
# %%px
sys.path.insert(0, "programs/09_horovod")
import train_tape

options = train_tape.parse([*arguments, "--resume", "--epochs", more])
resumed = train_tape.train(options)
print(f"rank {hvd.rank()} did {len(resumed['losses'])} steps")

# %%
of_ranks = ranks.view["resumed['weights']"]
for rank in range(1, team):
    print(f"ranks 0 and {rank}:", end=" ")
    checks.assert_equal_weights(of_ranks[0], of_ranks[rank])
if team == 2:
    print("two ranks and one process:", end=" ")
    checks.assert_equal_weights(of_ranks[0], alone(2, epochs + 1)["weights"])

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 5. Two ways to feed the data
#
# Step 7 gave every rank a **partition** of each epoch. Many programs do not divide the data: every rank draws from
# **everything**, shuffled with its own seed, and the epoch is cut to the same number of steps.
#
# **Predict.** With 2 ranks, what fraction of the samples is seen in an epoch? And with 4?


# %%
# %%px
def numbers(feeding, count):
    """The samples that this rank trains on, epoch by epoch."""
    options = train_tape.parse([*arguments, "--feeding", feeding])
    steps = train_tape.steps_per_epoch(options)
    epochs = [train_tape.batches(options, epoch).take(steps) for epoch in range(count)]
    return [np.concatenate([numbers for numbers, _, _ in batches.as_numpy_iterator()]) for batches in epochs]


fed = {feeding: numbers(feeding, 3) for feeding in ("partition", "everything")}

# %% tags=["slide-output"]
fed, images = ranks.view["fed"], 1280


def share_seen(feeding, count):
    """Which part of the samples all ranks together have seen after `count` epochs."""
    return np.unique([of_rank[feeding][:count] for of_rank in fed]).size / images


for feeding in ("partition", "everything"):
    print(f"{feeding}: {', '.join(f'{share_seen(feeding, count):.1%}' for count in (1, 2, 3))} after 1, 2, 3 epochs")
expected = 1 - (1 - 1 / team) ** team
print(f"expected after one epoch if {team} ranks draw from everything: {expected:.1%}")


def draw_seen(cases, samples, description):
    """Draw which rank saw which of the first samples of the data."""
    figure = draw.seen(cases, files=1, per_file=samples)
    for axes in figure.axes:
        axes.set_yticks(range(team), [f"rank {rank}" for rank in range(team)])
    figure.axes[-1].set_xticks([samples / 2], [f"samples 0 to {samples - 1} of the data"])
    draw.show(figure, description)


titles = {"partition": "one partition per rank", "everything": "everything, with one seed per rank"}
cases = {title: [set(of_rank[feeding][0]) for of_rank in fed] for feeding, title in titles.items()}
draw_seen(
    cases, 64, "Who saw which samples in an epoch: with partitions each once, otherwise some twice and some never."
)

# %% [markdown] tags=["slide-takeaway"]
# A sample is missed by all of $N$ ranks with probability $(1-\frac1N)^N$, since each takes $1/N$ of the samples. For
# two ranks that is a quarter, for many $1/e$. Over the epochs it evens out. So sampling from everything shows fewer
# different samples per epoch, but it is robust: nothing must be divided, and no rank depends on another's order. With
# *one* seed for all, every rank sees the same samples, and that is a bug (section 6).

# %% [markdown]
# ## 6. When a step is forgotten
#
# If you forget step 1, the first call fails. Step 2 shows on a host with several GPUs, as memory that is taken
# everywhere (`nvidia-smi`). The other six usually raise no error. `forgotten_steps.py` forgets each in turn: it
# replaces the function of `train_tape.py` by that of the serial program. Then it asks each run the same questions.

# %%
programs.show(PROGRAMS / "forgotten_steps.py", "without", "forgotten")

# %% [markdown] tags=["slide-predict"]
# **Predict.** In which of the six cases do the ranks end with different weights? In which does the loss look best?

# %%
# %%px
import tempfile
from pathlib import Path

import forgotten_steps

with tempfile.TemporaryDirectory() as folder:
    shared = Path(hvd.broadcast_object(folder, root_rank=0))
    training = train_tape.parse(arguments[:2])
    steps = ("nothing", *forgotten_steps.FUNCTIONS)
    answers = {step: forgotten_steps.answers(step, training, shared) for step in steps}
    race = forgotten_steps.race(shared)

# %% tags=["slide-output"]
answers, race = dict(ranks.view["list(answers.items())"][0]), ranks.view["race"][0]
print(f"{'forgotten':<24} weights differ: {'first':>6} {'last':>6}   loss   samples seen")
for step, answer in answers.items():
    seen = np.unique(np.ravel(answer["seen"])).size
    first, last = answer["first weights differ by"], answer["last weights differ by"]
    print(f"{step:<24} {first:>22.2f} {last:>6.2f} {answer['last loss']:>6.2f} {seen:>14,}")

# %% tags=["varies", "slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3))
for number, step in enumerate(("nothing", "broadcast the variables", "wrap the tape")):
    style = {"color": draw.RANK_COLOURS[number], "marker": draw.MARKERS[number], "linestyle": draw.DASHES[number]}
    axes.plot(answers[step]["last layer differs by"], label=f"forgotten: {step}", markevery=2, **style)
axes.set(xlabel="step", xticks=range(0, 21, 4), ylabel="largest difference of\na weight between ranks")
figure.legend(loc="outside upper center", ncols=3)
draw.show(
    figure,
    "Largest difference between the ranks in the last layer, step by step: zero if nothing is forgotten, large from "
    "the start and constant without the broadcast, growing from zero if the tape is not wrapped.",
)

# %% [markdown] tags=["slide-takeaway"]
# **No broadcast**: the ranks start apart and stay apart, by the same amount, for they add the same averaged gradients
# to different weights. Those gradients fit none of them. **Tape not wrapped**: each rank trains alone, with a rate that
# is too large; they drift apart. In both, the loss still falls; only the numbers of the other columns show the mistake.
#
# **Not sharded**: all weights agree, but each step has only 32 different samples, the same on every rank. **Steps per
# epoch not divided**: the loss even looks *better*, since the "epoch" went through the data once per rank. **Rate not
# scaled**: a correct, slower training.
#
# **Checkpoint on all ranks**: writers to one path disturb each other. Here they write to one path twenty times; each
# checkpoint holds the number of its rank.

# %% tags=["varies"]
print(f"{race['failures']} of {race['times'] * team} writes failed; whose file was left: {race['kept']}")
both = ("nothing", "shard the data")
cases = {f"forgotten: {step}": [set(of_rank[0]) for of_rank in answers[step]["seen"]] for step in both}
draw_seen(cases, 96, "Samples of the first step: different ones on each rank, but the same ones without sharding.")

# %% [markdown]
# Whether a write fails, and which rank's file remains, depends on the ranks' timing. While all ranks have equal weights
# that is hard to see. So look at who writes: for a test, give each rank its own folder.
#
# Each sign is one question to a run. Do the answers name the step that is missing, and no other?

# %%
noticed = ranks.view["[(step, forgotten_steps.forgotten(answer)) for step, answer in answers.items()]"][0]
for step, missing in noticed:
    print(f"forgotten: {step:<24} noticed: {', '.join(missing) or 'nothing'}")

# %% [markdown] tags=["slide-table"]
# | forgotten | sign | how to notice |
# |---|---|---|
# | init | an error at the first call | – |
# | pin the device | memory taken on all GPUs by all processes | `nvidia-smi` |
# | scale the rate | the loss falls more slowly | print the optimizer's rate |
# | wrap the tape | ranks drift apart | compare the change of the weights after one step |
# | broadcast | ranks start apart | compare the weights before the first step |
# | checkpoint on rank 0 | failing or mixed files | a folder for each rank |
# | shard | as if the batch were smaller | compare the ranks' first batches |
# | steps per epoch | epochs too long, loss too good | count samples per epoch |
#
# ## 7. The same with Keras
#
# `train_serial_keras.py` uses `Model.fit`. Steps 1, 2, 7 and 8 are the same. `DistributedOptimizer` replaces the
# wrapped tape, and callbacks do some of the rest. Here `hvd` is `horovod.tensorflow.keras`.

# %%
serial_keras, keras, keras3 = (PROGRAMS / f"train_{name}.py" for name in ("serial_keras", "keras", "keras3"))
changed("make_optimizer", "callbacks", before=serial_keras, after=keras)

# %% [markdown]
# `MetricAverageCallback` averages the metrics at the end of each epoch; without it each rank reports its own part of
# the data. `ModelCheckpoint` is given to rank 0 only.
#
# For step 5 Horovod has `BroadcastGlobalVariablesCallback`. It acts *after* the first step, because in other programs
# the variables may not exist before. Then the first gradient is an average over different weights. Ours do exist, so we
# broadcast before `fit`:

# %%
changed("begin", before=serial_keras, after=keras)

# %%
# %%px
import horovod.tensorflow.keras as hvd_keras
import train_keras

from distlab.checks import largest_difference

in_time = train_keras.train(training)["weights"]
tf.keras.utils.set_random_seed(training.seed + hvd.rank())
model = train_keras.make_model()
model.compile(train_keras.make_optimizer(training), tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
late = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
for epoch in range(training.epochs):
    model.fit(train_keras.batches(training, epoch), callbacks=[late], verbose=0)
between = forgotten_steps.between_ranks(hvd.allgather_object(model.get_weights()))
late_by = largest_difference(model.get_weights(), in_time)
print(f"largest difference between ranks {between:.2f}, from a broadcast in time {late_by:.2f}")

# %% [markdown]
# ### Keras 3
#
# Horovod's optimizer and callbacks know tf-keras only; with Keras 3 they fail ("'Variable' object has no attribute
# 'ref'"). But an optimizer of Keras 3 has one method through which all gradients go, `apply`. And Horovod broadcasts
# TensorFlow's variables, which are the `value` of Keras's. ([08b](08b_keras_3.ipynb) has more.)

# %%
display(programs.show(keras3, "AveragingSGD", "average"), changed("begin", before=keras, after=keras3))

# %% [markdown]
# **Question.** In a custom loop you wrap the optimizer with `DistributedOptimizer`, but not the tape. What is averaged?
#
# 1. The gradients, as in <code>fit</code>.
# 2. Nothing.
# 3. The weights.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: <code>fit</code> asks the optimizer for the gradients, and there it averages. A custom loop asks the tape.
# 2. **Right.** <code>apply_gradients</code> applies what it is given. The ranks drift apart, as in section 6.
# 3. Nothing ever averages weights here.
# </details>
#
# ## 8. Options
#
# `measure_options.py` measures four options with the ranks of this notebook. It reads what was sent from the
# **timeline**, a recording that Horovod makes on request (notebook 11 reads one in detail).

# %%
# %%px
import measure_options

options = measure_options.measured()

# %% [markdown]
# **Tensor fusion.** A step has many gradients, most of them small, and each all-reduce costs a latency. When a *cycle*
# of 1 ms ends, Horovod copies what is ready into one buffer, up to `HOROVOD_FUSION_THRESHOLD` bytes (by default
# 128 MB). Gradients that become ready in a later cycle need another all-reduce.
#
# **Predict.** A step averages 40 gradients of 2 kB. How many all-reduces is that with the default threshold, and with
# 0?

# %% tags=["varies"]
options = ranks.view["options"][0]
for name, result in options["fusion"].items():
    counts = f"{result['all-reduces']} all-reduces of {result['bytes']:,} bytes together"
    print(f"{name}: {counts}, {1e3 * result['seconds']:.2f} ms a step")
calls = options["fusion"]["fused"]["all-reduces"]
print("All gradients were ready in one cycle." if calls == 1 else f"The gradients became ready in {calls} cycles.")

# %% [markdown] tags=["slide-text", "slide-predict"]
# **Compression.** `hvd.Compression.fp16` turns gradients into 16-bit floats for the journey: half of the bytes. A
# 16-bit float has 11 bits of precision, and a range from 6e-8 to 65,504.
#
# **Predict.** Two ranks average 40,000 and 40,000 in 16 bits. What comes out?

# %% tags=["slide-output"]
for name, result in options["compression"].items():
    special = ", ".join(result["special"])
    print(f"{name}: {result['bytes']:,} bytes, largest error {result['error']:.2%}; 40000, 1, 1e-8 become {special}")

# %% [markdown] tags=["slide-takeaway"]
# Infinity: Horovod *sums* and then divides, and the sum does not fit. A gradient of 1e-8 vanishes. Scaling the loss, as
# mixed precision does, rescues the small ones and makes the overflow worse. Against overflow there is
# `gradient_predivide_factor` $f$: Horovod divides by $f$ before the sum, and multiplies by $f/N$ after it.

# %%
# %%px
large = tf.constant([40_000.0])
for factor in (1, hvd.size()):
    scaling = {"prescale_factor": 1 / factor, "postscale_factor": factor / hvd.size()}
    average = hvd.allreduce(large, op=hvd.Sum, compression=hvd.Compression.fp16, name=f"predivided.{factor}", **scaling)
    print(f"gradient_predivide_factor {factor}: {average.numpy()}")

# %% [markdown]
# These are the two factors that `DistributedOptimizer(optimizer, compression=hvd.Compression.fp16,
# gradient_predivide_factor=hvd.size())` passes on. Compression pays where the network is the bottleneck.
#
# **Gradient accumulation.** `backward_passes_per_step=4` adds up the gradients of four batches on each rank, and
# all-reduces once. That is a batch four times as large, without its memory.

# %%
print("batch, averaged   batches   bytes all-reduced   weights differ from the last row's by")
for name, result in options["accumulation"].items():
    print(f"{name:>15} {result['batches']:>9} {result['bytes']:>19,} {result['from 64, each']:>38.3f}")

# %% [markdown]
# `average_aggregated_gradients=True` divides by four, too; without it the learning rate is in effect four times
# larger.
#
# **Adasum** is another way to combine gradients. The part that two gradients have in common is averaged, the rest is
# added:
#
# $$\left(1 - \frac{a \cdot b}{2|a|^2}\right) a + \left(1 - \frac{a \cdot b}{2|b|^2}\right) b$$
#
# On processors you then need not scale the learning rate, but Adasum needs MPI and $2^k$ ranks. With NCCL on GPUs,
# scale by the local size. Pass `op=hvd.Adasum` to `hvd.allreduce`; the Keras optimizer refuses it.
#
# **Predict.** Two gradients of length 1. How long is the result if they point the same way; at right angles?

# %%
print("angle   average   Adasum   (lengths)")
for degrees, result in options["Adasum"].items():
    lengths = [np.linalg.norm(result[name]) + 0.0 for name in ("average", "Adasum")]
    print(f"{degrees:>4}° {lengths[0]:>9.2f} {lengths[1]:>8.2f}")
print("Adasum and the formula:", end=" ")
combined, formula = ([result[name] for result in options["Adasum"].values()] for name in ("Adasum", "formula"))
checks.assert_equal(combined, formula, "gradients")

# %% [markdown]
# Early in training gradients agree, its authors found, and Adasum averages; later they differ, and it adds, up to the
# rate scaled by $N$.
#
# ## 9. Proof
#
# All three programs start from first weights that differ by rank and make 20 steps of SGD with momentum. We compare
# their weights with those of one process and between ranks, and print how far they moved and the larger of the two
# differences. First the ranks of this notebook, then, when they have ended, a job that mpirun starts.

# %%
# %%px
import equal_to_one_process

runs = {name: equal_to_one_process.trained(name, training.dataset) for name in equal_to_one_process.PROGRAMS}
compared = {}
for name, run in runs.items() if hvd.rank() == 0 else ():
    compared[name] = equal_to_one_process.compared(run, training.dataset, hvd.size())


# %%
proofs, second_team = {team: dict(ranks.view["list(compared.items())"][0])}, 6 - team
ranks.stop()
print(f"$ mpirun -np {second_team} --oversubscribe python equal_to_one_process.py --dataset {dataset}")
program = PROGRAMS / "equal_to_one_process.py"
run = launch.mpirun(program, "--dataset", dataset, ranks=second_team, result=True, echo=False)
proofs[second_team] = run.result["programs"]

# %%
for count, of_programs in sorted(proofs.items()):
    for name, proof in of_programs.items():
        print(f"{count} ranks, {name}: {proof['steps']} steps, moved {proof['moved']:.2f};", end=" ")
        checks.assert_equal([[proof["from one process"], proof["between ranks"]]], [[0, 0]], "weights")

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("09")

# %% [markdown]
# ## Recap
#
# - One process per device; the local rank picks it.
# - Eight steps turn a serial program into a Horovod program; most are one line.
# - Six can be forgotten, usually without an error. Each has a sign, and a question that finds it.
# - With a partition every sample is seen once per epoch; with sampling from everything, only some samples are.
# - In Keras, broadcast before `fit`. Keras 3 needs an optimizer that averages in `apply`.
# - Fusion saves calls, fp16 saves bytes, and accumulation saves both; Adasum needs no scaled rate.
# - 2 and 4 ranks equal one process within 1e-5 after 20 steps of SGD.
#
# **Next.** [Lab 09](../labs/09_horovod/lab.ipynb), [10 large batch and warm-up](10_large_batch_and_warmup.ipynb).
#
# **Sources.**
# - Sergeev and Del Balso (2018), [Horovod](https://arxiv.org/abs/1802.05799).
# - Maleki et al. (2021), [Adaptive summation](https://arxiv.org/abs/2006.02924).
# - Horovod 0.28.1: [Keras](https://horovod.readthedocs.io/en/stable/keras.html), [stalled
#   ranks](https://horovod.readthedocs.io/en/stable/troubleshooting_include.html),
#   [API](https://horovod.readthedocs.io/en/stable/api.html).
