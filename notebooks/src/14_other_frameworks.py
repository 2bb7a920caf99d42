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
# **Goal.** Recognise the same eight steps in the programs of other frameworks, and prove that programs of TensorFlow,
# Horovod, PyTorch, DeepSpeed, JAX and MXNet train the same model.
#
# **Time.** 30 minutes to read, about a minute to run.
#
# **Before this.** [09 Horovod](09_horovod.ipynb) for the eight steps,
# [12 model parallelism](12_model_parallelism.ipynb) for sharded states, and
# [08 other strategies](08_other_strategies.ipynb) for parameter servers.
#
# **Questions.**
# - How short is a distributed program in PyTorch, and what does a real one add?
# - How do you move weights from one framework to another?
# - What do DDP, FSDP, DeepSpeed and JAX do by themselves, and what must a program still do?
# - What is Ray for, if Horovod can already train on several machines?
#
# **Hardware.** Two CPU cores. PyTorch, DeepSpeed, Ray, JAX and MXNet are extras in separate environments:
# `make setup-frameworks`, and for MXNet `.venv/bin/distlab setup-frameworks mxnet`. Without them you see recorded
# results.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist; 960 images are trained on
epochs = 1  # without effect: every run has 20 steps, so that weights can be compared
workers = 2  # ranks of each job: 2, or 4 if this is 4 or more; always 2 on Ray and in records

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras, which must happen before TensorFlow is imported

import sys
import tempfile
from collections import Counter
from pathlib import Path

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

# %% [markdown]
# ## 1. PyTorch in thirty lines
#
# Most programs that you meet outside this course are written in PyTorch. Its **DistributedDataParallel** (DDP; Li et
# al., 2020) is Horovod's idea inside the framework: one process per device, each with the whole model. This is a whole
# program, with the numbers of the [eight steps](09_horovod.ipynb) as comments:

# %%
programs.show(PROGRAMS / "minimal_ddp.py")

# %% [markdown]
# **torchrun** starts the processes and tells each its rank in environment variables. The first line is for this
# machine, the second for two hosts with four GPUs each; type it on both:
#
# ```
# torchrun --standalone --nproc-per-node 2 minimal_ddp.py
# torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d \
#     --rdzv-id job1 --rdzv-endpoint HOST0:29500 minimal_ddp.py
# ```
#
# `--rdzv-endpoint` is the *rendezvous*: a free port of the first host, where all processes meet.

# %% tags=["varies"]
if reason := frameworks.problem("torch"):
    print(reason)
else:
    torch = frameworks.python("torch")
    launch.torchrun(PROGRAMS / "minimal_ddp.py", ranks=ranks, python=torch)

# %% [markdown]
# ## 2. One start for all
#
# Is this the training that Horovod does? You can compare two programs only if they start from the same weights and see
# the same images in the same order. Seeds do not help: every framework draws other numbers from them. So a small
# program writes both to one file, with NumPy alone.

# %%
start.write(first, dataset)
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
features = np.random.default_rng(0).random((13, 13, 16), dtype=np.float32)  # an image, pooled
in_keras = features.reshape(-1) @ keras_weights[2]
flat = features.transpose(2, 0, 1).reshape(-1)  # as PyTorch lays it out: channel by channel
kernels = {"converted": torch_weights[2], "only transposed": keras_weights[2].T}
for way, kernel in kernels.items():
    difference = checks.largest_difference([kernel @ flat], [in_keras])
    print(f"{way:16} shape {kernel.shape}: outputs differ by up to {difference:.2g}")

# %% [markdown] tags=["slide-takeaway", "slide-quiz"]
# No. `Flatten` orders the features row by row in Keras and channel by channel in PyTorch, so the 2,704 inputs of the
# dense layer come in a different order. The shapes fit both times, without a warning.
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
# ## 3. TensorFlow and Horovod
#
# First the reference: `train_tensorflow.py` without TF_CONFIG trains on one device, here in this kernel. It takes 20
# steps with a global batch of 48, SGD with momentum and a rate of 0.02.

# %%
options = train_tensorflow.parse([str(first)])
reference = train_tensorflow.train(options, train_tensorflow.make_strategy())
serial = reference["weights"]
losses = reference["losses"]
print(f"{len(losses)} steps, loss {losses[0]:.2f} to {losses[-1]:.2f}")
moved = checks.largest_difference(keras_weights, serial)
print(f"training moved a weight by up to {moved:.2f}")

# %% [markdown]
# Now the same program as workers of a `MultiWorkerMirroredStrategy` (`distlab launch --workers 2 train_tensorflow.py
# start.npz`), and the tape program of notebook 09 as ranks of Horovod. Their sources are in
# `programs/14_other_frameworks`; the word `Step` in their comments marks the eight steps.
#
# From here on `comparison.run` starts a program with the launcher of its framework, or reads its record. Then `judge`
# compares all six arrays of weights with the serial run's; more than 1e-5 is an error.

# %% tags=["varies"]
file = first.with_name("workers.npz")
program = PROGRAMS / "train_tensorflow.py"
launch.tensorflow(program, first, "--weights", file, workers=ranks, echo=False)
checks.assert_equal_weights(layouts.read(file), serial)

comparison = Comparison(first, serial, ranks)
horovod = comparison.run("horovod")
comparison.judge("horovod")

# %% [markdown] tags=["slide-points", "slide-predict"]
# ## 4. A real DDP program
#
# [`train_ddp.py`](programs/14_other_frameworks/train_ddp.py) has the same loop. What it adds to the thirty lines:
#
# - **Checkpoints** of the model *without* its wrapper, by rank 0.
# - **Mixed precision**: `torch.autocast` computes products in bfloat16 and keeps weights in float32. With float16 small
#   gradients become 0, and you need `torch.amp.GradScaler`, too.
#
# DDP puts the gradients into buckets. It starts the all-reduce of a bucket while `backward` still computes the layers
# before it: Horovod's tensor fusion, at fixed places.
#
# **Predict.** Rank 1 draws other first weights than rank 0; making `DistributedDataParallel` sends it rank 0's. A run
# is resumed: is it enough if rank 0 reads the checkpoint?

# %% tags=["varies"]
ddp = comparison.run("ddp")
comparison.judge("ddp")
comparison.recorded("ddp_mixed")
print(f"bfloat16 moves a weight by up to {comparison.difference('ddp_mixed'):.0e}")
programs.show(PROGRAMS / "train_ddp.py", "save", "load")

# %% [markdown] tags=["slide-takeaway"]
# No. The constructor sends weights and buffers, not the optimizer's state, so the ranks' momentum would differ. Every
# rank must read the checkpoint; under Horovod rank 0 was enough, since the program broadcast both.
#
# **Gradient accumulation.** Every `backward` starts an all-reduce. If one step adds up several batches, only the last
# one needs it:
#
# ```python
# with model.no_sync():
#     for images, labels in batches[:-1]:
#         cross_entropy(model(images), labels).div(len(batches)).backward()  # adds up, sends nothing
# images, labels = batches[-1]
# cross_entropy(model(images), labels).div(len(batches)).backward()  # averages the whole sum
# ```
#
# **Traps.** Without `sampler.set_epoch(epoch)` every epoch has the same order. The sampler repeats some images until
# all shares are equal. If rank 0 alone evaluates, it must call `model.module`
# ([pytorch#54059](https://github.com/pytorch/pytorch/issues/54059)): with batch normalisation each call of `model`
# broadcasts the statistics, so all ranks must make it. `nn.SyncBatchNorm` takes the statistics of all ranks ([chapter
# 10](10_large_batch_and_warmup.ipynb)).
#
# **Accelerate** and **Lightning** write these lines: `accelerator.prepare(model, optimizer, loader)` or
# `Trainer(devices=2, strategy="ddp")` wraps the model and shards the data. Neither scales the learning rate.

# %% [markdown]
# ## 5. PyTorch: fully_shard
#
# DDP keeps a copy of the model on every rank. **FSDP** (fully sharded data parallel; today the function `fully_shard`,
# in older code the class `FullyShardedDataParallel`) divides every weight among the ranks, and with it gradients and
# momentum. Each call of `fully_shard` makes a **unit**: its weights are gathered together just before it computes
# (*all-gather*) and dropped afterwards (the outermost unit keeps them until its backward pass); its gradients are
# averaged, and each rank keeps its part (*reduce-scatter*). These are the two halves of a ring all-reduce ([notebook
# 06](06_collectives_and_ring_all_reduce.ipynb)), with the optimizer's step in between; the backward pass gathers the
# others once more.
#
# **Predict.** Which two of the eight [steps](09_horovod.ipynb) now need more care than under DDP? Up to its loop, the
# program changes as below.

# %%
files = PROGRAMS / "train_ddp.py", PROGRAMS / "train_fsdp.py"
programs.changes(*(programs.source(file, "train").split("    losses =")[0] for file in files))

# %% [markdown]
# **Step 5:** `fully_shard` sends nothing. With different first weights on each rank, the model would start as a mixture
# of all of them, without a warning. **Step 6:** no rank has the whole model, so each must take part in writing the
# checkpoint (`save` and `load` in `train_fsdp.py`, with `torch.distributed.checkpoint`).

# %% tags=["varies"]
fsdp = comparison.run("fsdp")
comparison.judge("fsdp")

# %% [markdown] tags=["slide-quiz"]
# **Question.** A program saves with `if rank == 0: save(model.state_dict())`. It worked under DDP. What happens under
# `fully_shard`?
#
# 1. The same: rank 0 has the model.
# 2. It writes a file with rank 0's parts only, without an error.
# 3. Rank 0 waits for the others, which never come.
#
# <details>
# <summary>Answer</summary>
#
# 1. No: it has parts.
# 2. **Right.** You notice it when you load the file.
# 3. That happens if rank 0 alone asks for whole values (`full_tensor()`), as under `MultiWorkerMirroredStrategy`:
#    whatever needs all parts must be called by all ranks.
# </details>
#
# ## 6. DeepSpeed: ZeRO by configuration
#
# **DeepSpeed** is a library on top of PyTorch. The training loop calls `engine.backward(loss)` and `engine.step()`; a
# configuration decides what they do. The stages of ZeRO are those of [chapter 12](12_model_parallelism.ipynb). The run
# below trains with stages 0 to 3; the difference is the largest of the four.

# %%
programs.show(PROGRAMS / "train_deepspeed.py", "configuration")

# %% tags=["varies"]
deepspeed = comparison.run("deepspeed")
comparison.judge("deepspeed")

# %% [markdown] tags=["slide-text", "slide-predict"]
# The last lines guard against a trap. If `gradient_clipping` is missing, recent versions of DeepSpeed scale all
# gradients together down to norm 1 if their common norm is more, without a warning. The default was 0, no clipping,
# until [pull request 8068](https://github.com/deepspeedai/DeepSpeed/pull/8068) of June 2026.
#
# **Predict.** A recorded run on two ranks leaves the line out. In which step does its loss first differ from
# TensorFlow's?

# %% tags=["varies", "slide-output"]
clipped = comparison.recorded("deepspeed_clipped")["1"]["losses"]
print(f"a weight is off by {comparison.difference('deepspeed_clipped'):.2f}")
if dataset == "digits":  # on which the recorded runs are
    for step in (1, 2, 20):
        print(f"step {step:2}: loss {clipped[step - 1]:.3f}, serial {losses[step - 1]:.3f}")

# %% [markdown]
# In step 2: clipping changes the first *update*, not the first loss.
#
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

# %% [markdown] tags=["slide-text"]
# ## 7. JAX: shardings instead of ranks
#
# **JAX** goes the other way. You write a step for *one* device and the whole global batch. Then you say for each array
# where it is stored, and the compiler of `jax.jit` finds out which devices must exchange what.
#
# A **mesh** is a grid of devices whose axes have names; ours has one axis, `data`. `PartitionSpec("data")` divides an
# array's first dimension along that axis. `PartitionSpec()` puts a whole copy on every device. Both together are data
# parallelism. JAX itself has no layers, so our arrays keep the layout of Keras.

# %%
programs.show(PROGRAMS / "train_jax.py", "place", "step", "train")

# %% [markdown] tags=["slide-predict"]
# On a laptop one process gets two CPU devices by an environment variable; on GPUs it needs none:
#
# ```
# XLA_FLAGS=--xla_force_host_platform_device_count=2 python train_jax.py start.npz
# ```
#
# Several processes, by `mpirun` or `srun`, first call `jax.distributed.initialize()`; the rest of this program stays.
# (With more data each loads its part, by `jax.make_array_from_process_local_data`.)
#
# **Predict.** No line of `step` sends anything or averages over devices. How many all-reduces does the compiler put
# into a step with six arrays of weights?

# %% tags=["varies", "slide-output"]
jax_whole, jax_sharded = comparison.run("jax"), comparison.run("jax_sharded")
comparison.judge("jax", "jax_sharded")
for way, result in {"weights whole": jax_whole, "weights divided": jax_sharded}.items():
    counts = sorted(Counter(result["collectives"]).items())
    print(f"{way:16}", ", ".join(f"{count} × {name}" for name, count in counts))

# %% [markdown] tags=["slide-takeaway"]
# Here one: this compiler joins all six gradients and the loss in one message. The loss is
# the mean over a batch that is divided, so the compiler must add up over the devices. Nothing needs to be scaled by the
# number of devices.
#
# The second run has `--shard-weights`: `place` then gives the weights another `PartitionSpec`. That one line divides
# weights and momentum, as FSDP does (where the last dimension can be divided). The step and its result stay the same;
# how to compute with the parts is the compiler's choice. What you lose is control: if a step is slow, you read the
# compiler's output.

# %% [markdown] tags=["slide-predict"]
# ## 8. What a rank holds
#
# The programs of sections 3 to 7 report the bytes of the model's weights and of the momentum that each rank keeps from
# step to step. One process keeps both whole: 2 times the size of the weights. (Not counted: DeepSpeed's ZeRO 1 and 2
# keep one more copy of each rank's part of the weights, which the optimizer updates.)
#
# **Predict.** What does each of two ranks keep with DDP, with ZeRO 1, 2 and 3, and with `fully_shard`?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
whole = reference["held"][0]["parameters"]
runs = {"serial": reference, "Horovod": horovod, "DDP": ddp}
runs |= {f"ZeRO {stage}": deepspeed[str(stage)] for stage in range(4)}
runs |= {"fully_shard": fsdp, "JAX": jax_whole, "JAX, divided": jax_sharded}
kept = {title: sum(run["held"][0].values()) / whole for title, run in runs.items()}
figure = draw.bars(kept, "weights and momentum, in multiples of the weights", "{:.2f}")
sizes = ", ".join(f"{title} {size:.2f}" for title, size in kept.items())
draw.show(figure, f"Bars of what rank 0 keeps, in multiples of the weights: {sizes}.")

# %% [markdown] tags=["slide-takeaway"]
# ZeRO 3, `fully_shard` and the divided weights of JAX keep 1/N of both. ZeRO 1 and 2 divide the momentum only. The bars
# leave out the gradients, which ZeRO 1 keeps whole and ZeRO 2 divides. ZeRO 3 (Rajbhandari et al., 2020) and
# `fully_shard` (Zhao et al., 2023) are the same idea in two libraries.

# %% [markdown] tags=["slide-table"]
# ## 9. Side by side
#
# | step | TensorFlow | Horovod | DDP |
# |---|---|---|---|
# | 1 initialise | `MultiWorkerMirroredStrategy` | `hvd.init` | `init_process_group` |
# | 2 device | the strategy | `set_visible_devices` | `set_device` |
# | 3 rate | of the global batch | × `hvd.size` | × `get_world_size` |
# | 4 average or sum | `apply_gradients` (sum) | `DistributedGradientTape` | `DistributedDataParallel` |
# | 5 broadcast | the scope | `broadcast_variables` | the constructor |
# | 6 checkpoint | all call, one file stays | rank 0 | rank 0 |
# | 7 shard | `shard` | `shard` | `DistributedSampler` |
# | 8 steps per epoch | all global batches | 1/N of a single rank's | the loader's length |
#
# In the other frameworks these steps differ most:
#
# | step | `fully_shard` | DeepSpeed | JAX |
# |---|---|---|---|
# | 4 average | `fully_shard` | `engine.backward` | the compiler |
# | 5 broadcast | `broadcast_from_rank0`, by hand | `initialize` | `device_put` |
# | 6 checkpoint | all, in parts | all, in parts | all (`device_put` to whole) |

# %% [markdown]
# **What they have in common** is nearly everything: one average per step, equal first weights, disjoint data. **What
# differs** is who does a step, and so what you can forget. When you move a program from one framework to another, check
# rows 5 and 6 first.
#
# Horovod, DDP, FSDP and DeepSpeed average the gradients of ranks that each took the *mean* over their own batch.
# TensorFlow's strategies *sum*, so there the loss is divided by the global batch. Mix the two, and the step is N times
# too small or too large.

# %% [markdown]
# ## 10. Ray: who starts the processes?
#
# `mpirun`, `horovodrun` and `torchrun` start processes on machines that you have chosen. **Ray** (Moritz et al., 2018)
# is a cluster manager: a daemon on each machine, and a head that knows what is free. A program asks for workers with a
# number of cores and GPUs; Ray finds places, starts Python there, and sends functions and data. On a laptop the same
# program starts its own Ray; on a cluster it takes `--address`.

# %%
programs.show(PROGRAMS / "train_ray.py", "ray_executor")

# %% [markdown] tags=["slide-text"]
# `RayExecutor` belongs to Horovod: it asks Ray for places, tells each rank its number and where to meet, and runs the
# function. `TensorflowTrainer` belongs to Ray: it starts the workers, writes TF_CONFIG for each, and stores what the
# chief reports.
#
# Neither trains: inside the workers Horovod or TensorFlow's strategy does the all-reduce. Ray replaces the launcher and
# the list of hosts.

# %% tags=["varies"]
comparison.run("ray_horovod")
comparison.recorded("ray_tensorflow")  # it takes long to start
comparison.judge("ray_horovod", "ray_tensorflow")

# %% [markdown]
# ## 11. MXNet: a key-value store
#
# **Apache MXNet** (Chen et al., 2015) was Amazon's framework of choice from 2016 and was retired in 2023; version 1.9.1
# still runs. Its idea is a **key-value store** (Li et al., 2014). Under one key for each array of weights, a worker
# *pushes* its gradient and *pulls* the result:
#
# ```python
# store.push(key, parameter.grad())
# store.pull(key, out=parameter.data())
# ```
#
# With `dist_sync` the store adds up what all workers push; `dist_async` waits for none. After `set_optimizer` the
# *server* turns each sum into a step, and a pull returns new weights. Without it a pull returns the sum: an all-reduce.
# A worker sends and receives $n$ bytes, a single server $Nn$; $N$ servers that share the keys have $n$ each.

# %% tags=["varies"]
comparison.run("mxnet")
comparison.run("mxnet_all_reduce")
comparison.judge("mxnet", "mxnet_all_reduce")

# %% [markdown]
# ## 12. Mesh TensorFlow, and what happened to its idea
#
# **Mesh TensorFlow** (Shazeer et al., 2018) had the mesh of section 7 first: names for the dimensions of tensors and of
# a grid of devices, and a layout that says which goes over which. But it had its own operations on graphs of
# TensorFlow 1, so models had to be written for it.
#
# GSPMD (Xu et al., 2021) put it into the compiler XLA: you annotate a few tensors of an ordinary program. JAX offers
# that as `jax.sharding`, now by GSPMD's successor Shardy. TensorFlow and PyTorch have the idea without it: each has its
# own **DTensor** ([chapter 12](12_model_parallelism.ipynb)), and `fully_shard` is built on PyTorch's.
#
# All results of this chapter, and below them where the recorded ones come from:

# %% tags=["varies"]
print(comparison.table(), comparison.provenance(), sep="\n\n")

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
# - Horovod, DDP, FSDP, ZeRO, JAX, Ray's workers and MXNet's store all computed the serial run's weights.
# - DDP broadcasts, `fully_shard` does not; there all ranks write a checkpoint.
# - In JAX you say where arrays are stored, and the compiler adds the collectives.
# - Two ranks that equal one prove the parallel part; a silent default shows only against another framework.
# - Ray starts processes; it does not train.
#
# **Next.** [Lab 14](../labs/14_other_frameworks/lab.ipynb), [15 clusters](15_clusters.ipynb).
#
# **Sources.**
# - On arXiv, DDP: [2006.15704](https://arxiv.org/abs/2006.15704).
#   FSDP: [2304.11277](https://arxiv.org/abs/2304.11277).
#   ZeRO: [1910.02054](https://arxiv.org/abs/1910.02054).
#   GSPMD: [2105.04663](https://arxiv.org/abs/2105.04663).
# - JAX: [sharding](https://docs.jax.dev/en/latest/201/sharding.html),
#   [processes](https://docs.jax.dev/en/latest/_autosummary/jax.distributed.initialize.html).
#   Ray: [1712.05889](https://arxiv.org/abs/1712.05889).
#   Mesh TensorFlow: [1811.02084](https://arxiv.org/abs/1811.02084).
#   MXNet: [1512.01274](https://arxiv.org/abs/1512.01274);
#   [Apache Attic](https://attic.apache.org/projects/mxnet.html).
# - Li et al., [*Parameter server*](https://www.usenix.org/conference/osdi14/technical-sessions/presentation/li_mu).
# - [torchrun](https://docs.pytorch.org/docs/stable/elastic/run.html);
#   [Accelerate](https://huggingface.co/docs/accelerate/concept_guides/performance);
#   [Lightning](https://lightning.ai/docs/pytorch/latest/extensions/strategy.html).
