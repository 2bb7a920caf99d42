# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 08b Keras 3
#
# **Goal.** Know which of TensorFlow's strategies work with Keras 3, write the loop that does, avoid one all-reduce too
# many, and know what `keras.distribution` distributes.
#
# **Time.** 20 minutes to read, half a minute to run.
#
# **Before this.** [04 custom training loop](04_custom_training_loop.ipynb), [07 multi-worker](07_multi_worker.ipynb)
# and [08 other strategies](08_other_strategies.ipynb).
#
# **Questions.**
# - Which strategy works with `fit`, which with a loop, and with which Keras?
# - Who adds up the gradients?
# - Which mistake does SGD show, and Adam hide?
# - What does `keras.distribution` do on TensorFlow, and on JAX?
#
# **Hardware.** Two CPU cores. Workers are processes on this machine.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist
epochs = 1  # of 20 steps, in section 3
workers = 2  # processes to start, 2 or 3

# %% jupyter={"source_hidden": true}
import distlab

import json
import tempfile
from pathlib import Path

import numpy as np
from IPython.display import Markdown

from distlab import checks, data, launch, programs, quizzes, strategy_support

PROGRAMS = Path("programs/08b_keras_3")
team = min(max(workers, 2), 3)
how = {"start_seconds": 300, "echo": False}
print(data.describe(dataset))

# %% [markdown]
# ## 1. A loop that works
#
# Since TensorFlow 2.16 `tf.keras` is **Keras 3**: a separate package, which computes with TensorFlow, JAX or PyTorch.
# The old one, here called *legacy Keras*, lives on as `tf-keras`, selected by `TF_USE_LEGACY_KERAS=1`. This course uses
# it because Keras 3 fails in some cases with several processes.
#
# Ask first: *who adds up the gradients?* Under `MultiWorkerMirroredStrategy` it is the optimizer's `apply`, so this
# loop needs no all-reduce of its gradients:

# %%
programs.show(PROGRAMS / "minimal.py")

# %% [markdown]
# In a terminal: `distlab launch --workers 2 minimal.py`. All workers print the same lines, shown once:

# %% tags=["varies", "slide-output"]
run = launch.tensorflow(PROGRAMS / "minimal.py", workers=team, **how)
print(*set(run.output.values()), sep="\n")

# %% [markdown] tags=["slide-predict"]
# ## 2. What works, measured
#
# Each cell of the next table is a program that ran, and its weights are compared with those of the default strategy
# (`make support-table` repeats it).
#
# **Predict.** `fit` or a loop, legacy Keras or Keras 3: which strategies fail where?

# %%
Markdown(strategy_support.markdown(strategy_support.read(PROGRAMS / "support_table.json")))

# %% [markdown] tags=["slide-points"]
# What fails, and why:
#
# - **`MultiWorkerMirroredStrategy`, `fit`.** Where TensorFlow expects a tensor, it gets a `PerReplica` object with one
#   value per replica, and cannot convert it. With *one* worker `fit` works, so test with two.
# - **`ParameterServerStrategy`.** `fit` fails, and in a loop the optimizer's counter loses updates: take legacy Keras,
#   or a loop without schedules and Adam.
# - **Horovod.** It expects TensorFlow's variables: a loop works if broadcast and tape get the `value` of each of
#   Keras's; for `fit` [chapter 09](09_horovod.ipynb) has an optimizer.
#
# `MirroredStrategy` works here, on CPU devices. On several GPUs, users reported that XLA fails
# ([keras#18627](https://github.com/keras-team/keras/issues/18627)) or hangs with mixed precision
# ([keras#20763](https://github.com/keras-team/keras/issues/20763)); Keras 3.15 leaves it out under a strategy, unless
# you ask for it.

# %% [markdown] tags=["slide-predict"]
# ## 3. One all-reduce too many
#
# The loop divides each loss by the *global* batch size. So the *sum* of the workers' gradients is the gradient of the
# batch's mean loss, and `apply` forms this sum. You might add your own all-reduce before it, if you come from Horovod
# or want to clip the whole gradient (Keras 3's `global_clipnorm` clips each worker's own). Legacy Keras can then leave
# out its own (`skip_gradients_aggregation=True`); Keras 3 cannot.
#
# `keras_3.py` trains with SGD and with Adam. Each time `apply` gets the gradients in three ways: as they are, added up
# before (`SUM`), averaged before (`MEAN`).
#
# **Predict.** Which of the six runs differ from serial training, and in which of them would the loss tell you?

# %% tags=["varies"]
folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "weights.npz"
arguments = ["--dataset", dataset, "--steps", 20 * epochs, "--weights", file]
run = launch.tensorflow(PROGRAMS / "keras_3.py", *arguments, workers=team, result=True, **how)
saved = dict(np.load(file))
folder.cleanup()
print(f"{run.seconds:.0f} s")

# %% tags=["slide-output"]
keras_3 = programs.module(PROGRAMS / "keras_3.py")
options = keras_3.parse(["--dataset", dataset, "--steps", str(20 * epochs)])
print("                       distance from serial,    loss of the")
print("optimizer, gradients   % of distance trained      last step")
for name, optimizer in keras_3.OPTIMIZERS.items():
    first, last = keras_3.serial(options, optimizer(keras_3.RATES[name]))
    for way in keras_3.WAYS:
        weights, losses = saved[f"{name}, {way}"], run.result["losses"][f"{name}, {way}"]
        share = np.linalg.norm(weights - last) / np.linalg.norm(last - first)
        print(f"{name + ', ' + way:22} {share:21.1%} {losses[-1]:14.3f}")

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# Added up before, the gradient $g$ of $n$ workers becomes $n g$.
#
# ![Two workers' gradients 1 and 3: apply makes 4 of them, but 8 if they are added
# before](../figures/08b_one_all_reduce_too_many.svg)
#
# For SGD that is a learning rate $n$ times as large. (100 % is the distance between the first and the last weights of
# serial training.) Adam divides $m$, a running mean of gradients, by the root of $v$, a running mean of their squares:
#
# $$\eta \, \frac{n m}{\sqrt{n^2 v} + \varepsilon} = \eta \, \frac{m}{\sqrt{v} + \varepsilon / n}.$$
#
# The factor cancels, except for the tiny $\varepsilon$ against a division by zero. So **the weights show it under SGD,
# hardly under Adam. The loss gives no warning**: with SGD it may even be lower, because the wrong run takes larger
# steps. Compare weights, and test with SGD. Both can be tested on one device:

# %% tags=["slide-output"]
sgd, adam = keras_3.OPTIMIZERS["SGD"], keras_3.OPTIMIZERS["Adam"]
_, faster = keras_3.serial(options, sgd(team * keras_3.RATES["SGD"]))
print(f"SGD, added before, and {team} times the rate on one device:", end=" ")
checks.assert_equal_weights([saved["SGD, added before"]], [faster])
for epsilon in (1e-7, 1e-16):
    both = []
    for by in (1, 2):
        optimizer = adam(keras_3.RATES["Adam"], epsilon=epsilon)
        both.append(keras_3.serial(options, optimizer, by)[1])
    change = np.abs(np.subtract(*both)).max()
    print(f"Adam, ε = {epsilon:g}: a doubled loss changes the weights by up to {change:.0e}")

# %% [markdown] tags=["slide-quiz"]
# With the usual ε, only weights whose gradient is about as small as ε move differently.
#
# **Question.** Four workers; a loop in Keras 3 does `all_reduce("SUM")`, clips that gradient's norm and calls `apply`.
# What makes it right?
#
# 1. Adam.
# 2. A quarter of the learning rate.
# 3. Dividing the clipped gradient by `num_replicas_in_sync`.
# 4. Nothing: one worker equals serial training.
#
# <details>
# <summary>Answer</summary>
#
# 1. It hides the factor until somebody changes the optimizer.
# 2. Right for SGD, and wrong again with eight workers.
# 3. **Right.** `apply` adds up four equal quarters.
# 4. A sum over one hides every factor.
# </details>

# %% [markdown] tags=["slide-predict"]
# ## 4. `keras.distribution`
#
# Keras 3 has its own interface to data and model parallelism: `DataParallel`, and `ModelParallel` with a `LayoutMap`
# from the paths of variables to their splits over a mesh, a grid of devices with named axes. The
# [guide](https://keras.io/guides/distribution/) names JAX and PyTorch as backends; in release 3.15 PyTorch is still
# missing.
#
# ```python
# mesh = keras.distribution.DeviceMesh((1, 4), ("batch", "model"), keras.distribution.list_devices()[:4])
# layouts = keras.distribution.LayoutMap(mesh)
# layouts[".*hidden/kernel"] = (None, "model")  # its columns are divided along the mesh's axis "model"
# # before any layer, optimizer or model is made:
# keras.distribution.set_distribution(keras.distribution.ModelParallel(layout_map=layouts))
# ```
#
# `keras_distribution.py` trains with `fit` on four devices, and a layer that changes nothing records which devices
# compute. Read `4 × (784, 4)` as: each of four devices holds an array of this shape.
#
# **Predict.** What does `ModelParallel` do on TensorFlow: split, fail, or nothing?

# %% tags=["slide-output"]
how = {"environment": {"OMP_NUM_THREADS": "1"}, "echo": False, "result": True}
here = launch.alone(PROGRAMS / "keras_distribution.py", **how).result
recorded = json.loads((PROGRAMS / "keras_distribution_jax.json").read_text())
backends = here["runs"], recorded["runs"]
print(f"{'':32} TensorFlow: kernel, batch     JAX: kernel, batch")
for name in here["runs"]:
    found = [runs[name] for runs in backends if name in runs]
    parts = [run[what] for run in found for what in ("kernel", "batch")]
    print(f"{name:32}", *(f"{len(part)} × {tuple(part[0][1])}".ljust(14) for part in parts))
differs = [run["differs"] for runs in backends for run in runs.values()]
print(f"largest difference of the weights from the first run's: {max(differs):.0e}")
versions = ", ".join(f"{name} {version}" for name, version in recorded["versions"].items())
print(f"JAX: recorded on {recorded['measured']} with {versions}")

# %% [markdown] tags=["slide-takeaway"]
# On TensorFlow the layouts are accepted and ignored. One device does everything, the result is right, and the others
# idle. On JAX `DataParallel` divides the batch, and `ModelParallel` the kernel; a mesh of 2 × 2 would divide both. But
# a key must match the *whole* path. `hidden/kernel` is only a part of it and divides nothing, without a warning: write
# `.*hidden/kernel`. (Earlier releases accepted a part, and the guide's example, `d1/kernel`, needs that.)

# %% [markdown] tags=["slide-table"]
# ## 5. Which Keras to take
#
# | you have | take |
# |---|---|
# | one machine | either Keras with `MirroredStrategy` |
# | several machines, TensorFlow, `fit` | legacy Keras |
# | several machines, TensorFlow, a loop | Keras 3 with the loop of section 1 |
# | Horovod | legacy Keras, or Keras 3 with optimizer and `compile` of [09](09_horovod.ipynb) |
# | parameter servers | legacy Keras |
# | a new project on several machines | Keras 3 on JAX with `keras.distribution`, or PyTorch without Keras |
#
# Keras's author also advises JAX with `keras.distribution`, and states that Keras 3 does not work with
# `MultiWorkerMirroredStrategy` ([keras#20585](https://github.com/keras-team/keras/issues/20585), December 2024).
# Section 2 narrows that down: on CPUs only `fit` fails. With JAX on several machines each process first calls
# `keras.distribution.initialize(job_addresses, num_processes, process_id)`.

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("08b")

# %% [markdown]
# ## Recap
#
# - With several workers `fit` needs legacy Keras; with Keras 3 a loop works, and its `apply` adds up the gradients.
# - A sum before `apply` multiplies the gradient by the number of workers. SGD's weights show it, Adam's hide it.
# - Under parameter servers Keras 3 loses counts of updates: no Adam, no schedule.
# - `keras.distribution` does nothing on TensorFlow; on JAX a LayoutMap key must match the whole path.
#
# **Next.** [09 Horovod](09_horovod.ipynb).
#
# **Sources.**
# - Keras: [Distributed training with Keras](https://keras.io/guides/distribution/).
# - Kingma and Ba (2015), *Adam*, [arXiv:1412.6980](https://arxiv.org/abs/1412.6980).
