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
# **Time.** 35 minutes to read, about a minute to run.
#
# **Before this.** [04 custom training loop](04_custom_training_loop.ipynb),
# [06 collectives](06_collectives_and_ring_all_reduce.ipynb) and [07 multi-worker](07_multi_worker.ipynb).
#
# **Questions.**
# - Which eight changes does a serial program need, with a tape, with Keras, with Keras 3?
# - Why one process per device, and which process has which device?
# - My job hangs: which rank waits for which?
# - What happens when you forget a step, and how do you notice it?
# - What do tensor fusion, compression and gradient accumulation do?
#
# **Hardware.** Two CPU cores. Ranks are processes of this machine; on other hosts only the command line changes. For
# GPUs Horovod must be built with NCCL; what the text says about GPUs was not run.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; at most 1,280 images are used
epochs = 1  # not used: minimal.py runs five epochs, all others run one or two
workers = 2  # ranks that run cells: 2, or 4 for 4 and more

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import display

from distlab import data, draw, launch, programs, quizzes

launch.require_horovod()
draw.apply_style()
tf.get_logger().setLevel("ERROR")
PROGRAMS = Path("programs/09_horovod")
quiet = {"environment": {"TF_CPP_MIN_LOG_LEVEL": "3"}, "echo": False}  # no log of the C++ part
print(data.describe(dataset))

# %% [markdown]
# ## 1. A whole program
#
# With parameter servers all gradients pass through the servers' links; Horovod's ring loads every link alike. On 128
# GPUs its authors (Sergeev and Del Balso, 2018) report about 88 % scaling efficiency for Inception V3 and ResNet-101,
# against about half with parameter servers. A Horovod program is a program for *one* device that is started several
# times, plus eight steps. Its packages: Horovod, tf-keras, scikit-learn.

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# Copy it into an empty folder and type
#
# ```
# horovodrun -np 2 --gloo python minimal.py
# ```
#
# **Predict.** One process takes 280 steps. How many does each of two ranks take? Do both print the same loss?

# %% tags=["varies"]
folder = tempfile.TemporaryDirectory()
copy = Path(shutil.copy(PROGRAMS / "minimal.py", folder.name))
with contextlib.chdir(folder.name):
    run = launch.horovodrun(copy, ranks=2, **quiet)
print(run.output["rank 0"], run.output["rank 1"], sep="\n")
print("in the folder:", *sorted(path.name for path in copy.parent.iterdir()))

# %% [markdown]
# Half of the steps, since each step takes 32 images *per rank*. The losses differ, because each rank prints that of its
# own last batch; the weights are equal.
#
# > **Horovod in 2026.** The last release, 0.28.1, is from June 2023: start a new project with `tf.distribute` or
# > PyTorch. But many programs on clusters use Horovod, and its ideas live on: the ring, tensor fusion, one process per
# > device.
# >
# > It does not compile with today's TensorFlow. The course's set-up patches it.

# %% [markdown] tags=["slide-picture"]
# ## 2. One process per device
#
# ![One process for all devices of a host, and one process for each device](../figures/09_processes_and_devices.svg)
#
# **Why this scales.** Under `MirroredStrategy` one process must feed all GPUs: eight need eight times as many images
# per second. A `tf.function` runs without Python's lock (the GIL), but what stays Python, such as generators, callbacks
# and eager steps, runs one thread at a time. With one process per device, Python and the input pipeline grow with the
# devices. Only the all-reduce is in common, and a rank's neighbours in the ring may be on other hosts.
#
# | | `MirroredStrategy` | `MultiWorkerMirroredStrategy` | Horovod |
# |---|---|---|---|
# | processes | one | one per host | one per device |
# | the program sets | the global batch | the global batch | its own batch |

# %% [markdown] tags=["slide-picture"]
# The **size** is the number of processes, the **rank** the number of a process among all of them, from 0. The **local
# rank** is its number on its own host, the **local size** how many there are.
#
# ![Four processes on two hosts: rank 2 is local rank 0 of the second host](../figures/09_rank_and_local_rank.svg)
#
# ## 3. Collectives
#
# To *look* at ranks, we start some that wait: engines of ipyparallel, as a job of MPI. A cell that begins with `%%px`
# runs on every rank, not in this kernel.

# %%
ranks = launch.start_engines(4 if workers >= 4 else 2)
team = len(ranks.view)
ranks.view.push({"dataset": dataset})
print(f"{team} ranks are waiting")

# %%
# %%px
import sys

import distlab
import horovod.tensorflow as hvd
import tensorflow as tf

tf.get_logger().setLevel("ERROR")
hvd.init()
line = tf.range(4.0) + 10 * hvd.rank()
rows = tf.fill((hvd.rank() + 1, 2), float(hvd.rank()))  # rank r has r + 1 rows
moved = {
    "average": hvd.allreduce(line),
    "sum": hvd.allreduce(line, op=hvd.Sum),
    "maximum": hvd.allreduce(line, op=hvd.Max),
    "broadcast": hvd.broadcast(line, root_rank=1),
    "all-gather": hvd.allgather(rows),
    "reduce-scatter": hvd.reducescatter(line, op=hvd.Sum),
    "all-to-all": hvd.alltoall(line),
}
print(f"rank {hvd.rank()} of {hvd.size()}, local rank {hvd.local_rank()}")
for name, tensor in moved.items():
    print(f"{name:>14}: {tensor.numpy().tolist()}")

# %% [markdown]
# The average is the default. `hvd.init()` is where the processes meet.
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
# 2. No. The launcher starts the processes, and the program itself picks its device (section 5).
# 3. **Right.** Started twice, there are two jobs of one rank, which never exchange anything. A wrong launcher has the
#    same effect, so print the size.
# </details>
#
# ## 4. My job hangs
#
# A collective waits until *every* rank has made the call. Horovod matches the calls by their *names*, which it makes in
# a `tf.function` from those of tensors and variables. If one rank skips a call, or has other names because it alone has
# built a second model, the others wait. If one takes fewer steps and ends, the others fail: "Horovod has been shut
# down". In `hang.py` both average a gradient in each step, rank 0 alone also the accuracy.

# %% tags=["slide-output"]
programs.show(PROGRAMS / "hang.py")

# %% [markdown] tags=["slide-predict"]
# **Predict.** Which rank waits in which call?

# %% tags=["varies", "slide-output"]
impatient = {"HOROVOD_STALL_CHECK_TIME_SECONDS": "1"}
impatient["HOROVOD_STALL_SHUTDOWN_TIME_SECONDS"] = "3"
print("$", *map("=".join, impatient.items()), "horovodrun -np 2 --gloo python hang.py")
try:
    stalling = quiet["environment"] | impatient
    launch.horovodrun(PROGRAMS / "hang.py", environment=stalling, echo=False)
except launch.WorkerFailed as failed:
    last = failed.run.output["rank 0"].rpartition("Missing ranks:")[2]
    print("… Missing ranks:" + last.partition("\nTraceback")[0])

# %% [markdown] tags=["slide-takeaway"]
# Rank 0 still waits in the accuracy of step 0, which rank 1 never averages; rank 1 waits in the gradient of step 1.
# (The list says who is *missing* where.) Let all ranks average, and rank 0 alone print.
#
# > **My job hangs**
# >
# > - A warning ("… submitted … by subset of ranks") comes after 60 seconds (`HOROVOD_STALL_CHECK_TIME_SECONDS`). It
# >   names ranks and calls, and the job goes on waiting.
# > - To end the job, set `HOROVOD_STALL_SHUTDOWN_TIME_SECONDS` to a larger number, say 300 (0: never).
# > - No warning *over Gloo*? Horovod 0.28.1 gives none there (the course's build does): try `horovodrun --mpi`.

# %% [markdown] tags=["slide-text"]
# ## 5. The eight steps and their reasons
#
# `train_serial.py` trains the lecture's network on one device, `train_tape.py` with Horovod.
#
# **Step 1, initialise. Step 2, pin the device.** The local rank picks the GPU; `% len(gpus)` is for batch systems that
# show each process only its own. Without `set_memory_growth`, TensorFlow reserves nearly all memory of the GPU, and
# NCCL finds none for its buffers.
#
# **Step 3, scale the learning rate.** The average is now over $N$ times as many samples. That allows a longer step, by
# the linear rule $N$ times as long, up to a point ([chapter 10](10_large_batch_and_warmup.ipynb)).
#
# **Step 4, wrap the tape.** `tape.gradient` then gives the average over all ranks.

# %% tags=["slide-output", "slide-continued"]
serial, tape = PROGRAMS / "train_serial.py", PROGRAMS / "train_tape.py"


def changed(*names, before=serial, after=tape):
    """What has changed in these functions, in this order, between the two programs."""
    return programs.changes(programs.source(before, *names), programs.source(after, *names))


display(programs.show(tape, "pin_device"), changed("make_optimizer", "step"))

# %% [markdown] tags=["slide-text"]
# **Step 5, broadcast the variables** of rank 0, once, before the first step: weights, momentum, and everything else
# that must be equal. From then on equal gradients keep them equal. To resume, only rank 0 reads the checkpoint, and the
# broadcast carries it to the others.
#
# **Step 6, checkpoint on rank 0.** All have the same weights, and several writers would damage the file (section 8).
#
# **Step 7, shard the data.** Here all ranks shuffle alike, and each takes every $N$-th sample. `minimal.py` shards
# first: then each rank has the same part in every epoch, and shuffles it.
#
# **Step 8, steps per epoch.** One pass through the data takes $1/N$ of the steps.

# %%
changed("begin", "save", "batches", "steps_per_epoch")

# %% [markdown] tags=["slide-quiz"]
# **Question.** You double the ranks and change nothing else. What happens to the number of updates in an epoch, and to
# the learning rate?
#
# 1. Both stay; the epoch takes half the time.
# 2. Half as many updates, at twice the rate.
# 3. As many updates, at twice the rate.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: twice the samples go into each update.
# 2. **Right.** That is what steps 8 and 3 do. Whether the model is then as good is another question (chapter 10).
# 3. That is twice the work: two rounds through the data.
# </details>
#
# ## 6. Launching
#
# | command | starts |
# |---|---|
# | `horovodrun -np 2 python train_tape.py` | two ranks here, over MPI if built in |
# | `horovodrun -np 2 --gloo python train_tape.py` | the same over Gloo |
# | `horovodrun -np 8 -H host0:4,host1:4 python train_tape.py` | four per host |
# | `srun --mpi=pmix python train_tape.py` | one per Slurm task |
#
# **Gloo** comes with Horovod; **MPI** must be installed, and is often faster on CPUs. The code names no backend, but
# the backend must be **compiled in**, and NCCL works only between GPUs.

# %% [markdown]
# For Open MPI, horovodrun writes a line like this:
#
# ```
# mpirun -np 8 -H host0:4,host1:4 -bind-to none -map-by slot \
#     -mca pml ob1 -mca btl ^openib -x PATH -x LD_LIBRARY_PATH python train_tape.py
# ```
#
# - `-bind-to none`: a rank may use all cores of its host.
# - `-map-by slot`: fill one host after the other. A **slot** is room for one process.
# - `-mca pml ob1 -mca btl ^openib`: between hosts MPI's messages go by TCP, because Open MPI's RDMA often crashes
#   programs that start processes (Python's `multiprocessing`). NCCL uses RDMA by itself. Without GPUs the gradients are
#   such messages: on InfiniBand, try it without these two.
# - `-x NAME`: copy a variable of this shell to all hosts; horovodrun does so with nearly all.
#
# `cores.py` prints on which cores each of two ranks may run:

# %% tags=["varies", "slide-output"]
flags = "-bind-to none -map-by slot -mca pml ob1 -mca btl ^openib"
# Without the course's own settings of Open MPI, which already say bind-to none.
plain = {name: text for name, text in os.environ.items() if not name.startswith("OMPI_MCA")}
for options in ("", flags):
    print("$ mpirun -np 2 --oversubscribe", *options.split(), "python cores.py")
    command = ["mpirun", "-np", "2", "--oversubscribe", *options.split(), sys.executable]
    program = PROGRAMS / "cores.py"
    run = subprocess.run([*command, program], env=plain, capture_output=True, text=True)
    print(run.stdout or run.stderr, end="")

# %% [markdown] tags=["slide-takeaway", "slide-predict"]
# Open MPI binds each rank to one core if there are at most two, else to a socket or NUMA node. All threads of the rank
# must share that. (Where MPI may not bind, both lines agree.)
#
# ## 7. Two ways to feed the data
#
# Step 7 gave every rank a **partition** of each epoch. In many programs every rank instead draws from **everything**,
# shuffled with its own seed, and the epoch is cut to the same number of steps.
#
# **Predict.** With 2 ranks, what fraction of the samples is seen in an epoch? And with 4?


# %%
def numbers(feeding, rank, ranks, epoch, images=1280):
    """The samples that a rank trains on in an epoch."""
    if feeding == "partition":
        return np.random.default_rng([9, epoch]).permutation(images)[rank::ranks]
    own_order = np.random.default_rng([9, epoch, 1 + rank]).permutation(images)
    return own_order[: images // ranks]


print("feeding      ranks   seen after 1, 2 and 3 epochs")
for feeding in ("partition", "everything"):
    for size in (2, 4):
        seen, shares = set(), []
        for epoch in range(3):
            for rank in range(size):
                seen.update(numbers(feeding, rank, size, epoch))
            shares.append(f"{len(seen) / 1280:>9.1%}")
        print(f"{feeding:<12} {size:>5}", *shares)


# %% jupyter={"source_hidden": true} tags=["slide-output"]
def draw_seen(cases, cells, label, description):
    """Draw which rank saw which samples, a cell for each."""
    figure = draw.seen(cases, files=1, per_file=cells)
    for axes in figure.axes:
        axes.set_yticks(range(team), [f"rank {rank}" for rank in range(team)])
    figure.axes[-1].set_xticks([cells / 2], [label])
    draw.show(figure, description)


titles = {"partition": "a partition per rank", "everything": "everything, a seed per rank"}
cases = {titles[way]: [numbers(way, rank, team, 0) for rank in range(team)] for way in titles}
text = "Samples seen in an epoch: with partitions each once, otherwise some twice, some never."
draw_seen(cases, 64, "samples 0 to 63 of the data", text)

# %% [markdown] tags=["slide-takeaway"]
# Three quarters with two ranks, 68 % with four: all of $N$ ranks miss a sample with probability $(1-\frac1N)^N$ (for
# many $1/e$), since each takes $1/N$ of the samples. With *one* seed for all, every rank sees the same samples (section
# 8).

# %% [markdown] tags=["slide-text", "slide-predict"]
# ## 8. When a step is forgotten
#
# Six of the eight steps can be forgotten, and no error follows; only without step 6, the checkpoint, a write may fail.
# `forgotten_steps.py` forgets each in turn: it replaces the function of `train_tape.py` by that of the serial program.
#
# **Predict.** In which of the six cases do the ranks end with different weights? In which does the loss look best?

# %%
programs.show(PROGRAMS / "forgotten_steps.py", "forgotten")

# %%
# %%px
import tempfile
from pathlib import Path

sys.path.insert(0, "programs/09_horovod")
import forgotten_steps
import train_tape

with tempfile.TemporaryDirectory() as folder:
    shared = Path(hvd.broadcast_object(folder, root_rank=0))
    training = train_tape.parse(["--dataset", dataset])
    steps = ("nothing", *forgotten_steps.FUNCTIONS)
    answers = {step: forgotten_steps.answers(step, training, shared) for step in steps}
    race = forgotten_steps.race(shared)

# %% tags=["slide-output"]
answers, race = dict(ranks.view["list(answers.items())"][0]), ranks.view["race"][0]
print(f"{'forgotten':<24} weights differ: {'first':>6} {'last':>6}   last loss   samples seen")
for step, answer in answers.items():
    seen = np.unique(np.ravel(answer["seen"])).size
    first, last = answer["first weights differ by"], answer["last weights differ by"]
    print(f"{step:<24} {first:>22.2f} {last:>6.2f} {answer['last loss']:>11.2f} {seen:>14,}")

# %% jupyter={"source_hidden": true} tags=["varies", "slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 3))
for step in ("nothing", "broadcast the variables", "wrap the tape"):
    apart = answers[step]["last layer differs by"]
    axes.plot(apart, label=f"forgotten: {step}", markevery=2)
axes.set(xlabel="step", ylabel="largest difference of\na weight between ranks")
axes.set_xticks(range(0, 21, 4))
figure.legend(loc="outside upper center", ncols=3)
text = "Largest difference between ranks, step by step: zero if nothing is forgotten, "
text += "large at once without the broadcast, growing from zero if the tape is not wrapped."
draw.show(figure, text)

# %% [markdown] tags=["slide-takeaway"]
# **No broadcast**: the ranks start apart and stay apart, by the same amount, for they add the same averaged gradients
# to different weights. Those gradients fit none of them. **Tape not wrapped**: each rank trains alone, with a rate that
# is too large; they drift apart. In both, the loss only looks like that of a slower training.
#
# **Not sharded**: all weights agree, but all ranks take the same 32 samples, so the update averages two equal
# gradients, and half of the samples are missing from the epoch. **Steps per epoch not divided**: the loss even looks
# *better*, since the "epoch" went through the data once per rank. **Rate not scaled**: a correct, slower training.
#
# **Checkpoint on all ranks**: writers to one path disturb each other, below in twenty attempts; what fails depends on
# timing.

# %% tags=["varies"]
unreadable = race["times"] - len(race["kept"])
print(f"{race['failures']} of {race['times'] * team} writes failed;", end=" ")
print(f"{unreadable} of {race['times']} files cannot be read; the others: rank", *race["kept"])
cases = {}
for step in ("nothing", "shard the data"):
    batches = [seen[0] for seen in answers[step]["seen"]]  # the first of each rank
    different = list(dict.fromkeys(np.ravel(batches)))
    seen = [[different.index(sample) for sample in batch] for batch in batches]
    cases[f"forgotten: {step}"] = seen
text = "Samples of the first step: 32 on each rank, different ones; without sharding the same."
draw_seen(cases, 32 * team, "the different samples of the first step", text)

# %% [markdown] tags=["slide-table"]
# | forgotten | sign | how to notice |
# |---|---|---|
# | init | an error at the first call | – |
# | pin the device | memory taken on all GPUs by all processes | `nvidia-smi` |
# | scale the rate | the loss falls more slowly | print the optimizer's rate |
# | wrap the tape | ranks drift apart | compare the change of the weights after one step |
# | broadcast | ranks start apart | compare the weights before the first step |
# | checkpoint on rank 0 | failing or mixed files | give each rank a folder: who writes? |
# | shard | as if the batch were smaller | compare the ranks' first batches |
# | steps per epoch | epochs too long, loss too good | count samples per epoch |
#
# ## 9. The same with Keras
#
# `train_serial_keras.py` uses `Model.fit`. Steps 1, 2, 3, 7 and 8 are the same. `DistributedOptimizer` replaces the
# wrapped tape (step 4), and rank 0 alone gets the checkpoint callback (step 6). Here `hvd` is
# `horovod.tensorflow.keras`.

# %%
serial_keras, keras = PROGRAMS / "train_serial_keras.py", PROGRAMS / "train_keras.py"
changed("make_optimizer", "callbacks", "begin", before=serial_keras, after=keras)

# %% [markdown]
# `MetricAverageCallback` averages the metrics at the end of each epoch; without it each rank reports its own part of
# the data.
#
# For step 5 Horovod has `BroadcastGlobalVariablesCallback`. It acts *after* the first step, because variables may not
# exist before. Ours do, so `train_keras.py` broadcasts before `fit`.
#
# **Predict.** Do the ranks end equal with the late broadcast? Is it the same model?

# %%
# %%px
import horovod.tensorflow.keras as hvd_keras
import train_keras

from distlab.checks import largest_difference

in_time = train_keras.train(training)["weights"]
tf.keras.utils.set_random_seed(training.seed + hvd.rank())
model = train_keras.make_model()
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(train_keras.make_optimizer(training), loss)
late = hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)
model.fit(train_keras.batches(training, 0), callbacks=[late], verbose=0)
between = forgotten_steps.between_ranks(hvd.allgather_object(model.get_weights()))
late_by = largest_difference(model.get_weights(), in_time)
print(f"differs between ranks by {between:.2f}, from a broadcast in time by {late_by:.2f}")

# %% [markdown]
# The ranks end equal, so comparing them finds nothing. But the first step used an average over different weights, and
# the model is another one.
#
# ### Keras 3
#
# Horovod's optimizer and callbacks know tf-keras only; with Keras 3 they fail ("'Variable' object has no attribute
# 'ref'"). But all gradients of Keras 3 go through the optimizer's `apply`: average there. Horovod takes TensorFlow's
# variables, the `value` of Keras's: for the broadcast, and in a loop for `tape.gradient`. On GPUs `fit` needs
# `compile(…, jit_compile=False)`: XLA cannot compile Horovod's all-reduce. `average` becomes a callback by
# `LambdaCallback(on_epoch_end=average)`.

# %%
keras3 = PROGRAMS / "train_keras3.py"
display(programs.show(keras3, "AveragingSGD", "average"))
changed("begin", before=keras, after=keras3)

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
# 2. **Right.** <code>apply_gradients</code> applies what it is given. The ranks drift apart, as in section 8.
# 3. Nothing ever averages weights here.
# </details>
#
# ## 10. Options
#
# **Tensor fusion.** A step has many small gradients, and each all-reduce costs a latency. When a *cycle* of 1 ms ends,
# Horovod copies what is ready into one buffer, up to `HOROVOD_FUSION_THRESHOLD` bytes (by default 128 MB).
#
# **Compression.** `hvd.Compression.fp16` sends gradients as 16-bit floats, which end at 65,504.
#
# **Gradient accumulation.** `backward_passes_per_step=4` adds up the gradients of four batches, and all-reduces once: a
# batch four times as large, without its memory.
#
# **Predict.** How many all-reduces do 40 gradients take with the default threshold, and with 0? What is the average of
# 40,000 and 40,000 in 16 bits?

# %%
# %%px
import measure_options

options = measure_options.measured()

# %% tags=["varies", "slide-output"]
options = ranks.view["options"][0]
for name, result in options["fusion"].items():
    calls = f"{result['all-reduces']} all-reduce{'s' * (result['all-reduces'] > 1)}"
    seconds = result["seconds"]
    print(f"{name}: {calls}, {result['bytes']:,} bytes, {1e3 * seconds:.2f} ms per step")

# %% tags=["slide-output", "slide-continued"]
for name, result in options["compression"].items():
    special = ", ".join(result["special"])
    print(f"{name}: {result['bytes']:,} bytes, error {result['error']:.2%};", end=" ")
    print(f"40000, 1, 1e-8 become {special}")
print("\nbatch, all-reduced   batches   bytes all-reduced   weights differ from last row by")
for name, result in options["accumulation"].items():
    print(f"{name:>18} {result['batches']:>9} {result['bytes']:>19,}", end=" ")
    print(f"{result['from 64, each']:>32.5f}")

# %% [markdown] tags=["slide-takeaway"]
# The average of the two numbers is infinite: Horovod *sums* and then divides, and the sum does not fit. With
# `gradient_predivide_factor` $f$ it divides by $f$ before the sum, and multiplies by $f/N$ after it. A gradient of 1e-8
# vanishes; scaling the loss rescues it.
#
# Four accumulated batches of 16 equal a batch of 64 only with `average_aggregated_gradients=True`; without it SGD's
# rate is in effect four times larger.

# %% [markdown]
# | option | what it does |
# |---|---|
# | `horovodrun --check-build` | lists what is compiled in |
# | `hvd.join()` | a rank without data takes part with zeros; the average still divides by all ranks |
# | `sparse_as_dense=True` | all-reduces an embedding's gradient instead of all-gathering its rows |
# | `process_set=s` | a collective of some ranks; before: `s = hvd.ProcessSet([0, 2])`, `hvd.init(process_sets=[s])` |
# | `horovodrun --autotune` | tries fusion thresholds and cycle times in training |
# | `op=hvd.Adasum` | averages what two gradients share, adds the rest; no scaled rate (NCCL: times the local size) |
#
# **Adasum** of two gradients; it needs $2^k$ ranks, and MPI on CPUs:
#
# $$\left(1 - \frac{a \cdot b}{2|a|^2}\right) a + \left(1 - \frac{a \cdot b}{2|b|^2}\right) b$$

# %% [markdown]
# ## 11. Proof
#
# All three programs start from first weights that differ by rank and take 20 steps of SGD with momentum. We compare
# their weights with those of one process that has the global batch and the scaled rate, and between ranks.

# %% tags=["slide-output"]
ranks.stop()
program, free = PROGRAMS / "equal_to_one_process.py", "--oversubscribe -bind-to none"
for start, count, flags in ((launch.horovodrun, 2, "--gloo"), (launch.mpirun, 4, free)):
    print(f"$ {start.__name__} -np {count} {flags} python {program.name} --dataset {dataset}")
    run = start(program, "--dataset", dataset, ranks=count, result=True, **quiet)
    for name, found in run.result["programs"].items():
        print(f"{name:>8}: moved by {found['moved']:.2f};", end=" ")
        print(f"largest difference of the weights: {found['from one process']:.0e}", end=" ")
        print(f"from one process, {found['between ranks']:g} between ranks")

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("09")

# %% [markdown]
# ## Recap
#
# - One process per device: Python and the input pipeline grow with the devices.
# - Eight steps turn a serial program into a Horovod program. Six can be forgotten without an error.
# - A collective that one rank skips hangs the job; the warning names rank and call.
# - Give mpirun `-bind-to none`, or each rank may get one core.
# - In Keras, broadcast before `fit`. Keras 3 needs an optimizer that averages in `apply`.
# - Fusion saves calls, fp16 bytes, accumulation both.
#
# **Next.** [Lab 09](../labs/09_horovod/lab.ipynb), [10 large batch and warm-up](10_large_batch_and_warmup.ipynb).
#
# **Sources.**
# - Sergeev and Del Balso (2018), [Horovod](https://arxiv.org/abs/1802.05799).
# - Maleki et al. (2021), [Adaptive summation](https://arxiv.org/abs/2006.02924).
# - Horovod 0.28.1: [Keras](https://horovod.readthedocs.io/en/stable/keras.html),
#   [mpirun](https://horovod.readthedocs.io/en/stable/mpi_include.html), [stalled
#   ranks](https://github.com/horovod/horovod/blob/v0.28.1/horovod/common/stall_inspector.cc),
#   [API](https://horovod.readthedocs.io/en/stable/api.html).
