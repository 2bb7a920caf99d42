# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
# ---

# %% [markdown]
# # 12 Model parallelism
#
# **Goal.** Split one model in several ways, prove each time that it still computes the same, and choose a split for a
# model and a cluster by memory and time.
#
# **Time.** 35 minutes to read, one minute to run.
#
# **Before this.** [01 why distribute](01_why_distribute.ipynb), [04 custom training
# loop](04_custom_training_loop.ipynb) and [06 collectives](06_collectives_and_ring_all_reduce.ipynb).
#
# **Questions.**
# - What must be sent when a layer is split inside, and who puts the collectives into the program?
# - How long do the stages of a pipeline wait, and what do they keep in memory meanwhile?
# - What does it cost not to keep activations?
# - Which split does a model of 175 billion parameters need?
#
# **Hardware.** Two CPU cores, as up to eight logical devices. GPUs are used where there are enough.

# %% tags=["parameters"]
dataset = "digits"  # digits, mnist or fashion_mnist
epochs = 1  # not used in this chapter: every run has a fixed number of steps
workers = 4  # ranks in sections 4 and 5, at least 2

# %% jupyter={"source_hidden": true}
import distlab  # first: it selects tf-keras

import itertools
import weakref
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import tensorflow as tf
from IPython.display import Markdown, display

from distlab import checks, costs, data, draw, frameworks, launch
from distlab import model_parallel, programs, quizzes, recorded_results
from distlab.simulate import Network, World

pipelines = model_parallel.pipelines
zero = model_parallel.sharded_optimizers
draw.apply_style()
tf.config.experimental.enable_tensor_float_32_execution(False)  # else newer GPUs round factors
PROGRAMS, ranks = Path("programs/12_model_parallelism"), max(workers, 2)
quiet = {"echo": False, "start_seconds": 300}

# %% [markdown] tags=["slide-table"]
# ## 1. Why split a model, and where?
#
# GPT-3 has 175 billion parameters. Training takes 16 bytes for each (section 5), so 2.8 TB, and the A100 of section 6
# has 80 GB. Data parallelism does not help, since every device has the whole model. Something else must be divided:
#
# | split | a device has | what is sent in each step |
# |---|---|---|
# | data (chapters 03 to 11) | the whole model, a part of the batch | gradients |
# | **inside a layer** (tensor) | a part of every layer, the whole batch | activations, all-reduced |
# | **by layers** (pipeline) | some layers | activations and their gradients, to neighbours |
# | **by parts of the input** (spatial) | the whole model, a part of each image | borders, and gradients |
# | **states** (ZeRO, FSDP) | a share of everything, a part of the batch | gradients and parameters |

# %% [markdown]
# ## 2. Inside a layer
#
# ### By hand
#
# A hidden layer has 10 units, 5 on each of two devices. A unit is a *column* of the first weights and a *row* of the
# second. So each device computes 5 hidden units, and with its 5 rows a part of every sum in the output:

# %% tags=["program"]
import tensorflow as tf
from sklearn.datasets import load_digits

kind = "GPU"
if len(tf.config.list_physical_devices("GPU")) < 4:  # section 3 needs four
    kind, processor = "CPU", tf.config.list_physical_devices("CPU")[0]
    parts = [tf.config.LogicalDeviceConfiguration()] * 4
    tf.config.set_logical_device_configuration(processor, parts)
names = [f"{kind}:{number}" for number in range(4)]

digits, classes = load_digits(return_X_y=True)
images, labels = tf.constant(digits[:64] / 16, tf.float32), tf.constant(classes[:64])
first = tf.random.stateless_normal((64, 10), seed=(1, 2), stddev=0.2)
second = tf.random.stateless_normal((10, 10), seed=(3, 4), stddev=0.3)


# %% tags=["program"]
def loss_of(outputs):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs)
    return tf.reduce_mean(losses)


columns, rows = [], []
for device, units in zip(names[:2], (slice(0, 5), slice(5, 10)), strict=True):
    with tf.device(device):
        columns.append(tf.Variable(first[:, units]))
        rows.append(tf.Variable(second[units]))

for _ in range(20):
    with tf.GradientTape(persistent=True) as tape:
        partial_outputs = []
        for d in (0, 1):
            with tf.device(names[d]):
                partial_outputs.append(tf.nn.relu(images @ columns[d]) @ rows[d])
        loss = loss_of(tf.add_n(partial_outputs))  # between processes, an all-reduce
    for d in (0, 1):
        with tf.device(names[d]):  # of the backward pass, too
            own = columns[d], rows[d]
            for variable, gradient in zip(own, tape.gradient(loss, own), strict=True):
                variable.assign_sub(0.5 * gradient)


# %% jupyter={"source_hidden": true}
# The same training with undivided weights:
whole = [tf.Variable(first), tf.Variable(second)]
for _ in range(20):
    with tf.GradientTape() as tape:
        loss = loss_of(tf.nn.relu(images @ whole[0]) @ whole[1])
    for variable, gradient in zip(whole, tape.gradient(loss, whole), strict=True):
        variable.assign_sub(0.5 * gradient)

print("on each device:", *(tuple(part[0].shape) for part in (columns, rows)))
joined = [tf.concat(columns, axis=1), tf.concat(rows, axis=0)]
checks.assert_equal_weights(joined, whole)

# %% [markdown] tags=["slide-predict"]
# Only the partial outputs are summed over the devices, 64 × 10 numbers. Hidden units, weights and the gradients of the
# weights stay where they are. But layers before this block would need the gradient of its *input*, and each device has
# its own copy of the input.
#
# **Predict.** After the backward pass, does each device have this gradient?

# %% tags=["slide-output"]
copies = [tf.Variable(images), tf.Variable(images)]
with tf.GradientTape() as tape:
    partial_outputs = [tf.nn.relu(copies[d] @ columns[d]) @ rows[d] for d in (0, 1)]
    loss = loss_of(tf.add_n(partial_outputs))
by_copies = tape.gradient(loss, copies)

with tf.GradientTape() as tape:
    tape.watch(images)
    loss = loss_of(tf.nn.relu(images @ whole[0]) @ whole[1])
by_images = tape.gradient(loss, images)

largest = tf.reduce_max(tf.abs(by_images))
off = checks.largest_difference([by_copies[0] / largest], [by_images / largest])
print(f"device 0 alone is off by {off:.0%} of the largest gradient")
both = (by_copies[0] + by_copies[1]) / largest
checks.assert_equal([both], [by_images / largest], "gradients")

# %% [markdown] tags=["slide-takeaway", "slide-picture"]
# No: it is a sum over all hidden units, and a device has five. So the backward pass has **a second all-reduce**, as
# large as the block's input (Shoeybi et al., 2019).
#
# Attention is split in the same way. A **head** is some columns of the matrices for queries, keys and values, and some
# rows of the output matrix:
#
# ![Four heads on two devices: columns, then attention without a message, then rows and one
# all-reduce](../figures/12_attention_heads.svg)
#
# A transformer layer has two such blocks, attention and MLP, each with one forward and one backward: **four all-reduces
# per layer and micro-batch**, and six if the forward pass is recomputed (section 3). The 96 layers of GPT-175B need 384
# for every micro-batch.

# %% [markdown] tags=["slide-picture"]
# ### With layouts
#
# TensorFlow's **DTensor** splits a whole program. The devices form a **mesh**. A **layout** says for each dimension of
# a tensor which mesh dimension cuts it:
#
# ```python
# mesh = dtensor.create_mesh([("data", 2), ("model", 2)], devices=names)
# by_columns = dtensor.Layout([dtensor.UNSHARDED, "model"], mesh)
# ```
#
# ![W by columns ends in an all-gather, W by rows in an all-reduce](../figures/12_tensor_split.svg)
#
# The training step says nothing about it. TensorFlow follows the layouts and inserts the collectives:

# %%
tensor_split = PROGRAMS / "tensor_split.py"
text = tensor_split.read_text()
print(text[text.index("SPLITS = {") : text.index("def parse")].rstrip())
programs.show(tensor_split, "step")

# %% [markdown]
# "Column, row" is the split above. "Column, column" cuts both weights by columns. (Eight devices can share 80 hidden
# units and 16 outputs, of which ten are used.)
#
# **Predict.** Which of the two needs more communication, and where?

# %%
split = launch.alone(tensor_split, "--dataset", dataset, result=True, **quiet).result
print(f"{'split':16}{'data × model':>14}   first and second weights on one device")
for run in split["runs"]:
    shapes = ", ".join(f"{high} × {wide}" for high, wide in run["shapes"])
    print(f"{run['split']:16}{run['data']:>10} × {run['model']}   {shapes}")
print(f"by formula, sent between the layers, each way: {64 * 80:,} by column, column; else 0")
differences = [run["difference"] for run in split["runs"]]
checks.assert_equal(differences, [0.0] * len(differences), "weights")

# %% [markdown]
# Column, column: a device needs all hidden units, so an **all-gather** of 64 × 80 numbers comes between the layers, and
# as many are summed on the way back. The loss needs all 16 outputs, so the devices also communicate after them. Hence
# the rule: first by columns, then by rows. **Data × model** is both at once: each row of the mesh has the whole model,
# and gradients are all-reduced between the rows.
#
# **Question.** 8,000 hidden units instead of 80. How much more is sent with "column, row"?
#
# 1. A hundred times more, like the weights.
# 2. Nothing more.
# 3. A hundred times more, like the hidden layer.
#
# <details>
# <summary>Answer</summary>
#
# 1. No weight is sent at all.
# 2. **Right.** The partial outputs have the size batch × classes, and the input's gradient that of the input, whatever
#    the number of units.
# 3. It stays where it is.
# </details>
#
# ### Today: PyTorch and JAX
#
# TensorFlow's DTensor is a dead end: it is still `tf.experimental`, and Keras 3 does not support it. In PyTorch, this
# divides a model on a mesh of data × tensor parallel ranks
# ([mesh.py](programs/12_model_parallelism/mesh.py) compares it with an undivided one):

# %%
programs.show(PROGRAMS / "mesh.py", "divide", "train")


# %% jupyter={"source_hidden": true} tags=["varies"]
def train_on_mesh():
    environment = {"PYTHONWARNINGS": "ignore", "TORCH_LOGS": "-dtensor"}
    how = {"python": frameworks.python("torch"), "environment": environment, **quiet}
    return launch.torchrun(PROGRAMS / "mesh.py", ranks=4, **how).output["rank 0"]


missing = frameworks.problem("torch")
folder = PROGRAMS / "recorded"
output, source = recorded_results.measured_or_recorded("mesh", missing, train_on_mesh, folder)
print(output.rstrip(), *([f"\nOutput {source}"] if missing else []), sep="\n")

# %% [markdown]
# `parallelize_module` cuts columns and rows, and `fully_shard` divides what is left among the data-parallel ranks
# (section 5). PyTorch stores weights transposed, so a column is a row here. In **JAX** the layout is
# `NamedSharding(mesh, PartitionSpec(None, "model"))`, and the compiler inserts the collectives ([chapter
# 14](14_other_frameworks.ipynb)).

# %% [markdown] tags=["slide-picture"]
# ## 3. By layers: a pipeline
#
# The layers are cut into **stages**, each on its device. Activations go forward from stage to stage, and gradients come
# back. If the whole batch goes through at once, only one stage works at a time. So the batch is cut into
# **micro-batches** that follow each other:
#
# ![The whole batch takes 48 units of time, four micro-batches take 21](../figures/12_pipeline_schedule.svg)
#
# TensorFlow does copy a tensor to the device that reads it. But the program must cut the batch, order the passes, and
# keep a **tape** per micro-batch and stage:

# %%
stages_program = PROGRAMS / "pipeline_stages.py"
staged = programs.module(stages_program)
programs.show(stages_program, "forward", "backward")

# %% [markdown] tags=["slide-text", "slide-predict"]
# In which order? **GPipe** does all forward passes, then all backward passes. **1F1B** (one forward, one backward)
# starts each backward pass as early as it can. **Interleaved** 1F1B gives each stage several chunks of layers, here
# two: a micro-batch goes through chunk 0 of all stages, then through chunk 1.
#
# **Predict.** Eight micro-batches, four stages. Which of the first two is faster? How many tapes do the first and the
# last stage keep at most?

# %%
undivided = staged.train(dataset, 10, staged.make_stages(1, names), "gpipe", 1)
differences = []
for count, schedule in ((2, "gpipe"), (2, "1f1b"), (4, "gpipe"), (4, "1f1b")):
    stages = staged.make_stages(count, names)
    weights = staged.train(dataset, 10, stages, schedule, micro_batches=8)
    differences.append(checks.largest_difference(weights, undivided))
    tapes = [stage.most_tapes for stage in stages]
    print(f"{count} stages, {schedule}: tapes kept at most, by stage: {tapes}")
checks.assert_equal(differences, [0.0] * len(differences), "weights")

# %% jupyter={"source_hidden": true} tags=["slide-output"]
timings = {
    "GPipe": pipelines.simulate("gpipe", 4, 8),
    "1F1B": pipelines.simulate("1f1b", 4, 8),
    "interleaved 1F1B, 2 chunks per stage": pipelines.simulate("interleaved", 4, 8, chunks=2),
}
text = "Time lines of four stages and eight micro-batches: GPipe and 1F1B take equally long, "
draw.show(draw.pipeline_schedules(timings), text + "interleaved 1F1B is shorter.")

# %% [markdown] tags=["slide-takeaway", "slide-text", "slide-formula"]
# GPipe and 1F1B take *equally* long; GPipe keeps 8 tapes in each stage, 1F1B 4 in the first and 1 in the last. (The
# time lines come from the virtual cluster, where a backward pass takes twice as long as a forward pass.)
#
# With $p$ stages, $m$ micro-batches and $v$ chunks per stage, the time in which stages wait, the **bubble**, has the
# share
#
# $$\frac{p - 1}{v\,m + p - 1}$$
#
# (Huang et al., 2019; Narayanan et al., 2021). Without stale weights no order avoids it as long as a backward pass is
# one piece. **Zero bubble** schedules (Qi et al., 2024) split it: another stage waits only for the gradient of the
# inputs, and that of the weights fills gaps; to fill all of them takes more memory. **DualPipe** (DeepSeek-AI, 2024)
# also feeds micro-batches in at both ends, for two copies of the parameters.

# %%
draw.calculator("pipeline")

# %% [markdown]
# Move the sliders, where every micro-batch has the same size: more of them shrink the bubble, and under GPipe they fill
# the memory. Under 1F1B a stage never keeps more than $p$ of them, a share $p/m$ of the batch. Interleaving keeps
# somewhat more, and sends $v$ times as many messages. So let messages take time:

# %% jupyter={"source_hidden": true}
print("4 stages, 32 micro-batches; all times in forward passes")
for message in (0.0, 0.01, 0.1):
    network = Network(latency=message, seconds_per_byte=0.0)
    print(f"message {message:.2f}:", end="")
    for name, v in (("1f1b", 1), ("interleaved", 2), ("interleaved", 4)):
        seconds = pipelines.simulate(name, 4, 32, v, network=network).seconds
        print(f"   {name}, v = {v}: {seconds:5.1f}", end="")
    print()

# %% [markdown] tags=["slide-predict"]
# At a hundredth of a forward pass (between hosts, [chapter 11](11_scaling_and_profiling.ipynb), section 5) interleaving
# pays. At a tenth it costs more than it gains.
#
# **Question.** Four stages. What do eight micro-batches instead of four do to the time?
#
# 1. It halves.
# 2. It falls by about a fifth.
# 3. Nothing, the number of stages decides.
#
# <details>
# <summary>Answer</summary>
#
# 1. The work is the same; only waiting shrinks.
# 2. **Right.** $(m + p - 1)/m$ goes from $7/4$ to $11/8$.
# 3. The bubble is $p - 1$ passes of a *micro-batch*, and those got shorter.
# </details>
#
# ### Recomputation
#
# What a tape keeps are **activations**. `tf.recompute_grad` (in PyTorch `torch.utils.checkpoint`) keeps only a block's
# input, and runs the block again in the backward pass. Here are eight layers in blocks of two.
#
# **Predict.** A forward pass has one matrix product per layer, a backward pass two. What does recomputation cost?


# %% tags=["slide-output"]
start = tf.random.stateless_normal((8, 64, 64), seed=(5, 6), stddev=0.18)
layers = [tf.Variable(weights) for weights in start]
layer_outputs, gradients = [], {}


def two_layers(number, is_recomputed):
    def block(inputs):
        for weights in layers[number : number + 2]:
            inputs = tf.nn.relu(inputs @ weights)
            layer_outputs.append(weakref.ref(inputs))  # to see whether it is still in memory
        return inputs

    return tf.recompute_grad(block) if is_recomputed else block


for is_recomputed in (False, True):
    layer_outputs.clear()
    with tf.GradientTape() as tape:
        outputs = images
        for number in range(0, 8, 2):
            outputs = two_layers(number, is_recomputed)(outputs)
        loss = loss_of(outputs[:, :10])
    kept = sum(output() is not None for output in layer_outputs)
    gradients[is_recomputed] = tape.gradient(loss, layers)
    name = "recomputed" if is_recomputed else "plain"
    print(f"{name:11}{kept} outputs kept, {len(layer_outputs):2} forward passes of a layer")
checks.assert_equal(gradients[True], gradients[False], "gradients")

# %% [markdown] tags=["slide-takeaway"]
# One output per block is kept (here half), and every layer runs forward twice: by formula $(1 + 1 + 2)/(1 + 2)$,
# **4/3** of the work. Large models pay it (section 6), or recompute only *selected* operations that are large but
# cheap, such as the attention weights (Korthikanti et al., 2022).

# %% [markdown]
# ## 4. On parts of one large image (optional)
#
# A tomogram or a satellite image may not fit although the model is small. So each rank takes a **tile** of every layer.
# A convolution needs pixels beyond the tile's edge, the **halo**: for a kernel of $2k + 1$ pixels, $k$ on each side.
# The neighbours have them.
#
# ![Four tiles; columns are exchanged first, then rows with the corners](../figures/12_spatial_split.svg)
#
# Every rank runs `with_halo`, here on the virtual cluster. The program does two convolutions with a ReLU between them,
# then their gradients, which need a halo too. We compare with TensorFlow on the whole image, and then leave the
# exchange out.

# %%
spatial = programs.module(PROGRAMS / "spatial_split.py")
programs.show(PROGRAMS / "spatial_split.py", "with_halo")

# %% jupyter={"source_hidden": true}
image, kernels, target = spatial.problem(height=301, width=203)
tiles = list(zip(*(spatial.tiles_of(whole, ranks) for whole in (image, target)), strict=True))


def convolve(rank, own):
    return spatial.convolve_tiles(rank, own[0], kernels, own[1])


run = World(ranks).run(convolve, tiles)
with tf.GradientTape() as tape:
    variables = [tf.Variable(kernel) for kernel in kernels]
    hidden = tf.nn.relu(tf.nn.conv2d(image[None], variables[0], strides=1, padding="SAME"))
    expected = tf.nn.conv2d(hidden, variables[1], strides=1, padding="SAME")[0]
    error = tf.reduce_sum((expected - target) ** 2) / 2
by_kernels = tape.gradient(error, variables)
largest = max(float(tf.reduce_max(tf.abs(gradient))) for gradient in by_kernels)
outputs = spatial.together([tile for tile, _ in run.results])
by_tiles = run.results[0][1]
print(f"sent, forward and backward: {run.bytes_sent / image.nbytes:.0%} of the image's bytes")
checks.assert_equal([outputs], [expected], "outputs")
parts, expected_parts = ([part / largest for part in by] for by in (by_tiles, by_kernels))
checks.assert_equal(parts, expected_parts, "gradients")

alone = [World(1).run(convolve, [own]).results[0][0] for own in tiles]
wrong = np.abs(spatial.together(alone) - expected).max(axis=2) > 1e-6
print(f"without the exchange {np.mean(wrong):.1%} of the pixels are wrong")

# %% [markdown]
# Without the exchange nothing crashes, and the output is wrong along all cuts: two convolutions of 5 × 5 reach 4 pixels
# to each side. The halo grows with a tile's perimeter, the work with its area: large tiles send a small share.
#
# **Question.** Could a rank fetch one halo of 4 pixels at the start instead of 2 pixels twice?
#
# 1. No, the second layer's values do not exist yet.
# 2. Yes: fewer messages, and the overlap is computed twice.
# 3. Yes, and it is always better.
#
# <details>
# <summary>Answer</summary>
#
# 1. They can be computed from the wider halo.
# 2. **Right.** It pays where latency is high and layers are few. Be careful with the padding at the image's edge:
#    outside, hidden values are 0, not computed.
# 3. The overlap grows with every layer; after 30 layers of this kind it is larger than such a tile.
# </details>

# %% [markdown] tags=["slide-table"]
# ## 5. Sharded states: ZeRO
#
# In data parallelism every rank stores *all* parameters, gradients and optimizer states. With Adam in mixed precision a
# parameter needs 2 bytes for its value, 2 for its gradient, and 12 in the optimizer: 4 each for a copy in single
# precision (small updates vanish in 2 bytes), momentum and variance. **ZeRO** (Rajbhandari et al., 2020) divides them
# among the $N$ ranks:
#
# | stage | divided | bytes per parameter |
# |---|---|---|
# | 0 | nothing | $2 + 2 + 12$ |
# | 1 | optimizer states | $2 + 2 + 12/N$ |
# | 2 | gradients, too | $2 + (2 + 12)/N$ |
# | 3 | parameters, too (PyTorch calls it FSDP) | $(2 + 2 + 12)/N$ |
#
# An all-reduce is a reduce-scatter and an all-gather. Between the two each rank has *its share* of the summed gradient,
# enough to update its share of the parameters, since Adam works element by element.

# %% jupyter={"source_hidden": true} tags=["slide-output"]
figure, axes = plt.subplots(figsize=(7.2, 2.4))
states = {"parameters": (2, 3), "gradients": (2, 2), "optimizer": (12, 1)}
left = np.zeros(4)
for number, (state, (size, divided_from)) in enumerate(states.items()):
    width = [7.5 * size / (64 if stage >= divided_from else 1) for stage in zero.STAGES]
    hatch = {"hatch": draw.HATCHES[number], "edgecolor": "white", "linewidth": 0}
    axes.barh(list(zero.STAGES), width, left=left, label=state, **hatch)
    left += width
for stage, size in enumerate(left):
    axes.text(size + 1, stage, f"{size:.1f} GB", va="center")
axes.set_yticks(list(zero.STAGES), ["ZeRO 0", "ZeRO 1", "ZeRO 2", "ZeRO 3"])
axes.invert_yaxis()
axes.set(xlabel="GB on each of 64 devices, for 7.5 billion parameters", xlim=(0, 140))
figure.legend(loc="outside upper center", ncols=3)
draw.show(figure, f"GB of model states per device, ZeRO 0 to 3: {left.round(1)}")

# %%
programs.show(zero.__file__, "Replica.sum_over_ranks", "Replica.update_layer")

# %% [markdown]
# `own_share` cuts out this rank's part of an array, and `adam_states` has the momentum and variance of what this rank
# updates. Stage 3 also gathers each layer before every pass through it, forward and backward. The program uses double
# precision: 8 bytes of value, 8 of gradient, 16 of momentum and variance per parameter.
#
# **Predict.** How many bytes do stages 1, 2 and 3 send, compared with stage 0?

# %% jupyter={"source_hidden": true}
print(f"$ mpirun -np {ranks} python shard_optimizer.py --dataset {dataset}\n")
shards = PROGRAMS / "shard_optimizer.py"
result = launch.mpirun(shards, "--dataset", dataset, ranks=ranks, result=True, **quiet).result
count, double_precision = result["parameters"], zero.BytesPerParameter(8, 8, 16)
header = "        sum     formula        sent     formula"
print("bytes  parameters + gradients + optimizer", header)
for stage, run in result["stages"].items():
    sizes = run["bytes_held"][0].values()
    kept = " + ".join(f"{size:,}" for size in sizes)
    held = zero.model_state_bytes(count, ranks, int(stage), double_precision)
    sent, formula = run["bytes_sent"][0], zero.bytes_sent(10 * 8 * count, ranks, int(stage))
    print(f"ZeRO {stage} {kept:>34}{sum(sizes):12,}{held:12,.0f}{sent:12,}{formula:12,.0f}")
differences = [run["difference"] for run in result["stages"].values()]
checks.assert_equal(differences, [0.0] * len(differences), "weights")

# %% [markdown]
# Stages 0 to 2 send the same, stage 3 sends 50 % more: the all-gather of the backward pass. (Small differences: layer
# sizes are no multiples of the ranks.)
#
# **Hybrid sharding** (HSDP) shards within a server and replicates between servers: more memory, less traffic on the
# slow links. In PyTorch, give `fully_shard` a mesh with two dimensions.

# %% [markdown]
# ## 6. Which split for which model?
#
# Now real models, on servers of 8 A100 with 80 GB (Narayanan et al., 2021). First the memory: the states, the
# activations of *one* sequence of 2,048 tokens, without and with recomputation, and how many GPUs the states fill.

# %% jupyter={"source_hidden": true}
cluster = costs.HARDWARE["selene"]
sizes = ("1.7b", "7.5b", "39b", "175b")
models = [costs.TRANSFORMERS[f"gpt-{size}"] for size in sizes]
table = "| in GB | states | activations | recomputed | GPUs |\n|---|---:|---:|---:|---:|\n"
for model in models:
    states = float(zero.model_state_bytes(model.parameters, 1, 0))
    kept = model.layers * model.layer_activation_bytes(1)
    inputs = model.layers * model.boundary_bytes(1)
    numbers = f"{states / 1e9:,.0f} | {kept / 1e9:,.0f} | {inputs / 1e9:,.1f}"
    gpus = np.ceil(states / cluster.memory_bytes)
    table += f"| {model.name} | {numbers} | {gpus:,.0f} |\n"
display(Markdown(table))
draw.calculator("memory")

# %% [markdown] tags=["slide-predict"]
# Then the time. Narayanan et al. trained GPT-175B in two ways, always with 1,536 sequences per step: with tensor 8 ×
# pipeline 12, and with ZeRO 3 alone. The column "formula" is `costs.predict_split`, which adds up the parts of a step.
# (TFLOP/s include the recomputed pass. Two shares were fitted to *other* runs: that of its peak which an A100 reaches,
# to the paper's table 1, and that of the links, to chapter 11's table.)
#
# **Predict.** What does twice the number of GPUs do to the time of a step with ZeRO 3?

# %% jupyter={"source_hidden": true} tags=["slide-output"]
gpt, sequences = costs.TRANSFORMERS["gpt-175b"], 1536
# Three runs with a split, three with ZeRO 3.
rates = [one for one in costs.THROUGHPUTS if one.what.startswith(gpt.name)]
table = "| GPUs | tensor × pipeline | formula | ZeRO 3 alone |\n|---:|---:|---:|---:|\n"
for gpus, split, sharded in zip((384, 768, 1536), rates[:3], rates[3:], strict=True):
    row = f"| {gpus:,} |"
    for rate in (split.published, split.predicted, sharded.published):
        seconds = gpt.training_flops(sequences) / (gpus * 1e12 * rate)
        row += f" {seconds:.0f} s"
        row += " |" if rate == split.predicted else f" ({rate:.0f} TFLOP/s) |"
    table += f"{row}\n"
traffic = 3 * 2 * gpt.parameters  # bytes: parameters twice, gradients once
alone = traffic * cluster.between.seconds_per_byte
received = f"With ZeRO 3 each server receives {traffic / 1e9:,.0f} GB per step. "
text = f"{received}Its links alone need {alone:.1f} s for them, not {seconds:.0f} s."
Markdown(f"{table}\n{text}")

# %% [markdown] tags=["slide-takeaway"]
# Little from 384 to 768 GPUs, nothing from 768 to 1,536. With 384 GPUs computing takes nearly the whole step (compare
# the split), and hides most of the traffic. The time from 768 on is a **fixed cost**, not congestion that grows. Each
# GPU has one micro-batch, for which every server receives all parameters twice and the gradients once, however many
# servers there are. The links alone need far less time. We do not know what took the rest, so we predict no
# time with ZeRO 3.
#
# Now the formula chooses: 512 GPUs, 1,024 sequences per step, splits by powers of two. ZeRO 2 is tried only without a
# pipeline: it needs a reduce-scatter for every micro-batch, and a pipeline has many.


# %% jupyter={"source_hidden": true}
def fastest(model, gpus=512, sequences=1024):
    """The fastest of all splits that divide this model and fit into memory."""
    steps = []
    tried = itertools.product((1, 2, 4, 8), (1, 2, 4, 8, 16, 32), (0, 1, 2), (1, 2, 4))
    for tensor, pipeline, stage, micro_batch in tried:
        split = costs.Split(tensor, pipeline, stage, micro_batch)
        try:
            step = costs.predict_split(model, cluster, gpus, split, sequences=sequences)
        except ValueError:
            continue  # layers, heads or sequences do not divide
        if step.fits and (pipeline == 1 or stage <= 1):
            steps.append(step)
    return min(steps, key=lambda step: step.step_seconds)


table = "| model | tensor × pipeline × data | ZeRO | micro-batch | step | bubble | TFLOP/s "
table += f"| memory |\n|---|{'---:|' * 7}\n"
for model in models:
    step = fastest(model)
    split, memory = step.split, (step.state_bytes + step.activation_bytes) / 1e9
    table += f"| {model.name} | {split.tensor} × {split.pipeline} × {step.data} "
    table += f"| {split.zero} | {split.micro_batch} | {step.step_seconds:.1f} s "
    table += f"| {step.bubble_fraction:.0%} | {step.flops_per_device / 1e12:.0f} "
    table += f"| {memory:.0f} GB |\n"
Markdown(table)

# %% [markdown] tags=["slide-points"]
# Small models need data parallelism alone, with ZeRO 1 when memory runs short. For larger ones:
#
# 1. **ZeRO 1**, or ZeRO 2 where a replica has one micro-batch (39 billion: of four sequences): less memory for the same
#    bytes sent.
# 2. **Tensor**, within a server: every layer waits for its all-reduces, so they need the fast links there, NVLink.
# 3. **Pipeline**, between servers: little traffic, but a bubble; it needs many micro-batches, so large batches.
# 4. **Data** with all devices that are left.
#
# PaLM's authors, on TPUs with another network, took 12-way tensor parallelism, parameters sharded 256-way, and no
# pipeline (Chowdhery et al., 2022). For your own split:
#
# ```
# distlab predict --model gpt-175b --tensor 4 --pipeline 4 --zero 1 --sequences 1024 --ranks 256,512
# ```

# %% [markdown]
# More techniques that you will meet:
#
# - **Sequence parallelism**: the ranks of a tensor split also divide layer norm and dropout, by tokens. Each all-reduce
#   becomes a reduce-scatter and an all-gather: the same bytes, less memory (Korthikanti et al., 2022).
# - **Context parallelism** cuts the tokens for attention, too. In ring attention (Liu et al., 2023) keys and values
#   travel round a ring. **Ulysses** (Jacobs et al., 2023) changes from tokens to heads and back by all-to-alls.
# - **Expert parallelism**: a router sends each token to a few of many MLPs, the experts, on other devices: two
#   **all-to-alls** per layer forward, two backward.
# - **Offload** moves states to the host's memory or to SSDs, over a slow link.
#
# **Question.** A model fits on one device, but training is too slow. Which split?
#
# 1. Tensor: it divides the work of each layer.
# 2. A pipeline: its messages are small.
# 3. Data parallelism.
#
# <details>
# <summary>Answer</summary>
#
# 1. So does data parallelism, without waiting in every layer.
# 2. It has a bubble; data parallelism has none.
# 3. **Right.** The others are for models that do not fit, and for when the batch must not grow further.
# </details>

# %% [markdown]
# ## Quiz
#
# Ten questions with instant feedback; `seed=2` gives them other numbers.

# %%
quizzes.ask("12")

# %% [markdown]
# ## Recap
#
# - Columns, then rows: for two layers one all-reduce forward and one backward.
# - A pipeline's bubble is (p − 1)/(vm + p − 1); 1F1B has GPipe's bubble and less memory.
# - Recomputation costs a third more work.
# - ZeRO 1, and with one micro-batch also ZeRO 2, save memory without sending more; ZeRO 3 sends 50 % more.
# - Tensor inside a server, pipeline between servers, data with the rest.
#
# **Next.** [Lab 12](../labs/12_model_parallelism/lab.ipynb), [13 fault tolerance](13_fault_tolerance.ipynb).
#
# **Sources.**
# - Pipelines: [Huang et al. (2019)](https://arxiv.org/abs/1811.06965),
#   [Narayanan et al. (2021)](https://arxiv.org/abs/2104.04473), [Qi et al. (2024)](https://arxiv.org/abs/2401.10241),
#   [DeepSeek-AI (2024)](https://arxiv.org/abs/2412.19437).
# - Tensors and sequences: [Shoeybi et al. (2019)](https://arxiv.org/abs/1909.08053),
#   [Korthikanti et al. (2022)](https://arxiv.org/abs/2205.05198),
#   [Liu et al. (2023)](https://arxiv.org/abs/2310.01889), [Jacobs et al. (2023)](https://arxiv.org/abs/2309.14509).
# - States: [Rajbhandari et al. (2020)](https://arxiv.org/abs/1910.02054), [Ren et al.
#   (2021)](https://arxiv.org/abs/2101.06840), [Rajbhandari et al. (2021)](https://arxiv.org/abs/2104.07857).
# - Models and experts: [Chowdhery et al. (2022)](https://arxiv.org/abs/2204.02311),
#   [Lepikhin et al. (2020)](https://arxiv.org/abs/2006.16668), [Fedus et al. (2021)](https://arxiv.org/abs/2101.03961).
# - [*DTensor concepts*](https://www.tensorflow.org/guide/dtensor_overview) of TensorFlow,
#   [`tensor.parallel`](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html) and
#   [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html) of PyTorch.
