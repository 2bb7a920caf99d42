# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 14 Other frameworks
#
# **Goal.** Recognise the same eight steps in the programs of four frameworks, and prove that programs of six frameworks
# train the same model.
#
# **Time.** 30 minutes to read, two minutes to run.
#
# **Before this.** [09 Horovod](09_horovod.ipynb) for the eight steps,
# [12 model parallelism](12_model_parallelism.ipynb) for sharded states, and
# [08 other strategies](08_other_strategies.ipynb) for parameter servers.
#
# **Questions.**
# - How do you move weights from one framework to another?
# - What do PyTorch's DDP and FSDP and DeepSpeed's ZeRO do by themselves, and what must a program still do?
# - What is Ray for, if Horovod and TensorFlow can already train on several machines?
# - What were MXNet and Mesh TensorFlow, and what happened to their ideas?
#
# **Hardware.** Two processor cores. PyTorch, DeepSpeed, Ray and MXNet are extras in separate environments:
# `make setup-frameworks`, and for MXNet `.venv/bin/distlab setup-frameworks mxnet`. Without them you see recorded
# results, with machine and date.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 images are trained on
epochs = 1  # not used in this chapter: every run has 20 steps, so that weights can be compared
workers = 2  # ranks of each job: 2, or 4 if this is 4 or more; always 2 on Ray

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf

from distlab import checks, data, draw, frameworks, launch, programs, quizzes

draw.apply_style()
tf.get_logger().setLevel("ERROR")
PROGRAMS, ranks = Path("programs/14_other_frameworks"), 4 if workers >= 4 else 2
sys.path.insert(0, str(PROGRAMS))  # the programs of this chapter
import layouts
import start
import train_tensorflow
from comparison import Comparison

scratch = tempfile.TemporaryDirectory()
first = Path(scratch.name) / "start.npz"
print(data.describe(dataset))

# %% tags=["varies"]
for name, part in frameworks.PARTS.items():
    print(f"{part.title:10}", frameworks.problem(name) or "is installed: its programs run in this notebook")

# %% [markdown]
# ## 1. One start for all
#
# You can compare two programs only if they start from the same weights and see the same images in the same order. Seeds
# do not help: every framework draws its own numbers from them. So a small program writes both to one file, with NumPy
# alone.

# %%
start.write(first, dataset)
programs.show(PROGRAMS / "start.py", "first_weights", "write")

# %%
with np.load(first) as arrays:
    for name in sorted(arrays.files):
        print(f"{name:9} {arrays[name].dtype!s:8} {arrays[name].shape}")

# %% [markdown] tags=["slide-predict"]
# The network is the course's CNN with 16 filters: convolution 3 × 3, pooling 2 × 2, two dense layers. These are the
# weights as Keras has them, with the **channels last**. PyTorch has the **channels first**: images as (n, 1, 28, 28),
# kernels as (out, in, height, width), and dense kernels transposed.
#
# **Predict.** The first dense kernel goes from (2704, 64) to (64, 2704). Is a transposition enough?

# %% tags=["slide-output"]
keras_weights = layouts.read(first)
torch_weights = layouts.to_channels_first(keras_weights)
print([weight.shape for weight in torch_weights])
features = np.random.default_rng(0).random((13, 13, 16), dtype=np.float32)  # one image after the pooling
in_keras = features.reshape(-1) @ keras_weights[2]
flat = features.transpose(2, 0, 1).reshape(-1)  # as PyTorch lays it out: channel by channel
for way, kernel in {"converted": torch_weights[2], "only transposed": keras_weights[2].T}.items():
    is_equal = np.allclose(kernel @ flat, in_keras, atol=1e-5)
    print(f"{way:16} shape {kernel.shape}: {'the same' if is_equal else 'another'} function")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# No. `Flatten` orders the features row by row in Keras and channel by channel in PyTorch, so the 2,704 inputs of the
# dense layer come in a different order. The shapes fit both times, without a warning. (`layouts.py` converts both
# ways.)
#
# **Question.** Two frameworks give different losses in the first step, before any update. Where do you look?
#
# 1. At the optimizer.
# 2. At the all-reduce.
# 3. At the weights' layout, the order of images, and the mean or sum in the loss.
#
# <details>
# <summary>Answer</summary>
#
# 1. No. Before the first update it has done nothing.
# 2. No: gradients are exchanged after the loss.
# 3. **Right.** The first loss is a check of all three, and it costs one step.
# </details>

# %% [markdown]
# ## 2. TensorFlow and Horovod
#
# First the reference: `train_tensorflow.py` without `TF_CONFIG` trains on one device, here in this kernel. 20 steps,
# global batch 48, SGD with momentum, rate 0.02.

# %%
options = train_tensorflow.parse([str(first)])
reference = train_tensorflow.train(options, train_tensorflow.make_strategy())
serial = reference["weights"]
print(f"{len(reference['losses'])} steps, loss {reference['losses'][0]:.2f} to {reference['losses'][-1]:.2f}")
print(f"training moved a weight by up to {checks.largest_difference(keras_weights, serial):.2f}")

# %% [markdown]
# Now the same program as workers of a `MultiWorkerMirroredStrategy`. It names the *global* batch; the strategy divides
# it. (From PyTorch on, the notebook shows the programs; read these two in `programs/14_other_frameworks`.) Each comment
# `Step` in the programs for TensorFlow, Horovod, PyTorch and DeepSpeed is one of the eight steps of [notebook
# 09](09_horovod.ipynb).

# %% tags=["varies"]
file = first.with_name("workers.npz")
run = launch.tensorflow(PROGRAMS / "train_tensorflow.py", first, "--weights", file, workers=ranks, result=True)

# %%
checks.assert_equal_weights(layouts.read(file), serial)

# %% [markdown]
# `train_horovod.py` is the tape program of notebook 09: each rank has its own batch, the tape averages, rank 0
# broadcasts. From here on, `comparison.run` starts a program with the launcher of its framework, or reads its record,
# and `judge` compares the weights that it wrote with those of the serial run.

# %% tags=["varies"]
comparison = Comparison(first, serial, ranks)
horovod = comparison.run("horovod")

# %%
comparison.judge("Horovod", "horovod")

# %% [markdown]
# ## 3. PyTorch: DistributedDataParallel
#
# **DDP** (Li et al., 2020) is Horovod's idea inside PyTorch: one process per device, each with the whole model.
# `torchrun` starts the processes and tells each its rank in environment variables. Look for the steps that you know (1
# initialise, 2 device, 3 rate, 4 average, 5 broadcast, 6 checkpoint, 7 shard, 8 steps per epoch):

# %%
programs.show(PROGRAMS / "train_ddp.py", "initialize", "train")

# %% [markdown] tags=["slide-predict"]
# The program wraps the *model*, neither tape nor optimizer. DDP puts the gradients into buckets, and starts the
# all-reduce of a bucket while `backward` still computes the layers before it: Horovod's tensor fusion, at fixed places.
#
# **Predict.** Rank 1 draws other initial weights than rank 0, and no line of the program calls a broadcast. Which line
# makes the weights equal, and what does it not send?

# %% tags=["varies"]
ddp = comparison.run("ddp")

# %% tags=["slide-output"]
comparison.judge("PyTorch DDP", "ddp")

# %% [markdown] tags=["slide-takeaway"]
# The constructor of `DistributedDataParallel` makes them equal: step 5 is inside it. The optimizer's state is not sent,
# so after `--resume` every rank must read the checkpoint; under Horovod rank 0 was enough.

# %% [markdown]
# Three habits of PyTorch programs:
#
# - **`sampler.set_epoch(epoch)`.** `DistributedSampler` shuffles by its seed and its epoch, in the same order on all
#   ranks, so that their shares are disjoint. Without this call every epoch has the same order.
# - **`torch.autocast`** computes matrix products in 16 bits, here bfloat16 (on a GPU the default is float16), and keeps
#   weights and gradients in float32. With float16, small gradients become 0, so you also need `torch.amp.GradScaler`.
# - **`dist.destroy_process_group()`** ends the program properly, and on GPUs ours call it. On CPUs this version of
#   PyTorch sometimes aborts in it, so there the processes end after a barrier (`torch_network.leave`).
#
# The record of `train_ddp.py --mixed-precision`:

# %% tags=["varies"]
mixed = comparison.recorded("ddp_mixed")

# %%
print(f"bfloat16 moves a weight by up to {comparison.difference('ddp_mixed'):.0e} from the serial run's")

# %% [markdown]
# ## 4. PyTorch: fully_shard
#
# DDP keeps a copy of the model on every rank. **FSDP** (fully sharded data parallel; in PyTorch 2 the function
# `fully_shard`) divides every weight among the ranks, and with it gradients and momentum. Except for the last unit, a
# layer's whole weights exist only while it computes: an all-gather before, and for its gradients a reduce-scatter
# after. Together these are the two halves of a ring all-reduce ([notebook
# 06](06_collectives_and_ring_all_reduce.ipynb)), with the optimizer's step in between; the backward pass gathers once
# more.

# %%
before, after = (programs.source(PROGRAMS / name, "train") for name in ("train_ddp.py", "train_fsdp.py"))
programs.changes(before, after)

# %% [markdown]
# Two steps now need more care than under DDP. **Step 5:** `fully_shard` sends nothing. With different initial weights
# on each rank, the model would start as a mixture of all of them, without a warning. **Step 6:** no rank has the whole
# model, so each must take part in writing the checkpoint (`save` and `load` in `train_fsdp.py`, with
# `torch.distributed.checkpoint`).

# %% tags=["varies"]
fsdp = comparison.run("fsdp")

# %%
comparison.judge("PyTorch FSDP", "fsdp")

# %% [markdown] tags=["slide-quiz"]
# **Question.** A program saves with `if rank == 0: save(model.state_dict())`. It worked under DDP. What happens under
# `fully_shard`?
#
# 1. The same: rank 0 has the model.
# 2. The file contains a part.
# 3. Rank 0 waits for the others, which never come, or its file is not the whole model.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: it has a part.
# 2. Nearly: asking a tensor of the state for its whole value starts a collective.
# 3. **Right.** Whatever needs all parts must be called by all ranks, as under `MultiWorkerMirroredStrategy`.
# </details>
#
# ## 5. DeepSpeed: ZeRO by configuration
#
# **DeepSpeed** is a library on top of PyTorch. Its engine has `backward` and `step`; a configuration file decides what
# they do. `stage3_param_persistence_threshold: 0` says that stage 3 divides small arrays, too. The stages of ZeRO are
# those of [notebook 12](12_model_parallelism.ipynb): 1 divides the optimizer's state, 2 the gradients too, 3 the
# weights too.

# %%
programs.show(PROGRAMS / "train_deepspeed.py", "configuration", "train")

# %% tags=["varies"]
deepspeed = comparison.run("deepspeed")

# %%
comparison.judge("DeepSpeed ZeRO 0 to 3", "deepspeed")

# %% [markdown]
# One line of the configuration guards against a trap: `gradient_clipping`. If it is missing, recent versions of
# DeepSpeed scale every gradient whose norm is more than 1 down to norm 1, without a warning. That default is new: it
# was 0, no clipping, until [pull request 8068](https://github.com/deepspeedai/DeepSpeed/pull/8068) of June 2026. So the
# same configuration trains differently before and after an upgrade. A recorded run leaves the line out:

# %% tags=["varies"]
clipped = comparison.recorded("deepspeed_clipped")

# %% tags=["slide-output"]
off = comparison.difference("deepspeed_clipped")
print(f"with the default clipping a weight is off by {off:.2f}")
print(f"last loss {clipped['1']['losses'][-1]:.2f}")
if dataset == "digits":  # on which the runs of DeepSpeed are
    print(f"the serial run's last loss {reference['losses'][-1]:.2f}")

# %% [markdown] tags=["slide-quiz", "slide-text", "slide-predict"]
# **Question.** With clipping, two ranks of DeepSpeed equal one rank of DeepSpeed. Is the program correct?
#
# 1. Yes: parallel equals serial.
# 2. No: two ranks must never equal one.
# 3. It trains correctly, but with another algorithm than intended.
#
# <details>
# <summary>Answer</summary>
#
# 1. It shows that the *parallel* part is correct, no more.
# 2. They must, if the global batch is the same.
# 3. **Right.** Only a reference from outside, here TensorFlow's run, shows that a default has changed the algorithm.
# </details>
#
# ## 6. What a rank holds
#
# Every program also reports the bytes of the model's weights and of the momentum that each rank keeps from step to
# step. (DeepSpeed's ZeRO 1 and 2 keep one more copy of each rank's part of the weights, which the optimizer updates; it
# is not counted.)
#
# **Predict.** Which of the bars are half as long with two ranks?

# %% tags=["slide-output"]
count = sum(weight.size for weight in serial)
runs = {"serial": reference, "Horovod": horovod, "DDP": ddp, "ZeRO 0": deepspeed["0"], "ZeRO 1": deepspeed["1"]}
runs |= {"ZeRO 2": deepspeed["2"], "ZeRO 3": deepspeed["3"], "FSDP": fsdp}
figure, axes = plt.subplots(figsize=(7, 3.2))
for row, run in enumerate(runs.values()):
    left = 0
    for number, kind in ((0, "parameters"), (2, "optimizer")):  # looks as in notebook 12
        share = run["held"][0][kind] / (4 * count)
        look = {"color": draw.RANK_COLOURS[number], "hatch": draw.HATCHES[number], "edgecolor": "white"}
        axes.barh(row, share, left=left, label=kind if row == 0 else None, **look)
        left += share
axes.set_yticks(range(len(runs)), runs)
axes.invert_yaxis()
axes.set_xlabel("multiples of the model's weights")
figure.legend(loc="outside upper center", ncols=2)
draw.show(figure, "Bars of what rank 0 holds: ZeRO 1 and 2 a part of the momentum, ZeRO 3 and FSDP of everything.")

# %%
for title, run in runs.items():
    shares = (f"{kind} {run['held'][0][kind] / (4 * count):.2f}" for kind in ("parameters", "optimizer"))
    print(f"{title:8}", *shares, sep="   ")

# %% [markdown] tags=["slide-takeaway"]
# ZeRO 3 and FSDP are half as long: as in notebook 12, each of N ranks keeps 1/N of what is divided, and some padding.
# ZeRO 1 and 2 look alike, because the bars leave out the gradients: ZeRO 2 divides them, ZeRO 1 does not. ZeRO 3 and
# `fully_shard` are the same idea in two libraries: DeepSpeed (Rajbhandari et al., 2020) and PyTorch (Zhao et al.,
# 2023).

# %% [markdown] tags=["slide-table"]
# ## 7. Side by side
#
# | step | TensorFlow | Horovod | DDP |
# |---|---|---|---|
# | 1 initialise | `MultiWorkerMirroredStrategy` | `hvd.init` | `init_process_group` |
# | 2 device | the strategy | `set_visible_devices` | `set_device` |
# | 3 rate | of the global batch | × `hvd.size` | × `get_world_size` |
# | 4 average | `apply_gradients` | `DistributedGradientTape` | `DistributedDataParallel` |
# | 5 broadcast | the scope | `broadcast_variables` | the constructor |
# | 6 checkpoint | all call, one file stays | rank 0 | rank 0 |
# | 7 shard | `shard` | `shard` | `DistributedSampler` |
# | 8 steps | of global batches | 1/N of them | the loader's length |
#
# FSDP and DeepSpeed use PyTorch, too. In these four steps at least one of them differs from DDP:
#
# | step | `fully_shard` | DeepSpeed |
# |---|---|---|
# | 1 initialise | `init_process_group` | `init_distributed` |
# | 4 average | `fully_shard` | `engine.backward` |
# | 5 broadcast | `broadcast_from_rank0`, by hand | `initialize` |
# | 6 checkpoint | all, in parts | all, in parts |

# %% [markdown]
# **What they have in common** is nearly everything: processes with ranks, one average per step, equal first weights,
# disjoint data. **What differs** is who does a step, and so what you can forget. When you move a program from one
# framework to another, check rows 5 and 6 first.
#
# DDP, FSDP and DeepSpeed average the gradients of ranks that each took the *mean* over their own batch. TensorFlow
# *sums*, so there the loss is divided by the global batch. Mix the two, and the rate is wrong by a factor N.

# %% [markdown]
# ## 8. Ray: who starts the processes?
#
# `mpirun`, `horovodrun` and `torchrun` start processes on machines that you have chosen. **Ray** (Moritz et al., 2018)
# is a cluster manager: a daemon on each machine, and a head that knows what is free. A program asks for workers with a
# number of cores and GPUs; Ray finds places, starts Python there, and sends functions and data. The same program runs
# on a laptop, where it starts its own Ray, and with `--address` on a cluster.
#
# Ray does not train. Inside the workers Horovod, or TensorFlow's strategy, still does the all-reduce. What Ray replaces
# is the launcher, the list of hosts and the shared folder: here Ray sends the images to the workers.

# %%
programs.show(PROGRAMS / "train_ray.py", "train_with_horovod", "ray_executor")

# %% [markdown] tags=["slide-predict"]
# `RayExecutor` belongs to Horovod: it asks Ray for places, tells each rank its number and where to meet, and runs the
# function. `TensorflowTrainer` belongs to Ray: it starts the workers, writes TF_CONFIG for each, and stores what the
# chief reports. (The second is shown from its record, since Ray and TensorFlow in several processes take long to start;
# `make record-frameworks ONLY=ray_tensorflow` runs it.)
#
# **Predict.** The same libraries add up the gradients. How far are the weights from the serial run's: not at all, by
# rounding, or visibly?

# %% tags=["varies"]
by_executor = comparison.run("ray_horovod")
by_trainer = comparison.recorded("ray_tensorflow")
# %% tags=["slide-output"]
comparison.judge("Ray, RayExecutor", "ray_horovod")
comparison.judge("Ray, TensorflowTrainer", "ray_tensorflow")

# %% [markdown]
# ## 9. MXNet: a key-value store
#
# **Apache MXNet** came from the groups of the parameter server (Li et al., 2014; Chen et al., 2015). In 2016 Amazon
# made it its framework of choice (Vogels, *MXNet – deep learning framework of choice at AWS*). Version 2.0 never got
# beyond a beta; the project was retired in September 2023. Its last release, 1.9.1, still runs, with a NumPy version
# from that time.
#
# It is here for its idea: a **key-value store** with two operations. A worker *pushes* its gradient under a key, one
# for each array of weights; the store adds up what all workers push; a worker *pulls* the value that the store then
# has. `dist_sync` waits for all workers, `dist_async` for none. A scheduler tells all processes the others' addresses,
# and one or more servers share the keys.

# %%
programs.show(PROGRAMS / "train_mxnet.py", "train")

# %% [markdown]
# `set_optimizer` decides what a pull returns. With it the *server* turns each complete sum into a step, and returns
# **new weights**. Without it a pull returns the **sum of the gradients**, and each worker has its own optimizer: push
# and pull are then an all-reduce, but not a ring.
#
# The traffic differs, too. A worker sends and receives $n$ bytes, less than the $2n(N-1)/N$ of a ring with $N > 2$.
# The single server, however, receives and sends $Nn$. With $N$ servers that share the keys evenly, each receives and
# sends $n$: the load is even, at the price of $N$ more processes.

# %% tags=["varies"]
on_server = comparison.run("mxnet")
on_workers = comparison.run("mxnet_all_reduce")
# %%
comparison.judge("MXNet, optimizer on the server", "mxnet")
comparison.judge("MXNet, optimizer on the workers", "mxnet_all_reduce")

# %% [markdown] tags=["slide-quiz"]
# **Question.** The optimizer is on the server, and a worker's gradient is the <em>sum</em> over its images. To which
# batch does `rescale_grad` belong?
#
# 1. To the worker's.
# 2. To the global batch.
# 3. To none: each push is a separate step.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: the server adds up the sums of all workers; the step would be N times too large.
# 2. **Right.** Then the step is the mean gradient of all images.
# 3. That is `dist_async`; `dist_sync` makes one step of all pushes of a key.
# </details>

# %% [markdown]
# ## 10. Mesh TensorFlow, and what happened to its idea
#
# **Mesh TensorFlow** (Shazeer et al., 2018) gave names to the dimensions of tensors and to those of a grid of
# processors, the *mesh*; a layout says which goes over which: `batch` over rows, `hidden` over columns. Where a sum
# runs over a divided dimension, it inserts an all-reduce. A layout changes speed and memory, not the result. It built
# graphs of TensorFlow 1, with its own operations, so models had to be written for it.

# %% [markdown]
# The idea won. GSPMD (Xu et al., 2021) put it into the compiler: you annotate a few tensors of an ordinary program,
# and XLA divides the rest. JAX offers that as `jax.sharding`. TensorFlow has **DTensor**, with which
# [notebook 12](12_model_parallelism.ipynb) divides its layers; PyTorch has its own `DTensor`, on which
# `fully_shard` is built. **Estimators** are in [notebook 08](08_other_strategies.ipynb).
#
# The results of this chapter: how far the weights of each run are from the serial run's, what it printed, how long its
# job took from start to end, and the memory of its largest rank. With 20 small steps of a small network, start-up and
# libraries decide, not how fast a framework trains. Do not rank by it: Horovod's ranks are forked from an interpreter
# that has already imported TensorFlow; all other rows import their libraries. Compare only rows that were measured on
# the same machine.

# %% tags=["varies", "slide-output"]
print(comparison.table())

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("14")

# %% [markdown]
# ## Recap
#
# - Each framework has its own layout of weights; after `Flatten` a transposition is not enough.
# - Horovod, DDP, FSDP, ZeRO, Ray's workers and MXNet's store all computed the serial run's weights.
# - DDP broadcasts by itself, `fully_shard` does not; there all ranks write a checkpoint.
# - ZeRO 3 and FSDP keep 1/N of weights and momentum on each rank.
# - Two ranks that equal one prove the parallel part; a silent default shows only against another framework.
# - Ray chooses machines and starts processes; Horovod or TensorFlow still trains.
#
# **Next.** [Lab 14](../labs/14_other_frameworks/lab.ipynb), [15 clusters](15_clusters.ipynb).
#
# **Sources.**
# - DDP: [arXiv:2006.15704](https://arxiv.org/abs/2006.15704).
#   FSDP: [arXiv:2304.11277](https://arxiv.org/abs/2304.11277).
#   ZeRO: [arXiv:1910.02054](https://arxiv.org/abs/1910.02054).
#   GSPMD: [arXiv:2105.04663](https://arxiv.org/abs/2105.04663).
# - Ray: [arXiv:1712.05889](https://arxiv.org/abs/1712.05889).
#   Mesh TensorFlow: [arXiv:1811.02084](https://arxiv.org/abs/1811.02084).
# - MXNet: [arXiv:1512.01274](https://arxiv.org/abs/1512.01274); [Apache
# Attic](https://attic.apache.org/projects/mxnet.html).
# - Li et al. (2014), [*Parameter
# server*](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu),
#   OSDI.
# - PyTorch: [automatic mixed precision](https://docs.pytorch.org/docs/stable/amp.html).
